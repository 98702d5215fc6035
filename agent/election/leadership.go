package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/deadline"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Config is the election's part of the configuration; the defaults are Cluster
// Autoscaler's.
type Config struct {
	Namespace     string        `default:"kube-system" form:"namespace" desc:"Namespace of the Lease by which one of several agents acts, and of the priority ConfigMap."`
	Name          string        `default:"autoscaler-agent" form:"name" desc:"Name of the Lease."`
	Duration      time.Duration `default:"15s" range:"1s..10m" desc:"How long a Lease holds that its agent no longer renews."`
	RenewDeadline time.Duration `split_words:"true" default:"10s" range:"1s..10m" desc:"How long the acting agent tries to renew its Lease before it stops to act."`
	RetryPeriod   time.Duration `split_words:"true" default:"2s" range:"100ms..1m" desc:"Time between two renewals of the Lease."`
}

// Deps is what the election works with.
type Deps struct {
	// Identity is this agent's name in the Lease; Instance tells it from another agent of the same name, and is the same after a restart
	// of the process (config.Config.Instance). Empty: names are told apart by nothing.
	Identity, Instance string
	// Client writes the Lease; nothing else may hold its calls up.
	Client *kube.Client
	Log    *logrus.Entry
	// Heard is called whenever the API server answered.
	Heard func()
	// Writes are what the clouds were asked for without an answer.
	Writes Intents
	// Loaded is closed once this agent could act. Until then the Lease is read and not asked
	// for: an agent whose caches are full leads meanwhile. nil: it could act at once.
	Loaded <-chan struct{}
	// Notes are the annotations of the Lease that this agent writes while it leads, by name; an empty value takes one away.
	// Others stay as they are. nil: it writes none.
	Notes func() map[string]string
	// Noted is told of the annotations of the Lease whenever it is read or written; nil: nothing is.
	Noted func(map[string]string)
	// Leads is called whenever this agent begins to lead; nil: nothing is.
	Leads func()
}

// Leadership says whether this agent may act now: it holds the Lease, and no other
// autoscaler is at work.
type Leadership struct {
	cfg  Config
	deps Deps
	self string // this agent as the holder of the Lease

	mu         sync.Mutex
	lock       *leaseLock // nil until Run
	leading    bool
	renewed    time.Time // when the last attempt began that got or kept the Lease
	holder     string
	heldUntil  time.Time     // when the holder's Lease runs out, by this machine's clock
	twin       bool          // the holder has this agent's name, is another instance, and renews
	err        error         // of the last attempt at the Lease
	other      string        // who holds OtherLease
	otherSeen  time.Time     // when its renewal was last seen
	otherLasts time.Duration // its lease duration
	wrong      atomic.Value  // what was last told of a Lease's numbers, a string
}

// New makes the leadership of an agent that does not campaign yet; Run does.
func New(cfg Config, deps Deps) *Leadership {
	return &Leadership{cfg: cfg, deps: deps, self: Holder(deps.Identity, deps.Instance)}
}

// Holder is what an agent writes into the Lease as its holder, as client-go's users do: a name and an instance.
func Holder(name, instance string) string {
	if instance == "" {
		return name
	}
	return name + "_" + instance
}

// Twin tells that the holder of a Lease has the name of an agent, and is another instance: a copied agent.env, or the machine before
// it was started again.
func Twin(holder, name, instance string) bool {
	return instance != "" && nameOf(holder) == name && holder != Holder(name, instance)
}

func nameOf(holder string) string { return holder[:max(strings.LastIndex(holder, "_"), 0)] }

// TwinWords say what to do about two agents of one name.
func TwinWords(holder string) string {
	return fmt.Sprintf("another agent has this one's name: %s holds the Lease; give each its own AUTOSCALER_NODE_NAME", shown(holder))
}

// Standing tells whether an agent acts, and if it does not, whether an operator should look why.
type Standing int

// The standings.
const (
	Hindered Standing = iota // it does not act, and an operator should look why
	Acts
	StandsBy // another agent acts
	Begins   // it has just been started, and reads the cluster
)

// MayAct tells whether this agent may change anything now, and if not, why.
func (g *Leadership) MayAct() (bool, string) {
	standing, why := g.Standing()
	return standing == Acts, why
}

