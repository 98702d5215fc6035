package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
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
	heard    func() // the API server answered

	mu         sync.Mutex
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
	if g.leading && time.Since(g.renewed) < g.cfg.RenewDeadline {
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
		why += ": " + observe.CauseText(g.err)
	}
	return false, why
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
	lock := &watchedLock{beat: beat, heard: g.heard, failed: g.note, kept: g.kept, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: g.cfg.Namespace, Name: g.cfg.Name},
		Client:     g.client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: g.identity},
	}}
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, Name: g.cfg.Name, ReleaseOnCancel: true,
			LeaseDuration: g.cfg.Duration, RenewDeadline: g.cfg.RenewDeadline, RetryPeriod: g.cfg.RetryPeriod,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { g.started() },
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

func (g *gate) started() {
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

// watchedLock tells of every answer of the API server, and beats after every
// attempt.
type watchedLock struct {
	resourcelock.Interface
	beat   func()
	heard  func()
	failed func(error) // nil after a success
	kept   func(began time.Time)
}

func (l *watchedLock) note(err error) {
	l.beat()
	// A refusal is an answer too; a timeout or a server that cannot reach its store
	// is not.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) {
		l.heard()
	}
	l.failed(err)
}

func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	l.note(err)
	return r, raw, err
}

func (l *watchedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	began := time.Now()
	err := l.Interface.Create(ctx, r)
	l.note(err)
	if err == nil {
		l.kept(began)
	}
	return err
}

func (l *watchedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	began := time.Now()
	err := l.Interface.Update(ctx, r)
	l.note(err)
	if err == nil {
		l.kept(began)
	}
	return err
}
