// Package fake is a cloud in memory that keeps the provider contract: what is
// tested with it is tested with the contract. It passes package providertest.
//
// Time passes only in Step; there are no goroutines. It refuses to be random and
// to do anything that nobody asked for.
package fake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
)

// Cloud is the cloud. Its methods are safe for concurrent use.
type Cloud struct {
	// Boot is how long an instance is pending, Shutdown how long it is deleting,
	// Forget how long it is listed as gone. Set them before the first call.
	Boot, Shutdown, Forget time.Duration
	// Name sets the machines of several clouds apart: it stands in their IDs and names.
	Name string

	mu     sync.Mutex
	now    time.Time
	groups map[cluster.GroupID]*group
	loose  map[cluster.InstanceID]bool // instances in no group: alive or not
	born   int
	faults
}

type group struct {
	facts     cluster.NodeGroup
	instances []*instance
	blocked   *cluster.Failure // launches nothing
	spoiled   *cluster.Failure // launches what fails
}

type instance struct {
	facts cluster.Instance
	since time.Time // of the phase
}

var _ provider.Provider = (*Cloud)(nil)

// New returns an empty cloud at the given time.
func New(now time.Time) *Cloud {
	return &Cloud{
		Boot: 30 * time.Second, Shutdown: 30 * time.Second, Forget: time.Hour,
		now: now, groups: map[cluster.GroupID]*group{}, loose: map[cluster.InstanceID]bool{},
		faults: faults{reads: map[cluster.GroupID]error{}, templates: map[cluster.GroupID]error{}},
	}
}

// AddGroup adds a group as described: bounds, target, template, options, warnings.
// Its instances come with the next Step.
func (c *Cloud) AddGroup(g cluster.NodeGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.Instances, g.Failures = nil, nil
	c.groups[g.ID] = &group{facts: g}
}

// AddLoose adds a running instance that belongs to no group.
func (c *Cloud) AddLoose() cluster.InstanceID {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.newID()
	c.loose[id] = true
	return id
}

// RemoveGroup makes a group and its instances vanish.
func (c *Cloud) RemoveGroup(id cluster.GroupID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, id)
}

// SetTarget changes a target as another client would, unchecked.
func (c *Cloud) SetTarget(id cluster.GroupID, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[id].facts.Target = n
}

// Kill ends an instance as another client would; the target stays.
func (c *Cloud) Kill(id cluster.InstanceID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		for _, i := range g.instances {
			if i.facts.ID == id && alive(i.facts.Phase) {
				c.set(i, cluster.PhaseDeleting)
			}
		}
	}
	if c.loose[id] {
		c.loose[id] = false
	}
}

// Alive lists the instances that live and are not on their way out: of a group, or
// with "" those in no group.
func (c *Cloud) Alive(id cluster.GroupID) []cluster.InstanceID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []cluster.InstanceID
	if g := c.groups[id]; g != nil {
		for _, i := range g.instances {
			if alive(i.facts.Phase) {
				out = append(out, i.facts.ID)
			}
		}
	}
	if id == "" {
		for l, lives := range c.loose {
			if lives {
				out = append(out, l)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Target is the target of a group, -1 when there is no such group.
func (c *Cloud) Target(id cluster.GroupID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.groups[id]; g != nil {
		return g.facts.Target
	}
	return -1
}

// Step lets d pass and then does what is due: instances become running, or gone,
// or are forgotten; what is missing is launched (or fails to be).
func (c *Cloud) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[id]
		for _, i := range g.instances {
			age := c.now.Sub(i.since)
			switch {
			case i.facts.Phase == cluster.PhasePending && age >= c.Boot:
				c.set(i, cluster.PhaseRunning)
			case i.facts.Phase == cluster.PhaseDeleting && age >= c.Shutdown:
				c.set(i, cluster.PhaseGone)
			}
		}
		g.instances = slices.DeleteFunc(g.instances, func(i *instance) bool {
			return i.facts.Phase == cluster.PhaseGone && c.now.Sub(i.since) >= c.Forget
		})
		if g.facts.Paused == "" {
			c.launch(g)
		}
	}
}

func (c *Cloud) launch(g *group) {
	for g.members() < g.facts.Target {
		if g.blocked != nil {
			f := *g.blocked
			f.At = c.now
			g.facts.Failures = append([]cluster.Failure{f}, g.facts.Failures...)
			return
		}
		g.facts.Failures = nil
		i := c.birth(g)
		if g.spoiled != nil {
			f := *g.spoiled
			f.At = c.now
			i.facts.Phase, i.facts.Failure = cluster.PhaseFailed, &f
		}
	}
}

func (c *Cloud) birth(g *group) *instance {
	id := c.newID()
	name := fmt.Sprintf("%snode-%d", c.Name, c.born)
	i := &instance{since: c.now, facts: cluster.Instance{
		ID: id, Phase: cluster.PhasePending, Created: c.now, Type: "fake.large", Zone: "zone-1",
		NodeNames: []string{name}, Names: []string{name, name + ".internal"},
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(c.born)})},
		Member:    true, Protected: true, Source: g.facts.Template.Source,
	}}
	g.instances = append(g.instances, i)
	return i
}

