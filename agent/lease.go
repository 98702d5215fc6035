package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/autoscaler-agent/autoscaler-agent/agent/apierror"
)

// OtherLease is the Lease of an in-cluster Cluster Autoscaler, in the same
// namespace as ours. While somebody renews it this agent acts on nothing.
const OtherLease = "cluster-autoscaler"

// gate says whether this agent may act now: it holds the Lease, and no other
// autoscaler is at work.
type gate struct {
	cfg      LeaseConfig
	identity string
	client   kubernetes.Interface
	log      *logrus.Entry
	heard    func()  // the API server answered
	writes   intents // what the clouds were asked for without an answer

	mu         sync.Mutex
	lock       *leaseLock // nil until Run
	leading    bool
	renewed    time.Time // when the last attempt began that got or kept the Lease
	holder     string
	err        error         // of the last attempt at the Lease
	other      string        // who holds OtherLease
	otherSeen  time.Time     // when its renewal was last seen
	otherLasts time.Duration // its lease duration
}

// MayAct tells whether this agent may change anything now, and if not, why.
func (g *gate) MayAct() (bool, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.other != "" && time.Since(g.otherSeen) < g.otherLasts {
		return false, fmt.Sprintf("another autoscaler is at work: %s holds Lease %s/%s; stop it (kubectl -n %s scale deployment cluster-autoscaler --replicas=0) or stop this agent",
			g.other, g.cfg.Namespace, OtherLease, g.cfg.Namespace)
	}
	if g.leading && time.Now().Before(g.until()) {
		return true, ""
	}
	if g.leading {
		// A process that was stopped (a debugger, a frozen VM) wakes up believing in a
		// Lease that another agent may hold by now; so does one whose attempts hang.
		return false, fmt.Sprintf("Lease %s/%s was last renewed at %s", g.cfg.Namespace, g.cfg.Name, g.renewed.UTC().Format(time.RFC3339))
	}
	if g.holder != "" && g.holder != g.identity {
		return false, fmt.Sprintf("standing by: %s holds Lease %s/%s", g.holder, g.cfg.Namespace, g.cfg.Name)
	}
	why := fmt.Sprintf("waiting for Lease %s/%s", g.cfg.Namespace, g.cfg.Name)
	if g.err != nil {
		why += ": " + apierror.Text(g.err)
	}
	return false, why
}

// until is when the right to act ends unless the Lease is renewed before: a few seconds
// before another agent may take it. By the wall clock, too: the monotonic one stands
// still while a machine is suspended. The caller holds the mutex.
func (g *gate) until() time.Time {
	end := g.renewed.Add(g.cfg.RenewDeadline)
	if wall := end.Round(0); time.Now().Round(0).After(wall) {
		return wall
	}
	return end
}

// ActUntil is when a change that begins now must have ended: it moves on with each renewal
// of the Lease. Where nothing may be changed it is this moment.
func (g *gate) ActUntil() time.Time {
	if ok, _ := g.MayAct(); !ok {
		return time.Now()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until()
}

// announce has the changes that the clouds are about to be asked for written on the
// Lease; the error says why they may not be.
func (g *gate) announce(ctx context.Context) error {
	if ok, why := g.MayAct(); !ok {
		return errors.New(why)
	}
	g.mu.Lock()
	lock := g.lock
	g.mu.Unlock()
	if err := lock.announce(ctx); err != nil {
		return fmt.Errorf("lease %s/%s: %s", g.cfg.Namespace, g.cfg.Name, apierror.Text(err))
	}
	return nil
}

// knows tells that this agent leads and has taken over what was left unfinished, so that
// its list is the whole one.
func (g *gate) knows() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leading
}

// givesBack ends the right to act right before the Lease is given back.
func (g *gate) givesBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.renewed = time.Time{}
}

// kept notes when an attempt began that the API server accepted as ours.
func (g *gate) kept(began time.Time) {
	g.mu.Lock()
	g.renewed = began
	g.mu.Unlock()
}

func (g *gate) note(err error) {
	// A campaign goes through these, and they are answers.
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		err = nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// The first error of a silence stands for all: refused, reset and timed out take
	// turns while one API server is down.
	if err == nil || g.err == nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		g.err = err
	}
}

// saw notes a state of the other autoscaler's Lease. On the first sight its own
// stamp counts, later ones are by this machine's clock.
func (g *gate) saw(l *coordinationv1.Lease, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.other, g.otherLasts = "", 20*time.Second
	if l == nil || l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil {
		return
	}
	g.other, g.otherSeen = *l.Spec.HolderIdentity, time.Now()
	if first {
		g.otherSeen = l.Spec.RenewTime.Time
	}
	if d := l.Spec.LeaseDurationSeconds; d != nil {
		g.otherLasts = time.Duration(*d)*time.Second + 5*time.Second
	}
}

// Run campaigns for the Lease until ctx ends. Losing it stops acting and starts the
// campaign anew; it is no reason to exit. The identity is stable over a restart, so
// that an agent that was killed takes its own Lease back at once.
func (g *gate) Run(ctx context.Context, beat func()) error {
	lock := newLeaseLock(g, beat)
	g.mu.Lock()
	g.lock = lock
	g.mu.Unlock()
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, Name: g.cfg.Name, ReleaseOnCancel: true,
			LeaseDuration: g.cfg.Duration, RenewDeadline: g.cfg.RenewDeadline, RetryPeriod: g.cfg.RetryPeriod,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { g.started(lock) },
				OnStoppedLeading: func() { g.stopped(ctx.Err() != nil) },
				OnNewLeader:      g.follow,
			},
		})
		if err != nil {
			return fmt.Errorf("campaign for lease: %w", err)
		}
		elector.Run(ctx)
	}
	return nil
}

// started notes that the Lease is held. The changes that the last leader left without an
// answer are taken over first.
func (g *gate) started(lock *leaseLock) {
	left, err := lock.unfinished()
	if err != nil {
		g.log.WithField("why", err.Error()).Error("what the leader before this one asked the clouds for cannot be read")
	}
	for _, i := range left {
		g.log.WithField("group", string(i.Group)).Warnf("the leader before this one has no answer to a change of group %s (%s): the group waits", i.Group, i)
	}
	g.writes.Inherit(left)
	g.mu.Lock()
	g.leading = true
	g.mu.Unlock()
	g.log.Info("holding the Lease: acting")
}

// stopped notes the end of holding the Lease; asked when it was given back.
func (g *gate) stopped(asked bool) {
	g.mu.Lock()
	was := g.leading
	g.leading = false
	g.mu.Unlock()
	switch {
	case was && asked:
		g.log.Info("the Lease is given back")
	case was:
		g.log.Warn("the Lease is lost: nothing is changed until it is held again")
	}
}

func (g *gate) follow(holder string) {
	g.mu.Lock()
	g.holder = holder
	g.mu.Unlock()
	if holder != "" && holder != g.identity {
		g.log.WithField("holder", holder).Debug("another agent holds the Lease: standing by") // statusLine says it, too
	}
}
