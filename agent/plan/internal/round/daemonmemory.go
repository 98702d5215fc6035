package round

import (
	"cmp"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// A group whose last node has gone shows nothing. What its pods showed is remembered for
// lifetime, as a correction of its template is; otherwise its machine would be bought and
// deleted for the same pod without end. The time of the last look is renewed once in timeStep,
// so that the Memory changes seldom.
const (
	lifetime = 24 * time.Hour
	timeStep = time.Hour
)

// Remember returns what the next round has to know: of each group and DaemonSet, what the pods
// request where that is not what the template says, sorted. reached tells that a moment has come.
// It costs groups times DaemonSets.
func (e *DaemonShares) Remember(d *fit.Dimensions, now time.Time, reached func(time.Time) bool) (out []decision.DaemonPods) {
	for g, id := range e.groups {
		for set := range e.sets {
			ds, known := &e.sets[set], e.remembered(g, &e.sets[set])
			shown := evidence{classes: e.on(g, set)}
			switch any := len(shown.classes) > 0; {
			case any && slices.Equal(e.Vector(g, set, d), d.Class(ds.Class)):
			case any:
				p := decision.DaemonPods{Group: id, DaemonSet: ds.UID, Revision: ds.Revision, Requests: e.requests(shown), Seen: now}
				if known != nil && known.Requests.Equal(p.Requests) && !reached(known.Seen.Add(timeStep)) {
					p = *known
				}
				out = append(out, p)
			case known != nil && !reached(known.Seen.Add(lifetime)):
				out = append(out, *known)
			}
		}
	}
	slices.SortFunc(out, func(a, b decision.DaemonPods) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.DaemonSet, b.DaemonSet))
	})
	return out
}
