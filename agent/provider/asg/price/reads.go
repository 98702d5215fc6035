package price

import (
	"slices"
	"sync"
	"time"
)

// reads keeps the last answer about some types, and tells when AWS is to be asked again. It is safe for concurrent use.
type reads[T any] struct {
	mu    sync.Mutex
	last  T
	at    time.Time
	types []string // that were asked for, sorted
}

// due is the last answer, and the types to ask for, sorted and each once: none where the answer is younger than every and has them all.
func (r *reads[T]) due(types []string, every time.Duration, now time.Time) (last T, ask []string) {
	ask = slices.Compact(slices.Sorted(slices.Values(types)))
	r.mu.Lock()
	defer r.mu.Unlock()
	lacks := func(t string) bool { return !slices.Contains(r.types, t) }
	if !r.at.IsZero() && now.Sub(r.at) < every && !slices.ContainsFunc(ask, lacks) {
		return r.last, nil
	}
	return r.last, ask
}

// keep keeps an answer about some types.
func (r *reads[T]) keep(answer T, types []string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.at, r.types = answer, now, types
}
