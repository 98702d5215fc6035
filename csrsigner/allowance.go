package csrsigner

import "time"

// bucket is a token bucket; the zero time fills it.
type bucket struct {
	tokens float64
	at     time.Time
}

// refill adds what perHour has earned since the last call, up to burst.
func (b *bucket) refill(now time.Time, burst, perHour float64) {
	if b.at.IsZero() {
		b.tokens, b.at = burst, now
	}
	if d := now.Sub(b.at); d > 0 {
		b.tokens = min(burst, b.tokens+perHour*d.Hours())
		b.at = now
	}
}

// allowance is a bucket of decisions that fills within an hour.
type allowance struct {
	bucket
	perHour float64
}

func (a *allowance) refill(now time.Time) { a.bucket.refill(now, a.perHour, a.perHour) }

func (a *allowance) full(now time.Time) bool {
	a.refill(now)
	return a.tokens >= a.perHour
}
