package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
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

// leaseLock is client-go's lock with what the agent adds: it tells of every answer of
// the API server, beats after every attempt, and keeps AnnotationWrites.
type leaseLock struct {
	resourcelock.Interface
	g    *Leadership
	beat func()

	turn  sync.Mutex // one call at a time: the elector's and announce's
	last  resourcelock.LeaderElectionRecord
	asked int // announcements
	told  int // of them, the ones in a Lease that was written
	found string
}

func newLeaseLock(g *Leadership, beat func()) *leaseLock {
	l := &leaseLock{g: g, beat: beat}
	l.Interface = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: g.cfg.Namespace, Name: g.cfg.Name},
		Client:     leasesOf{g.deps.Client.CoordinationV1(), l},
		LockConfig: resourcelock.ResourceLockConfig{Identity: g.deps.Identity},
	}
	return l
}

// leasesOf lets the lock see and mark the Lease itself, of which client-go's record is
// a part.
type leasesOf struct {
	coordinationclient.LeasesGetter
	lock *leaseLock
}

func (c leasesOf) Leases(namespace string) coordinationclient.LeaseInterface {
	return leases{c.LeasesGetter.Leases(namespace), c.lock}
}

type leases struct {
	coordinationclient.LeaseInterface
	lock *leaseLock
}

func (c leases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	lease, err := c.LeaseInterface.Get(ctx, name, o)
	if err == nil {
		c.lock.found = lease.Annotations[AnnotationWrites]
	}
	return lease, err
}

func (c leases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	c.lock.mark(lease)
	return c.LeaseInterface.Update(ctx, lease, o)
}

// mark writes the leader's own list. An agent that does not lead yet keeps the list as it is.
func (l *leaseLock) mark(lease *coordinationv1.Lease) {
	if !l.g.knows() {
		return
	}
	list := l.g.deps.Writes.Open()
	if len(list) == 0 {
		delete(lease.Annotations, AnnotationWrites)
		return
	}
	text, err := json.Marshal(list)
	if err != nil {
		return // strings, numbers and times: it cannot fail
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[AnnotationWrites] = string(text)
}

// unfinished is what the Lease said when it was last read.
func (l *leaseLock) unfinished() ([]wrap.Intent, error) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.found == "" {
		return nil, nil
	}
	var list []wrap.Intent
	if err := json.Unmarshal([]byte(l.found), &list); err != nil {
		return nil, fmt.Errorf("annotation %s of the Lease: %w", AnnotationWrites, err)
	}
	return list, nil
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

// Get implements resourcelock.Interface.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.turn.Lock()
	defer l.turn.Unlock()
	r, raw, err := l.Interface.Get(ctx)
	l.note(err)
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (l *leaseLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.found = ""
	return l.write(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update implements resourcelock.Interface.
func (l *leaseLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	if r.HolderIdentity != l.g.deps.Identity {
		l.g.givesBack() // first: once it is given back another agent may act at any moment
	}
	return l.write(r, func() error { return l.Interface.Update(ctx, r) })
}

func (l *leaseLock) write(r resourcelock.LeaderElectionRecord, do func() error) error {
	began, asked := time.Now(), l.asked
	err := do()
	l.note(err)
	if err == nil {
		l.last, l.told = r, asked
		if r.HolderIdentity == l.g.deps.Identity {
			l.g.kept(began)
		}
	}
	return err
}

// announce has the Lease hold every change that is under way. It is a renewal, so it
// also proves that this agent still leads; several that ask at once share one.
func (l *leaseLock) announce(ctx context.Context) error {
	l.turn.Lock()
	l.asked++
	mine := l.asked
	l.turn.Unlock()
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.told >= mine {
		return nil
	}
	if l.last.HolderIdentity != l.g.deps.Identity {
		return errors.New("this agent does not hold the Lease")
	}
	r := l.last
	r.RenewTime = metav1.Now()
	return l.write(r, func() error { return l.Interface.Update(ctx, r) })
}
