package supervise

import (
	"context"
	"os"
	"time"
)

// curable is the least life of a process that ends because something outside of it is missing: a
// kubeconfig, the cloud, a free address. Trying again helps there, and at this pace the unit's
// limit of starts (StartLimitBurst=) is never reached; a process that crashes at once reaches it.
const curable = 12 * time.Second

// WaitForSystemd keeps a unit that has failed from being started again too soon.
func WaitForSystemd(ctx context.Context, started time.Time) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return // a person has started it
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(started.Add(curable))):
	}
}
