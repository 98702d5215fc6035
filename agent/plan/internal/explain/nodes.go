package explain

import (
	"cmp"
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Nodes lists every machine that exists: the Nodes, and the instances of node
// groups that have no Node yet, by group and then by name. It costs one round.
func Nodes(end Moment) decision.Nodes {
	e := &explainer{end: end, held: slices.Clone(end.Plan.Held)}
	slices.SortStableFunc(e.held, round.CompareHeld)
	out := decision.Nodes{At: end.Now, ControlPlane: end.Snapshot.ControlPlaneVersion, Nodes: []decision.NodeRow{}}
	reasons := map[[2]string]decision.Held{}
	for _, h := range slices.Backward(e.held) {
		reasons[[2]string{h.Kind, h.Name}] = h
	}
	add := func(r decision.NodeRow, kind, name string) {
		h := reasons[[2]string{kind, name}]
		r.Rule, r.Held = h.Rule, h.Why
		r.MinorsBehind = cluster.MinorsBehind(r.Kubelet, out.ControlPlane)
		out.Nodes = append(out.Nodes, r)
	}
	drift := map[cluster.InstanceID][]cluster.Difference{}
	for i := range end.Groups {
		maps.Copy(drift, end.Drift(&end.Groups[i]))
	}
	for i := range end.Nodes {
		n := &end.Nodes[i]
		r := decision.NodeRow{Node: n.Name, State: nodeState(n), Created: n.Created, Kubelet: n.KubeletVersion}
		if n.Group >= 0 {
			r.Group, r.Instance, r.Drift = end.Groups[n.Group].ID, n.Instance.ID, drift[n.Instance.ID]
			if !n.Instance.Created.IsZero() {
				r.Created = n.Instance.Created
			}
		}
		add(r, "node", string(n.Name))
	}
	for i := range end.Groups {
		g := &end.Groups[i]
		for k := range g.Instances {
			in := &g.Instances[k]
			if _, has := end.Identity.Node[in.ID]; !has && in.Phase != cluster.PhaseGone {
				add(decision.NodeRow{Group: g.ID, Instance: in.ID, State: instanceState(in), Created: in.Created, Drift: drift[in.ID]}, "instance", string(in.ID))
			}
		}
	}
	slices.SortFunc(out.Nodes, func(a, b decision.NodeRow) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(b.Node, "")-cmp.Compare(a.Node, ""), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Instance, b.Instance))
	})
	return out
}

func nodeState(n *round.Node) string {
	switch {
	case n.State == round.StateMarked:
		return decision.NodeDraining
	case n.Deleting || n.Instance != nil && n.Instance.Phase == cluster.PhaseDeleting:
		return decision.NodeEnding
	case n.State == round.StateUpcoming:
		return decision.NodeStarting
	case n.Ready != cluster.StatusTrue:
		return decision.NodeNotReady
	case n.Unschedulable:
		return decision.NodeCordoned
	case n.State == round.StateOut:
		return decision.NodeEnding
	}
	return decision.NodeReady
}

func instanceState(in *cluster.Instance) string {
	switch in.Phase {
	case cluster.PhaseFailed:
		return decision.NodeFailed
	case cluster.PhaseDeleting, cluster.PhaseStopped:
		return decision.NodeEnding
	}
	return decision.NodeUpcoming
}
