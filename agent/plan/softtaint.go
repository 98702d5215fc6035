package plan

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// softTaintAfter is how long a node must have been unneeded before the scheduler is told: a
// burst that comes and goes within it writes nothing.
const softTaintAfter = 30 * time.Second

// updateSoftTaints tells the scheduler which nodes may go: those that have been unneeded for a
// while, a bounded number of changes in a round, and first of all those that are needed
// again.
func (w *downPlanner) updateSoftTaints() {
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
				w.act(decision.SoftTaint{Node: n.Name, UID: n.UID, Off: true, Rule: decision.RuleSoft, Why: "it is needed again"})
				left--
			case !off && !has && unneeded:
				if due := since.Add(softTaintAfter); !w.reached(due) {
					w.wakeAt(due)
					continue
				}
				w.act(decision.SoftTaint{Node: n.Name, UID: n.UID, Rule: decision.RuleSoft, Why: "not needed since " + stamp(since)})
				left--
			}
		}
	}
}
