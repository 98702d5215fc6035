package reaper

import (
	"fmt"
	"time"
)

// This file holds L2: whether a kubelet lives, by the movement of its Lease on this
// agent's own clock. A stamp says nothing: a machine's clock may be ahead or behind.

// Lease is a kubelet's as it was just read; the zero value is that there is none.
type Lease struct {
	Renewed time.Time
	// Problem says why it could not be read.
	Problem string
}

// Pulse is what is known of the movement of a Node's Lease.
type Pulse struct {
	Stamp time.Time `json:"stamp,omitzero"` // the Lease's own
	Still time.Time `json:"still,omitzero"` // since when it has had that stamp, by our clock; zero: never read
	Moved time.Time `json:"moved,omitzero"` // when it was last seen to have another; zero: never
}

// feel files a read of the Lease.
func (p *Pulse) feel(l Lease, now time.Time) {
	switch {
	case l.Problem != "":
		*p = Pulse{}
	case p.Still.IsZero():
		p.Stamp, p.Still = l.Renewed, now
	case !l.Renewed.Equal(p.Stamp):
		p.Stamp, p.Still, p.Moved = l.Renewed, now, now
	}
}

// renewsLease: a kubelet that renews its Lease lives. That of a terminated instance has to
// stand still from one sight to the next; one that moves after the cloud called the
// instance terminated is another machine's, which uses the same Node.
func renewsLease(c *candidate, x *moment) string {
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

// wantLeases names the Nodes whose Lease is to be read: those whose instance the cloud's
// list does not show to exist.
func wantLeases(list []*candidate, plan *Plan) {
	for _, c := range list {
		if c.sight.state != alive {
			plan.Leases = append(plan.Leases, c.node.Name)
		}
	}
}
