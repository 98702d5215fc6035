// Package waiting finds the node groups of which the cloud is expected to tell something new
// soon, from one Snapshot and the plan made of it: the inventory reads these fast, all others
// slowly.
//
// It refuses to wait for what only an operator ends: a member that is stopped, in Standby or
// detached, a machine that is not Ready long after its launch, a group in which the cloud
// starts nothing.
package waiting

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
)

const (
	// bootTime is how long after its launch a machine that runs is waited for: one that is
	// not Ready then waits for an operator, and the cloud has nothing new to tell of it.
	bootTime = 15 * time.Minute
	// actionTime is how long a group is waited for because of an action alone.
	actionTime = time.Minute
	// youngNode is how old a Node of an instance that no group lists may be for its
	// instance to be expected with the next reads.
	youngNode = time.Minute
)

// For finds the groups in which a machine is missing, starts, stops or joins, an operation is
// under way, or the plan changes something.
func For(s *cluster.Snapshot, p decision.Plan) inventory.Waiting {
	w := inventory.Waiting{Groups: map[cluster.GroupID]time.Time{}}
	ready := make(map[cluster.InstanceID]bool, len(s.Nodes))
	for _, n := range s.Nodes {
		if n.Ready == cluster.StatusTrue {
			ready[cluster.InstanceID(n.ProviderID)] = true
		}
	}
	listed := map[cluster.InstanceID]bool{}
	for i := range s.Groups {
		g := &s.Groups[i]
		for _, in := range g.Instances {
			listed[in.ID] = true
		}
		if until, ok := awaited(g, ready, s.Now); ok {
			w.Groups[g.ID] = until
		}
	}
	for _, a := range p.Actions {
		if id := changes(a); id != "" {
			if _, ok := w.Groups[id]; !ok {
				w.Groups[id] = s.Now.Add(actionTime)
			}
		}
	}
	for _, n := range s.Nodes { // a young Node is ahead of the reads
		if until := n.Created.Add(youngNode); !n.ControlPlane && n.ProviderID != "" && !listed[cluster.InstanceID(n.ProviderID)] && until.After(w.All) && until.After(s.Now) {
			w.All = until
		}
	}
	return w
}

// changes is the group that an action changes in the cloud; empty: none.
func changes(a decision.Action) cluster.GroupID {
	switch a := a.(type) {
	case decision.Grow:
		return a.Group
	case decision.Terminate:
		return a.Group
	}
	return ""
}

// awaited reports whether news of a group are expected, and until when; zero: without an end.
func awaited(g *cluster.NodeGroup, ready map[cluster.InstanceID]bool, now time.Time) (until time.Time, ok bool) {
	alive := 0
	for _, in := range g.Instances {
		switch {
		case !in.Member:
		case in.Phase == cluster.PhaseDeleting, in.Phase == cluster.PhasePending:
			return time.Time{}, true
		case in.Phase == cluster.PhaseRunning:
			alive++
			if end := in.Created.Add(bootTime); !ready[in.ID] && now.Before(end) {
				ok = true
				if end.After(until) {
					until = end
				}
			}
		}
	}
	if g.Busy != "" || alive < g.Target && g.Paused == "" {
		return time.Time{}, true
	}
	return until, ok
}
