package reaper

import (
	"fmt"
	"time"
)

// This file holds L2: whether a kubelet lives, judged by the movement of its Lease on this
// agent's own clock. The time in the Lease is no evidence: a machine's clock may be ahead or
// behind.

// Lease is a kubelet's Lease as it was just read; the zero value says that there is none.
type Lease struct {
	Renewed time.Time
	// Problem says why it could not be read.
	Problem string
}

// leaseWatch is the observed movement of a Node's Lease.
type leaseWatch struct {
	Stamp time.Time `json:"stamp,omitzero"` // the renewTime of the Lease
	Still time.Time `json:"still,omitzero"` // since when the stamp has not changed, by our clock; zero: never read
	Moved time.Time `json:"moved,omitzero"` // when the stamp last changed, by our clock; zero: never
}

// feel stores a read of the Lease.
func (p *leaseWatch) feel(l Lease, now time.Time) {
	switch {
	case l.Problem != "":
		*p = leaseWatch{}
	case p.Still.IsZero():
		p.Stamp, p.Still = l.Renewed, now
	case !l.Renewed.Equal(p.Stamp):
		p.Stamp, p.Still, p.Moved = l.Renewed, now, now
	}
}

// renewsLease is L2: a kubelet that renews its Lease lives. The Lease of a terminated
// instance has to stand still from one sight to the next; a renewal after the cloud called
// the instance terminated comes from another machine that uses the same Node.
func renewsLease(c *candidate, x *evaluation) string {
	p := c.watch.Pulse
	if p.Still.IsZero() {
		if why := x.in.Leases[c.node.Name].Problem; why != "" {
			return "its kubelet's Lease cannot be read: " + why
		}
		return "its kubelet's Lease has not been read yet"
	}
	grace := c.grace(x)
	if c.watch.Positive {
		grace = max(grace, x.policy.SightInterval)
		if p.Moved.After(c.watch.First) {
			grace = max(grace, x.policy.SentGrace)
		}
	}
	if due := p.Still.Add(grace); x.in.Now.Before(due) {
		c.due = due
		if p.Moved.IsZero() {
			return fmt.Sprintf("its kubelet's Lease has been watched since %s, for less than %s", stamp(p.Still), grace)
		}
		return fmt.Sprintf("its kubelet renewed its Lease at %s", stamp(p.Moved))
	}
	return ""
}

// wantLeases adds the Leases to read to the plan: one for each Node whose instance the
// cloud's list does not show as existing.
func wantLeases(list []*candidate, plan *Plan) {
	for _, c := range list {
		if c.sight.state != alive {
			plan.Leases = append(plan.Leases, c.node.Name)
		}
	}
}
