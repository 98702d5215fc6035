package aws

import (
	"maps"
	"slices"
	"time"
)

// world is the whole state that API calls can read: plain data, so that it can
// be copied, and an old copy be shown to a reader (see StaleReads).
type world struct {
	templates  map[string]*template // by launch template ID
	groups     map[string]*group    // by name
	instances  map[string]*instance // by ID
	activities []*activity          // oldest first
	parameters map[string]*parameter
}

func newWorld() *world {
	return &world{
		templates:  map[string]*template{},
		groups:     map[string]*group{},
		instances:  map[string]*instance{},
		parameters: map[string]*parameter{},
	}
}

// clone copies everything that later writes may change in place. Template
// versions and block device lists are never changed after they are made.
func (w *world) clone() *world {
	n := newWorld()
	for id, t := range w.templates {
		c := *t
		c.versions = slices.Clone(t.versions)
		n.templates[id] = &c
	}
	for name, g := range w.groups {
		n.groups[name] = g.clone()
	}
	for id, i := range w.instances {
		c := *i
		c.tags = maps.Clone(i.tags)
		n.instances[id] = &c
	}
	for _, a := range w.activities {
		c := *a
		n.activities = append(n.activities, &c)
	}
	for name, p := range w.parameters {
		c := *p
		n.parameters[name] = &c
	}
	return n
}

// past is what the world looked like from a moment on.
type past struct {
	from  time.Time
	world *world
}

// maxBurst is how much less than asked for a stale read may lag.
const maxBurst = 5 * time.Millisecond

// changed notes that the world may have changed. The caller holds c.mu. It
// costs a copy of the world while reads are stale, and nothing otherwise.
func (c *Cloud) changed() {
	if c.maxLag() == 0 {
		return
	}
	now := time.Now()
	// A burst of changes is one change: 300 instances that boot would
	// otherwise be 300 copies of 300 instances. The first copy stays.
	if n := len(c.history); n > 1 && now.Sub(c.history[n-1].from) < maxBurst {
		c.history[n-1].world = c.world.clone()
	} else {
		c.history = append(c.history, past{now, c.world.clone()})
	}
	keep := 0
	for keep+1 < len(c.history) && !c.history[keep+1].from.After(now.Add(-c.maxLag())) {
		keep++
	}
	c.history = c.history[keep:]
}

func (c *Cloud) maxLag() time.Duration {
	var most time.Duration
	for _, d := range c.lag {
		most = max(most, d)
	}
	return most
}

// Hide makes every read miss an instance for d: no list has it, and asked for by its ID it does not exist. Writes find it.
func (c *Cloud) Hide(id string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hidden == nil {
		c.hidden = map[string]time.Time{}
	}
	c.hidden[id] = time.Now().Add(d)
}

// view is the world that a read of the service sees now.
func (c *Cloud) view(service string) *world {
	seen := c.lagged(service)
	maps.DeleteFunc(c.hidden, func(_ string, until time.Time) bool { return time.Now().After(until) })
	if len(c.hidden) == 0 {
		return seen
	}
	seen = seen.clone()
	for id := range c.hidden {
		delete(seen.instances, id)
		for _, g := range seen.groups {
			g.members = slices.DeleteFunc(g.members, func(m string) bool { return m == id })
		}
	}
	return seen
}

// lagged is the world as old as reads of the service are.
func (c *Cloud) lagged(service string) *world {
	lag := c.lag[service]
	if lag == 0 || len(c.history) == 0 {
		return c.world
	}
	seen := c.history[0].world
	horizon := time.Now().Add(-lag)
	for _, p := range c.history {
		if p.from.After(horizon) {
			break
		}
		seen = p.world
	}
	return seen
}

// StaleReads makes every Describe and Get call of all services show the world
// as it was d ago: an old desired capacity, an instance that is not there
// yet. Writes are never stale. 0 turns it off.
func (c *Cloud) StaleReads(d time.Duration) {
	for _, service := range []string{"ec2", "autoscaling", "ssm"} {
		c.StaleService(service, d)
	}
}

// StaleService is StaleReads for one service ("ec2", "autoscaling", "ssm").
// With ec2 alone, an instance is in its group before DescribeInstances knows
// it, as on real AWS.
func (c *Cloud) StaleService(service string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lag[service] = d
	if c.maxLag() == 0 {
		c.history = nil
		return
	}
	c.changed()
}
