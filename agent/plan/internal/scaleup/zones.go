package scaleup

import (
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// A group over several zones promises none of them, so that no pod that needs one zone is bought
// a machine there. kube-scheduler's words for that name a selector or a volume and not the group
// (kubernetes/autoscaler#1431). So the same filters are asked about a machine of the group in
// each of its zones: where it would take the pod in one of them, the zones are the cause.

// zoneBlame is what a round knows of zones for that.
type zoneBlame struct {
	of     map[cluster.GroupID][]string
	values map[string]map[string]bool // of labels of nodes, by key
	tried  int
}

// mostTried bounds the machines that are tried in a round: each costs the terms of a class.
const mostTried = 3000

// zoneFilters are the filters that can refuse a pod for the zone of its machine.
var zoneFilters = []string{"F4", fit.RuleVolumeBinding, fit.RuleVolumeZone, fit.RuleSpread, fit.RuleInterPod}

// zoneLabels are Kubernetes' own labels of a zone.
var zoneLabels = []string{"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"}

// zonesToBlame says that a group refuses a class because it is of several zones; empty: that is not the cause.
func (w *Planner) zonesToBlame(class int, g *round.Group, rule string) string {
	if !slices.Contains(zoneFilters, rule) {
		return ""
	}
	zones := w.zonesOf(g)
	if len(zones) < 2 {
		return ""
	}
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
			return ": the group spans zones " + names(zones) + " and promises none of them; make one group for each zone"
		}
	}
	return ""
}

// zonesOf are the zones in which a group's machines come: as the provider tells, or else as its
// machines and their Nodes show. A template with a zone promises it.
func (w *Planner) zonesOf(g *round.Group) []string {
	if len(g.Template.Zones) > 0 {
		return g.Template.Zones
	}
	if zones, known := w.zones.of[g.ID]; known {
		return zones
	}
	seen := map[string]bool{}
	if !slices.ContainsFunc(zoneLabels, func(key string) bool { return g.Template.Labels[key] != "" }) {
		for i := range g.Instances {
			in := &g.Instances[i]
			zone := in.Zone
			if n, ok := w.ByName[w.Identity.Node[in.ID]]; ok && zone == "" {
				zone = w.Nodes[n].Labels[zoneLabels[0]]
			}
			if in.Member && zone != "" {
				seen[zone] = true
			}
		}
	}
	zones := slices.Sorted(maps.Keys(seen))
	round.Set(&w.zones.of, g.ID, zones)
	return zones
}

// zoneKeys are the labels that a class asks for, that the group's template lacks, and that hold
// a zone: those that the provider and Kubernetes name, those of which the class needs a value
// that is one of the zones, and topology keys of which a Node shows such a value.
func (w *Planner) zoneKeys(class int, g *round.Group, zones []string) (keys []string) {
	c := &w.Snapshot.Classes[class]
	add := func(key string, holdsZone bool) {
		if _, has := g.Template.Labels[key]; !has && !slices.Contains(keys, key) && (holdsZone || slices.Contains(g.Template.ZoneLabels, key) || slices.Contains(zoneLabels, key)) {
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
		if v, has := w.Nodes[i].Labels[key]; has {
			values[v] = true
		}
	}
	round.Set(&w.zones.values, key, values)
	return values
}

// names writes a list as a person would: "a, b and c".
func names(list []string) string {
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " and " + list[last]
}
