package round

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// dropNominations takes the nominations for nothing that come to nothing: the node is gone or lets no such pod on, or it has no
// room even without the pods of lower priority. kube-scheduler and others leave such nominations where they are, and the pods wait.
func (w *State) dropNominations() {
	var nominated []int
	for i := range w.Snapshot.Pods {
		if pod := &w.Snapshot.Pods[i]; pod.Nominated != "" && waits(pod) {
			nominated = append(nominated, i)
		}
	}
	if len(nominated) == 0 {
		return
	}
	given := w.Snapshot.Pods
	w.Snapshot.Pods = slices.Clone(given)
	priority := func(i int) int32 { return w.Snapshot.Classes[given[i].Class].Priority }
	slices.SortFunc(nominated, func(a, b int) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(given[a].Key, given[b].Key))
	})
	taken := make(map[cluster.NodeName][]int)
	for _, i := range nominated {
		if pod := &w.Snapshot.Pods[i]; w.nominationStands(pod, taken[pod.Nominated]) {
			taken[pod.Nominated] = append(taken[pod.Nominated], pod.Class)
		} else {
			pod.Nominated = ""
		}
	}
}

// nominationStands tells whether a pod may still come to the node that it is nominated to, beside pods of these classes. A node that
// the agent drains is taken back for it.
func (w *State) nominationStands(pod *cluster.Pod, beside []int) bool {
	k, ok := w.ByName[pod.Nominated]
	if !ok || w.Nodes[k].State == StateOut {
		return false
	}
	n := &w.Nodes[k]
	if n.State == StateMarked {
		return true
	}
	class := &w.Snapshot.Classes[pod.Class]
	if rule, _ := fit.Refused(class, &n.Shape); rule != "" && len(class.NotUnderstood) == 0 {
		return false
	}
	room := slices.Clone(n.Room)
	for i := range n.Pods {
		if other := &n.Pods[i]; !other.Finished && !w.Expendable(other) && (!other.Deleting.IsZero() || w.Snapshot.Classes[other.Class].Priority < class.Priority) {
			binpack.Sub(room, w.Dimensions.Class(other.OnNode()), -1)
		}
	}
	for _, c := range beside {
		binpack.Sub(room, w.Dimensions.Class(c), 1)
	}
	return binpack.MaxFit(room, w.Dimensions.Class(pod.Class)) > 0
}

// NominatedWords say what a nominated pod waits for.
func NominatedWords(pod *cluster.Pod) string {
	return "the scheduler has nominated it for node " + string(pod.Nominated) + ": its room is kept there until its volumes are bound or pods of lower priority have left"
}

// holdNominated says of the pods that are nominated to a node that they wait for it.
func (w *State) holdNominated() {
	for _, i := range w.Unbound.nominated {
		if pod := &w.Snapshot.Pods[i]; waits(pod) && pod.Judged() {
			w.HeldWhy("pod", string(pod.Key), decision.RuleRoomOnNode, NominatedWords(pod))
		}
	}
}
