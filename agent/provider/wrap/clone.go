package wrap

import (
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Clone returns a copy of a group that shares nothing with it but the maps of Source and the Devices, which
// nobody writes to: the result of Groups belongs to the caller.
func Clone(g cluster.NodeGroup) cluster.NodeGroup {
	t := &g.Template
	t.Labels, t.Taints, t.VolumeLimits = maps.Clone(t.Labels), slices.Clone(t.Taints), maps.Clone(t.VolumeLimits)
	t.Zones, t.ZoneLabels, t.Source = slices.Clone(t.Zones), slices.Clone(t.ZoneLabels), maps.Clone(t.Source)
	t.Capacity.Extended, t.Allocatable.Extended = maps.Clone(t.Capacity.Extended), maps.Clone(t.Allocatable.Extended)
	o := &g.Options
	o.ScaleDownUtilization, o.ScaleDownUnneededTime = clone(o.ScaleDownUtilization), clone(o.ScaleDownUnneededTime)
	o.ScaleDownUnreadyTime, o.MaxNodeProvisionTime = clone(o.ScaleDownUnreadyTime), clone(o.MaxNodeProvisionTime)
	o.MaxNodeStartupTime, o.ScaleDownGPUUtilization = clone(o.MaxNodeStartupTime), clone(o.ScaleDownGPUUtilization)
	o.IgnoreDaemonSetsUtilization = clone(o.IgnoreDaemonSetsUtilization)
	o.Drift, o.MaxNodeAge, o.RepairAfter, o.ReplaceDrainTime, o.Budgets = clone(o.Drift), clone(o.MaxNodeAge), clone(o.RepairAfter), clone(o.ReplaceDrainTime), clone(o.Budgets)
	if o.Budgets != nil {
		*o.Budgets = slices.Clone(*o.Budgets)
		for i := range *o.Budgets {
			b := &(*o.Budgets)[i]
			b.Reasons = slices.Clone(b.Reasons)
		}
	}
	g.Pause, g.Priority = clone(g.Pause), clone(g.Priority)
	g.Failures, g.Warnings, g.Instances = slices.Clone(g.Failures), slices.Clone(g.Warnings), slices.Clone(g.Instances)
	for i := range g.Instances {
		in := &g.Instances[i]
		in.NodeNames, in.Names, in.Addresses = slices.Clone(in.NodeNames), slices.Clone(in.Names), slices.Clone(in.Addresses)
		in.Failure, in.Interruption, in.Source = clone(in.Failure), clone(in.Interruption), maps.Clone(in.Source)
	}
	return g
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func cloneAll(list []cluster.NodeGroup) []cluster.NodeGroup {
	out := slices.Clone(list)
	for i := range out {
		out[i] = Clone(out[i])
	}
	return out
}
