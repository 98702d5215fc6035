package round

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// PatienceEnds is until when machines that would be little filled may be held (rule U30).
func (w *State) PatienceEnds() time.Time { return w.Memory.LittleFilled.Add(w.Policy.UnneededFor) }

// Patience is how long a machine of a group may take to become a Node, and its Node to become what
// the group's template says.
func (w *State) Patience(g *Group) time.Duration {
	return OrElse(g.Options.MaxNodeProvisionTime, w.Policy.MaxNodeProvisionTime)
}

// startsUntil is when what a node shows is the truth, whatever its template says.
func (w *State) startsUntil(n *Node) time.Time {
	return n.Created.Add(w.Patience(&w.Groups[n.Group]))
}

// starting compares a young node with its group's template: what the node has beside it, what it lacks, and how the
// node looks once its start is over.
// It is worked out once per value of the node, the template and the classes.
func (w *State) starting(n *Node) *comingNode {
	t, needs := &w.Groups[n.Group].Template, w.Cache.Classes.needs
	if c := n.Facts.coming; c == nil || !c.Of(n.Instance.Zone, t, needs) {
		n.Facts.coming = newComing(n.Node, n.Instance.Zone, t, needs, w.Policy)
	}
	return n.Facts.coming
}

// isStarting tells a Ready node that will soon take pods which it does not take now. One that somebody
// has cordoned or asked to go will not.
func (w *State) isStarting(n *Node) bool {
	if n.Group < 0 || n.Annotations[cluster.AnnotationRequested] == "true" || n.Unschedulable || w.Reached(w.startsUntil(n)) {
		return false
	}
	if w.starting(n).Start.Empty() {
		return false
	}
	w.WakeAt(w.startsUntil(n))
	return true
}

// TellStarting remembers the Ready nodes that are still starting, and tells by name which they are,
// and which have not become in their time what their group's machines are. It costs the nodes, and
// the differences of the young ones.
func (w *State) TellStarting() {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		was, known := w.Memory.Starting[n.Name]
		switch {
		case n.State == StateUpcoming && n.Ready == cluster.StatusTrue:
			Set(&w.Next.Starting, n.Name, w.starting(n).Start)
			w.HeldWhy("node", string(n.Name), decision.RuleStarting, w.starting(n).WordsUntil(w.startsUntil(n)))
		case known && n.Group >= 0 && n.State == StateReady:
			w.endOfStart(n, was)
		}
	}
}

// endOfStart keeps what was remembered of a node's start while it says something: kube-scheduler's
// turn when the last of it has passed, and what had not passed in its time for as long as it is there.
func (w *State) endOfStart(n *Node, was decision.Start) {
	still := was.Still(n.Node)
	if still = w.Cache.Classes.needs.Of(still); !still.Empty() {
		if w.Reached(w.startsUntil(n)) { // else the template does not say so any more
			still.Overdue = true
			Set(&w.Next.Starting, n.Name, still)
			w.HeldWhy("node", string(n.Name), decision.RuleNeverStarted, w.neverStartedWords(n, &still))
		}
		return
	}
	if was.Passed.IsZero() {
		was = decision.Start{Passed: w.Now}
	}
	if !w.Reached(was.Passed.Add(SchedulerRetry)) {
		Set(&w.Next.Starting, n.Name, was)
	}
}

func (w *State) neverStartedWords(n *Node, still *decision.Start) string {
	g := &w.Groups[n.Group]
	return fmt.Sprintf("it joined at %s, and %s later %s: pods no longer count on it where that keeps them off; look at what sets up the nodes of group %s", Stamp(n.Created), w.Patience(g), still.Words("has not passed", "has not come"), g.ID)
}

// unusable tells an upcoming node that kube-scheduler cannot use yet. One that only lacks labels or
// volume limits it uses for most pods.
func (w *State) unusable(n *Node) bool {
	start := &w.starting(n).Start
	return n.Ready != cluster.StatusTrue || len(start.Taints)+len(start.Resources) > 0
}

// UsableSince is since when kube-scheduler can use a node: it is Ready, and what was passing at its
// start has passed.
func (w *State) UsableSince(n *Node) time.Time {
	return Later(n.ReadySince, w.Next.Starting[n.Name].Passed)
}
