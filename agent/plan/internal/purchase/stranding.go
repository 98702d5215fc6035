package purchase

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// stranding tells by group whether its machine would be the first node of a domain (a zone) that a class of pods is
// spread over, and in which no group takes a pod of that class. kube-scheduler counts such a domain with no pod
// (PodTopologySpread, the global minimum), and maxSkew keeps further pods of the class, and those that are evicted, out
// of all other domains. It costs N, and C*G where a domain has no node.
func stranding(w *round.State) []bool {
	out, empty := make([]bool, len(w.Groups)), make(map[string]map[string][]int)
	for c := range w.Snapshot.Classes {
		class := &w.Snapshot.Classes[c]
		for i := range class.Spread {
			key := class.Spread[i].TopologyKey
			if empty[key] == nil {
				empty[key] = emptyDomains(w, key)
			}
			for _, groups := range empty[key] {
				if !usable(w, c, groups) {
					markCounted(w, out, groups, class, &class.Spread[i])
				}
			}
		}
	}
	return out
}

// usable tells whether some of the groups can be grown and take a pod of a class.
func usable(w *round.State, class int, groups []int) bool {
	return slices.ContainsFunc(groups, func(g int) bool {
		gr := &w.Groups[g]
		empty, shape := w.Template(gr)
		return gr.CanGrow() && binpack.Fits(empty, w.Dimensions.Class(class)) && w.Takes(class, g, shape)
	})
}

// markCounted marks those of the groups whose nodes count for the spread of a class.
func markCounted(w *round.State, out []bool, groups []int, class *cluster.PodClass, spread *cluster.Spread) {
	for _, g := range groups {
		_, shape := w.Template(&w.Groups[g])
		out[g] = out[g] || fit.Counted(class, spread, shape)
	}
}

// emptyDomains are the groups by the value of a topology key that no node and no upcoming machine has.
func emptyDomains(w *round.State, key string) map[string][]int {
	out := make(map[string][]int)
	for g := range w.Groups {
		if value, has := w.Groups[g].Template.Labels[key]; has && w.Groups[g].Template.Unknown == "" {
			out[value] = append(out[value], g)
		}
	}
	for n := range w.Nodes {
		delete(out, w.Nodes[n].Shape.Labels[key])
	}
	for g := range w.Groups {
		if gr := &w.Groups[g]; gr.Upcoming+gr.Grow > 0 {
			delete(out, gr.Template.Labels[key])
		}
	}
	return out
}
