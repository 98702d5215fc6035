package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestSettling(t *testing.T) {
	const ms = time.Millisecond
	quiet := debounce{quiet: 200 * ms, limit: 800 * ms, calm: 2 * time.Second}
	for name, c := range map[string]struct {
		soon  []time.Duration // when urgent events come
		later []time.Duration
		want  time.Duration
	}{
		"nothing":                   {nil, nil, 30 * time.Second},
		"lone":                      {[]time.Duration{100 * ms}, nil, 300 * ms},
		"burst ends":                {[]time.Duration{0, 150 * ms, 300 * ms}, nil, 500 * ms},
		"burst goes on":             {every(100*ms, 3*time.Second), nil, 800 * ms},
		"calm":                      {nil, []time.Duration{time.Second, 2 * time.Second}, 3 * time.Second},
		"calm, then urgent":         {[]time.Duration{500 * ms}, []time.Duration{0}, 700 * ms},
		"calm ends before quiet":    {[]time.Duration{1900 * ms}, []time.Duration{0}, 2 * time.Second},
		"urgent right before until": {[]time.Duration{29900 * ms}, nil, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				soon, later := make(chan struct{}, 1), make(chan struct{}, 1)
				for _, at := range c.soon {
					time.AfterFunc(at, func() { poke(soon) })
				}
				for _, at := range c.later {
					time.AfterFunc(at, func() { poke(later) })
				}
				start := time.Now()
				if !quiet.wait(t.Context(), start.Add(30*time.Second), soon, nil, later) {
					t.Fatal("wait ended without a round")
				}
				if got := time.Since(start); got != c.want {
					t.Errorf("the round came after %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestSettlingEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if (debounce{}).wait(ctx, time.Now().Add(time.Hour), nil, nil, nil) {
			t.Error("a round after the end")
		}
	})
}

func every(step, until time.Duration) []time.Duration {
	var out []time.Duration
	for at := time.Duration(0); at < until; at += step {
		out = append(out, at)
	}
	return out
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
