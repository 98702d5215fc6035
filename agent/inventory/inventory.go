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
// callers that wait for it. The last good facts of each group are kept when a later read
// fails.
type Inventory struct {
	cloud   provider.Provider
	fast    time.Duration
	slow    time.Duration
	timeout time.Duration // of one read
	log     *logrus.Entry

	logged  failures // the failures logged last; only Run uses it
	reads   singleflight.Group
	refresh chan struct{}
	changed chan struct{}

	mu          sync.Mutex
	fastPolling bool
	groups      []cluster.NodeGroup // last good facts; immutable once stored
	version     int                 // counts changes of groups other than their read times
	specs       map[cluster.InstanceID]string
	readAt      time.Time // of the last read that returned any group; zero: never
	err         error     // of the last read
	failedReads int       // consecutive reads without any group
}

// New makes an inventory that reads once per fast while instances come or go, and once
// per slow otherwise. One read takes at most timeout.
func New(cloud provider.Provider, fast, slow, limit time.Duration, log *logrus.Entry) *Inventory {
	return &Inventory{
		cloud: cloud, fast: fast, slow: slow, timeout: limit, log: log,
		refresh: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		specs: map[cluster.InstanceID]string{},
	}
}

// Changed receives after a read that differed from the one before.
func (i *Inventory) Changed() <-chan struct{} { return i.changed }

// Refresh makes Run read at once, for example after an action.
func (i *Inventory) Refresh() { notify(i.refresh) }

// SetFastPolling sets the period of Run: fast while instances are expected to come or
// go.
func (i *Inventory) SetFastPolling(on bool) {
	i.mu.Lock()
	was := i.fastPolling
	i.fastPolling = on
	i.mu.Unlock()
	if on && !was {
		i.Refresh()
	}
}

// Groups returns the node groups as read at most maxAge ago. It reads the cloud when
// they are older, when maxAge is 0, or when the last read failed for a reason that may
// have passed. The read is shared with all callers that ask meanwhile, and outlives ctx.
// On failure the last good facts are returned, marked Stale, together with the error;
// nil with an error means that no read ever succeeded. The slice belongs to the caller;
// the values in it are shared and must not be changed.
func (i *Inventory) Groups(ctx context.Context, maxAge time.Duration) ([]cluster.NodeGroup, error) {
	i.mu.Lock()
	fresh := lasting(i.err) && !i.readAt.IsZero() && time.Since(i.readAt) <= maxAge && maxAge > 0
	i.mu.Unlock()
	if !fresh {
		ch := i.reads.DoChan("read", func() (any, error) {
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

// Run reads the cloud until ctx ends, with the period that SetFastPolling sets. While no
// group at all can be read, the period doubles with each read, up to the slow one. Run
// never returns an error: a restart does not help against a cloud that does not answer.
func (i *Inventory) Run(ctx context.Context, beat func()) error {
	for {
		_, err := i.Groups(ctx, 0)
		if ctx.Err() != nil {
			return nil
		}
		i.logFailures(err)
		beat()
		wait := time.NewTimer(i.period())
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case <-i.refresh:
			wait.Stop()
		case <-wait.C:
		}
	}
}

func (i *Inventory) period() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	pace := i.slow
	if i.fastPolling || i.readAt.IsZero() {
		pace = i.fast
	}
	for n := 0; n < i.failedReads && pace < i.slow; n++ {
		pace *= 2
	}
	return min(pace, i.slow)
}

func (i *Inventory) read(ctx context.Context) {
	got, err := i.cloud.Groups(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	// An error of one cloud or group must not slow down the reads of the others.
	live := slices.ContainsFunc(got, func(g cluster.NodeGroup) bool { return g.Stale == "" })
	if i.failedReads++; err == nil || live {
		i.failedReads = 0
	}
	i.err = err
	first := i.readAt.IsZero()
	next := mergeGroups(i.groups, got, err)
	if got != nil || err == nil {
		i.readAt = time.Now()
	}
	if err == nil {
		i.logRemovedGroups(next)
	}
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
