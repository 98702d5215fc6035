package days

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// scaleDown begins to delete what has been unneeded for long enough: empty nodes first, within the
// limits of what goes at once. It returns how many.
func (a *autoscaler) scaleDown(w *world) (began int) {
	now, drains := w.clock.Now, 0
	for _, drained := range a.going {
		if drained {
			drains++
		}
	}
	for _, empty := range []bool{true, false} {
		for _, n := range w.nodes { // by age
			since, is := a.unneeded[n]
			if !is || now.Sub(since) < caUnneeded || len(a.going) >= caParallel || (len(a.movable(n)) == 0) != empty {
				continue
			}
			if !empty {
				if drains >= caDrains {
					continue
				}
				drains++
			}
			delete(a.unneeded, n)
			a.going[n] = !empty
			began++
			w.mark(n, true)
			w.clock.After(caAfterTaint, func() {
				if empty {
					a.end(w, n)
					return
				}
				a.drain(w, n, a.movable(n), w.clock.Now.Add(caEvictFor))
			})
		}
	}
	return began
}

// drain evicts pods until all are, or the time for that is over.
func (a *autoscaler) drain(w *world, n *node, pods []*pod, until time.Time) {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p *pod) bool { return w.evict(p) == nil })
	switch {
	case len(pods) == 0:
		a.await(w, n, w.clock.Now.Add(caGraceAndAllowed))
	case w.clock.Now.Before(until):
		w.clock.After(caEvictRetry, func() { a.drain(w, n, pods, until) })
	default:
		a.fail(w, n)
	}
}

// await waits until the evicted pods are gone.
func (a *autoscaler) await(w *world, n *node, until time.Time) {
	switch {
	case len(n.pods) == 0:
		a.end(w, n)
	case w.clock.Now.Before(until):
		w.clock.After(caWaitGone, func() { a.await(w, n, until) })
	default:
		a.fail(w, n)
	}
}

// end deletes the machine.
func (a *autoscaler) end(w *world, n *node) {
	if err := w.terminate(n.machine, ""); err != nil {
		a.fail(w, n)
		return
	}
	delete(a.going, n)
}

// fail gives a node back.
func (a *autoscaler) fail(w *world, n *node) {
	delete(a.going, n)
	a.lastFailure = w.clock.Now
	w.mark(n, false)
}

// softTaints asks kube-scheduler to prefer the nodes that are needed.
func (a *autoscaler) softTaints(w *world) {
	left := caSoftTaints
	for _, n := range w.nodes {
		_, unneeded := a.unneeded[n]
		if left == 0 || unneeded == w.tainted(n, cluster.TaintDeletionCandidate) {
			continue
		}
		left--
		w.soften(n, unneeded)
	}
}
