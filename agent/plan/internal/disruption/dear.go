package disruption

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Nodes are dear while the consolidation lasts of which package consolidation has ordered the machines.

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

// dear tells a node that machines were ordered in place of, to save money.
func (r *Round) dear(name cluster.NodeName) bool {
	c := r.Next.Consolidation
	return c.UnderWay() && c.Has(name)
}

// cameAfter tells a node that joined after the machines of a consolidation were ordered. The API server tells whole seconds.
func cameAfter(n *round.Node, c *decision.Consolidation) bool {
	return !n.Created.Before(c.Ordered.Truncate(time.Second))
}

// arrived is how many machines of the group of a consolidation are Ready that came after its order. It costs the nodes of the group.
func (r *Round) arrived(c *decision.Consolidation) (n int) {
	g, known := r.ByID[c.Group]
	if !known {
		return 0
	}
	for _, i := range r.groups[g].members {
		if o := &r.Nodes[i]; o.State == round.StateReady && cameAfter(o, c) {
			n++
		}
	}
	return n
}

// dueOf is when the machines of a consolidation are no longer waited for.
func (r *Round) dueOf(c *decision.Consolidation) time.Time {
	o := cluster.Options{}
	if g, ok := r.ByID[c.Group]; ok {
		o = r.Groups[g].Options
	}
	return c.Ordered.Add(r.startTime(&o))
}

// carryConsolidation goes on with the consolidation that is under way, for the nodes that still are to go. One of which the cloud did
// not take the order is only thought of, as before.
func (r *Round) carryConsolidation() {
	was := r.Memory.Consolidation
	if !was.UnderWay() || !r.Policy.Consolidates() {
		return
	}
	c := *was
	c.Bought = c.Bought || c.Machines == 0 || !r.Next.Resized[c.Group].At.Before(c.Ordered)
	if !c.Bought {
		c.Ordered = time.Time{}
		r.NotBought = &c
		return
	}
	c.Nodes = nil
	for _, name := range was.Nodes {
		if i, is := r.ByName[name]; is && r.continues(&c, i) {
			c.Nodes = append(c.Nodes, name)
		}
	}
	if len(c.Nodes) > 0 {
		r.Next.Consolidation = &c
	}
}

// continues tells whether a consolidation goes on for one of its nodes. Where a pod has come to the node, its machines did not
// come in their time, or the cloud has refused them, the node is left alone for a while.
func (r *Round) continues(c *decision.Consolidation, i int) bool {
	n := &r.Nodes[i]
	if n.Group >= 0 {
		if _, told := r.Next.Deleted[n.Instance.ID]; told {
			return false
		}
	}
	why := ""
	if pod, _ := r.YoungPod(n); pod != "" {
		why = "pod " + string(pod) + " has come to it meanwhile"
	} else if r.Reached(r.dueOf(c)) {
		why = "its time was over at " + round.Stamp(r.dueOf(c))
	} else if r.arrived(c) < c.Machines {
		for _, b := range r.Next.Backoff {
			if b.Group == c.Group && b.Last.After(c.Ordered) {
				why = "no machine of group " + string(c.Group) + " came: " + b.Text
			}
		}
	}
	if why == "" || n.State == round.StateMarked { // a drain has its own end
		return !r.Reached(r.dueOf(c))
	}
	r.GiveUp(n.Name)
	r.Held("node", string(n.Name), decision.RuleConsolidate, "its replacement is given up: %s", why)
	return false
}

// waitsForMachines says which machines of its consolidation a node waits for; empty: none.
func (r *Round) waitsForMachines(name cluster.NodeName) string {
	c := r.Next.Consolidation
	if !r.dear(name) || r.arrived(c) >= c.Machines {
		return ""
	}
	r.WakeAt(r.dueOf(c))
	return "the machines were ordered at " + round.Stamp(c.Ordered) + " and are not Ready yet"
}

// Consolidate notes a consolidation whose machines the caller has asked for.
func (r *Round) Consolidate(c *decision.Consolidation) {
	next := *c
	next.Nodes, next.Ordered, next.Bought = slices.Sorted(slices.Values(c.Nodes)), r.Now, false
	r.Next.Consolidation = &next
}