func (c *Cloud) newID() cluster.InstanceID {
	c.born++
	return cluster.InstanceID(fmt.Sprintf("fake://%s/zone-1/vm-%d", c.Name, c.born))
}

func (c *Cloud) set(i *instance, p cluster.Phase) {
	i.facts.Phase, i.since = p, c.now
	i.facts.Member = p != cluster.PhaseGone
}

func alive(p cluster.Phase) bool { return p == cluster.PhasePending || p == cluster.PhaseRunning }

// members are the instances that the target counts: one that failed keeps its place
// until it is deleted.
func (g *group) members() int {
	n := 0
	for _, i := range g.instances {
		if alive(i.facts.Phase) || i.facts.Phase == cluster.PhaseFailed {
			n++
		}
	}
	return n
}

// Groups implements provider.Provider.
func (c *Cloud) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	if err := c.enter(ctx, "read"); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	if c.frozen != nil {
		return c.copied(c.frozen), nil
	}
	return c.readAll()
}

func (c *Cloud) copied(list []cluster.NodeGroup) []cluster.NodeGroup {
	out := make([]cluster.NodeGroup, len(list))
	for i := range list {
		out[i] = wrap.Clone(list[i])
	}
	return out
}

func (c *Cloud) readAll() ([]cluster.NodeGroup, error) {
	out := []cluster.NodeGroup{}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[id].read(c.now)
		if err := c.reads[id]; err != nil {
			g.Instances = nil
			g.Stale = err.Error()
			errs = append(errs, err)
		}
		if err := c.templates[id]; err != nil {
			g.Template = cluster.Template{Unknown: err.Error()}
			g.TemplateStale = err.Error()
			errs = append(errs, err)
		}
		out = append(out, g)
	}
	return out, errors.Join(errs...)
}

// read is a deep copy of the group's facts.
func (g *group) read(now time.Time) cluster.NodeGroup {
	out := g.facts
	out.ReadAt = now
	for _, i := range g.instances {
		out.Instances = append(out.Instances, i.facts)
	}
	return wrap.Clone(out)
}

// Resize implements provider.Provider.
func (c *Cloud) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	if err := c.enter(ctx, "resize"); err != nil {
		return err
	}
	defer c.mu.Unlock()
	fail := func(kind provider.Kind, format string, args ...any) error {
		return &provider.Error{Op: "resize", Group: id, Kind: kind, Err: fmt.Errorf(format, args...)}
	}
	g := c.groups[id]
	switch {
	case g == nil:
		return fail(provider.NotFound, "no such group")
	case to < g.facts.Min || to > g.facts.Max:
		return fail(provider.Invalid, "%d is outside %d..%d", to, g.facts.Min, g.facts.Max)
	case g.facts.Target == to:
		return nil
	case g.facts.Target != from:
		return fail(provider.Conflict, "target is %d, not %d", g.facts.Target, from)
	case to < g.members():
		return fail(provider.Invalid, "%d is below its %d instances, and Resize never removes one", to, g.members())
	}
	g.facts.Target = to
	return c.answer()
}

// Delete implements provider.Provider.
func (c *Cloud) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	if err := c.enter(ctx, "delete"); err != nil {
		return err
	}
	defer c.mu.Unlock()
	g := c.groups[id]
	if g == nil {
		return &provider.Error{Op: "delete", Group: id, Kind: provider.NotFound, Err: errors.New("no such group")}
	}
	var errs []error
	ended := false
	for _, victim := range ids {
		done, err := c.end(g, victim)
		ended, errs = ended || done, append(errs, err)
	}
	if ended {
		errs = append(errs, c.answer())
	}
	return errors.Join(errs...)
}

func (c *Cloud) end(g *group, id cluster.InstanceID) (done bool, err error) {
	fail := func(kind provider.Kind, text string) (bool, error) {
		return false, &provider.Error{Op: "delete", Group: g.facts.ID, Instance: id, Kind: kind, Err: errors.New(text)}
	}
	at := slices.IndexFunc(g.instances, func(i *instance) bool { return i.facts.ID == id })
	surplus := g.members() > g.facts.Target
	switch {
	case at < 0:
		return fail(provider.NotFound, "the instance is not in the group")
	case !alive(g.instances[at].facts.Phase) && g.instances[at].facts.Phase != cluster.PhaseFailed:
		return false, nil
	case c.noDelete != nil:
		return false, c.noDelete
	case c.noOne != nil:
		refusal := *c.noOne
		refusal.Group, refusal.Instance, c.noOne = g.facts.ID, id, nil
		return false, &refusal
	case g.facts.Target <= g.facts.Min && !surplus:
		return fail(provider.Invalid, "the target is the group's minimum")
	}
	c.set(g.instances[at], cluster.PhaseDeleting)
	if !surplus {
		g.facts.Target--
	}
	return true, nil
}
