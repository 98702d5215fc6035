package scaledown

import (
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// A pod that leaves a node under topology spread is judged as what happens: the node is cordoned, the pod is evicted
// and made anew, and kube-scheduler binds it by the constraint's own node inclusion policies. With nodeTaintsPolicy
// Honor the cordoned node is no domain, and the pod is bound at once. With Ignore, the default, the emptied node is a
// domain that counts 0 until the Node object is gone, a minute or two after the machine was ended; until then
// maxSkew may keep the pod out of all other domains. Each of these already holds a pod that the constraint
// counts then, so that other replicas run; such a node goes, and one at a time (waitsInTurn). Cluster Autoscaler
// keeps it for ever since 1.32.8, because its scale-up would buy a machine for the pod (kubernetes/autoscaler#8093);
// here scale-up knows that the node is being removed (round.NewState).

// LookEmptied calls look with the state that constrained pods are judged by as the drain of a node makes it: cordoned and
// emptied, and if nothing is found then, without the Node object. late tells that something was found only then.
func (w *Planner) LookEmptied(from int, look func(*fit.State) (found bool)) (late bool) {
	b := w.onBoard()
	mark := b.Mark()
	defer b.Rollback(mark)
	w.empty(from, w.DrainPlanOf(&w.Nodes[from]).Classes)
	if look(b.state) {
		return false
	}
	w.remove(from)
	return look(b.state)
}

// evictedInWaves says of which PodDisruptionBudgets a node has more pods than may be evicted at once, where these are spread: a pod that
// finds no place counts as disrupted, so that the next one may never be evicted, and the Node object never go. Whether it is so, drainEnds
// plays. It costs the node's pods.
func (w *Planner) evictedInWaves(n *round.Node) string {
	spread, count := map[string]bool{}, map[string]int{}
	for _, pod := range w.Movable(n) {
		for _, b := range pod.Budgets {
			count[b]++
			spread[b] = spread[b] || len(w.Snapshot.Classes[pod.Class].Spread) > 0
		}
	}
	var out []string
	for b, pods := range count {
		if allowed := w.Budget[b]; spread[b] && pods > allowed {
			out = append(out, fmt.Sprintf("PodDisruptionBudget %s lets %d of its %s here go at once, and no more before they are bound, which their topology spread does not allow while it counts this node and its pods (nodeTaintsPolicy: Ignore): the drain would not end", b, allowed, round.Pods(pods)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// drainEnds plays the drain of a node under its budgets: as many pods are evicted as these allow, kube-scheduler binds what it can beside
// the pods that are still there, and so on. It takes nothing, and costs place for each pod in each wave.
func (w *Planner) drainEnds(from int, loads []round.ClassCount, emptiest bool) bool {
	b, n := w.onBoard(), &w.Nodes[from]
	mark := b.Mark()
	defer b.Rollback(mark)
	w.empty(from, loads)
	for _, l := range loads {
		b.state.Put(int(l.Class), from, int(l.N))
	}
	down := map[string]int{}
	count := func(pod *cluster.Pod, by int) {
		for _, b := range pod.Budgets {
			down[b] += by
		}
	}
	here, waiting := w.Movable(n), []*cluster.Pod(nil)
	for progress := true; progress && len(here) > 0 && !w.spent(); {
		progress = false
		here = slices.DeleteFunc(here, func(pod *cluster.Pod) bool {
			if slices.ContainsFunc(pod.Budgets, func(b string) bool { return down[b] >= w.Budget[b] }) {
				return false
			}
			if !w.Expendable(pod) {
				b.state.Put(pod.Class, from, -1)
				waiting = append(waiting, pod)
				count(pod, 1)
			}
			progress = true
			return true
		})
		waiting = slices.DeleteFunc(waiting, func(pod *cluster.Pod) bool {
			if w.place(int32(pod.Class), 1, emptiest) > 0 {
				return false
			}
			count(pod, -1)
			progress = true
			return true
		})
	}
	return len(here) == 0
}

// domainLost says which pod would give up a domain of its topology spread.
func (w *Planner) domainLost(a *attempt, n *round.Node) string {
	class, why := w.lostDomain(a)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("pod %s has room nowhere else without less redundancy: %s (%s lets the node go)", w.nth(n, class, 0), why, cluster.AnnotationRequested)
}

// lostDomain is a class that would give up a domain of its topology spread, and why; empty: none would.
func (w *Planner) lostDomain(a *attempt) (class int32, why string) {
	for i := range a.occupied {
		if why := w.board.givesUpDomain(int(a.classes[i].Class), a.occupied[i]); why != "" {
			return a.classes[i].Class, why
		}
	}
	return 0, ""
}

// spreadKeepsOff says that topology spread keeps a class off nodes that have room for it. It costs the nodes.
func (w *Planner) spreadKeepsOff(from *round.Node, class int32) string {
	if len(w.Snapshot.Classes[class].Spread) == 0 {
		return ""
	}
	for i := range w.Nodes {
		if w.Nodes[i].Node == from.Node || !w.board.IsOpen(i) || !binpack.Fits(w.board.Room(i), w.Dimensions.Class(int(class))) || !w.Passes(int(class), i) {
			continue
		}
		if w.board.Refused(int(class), i) == fit.RuleSpread {
			var keys []string
			for _, s := range w.Snapshot.Classes[class].Spread {
				keys = append(keys, spreadWords(&s))
			}
			return ": its topology spread keeps it off nodes that have room (" + strings.Join(keys, "; ") + ")"
		}
	}
	return ""
}

// spreadWords are a constraint in the API's words.
func spreadWords(s *cluster.Spread) string {
	out := fmt.Sprintf("%s, maxSkew %d", s.TopologyKey, s.MaxSkew)
	if s.MinDomains > 1 {
		out += fmt.Sprintf(", minDomains %d", s.MinDomains)
	}
	if s.HonorTaints {
		return out + ", nodeTaintsPolicy Honor"
	}
	return out + ", nodeTaintsPolicy Ignore"
}

// waitsInTurn says why a node that may go is not marked yet: as long as pods wait until a Node object is gone, each
// further node that their topology spread counts would let them wait longer. It costs the nodes for each class that waits.
func (w *Planner) waitsInTurn(c *Candidate) string {
	n := &w.Nodes[c.Node]
	for _, l := range c.late {
		if w.likesWait(int(l.Class)) {
			return fmt.Sprintf("%s of it can be bound only when its Node object is gone (nodeTaintsPolicy: Ignore), and others like them wait for a place now", round.Pods(int(l.N)))
		}
		if other := w.emptied([]int{int(l.Class)}); other != "" {
			return fmt.Sprintf("%s of it can be bound only when its Node object is gone (nodeTaintsPolicy: Ignore), and that of %s first", round.Pods(int(l.N)), other)
		}
	}
	counts := slices.DeleteFunc(slices.Clone(w.lateClasses()), func(class int) bool {
		return !fit.CountsCordoned(&w.Snapshot.Classes[class], &n.Shape)
	})
	if other := w.emptied(counts); other != "" {
		return fmt.Sprintf("pods wait until the Node object of %s is gone, and their topology spread would count this node too (nodeTaintsPolicy: Ignore)", other)
	}
	return ""
}

// likesWait tells whether kube-scheduler found no place for a pod with the same constraints. It costs the pods that wait.
func (w *Planner) likesWait(class int) bool {
	st := w.board.state
	return slices.ContainsFunc(w.Unbound.Waiting, func(x round.UnboundPod) bool {
		return st.ConstraintClass(int(x.Class)) == st.ConstraintClass(class) && !w.Snapshot.Pods[x.Pod].Unschedulable.IsZero()
	})
}

// emptied is the first node by name that is being removed or is marked in this round, and that a spread
// constraint of one of the classes counts; empty: there is none. It costs the nodes, and the classes for each that goes.
func (w *Planner) emptied(classes []int) cluster.NodeName {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if (w.BeingRemoved(n) || slices.Contains(w.marked, i)) && slices.ContainsFunc(classes, func(class int) bool { return fit.CountsCordoned(&w.Snapshot.Classes[class], &n.Shape) }) {
			return n.Name
		}
	}
	return ""
}

// lateClasses are the classes of pods that wait until a Node object is gone: those of nodes that are marked in this round,
// and those that kube-scheduler found no place for while nodes are being removed. Their order is that of the Snapshot: no
// answer may depend on it. It costs the pods that wait, once a round.
func (w *Planner) lateClasses() []int {
	if !w.lateKnown {
		w.lateKnown = true
		for _, x := range w.Unbound.Waiting {
			if class := int(x.Class); !slices.Contains(w.late, class) && !w.Snapshot.Pods[x.Pod].Unschedulable.IsZero() && w.WaitsFor(class) != nil {
				w.late = append(w.late, class)
			}
		}
	}
	return w.late
}
