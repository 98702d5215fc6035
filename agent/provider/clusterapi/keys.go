package clusterapi

// keys are the names of labels and annotations. Most carry the API group as their
// prefix, so CAPI_GROUP changes them; the others are Cluster Autoscaler's own.
type keys struct{ group string }

func (k keys) minSize() string          { return k.group + "/cluster-api-autoscaler-node-group-min-size" }
func (k keys) maxSize() string          { return k.group + "/cluster-api-autoscaler-node-group-max-size" }
func (k keys) deleteMachine() string    { return k.group + "/delete-machine" }
func (k keys) clusterName() string      { return k.group + "/cluster-name" }
func (k keys) machine() string          { return k.group + "/machine" }           // on Nodes
func (k keys) clusterNamespace() string { return k.group + "/cluster-namespace" } // on Nodes
func (k keys) paused() string           { return k.group + "/paused" }
func (k keys) options() string          { return k.group + "/autoscaling-options-" }

// The names in Cluster API's first group, which old objects and controllers use.
const (
	oldMinSize       = "cluster.k8s.io/cluster-api-autoscaler-node-group-min-size"
	oldMaxSize       = "cluster.k8s.io/cluster-api-autoscaler-node-group-max-size"
	oldDeleteMachine = "cluster.k8s.io/delete-machine"
	oldClusterName   = "cluster.k8s.io/cluster-name"
)

// The annotations of an operator that describe the nodes of a group.
const (
	capacityPrefix = "capacity.cluster-autoscaler.kubernetes.io/"
	keyCPU         = capacityPrefix + "cpu"
	keyMemory      = capacityPrefix + "memory"
	keyDisk        = capacityPrefix + "ephemeral-disk"
	keyGPUType     = capacityPrefix + "gpu-type"
	keyGPUCount    = capacityPrefix + "gpu-count"
	keyMaxPods     = capacityPrefix + "maxPods"
	keyLabels      = capacityPrefix + "labels"
	keyTaints      = capacityPrefix + "taints"
	keyCSIDriver   = capacityPrefix + "csi-driver"
	keyDRADriver   = capacityPrefix + "dra-driver"
)

// labelAccelerator is put by kubelets on nodes with GPUs before the device plugin
// reports them.
const labelAccelerator = "cluster-api/accelerator"

// Labels of objects that a ClusterClass's topology controller created.
const (
	labelTopologyDeployment = "topology.cluster.x-k8s.io/deployment-name"
	labelTopologyPool       = "topology.cluster.x-k8s.io/pool-name"
)
