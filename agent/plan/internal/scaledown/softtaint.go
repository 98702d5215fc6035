package scaledown

import (
	"cmp"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// softTaintAfter is how long a node must have been unneeded before the scheduler is told: a
// burst that comes and goes within it writes nothing.
const softTaintAfter = 30 * time.Second

// UpdateSoftTaints taints the nodes that may go: nodes that have been unneeded, that fewer or cheaper machines replace, or whose pods have had
// room on other nodes, for a while, a bounded number of changes in a round, and first of all those that are needed
// again.
func UpdateSoftTaints(w *round.State) {
	left := w.Policy.MaxBulkSoftTaintCount
	if left <= 0 || w.Snapshot.Stale != "" {
		return
	}
	dear := w.Next.Consolidation
	avoided := cmp.Or(w.Next.Avoided, &decision.Avoided{}).Since
	for _, off := range []bool{true, false} {
		for i := range w.Nodes {
			n := &w.Nodes[i]
			if n.Group < 0 || n.Facts.ToBeDeleted || n.Deleting || n.Original != nil {
				continue
			}
			_, has := round.Taint(n.Node, cluster.TaintDeletionCandidate)
			since, unneeded := w.Next.Unneeded[n.Name]
			words := "not needed since "
			if dear.UnderWay() && dear.Has(n.Name) && !unneeded {
				since, unneeded, words = dear.Ordered, true, "it is dear since " // a pod that comes to it now would keep it
			}
			if at, is := avoided[n.Name]; is && !unneeded {
				since, unneeded, words = at, true, "its pods have room on other nodes since "
			}
			if has != off || unneeded == off {
				continue
			}
			why := "it is needed again"
			if !off {
				why = words + round.Stamp(since)
				if due := since.Add(softTaintAfter); !w.Reached(due) {
					w.WakeAt(due)
					continue
				}
			}
			if left == 0 {
				w.WakeAt(w.Now.Add(time.Second)) // the rest in the next round
				return
			}
			w.Act(decision.SoftTaint{Node: n.Name, UID: n.UID, Off: off, Rule: decision.RuleSoft, Why: why})
			left--
		}
	}
}