// Standing tells whether this agent acts, and if not, whether that is as it should be.
func (g *Leadership) Standing() (Standing, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if why := g.beside(); why != "" {
		return Hindered, why
	}
	if g.leading && time.Now().Before(g.until()) {
		return Acts, ""
	}
	if g.leading && g.renewed.IsZero() { // givesBack
		return Hindered, fmt.Sprintf("Lease %s/%s is given back: this agent ends", g.cfg.Namespace, g.cfg.Name)
	}
	if g.leading {
		// A process that was stopped (a debugger, a frozen VM) wakes up believing in a
		// Lease that another agent may hold by now; so does one whose attempts hang.
		return Hindered, fmt.Sprintf("Lease %s/%s was last renewed at %s", g.cfg.Namespace, g.cfg.Name, g.renewed.UTC().Format(time.RFC3339))
	}
	why := fmt.Sprintf("waiting for Lease %s/%s", g.cfg.Namespace, g.cfg.Name)
	if g.holder != "" && g.holder != g.self {
		if time.Now().Before(g.heldUntil) {
			if g.twin {
				return Hindered, TwinWords(g.holder)
			}
			return StandsBy, fmt.Sprintf("standing by: %s holds Lease %s/%s", cmp.Or(nameOf(g.holder), g.holder), g.cfg.Namespace, g.cfg.Name)
		}
		// It should be this agent's by now. What keeps it from that is the error, if there is one.
		why = fmt.Sprintf("waiting for Lease %s/%s: %s has not renewed it, and its time ended at %s", g.cfg.Namespace, g.cfg.Name, cmp.Or(nameOf(g.holder), g.holder), g.heldUntil.UTC().Format(time.RFC3339))
	}
	standing := Hindered
	if !g.loaded() {
		standing = Begins
		why = fmt.Sprintf("reading the cluster; then Lease %s/%s is asked for", g.cfg.Namespace, g.cfg.Name)
	}
	if g.err != nil {
		standing = Hindered
		why += ": " + apierror.Text(g.err)
	}
	return standing, why
}

// until is when the right to act ends unless the Lease is renewed before: a few seconds
// before another agent may take it. By the wall clock, too: the monotonic one stands
// still while a machine is suspended. The caller holds the mutex.
func (g *Leadership) until() time.Time {
	end := g.renewed.Add(g.cfg.RenewDeadline)
	if wall := end.Round(0); time.Now().Round(0).After(wall) {
		return wall
	}
	return end
}

// ActUntil is when a change that begins now must have ended: it moves on with each renewal
// of the Lease. Where nothing may be changed it is this moment.
func (g *Leadership) ActUntil() time.Time {
	if ok, _ := g.MayAct(); !ok {
		return time.Now()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until()
}

// Announce has the changes that the clouds are about to be asked for written on the
// Lease; the error says why they may not be.
func (g *Leadership) Announce(ctx context.Context) error {
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

// Permit proves by a renewal of the Lease that this agent leads, and ends what is written when
// the Lease does: a write of an old leader would undo one of the next.
func (g *Leadership) Permit(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := g.Announce(ctx); err != nil {
		return nil, nil, fmt.Errorf("the cloud was not asked: %w", err)
	}
	bounded, cancel := deadline.Within(ctx, g.ActUntil)
	return bounded, cancel, nil
}

// knows tells that this agent leads and has taken over what was left unfinished, so that
// its list is the whole one.
func (g *Leadership) knows() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leading
}

// givesBack ends the right to act right before the Lease is given back.
func (g *Leadership) givesBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.renewed = time.Time{}
}

// kept notes when an attempt began that the API server accepted as ours.
func (g *Leadership) kept(began time.Time) {
	g.mu.Lock()
	g.renewed = began
	g.mu.Unlock()
}

func (g *Leadership) note(err error) {
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

// Run campaigns for the Lease until ctx ends. Losing it stops acting and starts the
// campaign anew; it is no reason to exit. Name and instance are stable over a restart of the
// process, so that an agent that was killed takes its own Lease back at once.
func (g *Leadership) Run(ctx context.Context, beat func()) error {
	lock := newLeaseLock(g, beat)
	g.mu.Lock()
	g.lock = lock
	g.mu.Unlock()
	for ctx.Err() == nil {
		g.campaign(ctx, lock)
	}
	return nil
}

// started notes that the Lease is held. The changes that the last leader left without an
// answer are taken over first.
func (g *Leadership) started(lock *leaseLock) {
	left, err := lock.unfinished()
	if err != nil {
		g.deps.Log.WithField("why", err.Error()).Error("what the leader before this one asked the clouds for cannot be read")
	}
	for _, i := range left {
		g.deps.Log.WithField("group", string(i.Group)).Warnf("the leader before this one has no answer to a change of group %s (%s): the group waits", i.Group, i)
	}
	g.deps.Writes.Inherit(left)
	g.mu.Lock()
	g.leading = true
	g.mu.Unlock()
	g.deps.Log.Info("holding the Lease: acting")
	if g.deps.Leads != nil {
		g.deps.Leads()
	}
}

// loaded tells whether this agent could act if it led.
func (g *Leadership) loaded() bool {
	select {
	case <-g.deps.Loaded:
		return true
	default:
		return g.deps.Loaded == nil
	}
}

// stopped notes the end of holding the Lease; asked when it was given back.
func (g *Leadership) stopped(asked bool) {
	g.mu.Lock()
	was := g.leading
	g.leading = false
	g.mu.Unlock()
	switch {
	case was && asked:
		g.deps.Log.Info("the Lease is given back")
	case was:
		g.deps.Log.Warn("the Lease is lost: nothing is changed until it is held again")
	}
}

func (g *Leadership) follow(holder string, until time.Time) {
	g.mu.Lock()
	holder = shown(holder)
	news := g.holder != holder
	g.twin = !news && (g.twin || until.After(g.heldUntil) && Twin(holder, g.deps.Identity, g.deps.Instance))
	g.holder, g.heldUntil = holder, until
	g.mu.Unlock()
	if news && holder != "" && holder != g.self {
		g.deps.Log.WithField("holder", holder).Debug("another agent holds the Lease: standing by") // the line of systemd says it, too
	}
}
