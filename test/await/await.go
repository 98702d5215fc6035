// Package await is how tests wait for what another goroutine, process or server does: a
// wait ends by the event itself, or by Limit, which only a hang reaches.
//
// It measures nothing and asserts no speed: a host that is ten times as slow makes a
// wait longer and no test red. A test of a duration takes the time itself and says so.
package await

import (
	"context"
	"testing"
	"time"
)

// Limit is when a wait is taken for a hang. Everything that is waited for takes seconds
// on an idle host of two cores. While processes of the host wait for a processor, the time of a wait
// counts a quarter: another suite beside this one makes no test red.
const Limit = 4 * time.Minute

// poll is the pause between two looks.
const poll = 10 * time.Millisecond

// True waits until holds does.
func True(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Empty(t, func() string {
		if holds() {
			return ""
		}
		return what
	})
}

// Nil waits until try succeeds, and fails the test with its last error. The context ends
// with the wait; an error that comes of that is not the reason.
func Nil(t testing.TB, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := Begin()
	go func() {
		for tick := time.NewTicker(time.Second); !p.Over(Limit); {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
		cancel()
	}()
	last := ""
	Empty(t, func() string {
		err := try(ctx)
		if err == nil {
			return ""
		}
		if ctx.Err() == nil || last == "" {
			last = what + ": " + err.Error()
		}
		return last
	})
}

// Empty waits until waiting names nothing that is still waited for.
func Empty(t testing.TB, waiting func() string) {
	t.Helper()
	p := Begin()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for what := waiting(); what != ""; what = waiting() {
		if p.Over(Limit) {
			t.Fatalf("waited %s in vain: %s", p.Said(), what)
		}
		<-tick.C
	}
}
