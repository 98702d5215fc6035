// Package act is the one room that writes for the scaler: it carries out the
// closed set of actions (Grow, Cordon, Uncordon, Soften, Evict, Terminate) and returns what
// became of each.
//
// Every deletion is checked once more against the live API right before it is
// done. It refuses to decide, to retry (the next round is the retry), to delete an
// instance whose node changed hands or got work since the plan was made, and to
// take back a cordon that is not this agent's own.
package act

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/record"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/deadline"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Limits of one action and of how many are under way at once.
const (
	actionTimeout = 30 * time.Second // one call to the cloud or to the API server
	parallel      = 16               // actions of one kind, and node checks, at once
	failuresKept  = 1000             // failures remembered, so that each is logged once
	eventsARound  = 20               // events about pods in one round; the rest are in the log
)

// Executor carries out plans.
type Executor struct {
	Client   *kube.Client
	Cloud    provider.Provider
	Recorder record.EventRecorder
	Log      *logrus.Entry
	// MayAct is asked before each action starts, where false ends the round, and again
	// right before each write, where false fails the action.
	MayAct func() (bool, string)
	// Until is when the right to act ends, as it is known now. An action is cut short
	// there unless the right was renewed meanwhile. nil: it does not end.
	Until func() time.Time
	// Beat is called after each action: a round with many is progress, not a hang.
	// nil: no heartbeat is kept.
	Beat func()

	failed map[string]string // what an action on something failed with last, as logged
}

// round is one Do: the outcomes are gathered from parallel workers.
type round struct {
	*Executor
	mu       sync.Mutex
	outcomes []cluster.Outcome
}

// Do carries out the plan's actions: grows first (a waiting pod is worth most),
// then cordons and their undoing, then evictions, then terminations batched by
// group. When ctx ends it finishes what it is in and starts nothing more; actions
// not started have no outcome.
func (e *Executor) Do(ctx context.Context, p decision.Plan) []cluster.Outcome {
	r := &round{Executor: e}
	var (
		grows   []decision.Grow
		marks   []decision.Action
		evicts  []decision.Evict
		byGroup = map[cluster.GroupID][]decision.Terminate{}
		order   []cluster.GroupID
	)
	for _, a := range p.Actions {
		switch a := a.(type) {
		case decision.Grow:
			grows = append(grows, a)
		case decision.Cordon, decision.Uncordon, decision.SoftTaint:
			marks = append(marks, a)
		case decision.Evict:
			evicts = append(evicts, a)
		case decision.Terminate:
			if _, ok := byGroup[a.Group]; !ok {
				order = append(order, a.Group)
			}
			byGroup[a.Group] = append(byGroup[a.Group], a)
		}
	}
	// Side by side: a cloud that hangs must not keep the others' groups waiting.
	each(grows, func(a decision.Grow) {
		r.one(ctx, func(ctx context.Context) { r.grow(ctx, a) })
	})
	each(marks, func(a decision.Action) {
		r.one(ctx, func(ctx context.Context) { r.mark(ctx, a) })
	})
	each(evicts, func(a decision.Evict) {
		r.one(ctx, func(ctx context.Context) { r.evict(ctx, a) })
	})
	each(order, func(g cluster.GroupID) {
		r.one(ctx, func(ctx context.Context) { r.terminate(ctx, g, byGroup[g]) })
	})
	return r.outcomes
}

// one starts an action unless the agent is stopping or may not act, and lets a
// started one finish within its own time.
func (r *round) one(ctx context.Context, do func(context.Context)) {
	if ctx.Err() != nil {
		return
	}
	if r.MayAct != nil {
		if ok, _ := r.MayAct(); !ok {
			return
		}
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), actionTimeout)
	defer cancel()
	bounded, end := deadline.Within(bounded, r.Until)
	defer end()
	do(bounded)
	if r.Beat != nil {
		r.Beat()
	}
}

// stillMay is asked right before a write: what came before it may have taken a while.
func (r *round) stillMay(ctx context.Context) error {
	if r.MayAct != nil {
		if ok, why := r.MayAct(); !ok {
			return fmt.Errorf("nothing was changed: %s", why)
		}
	}
	return context.Cause(ctx)
}

// each runs do for every item, at most parallel at once.
func each[T any](items []T, do func(T)) {
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, item := range items {
		g.Go(func() error {
			do(item)
			return nil
		})
	}
	_ = g.Wait() // the workers report through outcomes
}

// done notes what became of an action and logs it.
func (r *round) done(o cluster.Outcome, err error, kind string, start time.Time, log *logrus.Entry, words string) {
	o.At = time.Now()
	log = log.WithField("took", o.At.Sub(start).Round(time.Millisecond).String())
	if err != nil {
		o.Error, o.Kind = err.Error(), kind
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = append(r.outcomes, o)
	about := o.Action + " " + string(o.Group) + " " + string(o.Instance) + " " + string(o.Node) + " " + string(o.Pod)
	switch {
	case err == nil:
		delete(r.failed, about)
		log.Info(words)
	case kind == provider.Busy.String(): // nothing failed: it is asked for again when the cloud is free
		log.Info(words + ": waits: " + o.Error)
	case r.failed[about] == o.Error: // the next round is the retry, and said once is enough
		log.WithField("kind", kind).Debug(words + ": not done: " + o.Error)
	default:
		if r.failed == nil || len(r.failed) > failuresKept {
			r.Executor.failed = map[string]string{}
		}
		r.failed[about] = o.Error
		log.WithField("kind", kind).Warn(words + ": not done: " + o.Error)
	}
}
