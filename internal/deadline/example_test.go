package deadline_test

import (
	"context"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/deadline"
)

// An agent that does not hold its Lease has no time left: nothing begins.
func ExampleWithin() {
	actUntil := func() time.Time { return time.Time{} }
	ctx, cancel := deadline.Within(context.Background(), actUntil)
	defer cancel()
	fmt.Println(context.Cause(ctx))
	// Output: the right to act has ended
}
