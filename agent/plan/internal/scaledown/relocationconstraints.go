package scaledown

import (
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// relocationConstraints is what F7 to F12 say of pods that are moved: every node with what is on it,
// the moves of the round so far included.
type relocationConstraints struct {
	State   *fit.State
	cursors []cursor              // by class, for local ones: as relocationCursors.by
	zones   bool                  // some class keeps others out of more than its own node
	shapes  map[int]*fit.NodeInfo // of nodes, as they are when they are cordoned
}

// RelocationState returns the state that moves are judged by; nil when no class asks for
// anything of other pods or of volumes.
// Once a round it costs N, the pods that run and T.
func (w *Planner) RelocationState() *relocationConstraints {
	if w.unconstrained {
		return nil
	}
	if w.relocation == nil {
		if w.unconstrained = !slices.ContainsFunc(w.Snapshot.Classes, hasConstraints); w.unconstrained {
			return nil
		}
		w.relocation = &relocationConstraints{State: w.appliedState(), cursors: make([]cursor, len(w.Snapshot.Classes))}
		w.relocation.restart()
		w.relocation.zones = slices.ContainsFunc(w.Snapshot.Classes, func(c cluster.PodClass) bool { return !onlyHostname(c.PodAntiAffinity) })
	}
	return w.relocation
}

// constrained tells whether the place of a class depends on what other pods and volumes are where.
func (t *relocationConstraints) constrained(class int32) bool {
	return t != nil && t.State.Constrained(int(class))
}

// appliedState is every node with what is on it and with the pending pods of this
// round's answer.
func (w *Planner) appliedState() *fit.State {
	if w.applied != nil {
		return w.applied
	}
	return w.NewState()
}

// hasConstraints tells a class that asks for something of other pods or of volumes.
func hasConstraints(c cluster.PodClass) bool {
	return len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes) > 0
}

const labelHostname = "kubernetes.io/hostname"

func onlyHostname(terms []cluster.PodTerm) bool {
	return !slices.ContainsFunc(terms, func(t cluster.PodTerm) bool { return t.TopologyKey != labelHostname })
}

// isLocal tells whether nothing but what is on a node itself decides whether a constrained
// class may go there: anti-affinity on hosts. Then, as with room, a node that was not
// good once is not looked at again.
func (t *relocationConstraints) isLocal(c *cluster.PodClass) bool {
	return !t.zones && len(c.PodAffinity)+len(c.Spread)+len(c.Volumes) == 0
}

// placeConstrained is placeOnNode for a class with constraints, which goes pod by pod. It tells whether no
// more of them may go there now.
func (w *Planner) placeConstrained(t *relocationConstraints, k int32, l *round.ClassCount, a *tentative) (spent bool) {
	i, class := int(w.cursors.to[k]), int(l.Class)
	for w.hasRoom(k, l.Class) {
		if w.looks -= constrainedLook; w.looks < 0 {
			return false
		}
		if !t.State.Passes(class, i) {
			return true
		}
		binpack.Sub(w.Nodes[i].Room, w.Dimensions.Class(class), 1)
		t.State.Put(class, i, 1)
		a.done = append(a.done, relocated{k, l.Class, 1})
		if l.N--; l.N == 0 {
			return false
		}
	}
	return true
}

// restart lets every cursor begin anew.
func (t *relocationConstraints) restart() {
	for i := range t.cursors {
		t.cursors[i] = cursor{skipped: -1}
	}
}

// cordon makes of a node what its drain does: the pods of the drain plan are evicted, and kube-scheduler sees the taint. A
// spread constraint that honours taints does not count the node any more; one that ignores them counts it, with
// the pods that stay, until the Node object is gone (see remove). It costs the pods of the node.
func (t *relocationConstraints) cordon(w *Planner, from int, loads []round.ClassCount) {
	for _, l := range loads {
		t.State.Put(int(l.Class), from, -int(l.N))
	}
	if n := &w.Nodes[from]; !w.BeingRemoved(n) {
		t.putRest(w, n, from, -1)
		if t.shapes[from] == nil {
			round.Set(&t.shapes, from, n.Shape.Cordoned())
		}
		t.State.Reshape(from, t.shapes[from])
		t.putRest(w, n, from, 1)
	}
}

// remove takes a node away as its Node object goes, with the pods that stay on it. No other pod on it is constrained (see cordon).
func (t *relocationConstraints) remove(w *Planner, from int) {
	if n := &w.Nodes[from]; !w.BeingRemoved(n) {
		t.putRest(w, n, from, -1)
		t.State.Reshape(from, nil)
	}
}

// putRest puts the pods of a node that its drain does not move, times so often.
func (t *relocationConstraints) putRest(w *Planner, n *round.Node, at, times int) {
	for i := range n.Pods {
		switch pod := &n.Pods[i]; {
		case pod.Finished:
		case !pod.Deleting.IsZero():
			t.State.PutTerminating(pod.Class, at, times)
		case w.Ignored(pod) || w.Expendable(pod) || completes(pod):
			t.State.Put(pod.Class, at, times)
		}
	}
}

// givesUpDomain says which domain a class would lose whose node is emptied: occupied are the domains with pods
// before, by constraint. Hosts come and go with the number of machines, and minDomains says how many have to
// stay; zones and their like are redundancy that somebody asked for.
func (t *relocationConstraints) givesUpDomain(class int, occupied []int) (why string) {
	i := 0
	t.State.Occupied(class, func(key string, domains int) {
		if key != labelHostname && domains < occupied[i] && why == "" {
			why = fmt.Sprintf("its topology spread over %s has pods in %d domains and would have them in %d", key, occupied[i], domains)
		}
		i++
	})
	return why
}

// occupied are the domains that hold pods of a class's spread constraints.
func (t *relocationConstraints) occupied(class int) (domains []int) {
	t.State.Occupied(class, func(_ string, n int) { domains = append(domains, n) })
	return domains
}
