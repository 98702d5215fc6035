package disruption

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Nodes are dear while the consolidation lasts of which package consolidation has ordered the machines.

// youngPod is how long a pod runs at least before it is moved to save money. A pod that the agent has moved is a new pod, so
// that no pod is moved for this more than once an hour, whatever the agent remembers.
const youngPod = time.Hour

// YoungPod is the youngest pod of a node where it has run for less than youngPod, and until when; empty: none has. Pods of Jobs count
// where they are asked for. It costs the pods of the node.
func (r *Round) YoungPod(n *round.Node, jobs bool) (young cluster.PodKey, due time.Time) {
	for k := range n.Pods {
		pod := &n.Pods[k]
		at := pod.Created.Time().Add(youngPod)
		if !jobs && pod.Owner != nil && pod.Owner.Kind == "Job" {
			continue
		}
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

// dear tells a node that machines were ordered in place of, to save money.
func (r *Round) dear(name cluster.NodeName) bool {
	c := r.Next.Consolidation
	return c.UnderWay() && c.Has(name)
}

// carryConsolidation goes on with the consolidation that is under way, for the nodes that still are to go. Its machines are a count of
// spare machines, as those of a rollout: what the cloud did not take is asked for again (Grow).
func (r *Round) carryConsolidation() {
	was := r.Memory.Consolidation
	if !was.UnderWay() || !r.Policy.Consolidates() {
		return
	}
	c := *was
	r.Next.Consolidation = &c // its nodes are no spare machines
	refused := ""
	if g, told := r.ByID[c.Group]; told {
		coming, come, _ := r.spareMachines(g)
		c.Came = c.Came || come >= c.Machines
		if r.groups[g].wait = c.Machines; c.Came {
			r.groups[g].wait = min(c.Machines, come)
		} else if limit := &r.Groups[g].Growth; coming+come < c.Machines && limit.Rule == decision.RuleBackoff {
			refused = limit.Why
		}
	}
	c.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(name cluster.NodeName) bool {
		i, is := r.ByName[name]
		return !is || !r.continues(&c, &r.Nodes[i], refused)
	})
	if len(c.Nodes) == 0 {
		r.Next.Consolidation = nil
	}
}

// dueOf is when the machines of a consolidation are no longer waited for.
func (r *Round) dueOf(c *decision.Consolidation) time.Time {
	o := cluster.Options{}
	if g, ok := r.ByID[c.Group]; ok {
		o = r.Groups[g].Options
	}
	return c.Ordered.Add(r.startTime(&o))
}

// continues tells whether a consolidation goes on for one of its nodes. Where a pod has come to the node, its machines did not
// come in their time, or the cloud has refused them, the node is left alone for a while. A drain has its own end.
func (r *Round) continues(c *decision.Consolidation, n *round.Node, refused string) bool {
	if n.Group >= 0 && r.toldToGo(n) {
		return false
	}
	over, why := r.Reached(r.dueOf(c)), ""
	switch pod, _ := r.YoungPod(n, false); {
	case n.State == round.StateMarked:
		return !over
	case pod != "":
		why = "pod " + string(pod) + " has come to it meanwhile"
	case over:
		why = "its time was over at " + round.Stamp(r.dueOf(c))
	case refused != "":
		why = "no machine of group " + string(c.Group) + " came: " + refused
	default:
		return true
	}
	r.GiveUp(n.Name)
	r.Held("node", string(n.Name), decision.RuleConsolidate, "its replacement is given up: %s", why)
	return false
}

// waitsForMachines says which machines of its consolidation a node waits for; empty: none.
func (r *Round) waitsForMachines(name cluster.NodeName) string {
	c := r.Next.Consolidation
	if !r.dear(name) || c.Came {
		return ""
	}
	r.WakeAt(r.dueOf(c))
	return "the machines were ordered at " + round.Stamp(c.Ordered) + " and are not Ready yet"
}

// Consolidate begins a consolidation, and asks for its machines.
func (r *Round) Consolidate(c *decision.Consolidation) {
	c.Ordered, c.Came = r.Now, c.Machines == 0
	r.Next.Consolidation = c
	r.WakeAt(r.Now.Add(time.Second))
	r.Grow()
}

// orderDear asks for the machines of the consolidation that have not come and are not coming, and returns their group; -1: for none.
func (r *Round) orderDear() int {
	c := r.Next.Consolidation
	if !c.UnderWay() || c.Came || r.Grew || r.Unhealthy != "" {
		return -1
	}
	k, told := r.ByID[c.Group]
	if !told || r.Groups[k].Shrinks {
		return -1
	}
	g := &r.Groups[k]
	coming, come, _ := r.spareMachines(k)
	n := growth.Count(r.State, g, c.Machines-coming-come)
	if n <= 0 {
		return -1
	}
	g.Grow += n
	return k
}
