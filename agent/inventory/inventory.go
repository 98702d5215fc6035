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

// Inventory reads the cloud on behalf of every service: one read at a time, shared
// by all who wait for it, and the last good facts of each group kept when a later
// read fails.
type Inventory struct {
	cloud   provider.Provider
	fast    time.Duration
	slow    time.Duration
	timeout time.Duration // of one read
	log     *logrus.Entry

	logged  failures // what was last logged to fail; Run's own
	reads   singleflight.Group
	refresh chan struct{}
	changed chan struct{}

	mu          sync.Mutex
	fastPolling bool
	groups      []cluster.NodeGroup // last good facts; immutable once stored
	version     int                 // counts changes of groups, the moments of reads aside
	specs       map[cluster.InstanceID]string
	readAt      time.Time // of the last read that told anything; zero: never
	err         error     // of the last read
	failedReads int       // reads in a row that told nothing
}

// NewInventory makes an inventory that reads every fast while something comes or
// goes and every slow otherwise; one read takes at most limit.
func New(cloud provider.Provider, fast, slow, limit time.Duration, log *logrus.Entry) *Inventory {
	return &Inventory{
		cloud: cloud, fast: fast, slow: slow, timeout: limit, log: log,
		refresh: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		specs: map[cluster.InstanceID]string{},
	}
}

// Changed receives after a read that differed from the one before.
func (i *Inventory) Changed() <-chan struct{} { return i.changed }

// Refresh asks for a read now, for example after an action.
func (i *Inventory) Refresh() { notify(i.refresh) }

// Hurry sets the pace: fast while instances are expected to come or go.
func (i *Inventory) SetFastPolling(on bool) {
	i.mu.Lock()
	was := i.fastPolling
	i.fastPolling = on
	i.mu.Unlock()
	if on && !was {
		i.Refresh()
	}
}

// Groups returns the node groups as read at most maxAge ago, reading the cloud when
// they are older or when the last read failed for a reason that may have passed; maxAge 0 forces a read. The read is shared with everybody who
// asks meanwhile and outlives ctx. On failure the last good facts come back marked
// Stale together with the error; nil with an error means that nothing was ever
// read. The slice is the caller's, what it points to is shared and must not be
// changed.
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

// lasting tells an error that asking again at once does not heal: a name that nothing
// has, a right that is missing. What was read beside it is as good as ever. nil is one.
func lasting(err error) bool {
	list := provider.Errors(err)
	return (err == nil || len(list) > 0) && !slices.ContainsFunc(list, func(e *provider.Error) bool {
		return e.Kind != provider.NotFound && e.Kind != provider.Invalid && e.Kind != provider.Denied
	})
}

// Last returns what the last read told, without reading; the time is zero when
// nothing was ever read.
func (i *Inventory) Last() ([]cluster.NodeGroup, time.Time, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]cluster.NodeGroup(nil), i.groups...), i.readAt, i.err
}

// known is Last for the observer: the groups, which it must not change, and a number
// that is another one when they tell something new.
func (i *Inventory) Current() ([]cluster.NodeGroup, int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.groups, i.version
}

// Run reads the cloud until ctx ends, at the pace that Hurry sets. A cloud of which
// nothing can be read is asked half as often each time, down to the slow pace. It never returns an
// error: a cloud that does not answer is a fact, not a reason to restart.
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
	// Trouble of one cloud or group must not slow down how the others are seen.
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
