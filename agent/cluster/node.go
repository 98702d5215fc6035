package cluster

import "time"

// Taint is a node taint. Effect is NoSchedule, PreferNoSchedule or NoExecute.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Node is the scheduling- and lifecycle-relevant part of a Kubernetes Node, with the
// pods that are bound to it. Once it is in a Snapshot nothing writes to it any more:
// the same pointer in a later Snapshot means that nothing about it or its pods changed.
type Node struct {
	Name       NodeName `json:"name"`
	UID        UID      `json:"uid"`
	ProviderID string   `json:"providerID,omitempty"` // as written in spec.providerID
	SystemUUID string   `json:"systemUUID,omitempty"`
	// KubeletVersion is status.nodeInfo.kubeletVersion, "v1.36.3".
	KubeletVersion string            `json:"kubeletVersion,omitempty"`
	Addresses      []string          `json:"addresses,omitempty"` // every status address, as written
	Created        time.Time         `json:"created"`
	Labels         map[string]string `json:"labels,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"` // only those of the names above and karpenter.sh/do-not-disrupt
	Taints         []Taint           `json:"taints,omitempty"`
	// OperatorTaints are those of Taints that a person set, as far as the API server tells.
	OperatorTaints []Taint `json:"operatorTaints,omitempty"`
	// Unschedulable is spec.unschedulable (a cordon).
	Unschedulable bool      `json:"unschedulable,omitempty"`
	Capacity      Resources `json:"capacity"`
	Allocatable   Resources `json:"allocatable"`
	// VolumeLimits is how many volumes of each CSI driver the node can attach (CSINode),
	// less those that are attached and that none of its pods uses;
	// a driver that is not listed has no limit.
	VolumeLimits map[string]int64 `json:"volumeLimits,omitempty"`
	// Devices are what ResourceSlices offer on the node; nil: nothing.
	Devices    *Devices  `json:"devices,omitempty"`
	Ready      Status    `json:"ready"`
	ReadySince time.Time `json:"readySince"` // last transition of the Ready condition
	// Conditions are the conditions beside Ready that are True, and since when (node-problem-detector's
	// among them); nil: none.
	Conditions   map[string]time.Time `json:"conditions,omitempty"`
	Deleting     bool                 `json:"deleting,omitempty"`
	ControlPlane bool                 `json:"controlPlane,omitempty"`
	// MachineID, BootID (status.nodeInfo) and Heartbeat (of the Ready condition, by the kubelet's clock) are for the
	// nodecleaner alone: a Snapshot does not have them.
	MachineID string    `json:"-"`
	BootID    string    `json:"-"`
	Heartbeat time.Time `json:"-"`
	// Pods are the pods with spec.nodeName of this Node, sorted by key.
	Pods []Pod `json:"pods,omitempty"`
}

// Status is the three-valued status of a condition; the zero value is unknown.
type Status string

// The values of Status.
const (
	StatusUnknown Status = ""
	StatusTrue    Status = "True"
	StatusFalse   Status = "False"
)
