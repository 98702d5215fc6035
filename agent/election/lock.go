package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/bounded"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// AnnotationWrites is on the agent's own Lease: the changes that the leader asks the
// clouds for and has no answer to (JSON, a list of wrap.Intent). It is written
// before a cloud is asked, and whoever leads next waits for them.
const AnnotationWrites = "autoscaler-agent/unanswered-writes"

// Intents are the changes of the clouds whose outcome is not known.
type Intents interface {
	Open() []wrap.Intent
	Inherit([]wrap.Intent)
}

// leaseLock reads and writes the one Lease: one call at a time, the elector's or
// announce's. It tells of every answer of the API server, beats after every attempt, and
// keeps AnnotationWrites.
type leaseLock struct {
	g      *Leadership
	leases kube.Kind[*coordinationv1.Lease, *coordinationv1.LeaseList]
	beat   func()

	turn  turn
	lease *coordinationv1.Lease // as it was last read or written; nil: not yet
	seen  time.Time             // when the elector's part of it last changed, by this machine's clock
	asked atomic.Int64          // announcements
	told  int64                 // of them, the ones in a Lease that was written
}

// turn is a mutex that is held over calls of the API server; a wait for it can end with a context.
type turn chan struct{}

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

// within is Lock, no longer than ctx lasts.
func (t turn) within(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func newLeaseLock(g *Leadership, beat func()) *leaseLock {
	return &leaseLock{g: g, turn: make(turn, 1), leases: g.deps.Client.CoordinationV1().Leases(g.cfg.Namespace), beat: beat}
}

// forget starts a campaign: the Lease as it was last read may be old.
func (l *leaseLock) forget() {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.lease = nil
}

// holder is who held the Lease when it was last read or written, and until when that holds.
func (l *leaseLock) holder() (who string, until time.Time) {
	l.turn.Lock()
	defer l.turn.Unlock()
	who = holderOf(l.lease)
	if who != "" {
		until = l.runsOut()
	}
	return who, until
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// valid tells whether the Lease that was last read or written may still be held.
func (l *leaseLock) valid() bool { return time.Now().Before(l.runsOut()) }

// runsOut is when the Lease that was last read or written ends if nobody renews it.
func (l *leaseLock) runsOut() time.Time {
	d := l.lease.Spec.LeaseDurationSeconds
	if d == nil {
		return time.Time{}
	}
	return l.seen.Add(l.g.lasts("Lease "+l.g.cfg.Name, *d, l.g.cfg.Duration))
}

// mostMachines is more than any cloud has in one group.
const mostMachines = 100_000

// longest is how long a Lease may hold, whatever it says: a thief who writes one of 68 years would stop every agent.
const longest = 10 * time.Minute

// lasts is how long a Lease of so many seconds holds.
func (g *Leadership) lasts(lease string, seconds int32, otherwise time.Duration) time.Duration {
	d, wrong := bounded.In("the duration of "+lease, time.Duration(seconds)*time.Second, time.Second, longest, otherwise)
	g.tell(wrong)
	return d
}

// tell says once what is wrong with a Lease's numbers.
func (g *Leadership) tell(wrong string) {
	if wrong != "" && g.wrong.Swap(wrong) != any(wrong) && g.deps.Log != nil {
		g.deps.Log.WithField("why", wrong).Warn("a Lease has a wrong number")
	}
}

// shown is a holder's name as it is told: whoever writes a Lease may write much.
func shown(holder string) string { return holder[:min(len(holder), 253)] }

// attempt gets or renews the Lease; false: another agent holds it, or the API server did
// not accept.
func (l *leaseLock) attempt(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, l.g.cfg.RenewDeadline)
	defer cancel()
	l.turn.Lock()
	defer l.turn.Unlock()
	// Nobody but the holder writes a valid Lease as a rule: it needs no read before.
	if holderOf(l.lease) == l.g.self && l.valid() && l.write(ctx, l.renewal()) == nil {
		return true
	}
	err := l.read(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return l.create(ctx) == nil
	case err != nil:
		return false
	}
	if holder := holderOf(l.lease); holder != "" && holder != l.g.self && l.valid() {
		return false
	}
	return l.write(ctx, l.renewal()) == nil
}

// look reads the Lease and asks for nothing.
func (l *leaseLock) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.g.cfg.RenewDeadline)
	defer cancel()
	l.turn.Lock()
	defer l.turn.Unlock()
	_ = l.read(ctx) // noted
}

// renewal is the Lease with this agent as its holder from now on.
func (l *leaseLock) renewal() *coordinationv1.Lease {
	next, now := l.lease.DeepCopy(), metav1.NewMicroTime(time.Now())
	s := &next.Spec
	if holderOf(l.lease) != l.g.self {
		s.LeaseTransitions, s.AcquireTime = new(transitions(l.lease)+1), &now
	}
	s.HolderIdentity, s.RenewTime = &l.g.self, &now
	s.LeaseDurationSeconds = new(int32(l.g.cfg.Duration / time.Second))
	return next
}

// transitions leaves room for one more: the API server refuses a Lease whose count is negative.
func transitions(lease *coordinationv1.Lease) int32 {
	if n := lease.Spec.LeaseTransitions; n != nil {
		return min(*n, math.MaxInt32-1)
	}
	return 0
}

