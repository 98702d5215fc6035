package reaper

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds the facts about one Node on which the rules decide, and stores each read
// of the cloud as a sight.

// candidate is one Node with the facts about it.
type candidate struct {
	node  cluster.Node
	id    cluster.InstanceID
	group cluster.GroupID
	zone  string
	known bool // the ledger has its instance
	sent  bool // its instance was removed by a scale-down

	rule, why string // why it is not eligible; empty: it is eligible, and the fields below are set
	watch     Watch
	sight     observation
	twin      bool // a new instance has its name (S1)

	due   time.Time // when the rule that holds it may let go
	would bool
	fence bool
}

// candidate gathers the facts about n. A Node that may be dead is watched: the newest read
// is stored as a sight.
func (x *evaluation) candidate(n cluster.Node) *candidate {
	c := &candidate{node: n, id: machine(n.ProviderID)}
	var r Record
	r, c.known = x.memory.Seen[c.id]
	c.group, c.zone, c.sent = r.Group, x.zone(n, r), r.Sent
	if c.rule, c.why = first(eligibleChecks, c, x); c.rule != "" {
		return c
	}
	c.watch = x.memory.watched(n, x.in)
	c.sight = x.view.look(n, x)
	c.watch.count(c.sight, x.policy)
	c.hear(x)
	if l, read := x.in.Leases[n.Name]; read {
		c.watch.Pulse.feel(l, x.in.Now)
	}
	c.twin = x.wanted[n.Name] || x.view.replaced(n)
	return c
}

func (x *evaluation) zone(n cluster.Node, r Record) string {
	if r.Zone != "" {
		return r.Zone
	}
	return n.Labels["topology.kubernetes.io/zone"]
}

// watched returns the memory of n. It is begun anew if the Node or its instance is not the
// one remembered; an outage starts its timers again.
func (m *Memory) watched(n cluster.Node, in Input) Watch {
	w := m.Watch[n.Name]
	if w.UID != n.UID || w.ProviderID != n.ProviderID {
		// A read made before the Node stopped being Ready says nothing about now.
		since := n.ReadySince
		if since.IsZero() {
			since = n.Created
		}
		w = Watch{UID: n.UID, ProviderID: n.ProviderID, Since: since, LookAt: since}
	}
	if in.Outage != "" {
		w = Watch{UID: n.UID, ProviderID: n.ProviderID, Since: in.Now, LookAt: in.Now, Fenced: w.Fenced}
	}
	return w
}

// count stores a sight. Only a read newer than the last one counts.
func (w *Watch) count(s observation, p Policy) {
	if s.at.Before(w.Since) || !s.at.After(w.Looked) {
		return
	}
	w.Looked = s.at
	switch s.state {
	case gone:
		if w.First.IsZero() || w.Positive != s.positive {
			w.First, w.Positive = s.at, s.positive
		}
		w.Last, w.Alive = s.at, 0
		if w.LookAt = w.First.Add(p.SightInterval); !w.LookAt.After(s.at) {
			w.LookAt = s.at.Add(p.SightInterval)
		}
	case alive:
		w.First, w.Last, w.Positive = time.Time{}, time.Time{}, false
		w.Asked.First, w.Asked.Last = time.Time{}, time.Time{}
		w.LookAt = s.at.Add(min(p.SightInterval/2<<min(w.Alive, 8), aliveLookMax))
		w.Alive++
	default:
		w.LookAt = s.at.Add(p.UnknownLook())
	}
}

// UnknownLook is the wait after a read without a statement about the instance.
func (p Policy) UnknownLook() time.Duration { return min(unknownLook, p.SightInterval) }

// grace is how long the Node must look dead (L1, L2).
func (c *candidate) grace(x *evaluation) time.Duration {
	switch {
	case c.watch.Positive:
		return x.policy.GoneGrace
	case c.sent || c.twin:
		return x.policy.SentGrace
	}
	return x.policy.Grace
}

// certain reports whether the proof is independent of our own view of the cluster.
func (c *candidate) certain() bool { return c.sent && c.watch.Positive }

// released reports whether a mass breaker has held a terminated instance for MassHold.
func (c *candidate) released(x *evaluation) bool {
	if !c.watch.Positive {
		return false
	}
	if until := x.memory.MassSince.Add(x.policy.MassHold); x.in.Now.Before(until) {
		c.due = until
		return false
	}
	return true
}

// proof is the rule by which the Node goes.
func (c *candidate) proof() string {
	switch {
	case c.twin:
		return "S1"
	case c.watch.Positive:
		return "G3"
	}
	return "G4"
}

func (c *candidate) because() string {
	how := "absent from two whole reads"
	if c.watch.Positive {
		how = "terminated in two reads"
	}
	why := fmt.Sprintf("instance %s is gone: %s, %s and %s; asked for it by ID, the cloud says %s, %s and %s", c.node.ProviderID, how,
		stamp(c.watch.First), stamp(c.watch.Last), c.watch.Asked.Said, stamp(c.watch.Asked.First), stamp(c.watch.Asked.Last))
	if c.twin {
		why += "; a new instance has its name"
	}
	return why
}

func (c *candidate) deletion() Deletion {
	return Deletion{Node: c.node.Name, UID: c.node.UID, ProviderID: c.node.ProviderID, BootID: c.node.BootID, Group: c.group, Rule: c.proof(), Why: c.because(), Ledgered: c.sent}
}
