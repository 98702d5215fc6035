package provider

import (
	"context"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Lock is held from the read to the write of a compare-and-set: no other write of this
// process may come between them. Unlike a sync.Mutex, a wait for it ends with its
// context. The zero value is a free lock.
type Lock struct {
	once sync.Once
	held chan struct{} // has room for one: a value in it is the holder's
}

// Lock waits for the lock, no longer than ctx lasts. The caller calls unlock when err is
// nil. The error is one of the operation op on the group id.
func (l *Lock) Lock(ctx context.Context, op string, id cluster.GroupID) (unlock func(), err error) {
	l.once.Do(func() { l.held = make(chan struct{}, 1) })
	// The context is read first: with both cases ready, select chooses one at random.
	if err := ctx.Err(); err != nil {
		return nil, &Error{Op: op, Group: id, Err: err}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held }, nil
	case <-ctx.Done():
		return nil, &Error{Op: op, Group: id, Kind: Transient, Err: ctx.Err()}
	}
}

// Locks is one Lock for each node group. The zero value is ready for use.
type Locks struct {
	byGroup sync.Map // cluster.GroupID to *Lock
}

// Lock waits for the lock of the group id as Lock.Lock does.
func (l *Locks) Lock(ctx context.Context, op string, id cluster.GroupID) (unlock func(), err error) {
	lock, _ := l.byGroup.LoadOrStore(id, new(Lock))
	return lock.(*Lock).Lock(ctx, op, id)
}
