package deadline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestWithin: a context ends with the right to act, and not before its last renewal has run
// out. The zero time and a time that has passed end it before anything can begin.
func TestWithin(t *testing.T) {
	for name, c := range map[string]struct {
		until func(began time.Time) time.Time
		want  time.Duration
	}{
		"zero":   {func(time.Time) time.Time { return time.Time{} }, 0},
		"passed": {func(began time.Time) time.Time { return began.Add(-time.Second) }, 0},
		"now":    {func(began time.Time) time.Time { return began }, 0},
		"ahead":  {func(began time.Time) time.Time { return began.Add(7 * time.Second) }, 7 * time.Second},
		"renewed": {func(began time.Time) time.Time {
			return began.Add(min(time.Since(began), 16*time.Second).Truncate(2*time.Second) + 10*time.Second)
		}, 26 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := Within(t.Context(), func() time.Time { return c.until(began) })
				defer cancel()
				if over := ctx.Err() != nil; over != (c.want == 0) {
					t.Errorf("over at once: %t", over)
				}
				<-ctx.Done()
				if took := time.Since(began); took != c.want || !errors.Is(context.Cause(ctx), ErrOver) {
					t.Errorf("ended after %s by %v, want %s", took, context.Cause(ctx), c.want)
				}
			})
		})
	}
}

func TestWithinGivesNoMoreThanTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, until := range map[string]func() time.Time{"no end": nil, "later": func() time.Time { return time.Now().Add(time.Hour) }} {
			outer, stop := context.WithTimeout(t.Context(), time.Minute)
			ctx, cancel := Within(outer, until)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, context.Cause(ctx))
			}
			cancel()
			stop()
		}
	})
}
