package round

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// Reapable is an instance that is no Node and should be terminated.
type Reapable struct {
	Instance *cluster.Instance
	Rule     string
	Why      string
}

// instanceFailed counts the failure of an instance that the cloud could not start.
func (w *State) instanceFailed(g *Group, in *cluster.Instance) {
	f := cluster.Failure{Cause: cluster.CauseOther, Text: "the cloud could not start " + string(in.ID), At: in.Created}
	if in.Failure != nil {
		f = *in.Failure
	}
	if !f.At.IsZero() {
		g.failed = append(g.failed, f)
	}
	g.Reapable = append(g.Reapable, Reapable{in, decision.RuleNotStarted, f.Text})
}

// instanceLate counts the failure of an instance that never became a Node.
func (w *State) instanceLate(g *Group, in *cluster.Instance, due time.Time) {
	text := fmt.Sprintf("%s has not become a Node by %s; look at its console log and at the join token", in.ID, Stamp(due))
	g.failed = append(g.failed, cluster.Failure{Cause: cluster.CauseNoJoin, Text: text, At: due})
	g.Reapable = append(g.Reapable, Reapable{in, decision.RuleNoJoin, text})
}

// registersWithin is how long pods wait for a machine whose Node was deleted: who deletes it to have it registered anew restarts its kubelet,
// and nothing else does.
const registersWithin = 2 * time.Minute

// noteJoined remembers that an instance is a Node, as long as its age does not tell it: see lostNode.
func (w *State) noteJoined(in *cluster.Instance, patience time.Duration) {
	if in.Created.IsZero() || !w.Reached(in.Created.Add(max(patience, seenWithin+1))) {
		Set(&w.Next.Joined, in.ID, true)
	}
}

// nodeGone tells an instance without a Node that was one in an earlier round.
func (w *State) nodeGone(id cluster.InstanceID) bool {
	if w.Memory.Joined[id] {
		Set(&w.Next.Joined, id, true)
	}
	return w.Memory.Joined[id]
}

// seenWithin is how long after its start the agent sees a new instance at the latest, where it is at work.
const seenWithin = time.Minute

// lostNode tells an instance whose Node is gone: it was no new one when it was first seen without.
func lostNode(in *cluster.Instance, since time.Time) bool {
	return !in.Created.IsZero() && since.Sub(in.Created) > seenWithin
}

// instanceLost tells of an instance whose Node is gone. That its group starts no machines does not follow from it.
func (w *State) instanceLost(g *Group, in *cluster.Instance, since, due time.Time) {
	text := fmt.Sprintf("%s has had no Node since %s: its Node was deleted, or nobody looked before; a restart of its kubelet registers it again", in.ID, Stamp(since))
	if w.Reached(due) {
		g.Reapable = append(g.Reapable, Reapable{in, decision.RuleLostNode, text})
		return
	}
	w.Held("instance", string(in.ID), decision.RuleLostNode, "%s; its machine ends after %s", text, Stamp(due))
	w.WakeAt(due)
}

// Drift is in what the machines of a group differ from what it would start today: cluster.Drift.
func (w *State) Drift(g *Group) map[cluster.InstanceID][]cluster.Difference {
	return cluster.Drift(g.NodeGroup, func(id cluster.InstanceID) *cluster.Node {
		if i, is := w.ByName[w.Identity.Node[id]]; is {
			return w.Nodes[i].Node
		}
		return nil
	}, w.Snapshot.ControlPlaneVersion, w.Now)
}
