package supervise

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/internal/heartbeat"
)

// told collects sd_notify states.
type told struct {
	mu   sync.Mutex
	said []string
}

func (n *told) notify(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, strings.Split(s, "\n")...)
}

func (n *told) count(s string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := 0
	for _, got := range n.said {
		if got == s {
			c++
		}
	}
	return c
}

func supervisor(n *told, ready func(context.Context) error) Supervisor {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return Supervisor{
		Log: log.WithField("service", "test"), Heartbeats: &heartbeat.Monitor{}, Notify: n.notify, Watchdog: 10 * time.Second,
		Ready: ready, ReadyWithin: time.Minute, Status: func() string { return "fine" },
	}
}

func beating(every time.Duration) func(context.Context, func()) error {
	return func(ctx context.Context, beat func()) error {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				beat()
			}
		}
	}
}

func TestSuperviseFeedsAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &told{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- supervisor(n, func(context.Context) error { return nil }).Run(ctx, nil, []Service{{Name: "a", Budget: 3 * time.Second, Run: beating(time.Second)}})
		}()
		time.Sleep(21 * time.Second)
		if n.count("READY=1") != 1 || n.count("WATCHDOG=1") != 4 {
			t.Errorf("told %q, want READY=1 once and WATCHDOG=1 four times", n.said)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("a stop is no error: %v", err)
		}
		synctest.Wait()
		if n.count("STOPPING=1") != 1 {
			t.Errorf("told %q, want STOPPING=1", n.said)
		}
	})
}

func TestSuperviseNamesTheLateAndStarvesTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &told{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		hang := func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }
		go func() {
			done <- supervisor(n, func(context.Context) error { return nil }).Run(ctx, nil,
				[]Service{{Name: "good", Budget: 3 * time.Second, Run: beating(time.Second)}, {Name: "stuck", Budget: 6 * time.Second, Run: hang}})
		}()
		time.Sleep(31 * time.Second)
		if got := n.count("WATCHDOG=1"); got != 1 {
			t.Errorf("the watchdog was fed %d times, want once before stuck was late", got)
		}
		if !slices.ContainsFunc(n.said, func(s string) bool { return strings.Contains(s, "late: stuck") && !strings.Contains(s, "good") }) {
			t.Errorf("told %q, want the late one by name", n.said)
		}
		cancel()
		<-done
	})
}

func TestSuperviseIsReadyInTimeWithoutTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &told{}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		started := false
		err := supervisor(n, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }).Run(ctx,
			[]Service{{Name: "early", Budget: time.Minute, Run: beating(time.Second)}},
			[]Service{{Name: "main", Run: func(context.Context, func()) error { started = true; return nil }}})
		if err != nil || started || n.count("READY=1") != 1 || n.count("WATCHDOG=1") < 10 {
			t.Errorf("err %v, services started %v, told %q", err, started, n.said)
		}
	})
}

func TestSuperviseEndsWithTheFirstError(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		run  func(context.Context, func()) error
		want string
	}{
		"error": {func(context.Context, func()) error { return boom }, "service bad: boom"},
		"ended": {func(context.Context, func()) error { return nil }, "ended by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := supervisor(&told{}, func(context.Context) error { return nil }).Run(t.Context(), nil,
					[]Service{{Name: "good", Budget: time.Minute, Run: beating(time.Second)}, {Name: "bad", Budget: time.Minute, Run: c.run}})
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("err is %v, want %q", err, c.want)
				}
			})
		})
	}
}

// TestTheGroundEndsLast: the Lease is not given up while a service still finishes its
// last write.
func TestTheGroundEndsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var ended []string
		until := func(name string, linger time.Duration) Service {
			return Service{Name: name, Budget: time.Hour, Run: func(ctx context.Context, _ func()) error {
				<-ctx.Done()
				time.Sleep(linger)
				mu.Lock()
				ended = append(ended, name)
				mu.Unlock()
				return nil
			}}
		}
		s := supervisor(&told{}, func(context.Context) error { return nil })
		time.AfterFunc(time.Minute, cancel)
		if err := s.Run(ctx, []Service{until("lease", 0)}, []Service{until("scaler", 20*time.Second), until("signer", time.Second)}); err != nil {
			t.Error(err)
		}
		if want := []string{"signer", "scaler", "lease"}; !slices.Equal(ended, want) {
			t.Errorf("ended in order %q, want %q", ended, want)
		}
	})
}