func (l *leaseLock) read(ctx context.Context) error {
	lease, err := l.leases.Get(ctx, l.g.cfg.Name, metav1.GetOptions{})
	l.note(err)
	if err == nil {
		l.saw(lease)
	}
	return err
}

// saw keeps the Lease. A change of anything but the elector's part is no sign of life.
func (l *leaseLock) saw(lease *coordinationv1.Lease) {
	if l.lease == nil || !apiequality.Semantic.DeepEqual(l.lease.Spec, lease.Spec) {
		l.seen = time.Now()
	}
	if l.lease = lease; l.g.deps.Noted != nil {
		l.g.deps.Noted(lease.Annotations)
	}
}

func (l *leaseLock) create(ctx context.Context) error {
	l.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.g.cfg.Namespace, Name: l.g.cfg.Name}}
	first := l.renewal()
	first.Spec.LeaseTransitions = new(int32)
	return l.send(first, func() (*coordinationv1.Lease, error) { return l.leases.Create(ctx, first, metav1.CreateOptions{}) })
}

func (l *leaseLock) write(ctx context.Context, next *coordinationv1.Lease) error {
	l.mark(next)
	return l.send(next, func() (*coordinationv1.Lease, error) { return l.leases.Update(ctx, next, metav1.UpdateOptions{}) })
}

// send makes one write and notes its answer. A Lease that names this agent is held from
// the moment at which the write began.
func (l *leaseLock) send(next *coordinationv1.Lease, do func() (*coordinationv1.Lease, error)) error {
	began, asked := time.Now(), l.asked.Load()
	lease, err := do()
	l.note(err)
	if err != nil {
		return err
	}
	l.saw(lease)
	l.told = asked
	if holderOf(next) == l.g.self {
		l.g.kept(began)
	}
	return nil
}

// giveBack lets another agent take the Lease at once, if it is still this agent's. A
// Lease that another agent holds by now is not touched.
func (l *leaseLock) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.g.cfg.RenewDeadline)
	defer cancel()
	l.turn.Lock()
	defer l.turn.Unlock()
	l.g.givesBack() // first: once it is given back another agent may act at any moment
	if l.read(ctx) != nil || holderOf(l.lease) != l.g.self {
		return
	}
	next, now := l.lease.DeepCopy(), metav1.NewMicroTime(time.Now())
	next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds = new(string), new(int32(1))
	next.Spec.RenewTime, next.Spec.AcquireTime = &now, &now
	_ = l.write(ctx, next) // in vain: it runs out
}

// mark writes the leader's own list and notes. An agent that does not lead yet keeps them as they are.
func (l *leaseLock) mark(lease *coordinationv1.Lease) {
	if !l.g.knows() {
		return
	}
	if l.g.deps.Notes != nil {
		for name, text := range l.g.deps.Notes() {
			annotate(lease, name, text)
		}
	}
	list := l.g.deps.Writes.Open()
	if len(list) == 0 {
		annotate(lease, AnnotationWrites, "")
		return
	}
	text, err := json.Marshal(list)
	if err != nil {
		return // strings, numbers and times: it cannot fail
	}
	annotate(lease, AnnotationWrites, string(text))
}

// annotate sets an annotation; an empty text takes it away.
func annotate(lease *coordinationv1.Lease, name, text string) {
	if text == "" {
		delete(lease.Annotations, name)
		return
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[name] = text
}

// unfinished is what the Lease said when it was last read or written.
func (l *leaseLock) unfinished() ([]wrap.Intent, error) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.lease == nil || l.lease.Annotations[AnnotationWrites] == "" {
		return nil, nil
	}
	var list []wrap.Intent
	if err := json.Unmarshal([]byte(l.lease.Annotations[AnnotationWrites]), &list); err != nil {
		return nil, fmt.Errorf("annotation %s of the Lease: %w", AnnotationWrites, err)
	}
	return slices.DeleteFunc(list, func(i wrap.Intent) bool {
		_, wrong := bounded.In("the target of group "+string(i.Group)+" in annotation "+AnnotationWrites+" of the Lease", i.To, 0, mostMachines, 0)
		l.g.tell(wrong)
		return wrong != ""
	}), nil
}

func (l *leaseLock) note(err error) {
	l.beat()
	// A refusal is an answer too; a timeout or a server that cannot reach its store
	// is not.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) {
		l.g.deps.Heard()
	}
	l.g.note(err)
}

// announce has the Lease hold every change that is under way. It is a renewal, so it
// also proves that this agent still leads; several that ask at once share one.
func (l *leaseLock) announce(ctx context.Context) error {
	mine := l.asked.Add(1)
	if err := l.turn.within(ctx); err != nil {
		return err
	}
	defer l.turn.Unlock()
	if l.told >= mine {
		return nil
	}
	if holderOf(l.lease) != l.g.self {
		return errors.New("this agent does not hold the Lease")
	}
	err := l.write(ctx, l.renewal())
	if !apierrors.IsConflict(err) {
		return err
	}
	// An operator's command may have written an annotation of the Lease.
	if err := l.read(ctx); err != nil {
		return err
	}
	if holderOf(l.lease) != l.g.self {
		return errors.New("this agent does not hold the Lease")
	}
	return l.write(ctx, l.renewal())
}
