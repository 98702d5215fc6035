package observe

import (
	"maps"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const labelInstanceType = "node.kubernetes.io/instance-type"

// correct replaces a template's computed sizes by those that real nodes of the same
// group and spec report (DESIGN 4.2). Only Ready nodes whose instance appeared under
// the template's current spec count; where several differ, the smaller amount holds,
// so that nothing is promised that a coming machine may not have. Extended resources
// are taken from nodes where a node reports them, and kept where none does (a device
// plugin may not have registered yet).
func correct(groups []cluster.NodeGroup, nodes []cluster.Node, specs map[cluster.InstanceID]string) []cluster.NodeGroup {
	if len(specs) == 0 {
		return groups
	}
	byID := make(map[cluster.InstanceID]*cluster.Node, len(nodes))
	for i := range nodes {
		if nodes[i].ProviderID != "" {
			byID[cluster.InstanceID(nodes[i].ProviderID)] = &nodes[i]
		}
	}
	for i := range groups {
		g := &groups[i]
		var capacity, allocatable *cluster.Resources
		for _, in := range g.Instances {
			n := byID[in.ID]
			if n == nil || !in.Member || specs[in.ID] != g.Template.Spec || g.Template.Spec == "" || n.Ready != cluster.StatusTrue || !sameType(g.Template, *n) {
				continue
			}
			capacity, allocatable = least(capacity, n.Capacity), least(allocatable, n.Allocatable)
		}
		if allocatable != nil && allocatable.MilliCPU > 0 && allocatable.Memory > 0 {
			g.Template.Capacity = overlay(g.Template.Capacity, *capacity)
			g.Template.Allocatable = overlay(g.Template.Allocatable, *allocatable)
		}
	}
	return groups
}

func sameType(t cluster.Template, n cluster.Node) bool {
	want, has := t.Labels[labelInstanceType], n.Labels[labelInstanceType]
	return want == "" || has == "" || want == has
}

func least(a *cluster.Resources, b cluster.Resources) *cluster.Resources {
	if a == nil {
		return &b
	}
	out := cluster.Resources{
		MilliCPU: min(a.MilliCPU, b.MilliCPU), Memory: min(a.Memory, b.Memory),
		EphemeralStorage: min(a.EphemeralStorage, b.EphemeralStorage), Pods: min(a.Pods, b.Pods),
		Extended: maps.Clone(a.Extended),
	}
	for k, v := range b.Extended {
		if old, ok := out.Extended[k]; ok {
			out.Extended[k] = min(old, v)
		} else if out.Extended == nil {
			out.Extended = map[string]int64{k: v}
		} else {
			out.Extended[k] = v
		}
	}
	return &out
}

func overlay(computed, seen cluster.Resources) cluster.Resources {
	extended := maps.Clone(computed.Extended)
	for k, v := range seen.Extended {
		if extended == nil {
			extended = map[string]int64{}
		}
		extended[k] = v
	}
	seen.Extended = extended
	return seen
}
