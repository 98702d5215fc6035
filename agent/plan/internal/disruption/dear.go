package disruption

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Nodes are dear while the orders last that package consolidation has placed in their stead. The nodes of one consolidation have
// equal orders but for the node, and share the machines.

// youngPod is how long a pod runs at least before it is moved to save money. A pod that the agent has moved is a new pod, so
// that no pod is moved for this more than once an hour, whatever the agent remembers.
const youngPod = time.Hour

// YoungPod is the youngest pod of a node where it has run for less than youngPod, and until when; empty: none has. It costs the
// pods of the node.
func (r *Round) YoungPod(n *round.Node) (young cluster.PodKey, due time.Time) {
	for k := range n.Pods {
		pod := &n.Pods[k]
		at := pod.Created.Time().Add(youngPod)
		if c := at.Compare(due); !r.Ignored(pod) && (c > 0 || c == 0 && pod.Key < young) {
			due, young = at, pod.Key
		}
	}
	if r.Reached(due) {
		return "", due
	}
	r.WakeAt(due)
	return young, due
}

// dear is the order of a node that is consolidated; nil: it is not.
func (r *Round) dear(name cluster.NodeName) *decision.Replacement {
	if x := r.order(name); x != nil && x.Rule == decision.RuleConsolidate {
		return x
	}
	return nil
}

// wanted is how many machines were ordered with an order; 0 where another node's order of the same consolidation counts them.
func (r *Round) wanted(x *decision.Replacement) int {
	if x.Rule != decision.RuleConsolidate {
		return 1
	}
	first := slices.IndexFunc(r.Next.Replacements, func(o decision.Replacement) bool { return x.With(&o) })
	if r.Next.Replacements[first].Node != x.Node {
		return 0
	}
	return x.Machines
}

// dearStands tells whether a consolidation goes on for one of its nodes. Where a pod has come to the node, its machines did not
// come in their time, or the cloud has refused them, the node is left alone for a while.
func (r *Round) dearStands(x *decision.Replacement, i int) bool {
	if !r.Policy.Consolidates() {
		return false
	}
	why := ""
	if pod, _ := r.YoungPod(&r.Nodes[i]); pod != "" {
		why = "pod " + string(pod) + " has come to it meanwhile"
	} else if r.Reached(r.due(x)) {
		why = "its time was over at " + round.Stamp(r.due(x))
	} else if r.arrived(x) < x.Machines {
		for _, b := range r.Next.Backoff {
			if b.Group == x.Group && b.Last.After(x.Ordered) {
				why = "no machine of group " + string(x.Group) + " came: " + b.Text
			}
		}
	}
	if why == "" || r.Nodes[i].State == round.StateMarked { // a drain has its own end
		return !r.Reached(r.due(x))
	}
	r.GiveUp(x.Node)
	r.Held("node", string(x.Node), decision.RuleConsolidate, "its replacement is given up: %s", why)
	return false
}

// waitsForMachines says which machines of its consolidation a node waits for; empty: none.
func (r *Round) waitsForMachines(name cluster.NodeName) string {
	x := r.dear(name)
	if x == nil || r.arrived(x) >= x.Machines {
		return ""
	}
	r.WakeAt(r.due(x))
	return "the machines were ordered at " + round.Stamp(x.Ordered) + " and are not Ready yet"
}

// Consolidate notes the orders of a consolidation, whose machines the caller has asked for.
func (r *Round) Consolidate(c *decision.Consolidation) {
	for _, name := range c.Nodes {
		r.Next.Replacements = append(r.Next.Replacements, decision.Replacement{Node: name, Group: c.Group, Machines: c.Machines, Rule: decision.RuleConsolidate, Ordered: r.Now})
	}
	r.sortReplacements()
}

// ConsolidationUnderWay tells whether a consolidation is under way.
func (r *Round) ConsolidationUnderWay() bool {
	return slices.ContainsFunc(r.Next.Replacements, func(x decision.Replacement) bool { return x.Rule == decision.RuleConsolidate })
}
