// Package deadline bounds a write by the right to make it. The scaler, csrsigner and the
// nodecleaner write only while this agent holds its Lease; a write that is under way when
// the Lease ends could come after one of the next leader.
//
// Small and apart: four packages write by it, and none of them knows another. It refuses to read a missing answer as permission: the zero time, like any time that has
// passed, means that the right has ended.
package deadline

import (
	"context"
	"errors"
	"time"
)

// ErrOver is the cause of a context that Within has ended.
var ErrOver = errors.New("the right to act has ended")

// Within ends ctx, with the cause ErrOver, when the right to act does. until says when that
// is, as it is known now; it is asked again at that moment, so that a right that was renewed
// meanwhile goes on. A nil until is a right without an end. The caller bounds ctx by a time
// of its own and calls cancel, as with package context.
func Within(ctx context.Context, until func() time.Time) (bounded context.Context, cancel context.CancelFunc) {
	bounded, end := context.WithCancelCause(ctx)
	cancel = func() { end(nil) }
	if until == nil {
		return bounded, cancel
	}
	left := time.Until(until())
	if left <= 0 {
		end(ErrOver)
		return bounded, cancel
	}
	go func() {
		for left > 0 {
			timer := time.NewTimer(left)
			select {
			case <-bounded.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			left = time.Until(until())
		}
		end(ErrOver)
	}()
	return bounded, cancel
}
