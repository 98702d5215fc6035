package cluster

import "time"

// PodClass is everything about a pod that scheduling depends on. Pods with equal
// classes are interchangeable to the scheduler, so 30,000 replicas cost what one
// does. Snapshot.Classes holds each class once; pods refer to it by index.
type PodClass struct {
	Namespace    string            `json:"namespace"`
	Labels       map[string]string `json:"labels,omitempty"`
	Requests     Resources         `json:"requests"` // init, sidecar and overhead included; Pods is 1
	HostPorts    []HostPort        `json:"hostPorts,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity is required node affinity: terms are OR-ed. nil means none; an empty
	// non-nil list matches no node, as in kube-scheduler.
	Affinity    []NodeTerm   `json:"affinity,omitzero"`
	Tolerations []Toleration `json:"tolerations,omitempty"`
	Priority    int32        `json:"priority,omitempty"`
	// PodAffinity and PodAntiAffinity are the required terms; all hold together.
	PodAffinity     []PodTerm `json:"podAffinity,omitempty"`
	PodAntiAffinity []PodTerm `json:"podAntiAffinity,omitempty"`
	// Spread are the DoNotSchedule constraints; all hold together.
	Spread []Spread `json:"spread,omitempty"`
	// Volumes are those that some nodes cannot provide.
	Volumes []Volume `json:"volumes,omitempty"`
	// Claims are the ResourceClaims, in the order of spec.resourceClaims.
	Claims []DeviceClaim `json:"claims,omitempty"`
	// NodeName is set for pods that name their node themselves.
	NodeName NodeName `json:"nodeName,omitempty"`
	// NotUnderstood lists the scheduling features of the pod that fit does not
	// judge, in the API's words ("required podAntiAffinity"). Such a pod is held by
	// name; nothing is guessed.
	NotUnderstood []string `json:"notUnderstood,omitempty"`
	// TooLarge tells a class of which the constraints and the labels are not kept, since they take too
	// much memory: NotUnderstood says why, and of the requests there are CPU, memory and storage.
	TooLarge bool `json:"tooLarge,omitempty"`
	// Prefers is what kube-scheduler's scores read of the pod beside all this; nil: nothing.
	Prefers *Preferences `json:"prefers,omitempty"`
}

// Preferences are what a pod would rather have: kube-scheduler's scores read them, and its
// filters do not. Never changed once they are handed out.
type Preferences struct {
	// MilliCPU and Memory are the requests as the score LeastAllocated counts them: with
	// 100m and 200 MB for each container that names none. 0: as PodClass.Requests.
	MilliCPU int64 `json:"milliCPU,omitempty"`
	Memory   int64 `json:"memory,omitempty"`
	// IncomingMilliCPU and IncomingMemory are the same of the pod while it is being placed,
	// where pod-level requests do not count. 0: as MilliCPU and Memory.
	IncomingMilliCPU int64 `json:"incomingMilliCPU,omitempty"`
	IncomingMemory   int64 `json:"incomingMemory,omitempty"`
	// Nodes are the preferred terms of node affinity.
	Nodes []PreferredNodes `json:"nodes,omitempty"`
	// Pods are the preferred terms of pod affinity; of anti-affinity with a negative weight.
	Pods []PreferredPods `json:"pods,omitempty"`
	// Spread are the ScheduleAnyway constraints.
	Spread []Spread `json:"spread,omitempty"`
}

// PreferredNodes is one preferred term of node affinity.
type PreferredNodes struct {
	Weight int64    `json:"weight"`
	Term   NodeTerm `json:"term"`
}

// PreferredPods is one preferred term of pod affinity.
type PreferredPods struct {
	Weight int64   `json:"weight"`
	Term   PodTerm `json:"term"`
}

// HostPort is a port that a pod claims on its node. IP is "0.0.0.0" for all.
type HostPort struct {
	IP       string `json:"ip"`
	Protocol string `json:"protocol"`
	Port     int32  `json:"port"`
}

// NodeTerm is one nodeSelectorTerm: all of its requirements hold together. A term
// without any requirement matches no node.
type NodeTerm struct {
	Labels []Requirement `json:"labels,omitempty"` // matchExpressions
	Fields []Requirement `json:"fields,omitempty"` // matchFields; only metadata.name exists
}

// Requirement is one node selector requirement. Operator is In, NotIn, Exists,
// DoesNotExist, Gt or Lt.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Toleration is a pod toleration, as in the API. TolerationSeconds plays no part
// in scheduling and is left out.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// Tolerates follows v1.Toleration.ToleratesTaint. Operators other than Exists and Equal tolerate nothing here.
func (t *Toleration) Tolerates(taint *Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == "Exists" || (t.Operator == "" || t.Operator == "Equal") && t.Value == taint.Value
}

// Owner is the controller of a pod (ownerReference with controller: true).
type Owner struct {
	// Kind is a kind of Kubernetes itself, or that of a custom controller with its API group: Workflow.argoproj.io.
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  UID    `json:"uid"`
}

// Pod is one pod: its class and what is its own. A cluster has very many of them, so
// the fields are in an order that leaves no gaps.
type Pod struct {
	Key PodKey `json:"key"`
	UID UID    `json:"uid"`
	// Node is spec.nodeName; empty while not bound.
	Node      NodeName `json:"node,omitempty"`
	Nominated NodeName `json:"nominated,omitempty"`
	// What is read of every pod of every node stands together: a first round reads it
	// from memory, and of a large cluster it is the reading that takes the time.
	Class    int    `json:"class"`             // index into Snapshot.Classes
	Deleting Moment `json:"deleting,omitzero"` // metadata.deletionTimestamp
	Owner    *Owner `json:"owner,omitempty"`
	Gated    bool   `json:"gated,omitempty"`    // schedulingGates present
	Finished bool   `json:"finished,omitempty"` // Succeeded or Failed
	Mirror   bool   `json:"mirror,omitempty"`   // static pod
	// DoNotDisrupt is karpenter.sh/do-not-disrupt: "true".
	DoNotDisrupt bool    `json:"doNotDisrupt,omitempty"`
	GracePeriod  Seconds `json:"gracePeriod,omitempty"`
	// Unready tells that a bound pod's Ready condition is not True.
	Unready bool `json:"unready,omitempty"`
	// Unstarted tells that a bound pod's phase is Pending: not all of its containers have been started. The Eviction API asks
	// no PodDisruptionBudget about it.
	Unstarted bool `json:"unstarted,omitempty"`
	// Changed tells that the spec may have changed since the pod was made: it was resized in place, where it was.
	Changed bool `json:"changed,omitempty"`
	// Takes is one more than the class by which the pod takes room on its node, where its controller's template asks for more:
	// the pod was resized in place, and the one that is made after it will be of Class. 0: Class.
	Takes int32 `json:"takes,omitempty"`
	// Wishes are what rare annotations of the pod ask for; nil: nothing. Never changed
	// once it is handed out.
	Wishes *PodWishes `json:"wishes,omitempty"`
	// Trouble is what is wrong with a pod; nil: nothing is. Never changed once it is handed out.
	Trouble *PodTrouble `json:"trouble,omitempty"`
	Created Moment      `json:"created"`
	// Unschedulable is when the scheduler set PodScheduled=False with reason
	// Unschedulable; zero when it has not (yet).
	Unschedulable Moment `json:"unschedulable,omitzero"`
	// SafeToEvict is the annotation cluster-autoscaler.kubernetes.io/safe-to-evict:
	// "true", "false", SafeOnCompletion or empty; any other value is kept as it is (KnownSafeToEvict).
	SafeToEvict string `json:"safeToEvict,omitempty"`
	// LocalStorage names the first volume that dies with the node (hostPath or an
	// emptyDir not in memory) and is not listed as safe to evict; empty: none.
	LocalStorage string `json:"localStorage,omitempty"`
	// Budgets are the PodDisruptionBudgets that select this pod, by "namespace/name".
	Budgets []string `json:"budgets,omitempty"`
}

// Seconds is a duration in whole seconds, for values of which there are very many.
type Seconds int32

// Duration is the same in the usual type.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// PodWishes are what rare annotations of a pod ask for.
type PodWishes struct {
	// ScaleUpDelay is how long after its creation no machine is bought for the pod
	// (cluster-autoscaler.kubernetes.io/pod-scale-up-delay).
	ScaleUpDelay time.Duration `json:"scaleUpDelay,omitempty"`
	// KeepFor is how long after its creation the pod must not be evicted
	// (karpenter.sh/do-not-disrupt with a time).
	KeepFor time.Duration `json:"keepFor,omitempty"`
	// EvictDaemon is cluster-autoscaler.kubernetes.io/enable-ds-eviction of a DaemonSet's
	// pod: only "true" has it evicted; empty: as the settings say.
	EvictDaemon string `json:"evictDaemon,omitempty"`
	// Daemon is cluster-autoscaler.kubernetes.io/daemonset-pod: "true": another controller makes the pod as a
	// DaemonSet would, one for each node.
	Daemon bool `json:"daemon,omitempty"`
	// Request is the name of the ProvisioningRequest whose room the pod takes.
	Request string `json:"request,omitempty"`
}

// PodTrouble is what the kubelet tells of a pod that is not Ready, or of which containers do not run, or have not run on; and
// what kube-scheduler tells of one that it failed to place.
type PodTrouble struct {
	// Since is since when a pod has not been Ready, as far as its Ready condition tells that.
	Since Moment `json:"since,omitzero"`
	// Waiting is the reason for which a container cannot be started, in the kubelet's words (CrashLoopBackOff, ImagePullBackOff);
	// empty: all of them run, or are being started for the first time.
	Waiting string `json:"waiting,omitempty"`
	// Scheduler is the error with which kube-scheduler failed to place an unbound pod (corev1.PodReasonSchedulerError).
	Scheduler string `json:"scheduler,omitempty"`
	// Restarts is how often containers were started again, RestartedAt when the last of these runs had ended.
	Restarts    int32  `json:"restarts,omitempty"`
	RestartedAt Moment `json:"restartedAt,omitzero"`
}

// Judged tells that kube-scheduler has looked at an unbound pod, and has called it unschedulable or has failed with an error.
func (p *Pod) Judged() bool { return !p.Unschedulable.IsZero() || p.Troubles().Scheduler != "" }

// Troubles is the trouble of the pod; the zero value where there is none.
func (p *Pod) Troubles() PodTrouble {
	if p.Trouble == nil {
		return PodTrouble{}
	}
	return *p.Trouble
}

// OnNode is the class by which the pod takes room on its node.
func (p *Pod) OnNode() int {
	if p.Takes > 0 {
		return int(p.Takes) - 1
	}
	return p.Class
}

// Asked is what the pod wishes; the zero value where it wishes nothing.
func (p *Pod) Asked() PodWishes {
	if p.Wishes == nil {
		return PodWishes{}
	}
	return *p.Wishes
}

// DaemonSet is a DaemonSet as a class of pods that every matching node will carry.
type DaemonSet struct {
	Key PodKey `json:"key"`
	UID UID    `json:"uid"`
	// Class is the class of a pod of its template, as the API server completes it.
	Class int `json:"class"`
	// Completed says from what the API server completes the requests of the template ("limits",
	// "LimitRange x"); empty: from nothing.
	Completed string `json:"completed,omitempty"`
	// Revision is the generation of its template; pods have it as the label
	// LabelTemplateGeneration. Empty: not known.
	Revision string `json:"revision,omitempty"`
	// Settled tells that the DaemonSet controller counts all of its pods to the current revision.
	Settled bool `json:"settled,omitempty"`
}

// The labels that the DaemonSet controller gives to its pods.
const (
	LabelTemplateGeneration = "pod-template-generation"
	LabelRevisionHash       = "controller-revision-hash"
)

// Controller is a ReplicaSet, a parallel StatefulSet or a Job that has not made all of its pods yet.
// The controller manager creates the pods of a large Deployment over seconds; a
// class of which one pod is already Unschedulable counts its missing siblings, so
// that a burst is one decision (CA's proactive scale-up).
type Controller struct {
	Owner   Owner  `json:"owner"`
	Key     PodKey `json:"key"`
	Missing int    `json:"missing"` // desired replicas - pods that exist; > 0
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	Key     string `json:"key"`
	Allowed int    `json:"allowed"` // status.disruptionsAllowed; 0 when the status is outdated
	// Unready tells that pods which are not Ready may be evicted whatever Allowed says: its policy for pods that are not
	// healthy is AlwaysAllow, or as many pods are healthy as have to be.
	Unready bool `json:"unready,omitempty"`
}
