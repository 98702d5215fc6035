package topology

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// EmptyDomains are the groups by the value of a topology key that no node and no upcoming machine has.
func EmptyDomains(w *round.State, key string) map[string][]int {
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

// BeyondHosts tells a class with a term about domains that are wider than a host.
func BeyondHosts(c *cluster.PodClass) bool {
	wide := func(terms []cluster.PodTerm) bool {
		return slices.ContainsFunc(terms, func(t cluster.PodTerm) bool { return t.TopologyKey != KeyHostname })
	}
	return wide(c.PodAffinity) || wide(c.PodAntiAffinity) ||
		slices.ContainsFunc(c.Spread, func(s cluster.Spread) bool { return s.TopologyKey != KeyHostname })
}
