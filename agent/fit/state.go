package fit

import "github.com/autoscaler-agent/autoscaler-agent/agent/cluster"

// The rules of the filters that look at what other pods are where, in
// kube-scheduler's order.
const (
	RuleVolumeRestrictions = "F7"  // VolumeRestrictions: ReadWriteOncePod
	RuleVolumeLimits       = "F8"  // NodeVolumeLimits: CSI attach limits
	RuleVolumeBinding      = "F9"  // VolumeBinding: node affinity of volumes, topologies of claims
	RuleVolumeZone         = "F10" // VolumeZone
	RuleSpread             = "F11" // PodTopologySpread
	RuleInterPod           = "F12" // InterPodAffinity, existing pods' anti-affinity included
)

// State is a set of nodes with what is on each, as the filters F7 to F12 see it. It
// grows by nodes and changes by pods; a judgement costs what the class asks for and
// not what the cluster holds. Nothing in it is safe for concurrent use.
type State struct {
	classes    []cluster.PodClass
	namespaces []cluster.Namespace
}

// NewState returns a State without nodes. The classes are those of one Snapshot.
func NewState(classes []cluster.PodClass, namespaces []cluster.Namespace) *State {
	return &State{classes: classes, namespaces: namespaces}
}
