package inventory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/singleflight"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Inventory reads the node groups for every service: one read at a time, shared by all
// callers that wait for it. Its own reads at rest repeat what only an operator changes
// (provider.WithRepeated); reads that a service waits for repeat nothing. The last good facts
// of each group are kept when a later read fails.
type Inventory struct {
	cloud   provider.Provider
	fast    time.Duration
	slow    time.Duration
	timeout time.Duration // of one read
	log     *logrus.Entry

	// Requests counts the requests to the cloud so far. With it, reads of waiting groups
	// are bounded by a budget of requests; nil: by their period alone.
	Requests func() int64

	logged  failures // the failures logged last; only Run uses it
	reads   singleflight.Group
	turn    chan struct{} // held by the whole read that is under way
	wake    chan struct{}
	changed chan struct{}

	mu      sync.Mutex
	pace    pace
	groups  []cluster.NodeGroup // last good facts; immutable once stored
	version int                 // counts changes of groups other than their read times
	specs   map[cluster.InstanceID]string
	readAt  time.Time // of the last whole read that returned any group; zero: never
	err     error     // of the last whole read
}

// New makes an inventory that reads all groups once per slow, and those with instances that
// come or go (SetWaiting) once per fast. One read takes at most limit.
func New(cloud provider.Provider, fast, slow, limit time.Duration, log *logrus.Entry) *Inventory {
	return &Inventory{
		cloud: cloud, fast: fast, slow: slow, timeout: limit, log: log,
		wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		specs: map[cluster.InstanceID]string{}, pace: newPace(fast, slow),
	}
}

// Changed receives after a read that differed from the one before.
func (i *Inventory) Changed() <-chan struct{} { return i.changed }

// Groups returns the node groups as read at most maxAge ago. It reads the cloud when
// they are older, when maxAge is 0, or when the last read failed for a reason that may
// have passed. The read is shared with all callers that ask meanwhile, and outlives ctx.
// On failure the last good facts are returned, marked Stale, together with the error;
// nil with an error means that no read ever succeeded. The slice belongs to the caller;
// the values in it are shared and must not be changed.
func (i *Inventory) Groups(ctx context.Context, maxAge time.Duration) ([]cluster.NodeGroup, error) {
	i.mu.Lock()
	fresh := lasting(i.err) && !i.readAt.IsZero() && time.Since(i.readAt) <= maxAge && maxAge > 0 && !i.namesOlder(maxAge)
	i.mu.Unlock()
	if !fresh {
		kind := "anew"
		if provider.Repeated(ctx) > 0 { // no caller that asks for facts as they are is to share such a read
			kind = "repeated"
		}
		ch := i.reads.DoChan(kind, func() (any, error) {
			i.turn <- struct{}{}
			defer func() { <-i.turn }()
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.timeout)
			defer cancel()
			i.read(bounded)
			return nil, nil
		})
		select {
		case <-ch:
		case <-ctx.Done():
			return nil, fmt.Errorf("read node groups: %w", ctx.Err())
		}
	}
	groups, _, err := i.Last()
	return groups, err
}

// namesOlder reports whether the names of any group's instances were read more than maxAge
// ago, and are not known to be so: those of a stale group are. The caller holds the mutex.
func (i *Inventory) namesOlder(maxAge time.Duration) bool {
	return slices.ContainsFunc(i.groups, func(g cluster.NodeGroup) bool {
		return g.Stale == "" && !g.NamesReadAt.IsZero() && time.Since(g.NamesReadAt) > maxAge
	})
}

// lasting reports whether an immediate second read would fail in the same way: a name
// does not exist, or a right is missing. The facts read beside such an error are
// current. A nil error is lasting.
func lasting(err error) bool {
	list := provider.Errors(err)
	return (err == nil || len(list) > 0) && !slices.ContainsFunc(list, func(e *provider.Error) bool {
		return e.Kind != provider.NotFound && e.Kind != provider.Invalid && e.Kind != provider.Denied
	})
}

// Last returns the result of the last read, without reading; the time is zero before the
// first read.
func (i *Inventory) Last() ([]cluster.NodeGroup, time.Time, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]cluster.NodeGroup(nil), i.groups...), i.readAt, i.err
}

// Current returns the groups, which the caller must not change, and their version: a
// number that changes when a read tells something new.
func (i *Inventory) Current() ([]cluster.NodeGroup, int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.groups, i.version
}

// Run reads the cloud until ctx ends: all groups once per slow period, those that wait for
// instances once per fast period, as far as the budget of requests allows. While no group at
// all can be read, the period of the whole reads goes from fast to slow, doubling each time.
// Run never returns an error: a restart does not help against a cloud that does not answer.
func (i *Inventory) Run(ctx context.Context, beat func()) error {
	for {
		beat() // before the wait too: while other services read often, Run itself has nothing to read
		i.mu.Lock()
		now := time.Now()
		next := i.pace.next(now)
		i.mu.Unlock()
		if next.at.After(now) {
			wait := time.NewTimer(next.at.Sub(now))
			select {
			case <-ctx.Done():
			case <-i.wake:
			case <-wait.C:
			}
			wait.Stop()
			if ctx.Err() != nil {
				return nil
			}
			continue
		}
		wish := ctx
		if !next.anew {
			wish = provider.WithRepeated(ctx, repeated)
		}
		if next.only != nil {
			i.readSome(wish, next.only)
		} else if _, err := i.Groups(wish, 0); ctx.Err() == nil {
			i.logFailures(err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// requests is the number of requests so far.
func (i *Inventory) requests() int64 {
	if i.Requests == nil {
		return 0
	}
	return i.Requests()
}

// readSome reads some groups. Its failures mark those groups; a whole read follows and tells
// of them.
func (i *Inventory) readSome(ctx context.Context, only []cluster.GroupID) {
	bounded, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	began, before := time.Now(), i.requests()
	got, err := i.cloud.Groups(provider.WithOnly(bounded, only))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pace.readSome(began, time.Now(), only, i.requests()-before, err)
	i.take(mergeSome(i.groups, got, only, err), false)
}

func (i *Inventory) read(ctx context.Context) {
	began, before := time.Now(), i.requests()
	got, err := i.cloud.Groups(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	// An error of one cloud or group must not slow down the reads of the others.
	live := err == nil || slices.ContainsFunc(got, func(g cluster.NodeGroup) bool { return g.Stale == "" })
	i.pace.readAll(began, time.Now(), i.requests()-before, live, err)
	i.err = err
	first := i.readAt.IsZero()
	next := mergeGroups(i.groups, got, err)
	if got != nil || err == nil {
		i.readAt = time.Now()
	}
	if err == nil {
		i.logRemovedGroups(next)
	}
	i.take(next, first)
}

// take stores what a read has told. The caller holds the mutex.
func (i *Inventory) take(next []cluster.NodeGroup, first bool) {
	i.recordSpecs(next, first)
	if !sameFacts(i.groups, next) || first {
		notify(i.changed)
		i.version++
	} else {
		next = WithReadTimes(i.groups, next)
	}
	i.groups = next
}

func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
