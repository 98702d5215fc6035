package plan

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// softTaintAfter is how long a node must have been unneeded before the scheduler is told: a
// burst that comes and goes within it writes nothing.
const softTaintAfter = 30 * time.Second

// SoftTaint puts the taint DeletionCandidateOfClusterAutoscaler (PreferNoSchedule) on a
// node, so that the scheduler prefers others while it waits to go; with Off it takes
// the taint away.
type SoftTaint struct {
	Node cluster.NodeName
	UID  cluster.UID
	Off  bool
	Rule string
	Why  string
}

func (SoftTaint) action() {}

// String renders the action as one line of the journal.
func (a SoftTaint) String() string {
	verb := "soften"
	if a.Off {
		verb = "unsoften"
	}
	return fmt.Sprintf("%s %s [%s] %s", verb, a.Node, a.Rule, a.Why)
}

// updateSoftTaints tells the scheduler which nodes may go: those that have been unneeded for a
// while, a bounded number of changes in a round, and first of all those that are needed
// again.
func (w *roundState) updateSoftTaints() {
	left := w.p.MaxBulkSoftTaintCount
	if left <= 0 || w.s.Stale != "" {
		return
	}
	for _, off := range []bool{true, false} {
		for i := range w.nodes {
			n := &w.nodes[i]
			if left == 0 {
				w.wakeAt(w.now.Add(time.Second)) // the rest in the next round
				return
			}
			if n.group < 0 || n.f.toBeDeleted || n.Deleting || n.original != nil {
				continue
			}
			_, has := taint(n.Node, cluster.TaintDeletionCandidate)
			since, unneeded := w.out.Unneeded[n.Name]
			switch {
			case off && has && !unneeded:
				w.act(SoftTaint{Node: n.Name, UID: n.UID, Off: true, Rule: RuleSoft, Why: "it is needed again"})
				left--
			case !off && !has && unneeded:
				if due := since.Add(softTaintAfter); !w.reached(due) {
					w.wakeAt(due)
					continue
				}
				w.act(SoftTaint{Node: n.Name, UID: n.UID, Rule: RuleSoft, Why: "not needed since " + stamp(since)})
				left--
			}
		}
	}
}
