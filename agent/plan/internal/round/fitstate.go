package round

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// NewState is every node with the pods on it, those that were nominated included. No spread constraint counts a node
// that is being removed: kube-scheduler counts it, where the constraint ignores taints, until the Node object is gone,
// and a machine that is bought for the pods that wait until then is not needed a minute later.
func (w *State) NewState() *fit.State {
	return w.Fill(fit.NewState(w.Snapshot.Classes, w.Snapshot.Namespaces))
}

func (w *State) Fill(st *fit.State) *fit.State {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		limits := n.Limits
		if limits == nil && n.Group >= 0 {
			limits = w.Groups[n.Group].Template.VolumeLimits
		}
		st.AddNode(&n.Shape, limits)
		if w.BeingRemoved(n) {
			st.Reshape(i, nil)
		}
		for k := range n.Pods {
			switch pod := &n.Pods[k]; {
			case pod.Finished:
			case pod.Deleting.IsZero():
				st.PutBound(pod.Class, i, 1)
			default:
				st.PutTerminating(pod.Class, i, 1)
			}
		}
	}
	for _, i := range w.Unbound.nominated {
		pod := &w.Snapshot.Pods[i]
		if n, ok := w.ByName[pod.Nominated]; ok {
			st.Put(pod.Class, n, 1)
		}
	}
	return st
}
