// Package pulse knows who has worked lately: each service beats after a round,
// from the goroutine that did the work, and whoever has not beaten within its own
// budget is late. The systemd watchdog is fed only while nobody is late
// (DESIGN 4.8).
//
// It refuses to start goroutines, to judge whether a round went well (a failed
// round is a round; a hung one is not) and to know what a service is.
package pulse

import (
	"fmt"
	"sort"
	"sync"
	"time"
)

// Board holds the last beat of every registered service. The zero value is ready
// for use; all methods are safe for concurrent use.
type Board struct {
	mu    sync.Mutex
	beats map[string]*entry
}

type entry struct {
	last   time.Time
	budget time.Duration
}

// Late names one service that has not beaten within its budget.
type Late struct {
	Name   string
	Silent time.Duration // since its last beat
	Budget time.Duration
}

// String renders "scaler silent for 2m0s (budget 1m0s)".
func (l Late) String() string {
	return fmt.Sprintf("%s silent for %s (budget %s)", l.Name, l.Silent.Round(time.Second), l.Budget)
}

// Register adds a service that must beat at least once per budget, counts its
// registration as the first beat, and returns its beat. Registering a name again
// replaces the budget.
func (b *Board) Register(name string, budget time.Duration) (beat func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.beats == nil {
		b.beats = map[string]*entry{}
	}
	e := &entry{last: time.Now(), budget: budget}
	b.beats[name] = e
	return func() {
		b.mu.Lock()
		e.last = time.Now()
		b.mu.Unlock()
	}
}

// Late returns those that are late at now, by name. Empty means that everybody
// makes progress.
func (b *Board) Late(now time.Time) []Late {
	b.mu.Lock()
	defer b.mu.Unlock()
	var late []Late
	for name, e := range b.beats {
		if silent := now.Sub(e.last); silent > e.budget {
			late = append(late, Late{Name: name, Silent: silent, Budget: e.budget})
		}
	}
	sort.Slice(late, func(i, j int) bool { return late[i].Name < late[j].Name })
	return late
}
