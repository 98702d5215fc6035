package election

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// jitter spreads the attempts of agents that wait, as client-go's leader election does.
const jitter = 1.2

// campaign gets the Lease, holds it until it is lost or ctx ends, and gives it back. The
// protocol is that of client-go's package leaderelection, so that both may elect with one
// Lease: an agent that finds a Lease of another holder waits until the Lease has not changed
// for its whole duration by the agent's own clock; resource versions decide between two
// agents that write at once. The package itself is not used, because its locks link every API group.
func (g *Leadership) campaign(ctx context.Context, lock *leaseLock) {
	lock.forget()
	if !g.acquire(ctx, lock) {
		return
	}
	g.started(lock)
	g.hold(ctx, lock)
	lock.giveBack(context.WithoutCancel(ctx))
	g.stopped(ctx.Err() != nil)
}

// acquire tries until the Lease is this agent's, or ctx ends: then it is false. While this
// agent could not act it only looks, so that it knows by then whether the Lease runs out.
func (g *Leadership) acquire(ctx context.Context, lock *leaseLock) bool {
	for ctx.Err() == nil {
		got, news := false, g.deps.Loaded
		if g.loaded() {
			got, news = lock.attempt(ctx), nil
		} else {
			lock.look(ctx)
		}
		g.follow(lock.holder())
		if got {
			return true
		}
		select {
		case <-ctx.Done():
		case <-news:
		case <-time.After(wait.Jitter(g.cfg.RetryPeriod, jitter)):
		}
	}
	return false
}

// hold renews until ctx ends, until another agent holds the Lease, or until no attempt of a
// whole RenewDeadline was accepted.
func (g *Leadership) hold(ctx context.Context, lock *leaseLock) {
	for {
		pause(ctx, g.cfg.RetryPeriod)
		if ctx.Err() != nil {
			return
		}
		renewed := lock.attempt(ctx)
		holder, until := lock.holder()
		g.follow(holder, until)
		if !renewed && (holder != "" && holder != g.self || !g.mayHold()) {
			return
		}
	}
}

// mayHold tells whether the right to act is not over: an attempt may still be accepted.
func (g *Leadership) mayHold() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.until())
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
