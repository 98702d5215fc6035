package agent

import (
	"context"
	"time"
)

// debounce is the trailing-edge debounce between the world's events and a round: a
// burst becomes one round, a lone event waits for quiet only.
type debounce struct {
	quiet time.Duration // silence after an urgent event
	limit time.Duration // from the first urgent event
	calm  time.Duration // from the first event that is not urgent
}

// wait returns true when a round is due: at until, or when the events that soon and
// later receive have settled. It returns false when ctx ends.
func (s debounce) wait(ctx context.Context, until time.Time, soon, changed, later <-chan struct{}) bool {
	var first time.Time
	var settled time.Time
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	urgent := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		settled = earliest(now.Add(s.quiet), first.Add(s.limit))
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return ctx.Err() == nil // both may be ready; an ended agent begins no round
		case <-soon:
			urgent()
		case <-changed:
			urgent()
		case <-later:
			until = earliest(until, time.Now().Add(s.calm))
		}
		due := until
		if !settled.IsZero() {
			due = earliest(due, settled)
		}
		timer.Reset(time.Until(due))
	}
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
