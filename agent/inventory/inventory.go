package inventory

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
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

// readAgain is old with the moments at which now was read: whoever compares by pointers
// sees that nothing else is new.
func WithReadTimes(old, now []cluster.NodeGroup) []cluster.NodeGroup {
	out := slices.Clone(old)
	for i := range out {
		out[i].ReadAt = now[i].ReadAt
	}
	return out
}

// Specs returns, by instance, the group's Template.Spec that was current when the
// instance appeared. Instances that were there before the first read are absent.
func (i *Inventory) Specs() map[cluster.InstanceID]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make(map[cluster.InstanceID]string, len(i.specs))
	for id, spec := range i.specs {
		out[id] = spec
	}
	return out
}

// Remember gives back what Specs returned before a restart.
func (i *Inventory) RestoreSpecs(specs map[cluster.InstanceID]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, spec := range specs {
		i.specs[id] = spec
	}
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

// failure is one thing that cannot be read, and the kind of its trouble.
type failure struct {
	provider string
	group    cluster.GroupID
	kind     provider.Kind
}

// words name what failed.
func (f failure) describe() string {
	out := "the cloud"
	if f.provider != "" {
		out = "provider " + f.provider
	}
	if f.group != "" {
		out = "group " + string(f.group) + " of " + out
	}
	return out
}

type failures map[failure]bool

// has tells whether a thing fails, in whatever kind.
func (all failures) contains(provider string, group cluster.GroupID) bool {
	for f := range all {
		if f.provider == provider && f.group == group {
			return true
		}
	}
	return false
}

// report says once of each thing that cannot be read that it cannot, and that it can
// again. Only Run calls it.
func (i *Inventory) logFailures(err error) {
	now, fresh := failures{}, []string{}
	note := func(f failure, why string) {
		if !now[f] && !i.logged[f] {
			fresh = append(fresh, why)
		}
		now[f] = true
	}
	for _, e := range provider.Errors(err) {
		note(failure{e.Provider, e.Group, e.Kind}, e.Error())
	}
	if err != nil && len(now) == 0 {
		note(failure{}, err.Error())
	}
	if len(fresh) > 0 {
		i.log.WithFields(logrus.Fields{"kind": provider.KindOf(err).String(), "why": strings.Join(fresh, "; ")}).
			Error("the cloud's node groups could not be read whole; last good facts are used, nothing stale is grown or deleted: " + strings.Join(fresh, "; "))
	}
	for f := range i.logged {
		if err != nil && !now[f] && !now.contains(f.provider, f.group) {
			i.log.Info(f.describe() + " can be read again")
		}
	}
	if err == nil && len(i.logged) > 0 {
		i.log.Info("the cloud's node groups are read whole again")
	}
	i.logged = now
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

// tellGone names the groups that a whole read does not list any more. The caller holds
// the mutex.
func (i *Inventory) logRemovedGroups(now []cluster.NodeGroup) {
	for _, g := range i.groups {
		if !slices.ContainsFunc(now, func(n cluster.NodeGroup) bool { return n.ID == g.ID }) {
			f := failure{provider: g.Provider, group: g.ID}
			i.log.WithField("group", g.ID).Warn(f.describe() + " is not there any more: its nodes are left alone")
		}
	}
}

// merge keeps the last good facts of every group that the new read does not tell
// whole. Absence counts only in a read without an error.
func mergeGroups(old, got []cluster.NodeGroup, err error) []cluster.NodeGroup {
	last := make(map[cluster.GroupID]cluster.NodeGroup, len(old))
	for _, g := range old {
		last[g.ID] = g
	}
	var out []cluster.NodeGroup
	for _, g := range got {
		if was, ok := last[g.ID]; ok {
			g = mergeGroup(was, g)
		}
		delete(last, g.ID)
		out = append(out, g)
	}
	if err == nil {
		return out
	}
	for _, g := range old {
		if was, ok := last[g.ID]; ok {
			was.Stale = "not read: " + firstLine(err)
			out = append(out, was)
		}
	}
	return out
}

// mergeGroup keeps of a group what the new read could not tell, each kind of fact by
// itself: membership, template, failures.
func mergeGroup(was, now cluster.NodeGroup) cluster.NodeGroup {
	out := now
	if now.Stale != "" {
		out = was
		out.Stale, out.TemplateStale, out.FailuresStale = now.Stale, now.TemplateStale, now.FailuresStale
		if now.TemplateStale == "" && now.Template.Spec != "" {
			out.Template, out.Quota = now.Template, now.Quota
		}
		if now.FailuresStale == "" && len(now.Failures) > 0 {
			out.Failures = now.Failures
		}
		return out
	}
	if now.TemplateStale != "" && was.Template.Spec != "" {
		out.Template, out.Quota = was.Template, was.Quota
	}
	if now.FailuresStale != "" {
		out.Failures = was.Failures
	}
	return out
}

func firstLine(err error) string {
	var e *provider.Error
	if errors.As(err, &e) {
		return e.Error()
	}
	return err.Error()
}

func (i *Inventory) recordSpecs(groups []cluster.NodeGroup, first bool) {
	seen := make(map[cluster.InstanceID]bool, len(i.specs))
	known := map[cluster.InstanceID]bool{}
	for _, g := range i.groups {
		for _, in := range g.Instances {
			known[in.ID] = true
		}
	}
	for _, g := range groups {
		for _, in := range g.Instances {
			seen[in.ID] = true
			if _, has := i.specs[in.ID]; !has && !first && !known[in.ID] && g.Template.Spec != "" && g.Stale == "" && g.TemplateStale == "" {
				i.specs[in.ID] = g.Template.Spec
			}
		}
	}
	for id := range i.specs {
		if !seen[id] && len(groups) > 0 {
			delete(i.specs, id)
		}
	}
}

// sameFacts compares two reads without their times.
func sameFacts(a, b []cluster.NodeGroup) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		x.ReadAt, y.ReadAt = time.Time{}, time.Time{}
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
