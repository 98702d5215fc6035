package cluster

import "slices"

// The annotations, labels and taints of Nodes and Pods that carry wishes or marks. Cluster
// Autoscaler's and Karpenter's names are kept, so that dashboards and habits go on working.
// Marks has what each of them does.
const (
	TaintToBeDeleted       = "ToBeDeletedByClusterAutoscaler"
	TaintDeletionCandidate = "DeletionCandidateOfClusterAutoscaler"
	TaintOutOfService      = "node.kubernetes.io/out-of-service"
	TaintShutdown          = "node.cloudprovider.kubernetes.io/shutdown"

	AnnotationNoScaleDown  = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	AnnotationKeep         = "autoscaler-agent/keep"
	AnnotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"
	AnnotationRequested    = "autoscaler-agent/scale-down-requested"
	AnnotationDelay        = "delay-deletion.cluster-autoscaler.kubernetes.io/" // a prefix
	AnnotationCordoned     = "autoscaler-agent/cordoned"                        // when and by which rule, with a space between
	AnnotationGroup        = "autoscaler-agent/group"
	AnnotationBoot         = "autoscaler-agent/boot-id"
	AnnotationReplace      = "autoscaler-agent/replace-requested"

	AnnotationSafeToEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	AnnotationSafeVolumes  = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
	AnnotationScaleUpDelay = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
	// AnnotationRequest names the ProvisioningRequest whose room a pod takes; it is Cluster Autoscaler's.
	AnnotationRequest     = "autoscaling.x-k8s.io/consume-provisioning-request"
	AnnotationEvictDaemon = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
	AnnotationDaemonPod   = "cluster-autoscaler.kubernetes.io/daemonset-pod"

	LabelControlPlane       = "node-role.kubernetes.io/control-plane"
	LabelControlPlaneLegacy = "node-role.kubernetes.io/master"
	LabelNoLoadBalancer     = "node.kubernetes.io/exclude-from-external-load-balancers"
)

// ControlPlaneLabels mark the Nodes of the control plane; the second is kubeadm's before Kubernetes 1.24. No kubelet can give
// itself either of them (NodeRestriction).
var ControlPlaneLabels = []string{LabelControlPlane, LabelControlPlaneLegacy}

// IsControlPlane tells a Node of the control plane by its labels.
func IsControlPlane(labels map[string]string) bool {
	return slices.ContainsFunc(ControlPlaneLabels, func(label string) bool { _, has := labels[label]; return has })
}

// LabelOurs is the value of LabelNoLoadBalancer that the agent sets with its cordon. Load balancers ask for the key alone, so
// that the value tells whose label it is.
const LabelOurs = "autoscaler-agent"

// SafeOnCompletion is the value of AnnotationSafeToEvict of a pod that runs to its end: its node waits for that (Cluster
// Autoscaler 1.36).
const SafeOnCompletion = "on-completion"

// KnownSafeToEvict tells whether a value of AnnotationSafeToEvict says something; empty: there is none.
func KnownSafeToEvict(value string) bool {
	switch value {
	case "", "true", "false", SafeOnCompletion:
		return true
	}
	return false
}

// Mark is one annotation, label or taint.
type Mark struct {
	Name    string
	Kind    string // "annotation of a Node", "taint of a Node", "label of a Node", "annotation of a Pod"
	Agent   string // "reads", "writes", or both
	SetBy   string
	Meaning string
	Rule    string // IDs of the rules that name it; empty: none
}

// Marks is the table of docs/marks.md; a test compares the two. The labels that the scheduler's
// filters read are not marks, and each provider documents the tags of its cloud.
var Marks = []Mark{
	{TaintToBeDeleted, "taint of a Node", "reads, writes", "the agent; another autoscaler", "the node is being drained; its value is when it was marked, in Unix seconds", "D10 D11 D14"},
	{TaintDeletionCandidate, "taint of a Node", "reads, writes", "the agent", "the node has not been needed for a while, or its pods have room on other nodes: the scheduler prefers those", "D19"},
	{TaintOutOfService, "taint of a Node", "reads, writes", "nodecleaner; an operator", "the machine is gone for good: volumes are detached at once", ""},
	{TaintShutdown, "taint of a Node", "reads, writes", "nodecleaner; a cloud controller", "the machine is stopped", ""},
	{AnnotationCordoned, "annotation of a Node", "reads, writes", "the agent", "the cordon is the agent's own, since when and by which rule; only such a cordon is taken back", "D12 D15"},
	{AnnotationGroup, "annotation of a Node", "reads, writes", "nodecleaner", "the node group in which the Node's instance was seen; a new leader knows by it which Nodes are managed", ""},
	{AnnotationBoot, "annotation of a Node", "reads, writes", "nodecleaner", "the boot ID that the Node's machine had while its instance was seen; a new leader tells another machine under this Node by it", ""},
	{AnnotationNoScaleDown, "annotation of a Node", "reads", "an operator", "the node is not removed, unless the value is false", "D5"},
	{AnnotationKeep, "annotation of a Node", "reads", "an operator", "the node is not removed by scale-down, unless the value is false, and its Node object is not deleted", "D5 E3"},
	{AnnotationDoNotDisrupt, "annotation of a Node", "reads", "an operator", "the node is not removed; with a time, only for that long after its creation", "D5"},
	{AnnotationRequested, "annotation of a Node", "reads", "an operator", "true: drain and terminate the node now, whatever its utilisation; rules that protect pods hold", "D20"},
	{AnnotationReplace, "annotation of a Node", "reads, writes", "an operator; `node replace`", "true: the node is replaced: first there is room for its pods, then it is drained; rules that protect pods hold", "D33"},
	{AnnotationDelay, "annotation of a Node", "reads", "a controller", "every key with this prefix keeps a drained node from being terminated, for a while", "D14"},
	{LabelNoLoadBalancer, "label of a Node", "writes", "the agent; an operator", "load balancers send nothing to the node; the agent sets it with its cordon, to the value autoscaler-agent, and takes only this value away", "D12"},
	{LabelControlPlane, "label of a Node", "reads", "kubeadm", "the node is never touched", ""},
	{LabelControlPlaneLegacy, "label of a Node", "reads", "an old kubeadm", "the node is never touched", ""},
	{AnnotationSafeToEvict, "annotation of a Pod", "reads", "an operator", "false: the pod blocks the drain of its node; true: a missing or custom controller, local storage or kube-system do not; on-completion: the pod is never evicted, and its node waits for its end; any other value blocks, and is warned of", "D6 D24"},
	{AnnotationSafeVolumes, "annotation of a Pod", "reads", "an operator", "the local volumes that do not block the drain, with commas between; blanks do not count", "D6"},
	{AnnotationDoNotDisrupt, "annotation of a Pod", "reads", "an operator", "true: the pod blocks the drain of its node; with a time, for that long after its creation", "D6"},
	{AnnotationScaleUpDelay, "annotation of a Pod", "reads", "an operator", "no machine is bought for the pod until it is that old", "U15"},
	{AnnotationRequest, "annotation of a Pod", "reads", "a controller of jobs, such as Kueue", "the pod takes the room that is kept for the ProvisioningRequest of that name", "U23"},
	{AnnotationEvictDaemon, "annotation of a Pod", "reads", "an operator", "true: the pod of a DaemonSet is told to go before its node goes; any other value: it is not", ""},
	{AnnotationDaemonPod, "annotation of a Pod", "reads", "a controller", "true: the pod counts as one of a DaemonSet: it brings no machine, and its node goes with it", ""},
}
