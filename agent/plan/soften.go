package plan

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// softAfter is how long a node must have been unneeded before the scheduler is told: a
// burst that comes and goes within it writes nothing.
const softAfter = 30 * time.Second

// Soften puts the taint DeletionCandidateOfClusterAutoscaler (PreferNoSchedule) on a
// node, so that the scheduler prefers others while it waits to go; with Off it takes
// the taint away.
type Soften struct {
	Node cluster.NodeName
	UID  cluster.UID
	Off  bool
	Rule string
	Why  string
}

func (Soften) action() {}

// String renders the action as one line of the journal.
func (a Soften) String() string {
	verb := "soften"
	if a.Off {
		verb = "unsoften"
	}
	return fmt.Sprintf("%s %s [%s] %s", verb, a.Node, a.Rule, a.Why)
}

// soften tells the scheduler which nodes may go: those that have been unneeded for a
// while, a bounded number of changes in a round, and first of all those that are needed
// again.
func (w *roundState) soften() {
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
			if n.group < 0 || n.f.toBeDeleted || n.Deleting || n.whole != nil {
				continue
			}
			_, has := taint(n.Node, cluster.TaintDeletionCandidate)
			since, unneeded := w.out.Unneeded[n.Name]
			switch {
			case off && has && !unneeded:
				w.act(Soften{Node: n.Name, UID: n.UID, Off: true, Rule: RuleSoft, Why: "it is needed again"})
				left--
			case !off && !has && unneeded:
				if due := since.Add(softAfter); !w.reached(due) {
					w.wakeAt(due)
					continue
				}
				w.act(Soften{Node: n.Name, UID: n.UID, Rule: RuleSoft, Why: "not needed since " + stamp(since)})
				left--
			}
		}
	}
}
