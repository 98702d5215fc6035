package plan

import "github.com/autoscaler-agent/autoscaler-agent/agent/fit"

// newState is every node with the pods on it, those that were nominated included.
func (w *roundState) newState() *fit.State { return w.fill(fit.NewState(w.s.Classes, w.s.Namespaces)) }

func (w *roundState) fill(st *fit.State) *fit.State {
	for i := range w.nodes {
		n := &w.nodes[i]
		limits := n.VolumeLimits
		if limits == nil && n.group >= 0 {
			limits = w.groups[n.group].Template.VolumeLimits
		}
		st.AddNode(&n.shape, limits)
		for k := range n.Pods {
			switch pod := &n.Pods[k]; {
			case pod.Finished:
			case pod.Deleting.IsZero():
				st.Put(pod.Class, i, 1)
			default:
				st.PutLeaving(pod.Class, i, 1)
			}
		}
	}
	for _, i := range w.unbound.nominated {
		pod := &w.s.Pods[i]
		if n, ok := w.byName[pod.Nominated]; ok {
			st.Put(pod.Class, n, 1)
		}
	}
	return st
}
