package nodecleaner

import (
	"maps"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds rule G, what one read of the cloud says about one instance, and
// the ledger. It is as pure as decide.go.

type state int

const (
	unknown state = iota
	alive
	gone
)

// sight is what one read says about one instance.
type sight struct {
	state    state
	positive bool // the cloud lists it as terminated
	at       time.Time
	group    cluster.GroupID
	why      string
}

// found is an instance and the group that lists it.
type found struct {
	group    *cluster.NodeGroup
	instance cluster.Instance
}

// view is one read, indexed.
type view struct {
	groups    map[cluster.GroupID]*cluster.NodeGroup
	instances map[cluster.InstanceID]found
	whole     string    // why the read is not whole; empty: it is
	at        time.Time // the oldest ReadAt of all groups
	ready     map[cluster.InstanceID]bool
}

func newView(in Input) *view {
	v := &view{groups: map[cluster.GroupID]*cluster.NodeGroup{}, instances: map[cluster.InstanceID]found{},
		whole: in.ReadProblem, ready: map[cluster.InstanceID]bool{}}
	if len(in.Groups) == 0 && v.whole == "" {
		v.whole = "the cloud lists no node group"
	}
	for i := range in.Groups {
		g := &in.Groups[i]
		v.groups[g.ID] = g
		if g.Stale != "" && (v.whole == "" || g.Stale < v.whole) {
			v.whole = g.Stale
		}
		if v.at.IsZero() || g.ReadAt.Before(v.at) {
			v.at = g.ReadAt
		}
		for _, inst := range g.Instances {
			// What is listed twice is taken from where it looks most alive.
			if old, ok := v.instances[inst.ID]; ok && vigour(old.instance) > vigour(inst) ||
				ok && vigour(old.instance) == vigour(inst) && old.group.ID < g.ID {
				continue
			}
			v.instances[inst.ID] = found{group: g, instance: inst}
		}
	}
	for _, n := range in.Nodes {
		if n.Ready == cluster.StatusTrue && n.ProviderID != "" {
			v.ready[cluster.InstanceID(n.ProviderID)] = true
		}
	}
	return v
}

func vigour(i cluster.Instance) int {
	if i.Phase == cluster.PhaseGone {
		return 0
	}
	return 1
}

// look is rule G for the instance of n.
func (v *view) look(n cluster.Node, m Memory, p Policy, now time.Time) sight {
	id := cluster.InstanceID(n.ProviderID)
	if f, ok := v.instances[id]; ok {
		s := sight{at: f.group.ReadAt, group: f.group.ID}
		switch {
		case f.group.Stale != "":
			s.why = "group " + string(f.group.ID) + " is stale: " + f.group.Stale
		case f.instance.Phase == cluster.PhaseGone && !f.instance.Member:
			s.state, s.positive, s.why = gone, true, "the cloud says that instance "+n.ProviderID+" is terminated"
		case f.instance.Phase == cluster.PhaseUnknown:
			s.why = "the cloud gives no state for instance " + n.ProviderID
		default:
			s.state, s.why = alive, "instance "+n.ProviderID+" exists ("+string(f.instance.Phase)+")"
		}
		return s
	}
	s := sight{at: v.at}
	if v.whole != "" {
		s.why = v.whole
		return s
	}
	record, known := m.Seen[id]
	registered := now.Sub(n.Created)
	switch {
	case !known && registered < p.KnownFor:
		s.why = "instance " + n.ProviderID + " is not listed, and its Node is younger than " + p.KnownFor.String()
	case !v.canary(record.Group):
		s.why = "the cloud lists nothing that is known to live: this may be the wrong account or region"
	default:
		s.state, s.group, s.why = gone, record.Group, "the cloud does not list instance "+n.ProviderID
	}
	return s
}

// canary tells whether a read is of the world we know: it lists the running
// instance of a Ready Node; or, where no Node of a group is Ready, it lists the very
// group that the missing instance was of, complete (as many members as its target).
// A read of another account or region lists no group of this name.
func (v *view) canary(group cluster.GroupID) bool {
	for id := range v.ready {
		if f, ok := v.instances[id]; ok && f.instance.Phase == cluster.PhaseRunning {
			return true
		}
	}
	if group == "" {
		// Only the taint tells that the Node was ours: all groups must be complete.
		for _, g := range v.groups {
			if !complete(g) {
				return false
			}
		}
		return len(v.groups) > 0
	}
	return v.groups[group] != nil && complete(v.groups[group])
}

func complete(g *cluster.NodeGroup) bool {
	members := 0
	for _, i := range g.Instances {
		if i.Member && i.Phase != cluster.PhaseGone {
			members++
		}
	}
	return members == g.Target
}

// learn keeps the ledger: every member of a group that was read whole is ours.
func (m *Memory) learn(in Input, v *view, nodes []cluster.Node) {
	for id, f := range v.instances {
		if f.group.Stale != "" {
			continue
		}
		r, known := m.Seen[id]
		if !known {
			r = Record{Group: f.group.ID, First: f.group.ReadAt}
		}
		if f.group.ReadAt.After(r.Last) {
			r.Last, r.Group = f.group.ReadAt, f.group.ID
		}
		m.Seen[id] = r
	}
	for _, id := range in.Sent {
		if r, ok := m.Seen[id]; ok {
			r.Sent = true
			m.Seen[id] = r
		}
	}
	present := map[cluster.InstanceID]bool{}
	for _, n := range nodes {
		id := cluster.InstanceID(n.ProviderID)
		present[id] = true
		if r, ok := m.Seen[id]; tainted(n) && id != "" {
			if !ok {
				r = Record{First: in.Now, Last: in.Now}
			}
			r.Sent = true
			m.Seen[id] = r
		} else if ok && r.Sent && n.Ready == cluster.StatusTrue && !slices.Contains(in.Sent, id) &&
			v.instances[id].instance.Phase == cluster.PhaseRunning {
			// A scale-down that was taken back: the Node lives on without the taint.
			r.Sent = false
			m.Seen[id] = r
		}
	}
	maps.DeleteFunc(m.Seen, func(id cluster.InstanceID, r Record) bool {
		return !present[id] && in.Now.Sub(r.Last) > forgetAfter
	})
}

// clone copies m, so that Decide changes nothing it was given.
func (m Memory) clone() Memory {
	m.Seen, m.Watch = maps.Clone(m.Seen), maps.Clone(m.Watch)
	if m.Seen == nil {
		m.Seen = map[cluster.InstanceID]Record{}
	}
	if m.Watch == nil {
		m.Watch = map[cluster.NodeName]Watch{}
	}
	return m
}
