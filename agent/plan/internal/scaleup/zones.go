package scaleup

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// A group over several zones promises none of them, so that no pod that needs one zone is bought
// a machine there. kube-scheduler's words for that name a selector or a volume and not the group
// (kubernetes/autoscaler#1431). So the same filters are asked about a machine of the group in
// each of its zones: where it would take the pod in one of them, the zones are the cause.

// zoneBlame holds the facts about zones that a round needs for that.
type zoneBlame struct {
	of     map[cluster.GroupID][]string
	values map[string]map[string]bool // of labels of nodes, by key
	tried  int
}

// mostTried bounds the machines that are tried in a round: each costs the terms of a class.
const mostTried = 3000

// zoneFilters are the filters that can refuse a pod for the zone of its machine.
var zoneFilters = []string{"F4", fit.RuleVolumeBinding, fit.RuleVolumeZone, fit.RuleSpread, fit.RuleInterPod}

// zonesToBlame says that a group refuses a class because it is of several zones; empty: that is not the cause.
func (w *Planner) zonesToBlame(class int, g *round.Group, rule string) string {
	if !slices.Contains(zoneFilters, rule) {
		return ""
	}
	zones := w.ZonesOf(g)
	keys := w.zoneKeys(class, g, zones)
	if len(keys) == 0 {
		return ""
	}
	_, shape := w.Template(g)
	for _, zone := range zones {
		if w.zones.tried++; w.zones.tried > mostTried {
			return ""
		}
		in := shape.InZone(zone, keys)
		if _, words := w.refusedAs(class, g, &in); words == "" {
			return ", because the group spans zones " + cluster.InWords(zones) + " and promises none of them: make one group for each zone"
		}
	}
	return ""
}

// ZonesOf are the zones that a group spans and promises none of.
func (w *Planner) ZonesOf(g *round.Group) []string {
	zones, known := w.zones.of[g.ID]
	if !known {
		zones = g.SpannedZones(func(id cluster.InstanceID) *cluster.Node {
			if n, ok := w.ByName[w.Identity.Node[id]]; ok {
				return w.Nodes[n].Node
			}
			return nil
		})
		round.Set(&w.zones.of, g.ID, zones)
	}
	return zones
}

// zoneKeys are the labels that a class asks for, that the group's template lacks, and that hold
// a zone: those that the provider and Kubernetes name, those of which the class needs a value
// that is one of the zones, and topology keys of which a Node shows such a value.
func (w *Planner) zoneKeys(class int, g *round.Group, zones []string) (keys []string) {
	c := &w.Snapshot.Classes[class]
	add := func(key string, holdsZone bool) {
		if _, has := g.Template.Labels[key]; !has && (holdsZone || slices.Contains(g.Template.ZoneLabels, key) || slices.Contains(cluster.LabelsOfZone, key)) {
			keys = append(keys, key)
		}
	}
	for key, value := range c.NodeSelector {
		add(key, slices.Contains(zones, value))
	}
	requirements := func(list []cluster.Requirement) {
		for i := range list {
			add(list[i].Key, slices.ContainsFunc(list[i].Values, func(v string) bool { return slices.Contains(zones, v) }))
		}
	}
	terms := func(list []cluster.NodeTerm) {
		for i := range list {
			requirements(list[i].Labels)
		}
	}
	terms(c.Affinity)
	for i := range c.Volumes {
		terms(c.Volumes[i].Affinity)
		terms(c.Volumes[i].Topologies)
		requirements(c.Volumes[i].Zones)
	}
	fit.TopologyKeys(c, func(key string) {
		add(key, slices.ContainsFunc(zones, func(zone string) bool { return w.valuesOf(key)[zone] }))
	})
	return keys
}

// valuesOf are the values of a label among the nodes.
func (w *Planner) valuesOf(key string) map[string]bool {
	if values, known := w.zones.values[key]; known {
		return values
	}
	values := map[string]bool{}
	for i := range w.Nodes {
		values[w.Nodes[i].Labels[key]] = true
	}
	round.Set(&w.zones.values, key, values)
	return values
}
