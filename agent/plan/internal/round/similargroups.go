package round

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// How much the machines of similar groups may differ (Cluster Autoscaler's
// compare_nodegroups.go). Groups that an operator put into one set by name may differ
// more: what counts is that one simulation holds for all of them.
const (
	memoryDifference    = 0.015 // of capacity
	allocatedDifference = 0.05  // of what is allocatable, and of what DaemonSets leave
	namedDifference     = 0.2
)

// ignoredLabels are the labels in which similar groups may differ: where a machine
// stands, what it is called and which pool made it. The list is Cluster Autoscaler's,
// for all clouds at once.
var ignoredLabels = []string{
	"kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
	"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
	"beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
	"alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name", "eks.amazonaws.com/nodegroup",
	"k8s.amazonaws.com/eniConfig", "lifecycle", "eks.amazonaws.com/sourceLaunchTemplateId", "eks.amazonaws.com/sourceLaunchTemplateVersion",
	"topology.ebs.csi.aws.com/zone", "topology.k8s.aws/zone-id", "topology.cinder.csi.openstack.org/zone",
	"topology.gke.io/zone", "topology.disk.csi.azure.com/zone", "agentpool", "kubernetes.azure.com/agentpool",
	"topology.diskplugin.csi.alibabacloud.com/zone",
	"ibm-cloud.kubernetes.io/worker-id", "ibm-cloud.kubernetes.io/vpc-instance-id", "vpc-block-csi-driver-labels",
	"magnum.openstack.org/nodegroup", "cluster.x-k8s.io/deployment-name", "cluster.x-k8s.io/set-name",
}

// Peers are the groups that get machines evenly with g, g included and in the order of
// their IDs; only g where nothing is balanced.
func (w *State) Peers(g int) []int {
	if w.sets == nil {
		w.sets = make([][]int, len(w.Groups))
	}
	if w.sets[g] != nil {
		return w.sets[g]
	}
	set := []int{g}
	if w.Policy.BalanceSimilarNodeGroups || w.Groups[g].Balance != "" {
		for o := range w.Groups {
			if o != g && w.alike(&w.Groups[g], &w.Groups[o]) {
				set = append(set, o)
			}
		}
		slices.Sort(set)
	}
	w.sets[g] = set
	return set
}

// alike tells whether two groups are of one balance set: by name where one of them has
// a name, else by their machines and labels.
func (w *State) alike(a, b *Group) bool {
	if a.Template.Unknown != "" || b.Template.Unknown != "" || a.Balance != b.Balance {
		return false
	}
	if a.Balance != "" {
		return w.unlike(a, b) == ""
	}
	return w.unequal(a, b, memoryDifference, allocatedDifference) == "" && w.sameLabels(a.Template.Labels, b.Template.Labels) &&
		SameTaints(a.Template.Taints, b.Template.Taints)
}

// Unlike says in what the machines of group o differ too much from those of group i for a set
// by name; empty: in nothing.
func (w *State) Unlike(i, o int) string { return w.unlike(&w.Groups[i], &w.Groups[o]) }

func (w *State) unlike(a, b *Group) string { return w.unequal(a, b, namedDifference, namedDifference) }

// unequal says in what the machines of two groups differ too much; empty: in nothing.
func (w *State) unequal(a, b *Group, memory, share float64) string {
	ca, cb := &a.Template.Capacity, &b.Template.Capacity
	exact := memory <= memoryDifference
	if exact && ca.MilliCPU != cb.MilliCPU || far(ca.MilliCPU, cb.MilliCPU, share) {
		return fmt.Sprintf("%dm CPU against %dm", cb.MilliCPU, ca.MilliCPU)
	}
	if far(ca.Memory, cb.Memory, memory) {
		return fmt.Sprintf("%d MiB of memory against %d", cb.Memory>>20, ca.Memory>>20)
	}
	if !maps.Equal(ca.Extended, cb.Extended) {
		return "its extended resources are others"
	}
	aa, ab := &a.Template.Allocatable, &b.Template.Allocatable
	if far(aa.MilliCPU, ab.MilliCPU, share) || far(aa.Memory, ab.Memory, share) || far(aa.EphemeralStorage, ab.EphemeralStorage, share) || far(aa.Pods, ab.Pods, share) {
		return "another share of its machine is allocatable"
	}
	ra, _ := w.Template(a)
	rb, _ := w.Template(b)
	for j := range ra {
		if far(ra[j], rb[j], share) {
			return "its DaemonSets leave another share of its machine"
		}
	}
	return ""
}

// far tells whether two amounts differ by more than a share of the larger.
func far(a, b int64, share float64) bool {
	return math.Abs(float64(a-b)) > share*float64(max(a, b))
}

// sameLabels compares labels without those in which similar groups may differ, or only
// those that an operator named.
func (w *State) sameLabels(a, b map[string]string) bool {
	if len(w.Policy.BalanceLabels) > 0 {
		return !slices.ContainsFunc(w.Policy.BalanceLabels, func(k string) bool {
			va, oka := a[k]
			vb, okb := b[k]
			return oka != okb || va != vb
		})
	}
	within := func(a, b map[string]string) bool {
		for k, v := range a {
			if other, ok := b[k]; (!ok || other != v) && !slices.Contains(ignoredLabels, k) && !slices.Contains(w.Policy.BalanceIgnoreLabels, k) {
				return false
			}
		}
		return true
	}
	return within(a, b) && within(b, a)
}

func SameTaints(a, b []cluster.Taint) bool {
	within := func(a, b []cluster.Taint) bool {
		return !slices.ContainsFunc(a, func(t cluster.Taint) bool { return !slices.Contains(b, t) })
	}
	return within(a, b) && within(b, a)
}
