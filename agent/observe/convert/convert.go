package convert

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/resourcelist"
)

// keptAnnotations are the annotations that a decision may depend on; all others are
// dropped before an object enters the cache.
var keptAnnotations = []string{
	cluster.AnnotationSafeToEvict, cluster.AnnotationSafeVolumes, cluster.AnnotationDoNotDisrupt, cluster.AnnotationScaleUpDelay, cluster.AnnotationEvictDaemon, cluster.AnnotationDaemonPod, cluster.AnnotationRequest,
	cluster.AnnotationNoScaleDown, cluster.AnnotationCordoned, cluster.AnnotationKeep,
	corev1.MirrorPodAnnotationKey,
}

// nodeAnnotations are those of Nodes.
var nodeAnnotations = []string{cluster.AnnotationNoScaleDown, cluster.AnnotationCordoned, cluster.AnnotationKeep, cluster.AnnotationRequested, cluster.AnnotationDoNotDisrupt, cluster.AnnotationReplace}

// decidesOfNode reports whether a decision may depend on that annotation of a Node.
func decidesOfNode(annotation string) bool {
	return slices.Contains(nodeAnnotations, annotation) || strings.HasPrefix(annotation, cluster.AnnotationDelay)
}

// podWishes reads the annotations that few pods have. A value that is no duration has no
// effect, as in Cluster Autoscaler. The longest has that of an annotation that every author of a pod may write
// (safe-to-evict: "false"), or that of no pod: it needs no bound.
func podWishes(a map[string]string) *cluster.PodWishes {
	if len(a) == 0 {
		return nil
	}
	after := func(key string) time.Duration {
		d, err := time.ParseDuration(a[key])
		if err != nil {
			return 0
		}
		return max(d, 0)
	}
	w := cluster.PodWishes{ScaleUpDelay: after(cluster.AnnotationScaleUpDelay), KeepFor: after(cluster.AnnotationDoNotDisrupt), EvictDaemon: clip(a[cluster.AnnotationEvictDaemon]), Daemon: a[cluster.AnnotationDaemonPod] == "true", Request: clip(a[cluster.AnnotationRequest])}
	if w == (cluster.PodWishes{}) {
		return nil
	}
	return &w
}

// Node converts a Node. Pods and VolumeLimits are not known here.
func Node(n *corev1.Node) cluster.Node {
	out := cluster.Node{
		Name:           cluster.NodeName(n.Name),
		UID:            cluster.UID(n.UID),
		ProviderID:     n.Spec.ProviderID,
		SystemUUID:     n.Status.NodeInfo.SystemUUID,
		KubeletVersion: n.Status.NodeInfo.KubeletVersion,
		Created:        n.CreationTimestamp.Time,
		Labels:         ownLabels(n.Labels),
		Unschedulable:  n.Spec.Unschedulable,
		Capacity:       resourcelist.Resources(n.Status.Capacity),
		Allocatable:    resourcelist.Resources(n.Status.Allocatable),
		Deleting:       n.DeletionTimestamp != nil,
	}
	for key, v := range n.Annotations {
		if decidesOfNode(key) {
			if out.Annotations == nil {
				out.Annotations = map[string]string{}
			}
			out.Annotations[key] = v
		}
	}
	for _, a := range n.Status.Addresses {
		out.Addresses = append(out.Addresses, a.Address)
	}
	for _, t := range n.Spec.Taints {
		out.Taints = append(out.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady:
			out.Ready, out.ReadySince = status(c.Status), c.LastTransitionTime.Time
		case c.Status == corev1.ConditionTrue:
			if out.Conditions == nil {
				out.Conditions = map[string]time.Time{}
			}
			out.Conditions[string(c.Type)] = c.LastTransitionTime.Time
		}
	}
	out.ControlPlane = cluster.IsControlPlane(n.Labels)
	return out
}

func status(s corev1.ConditionStatus) cluster.Status {
	switch s {
	case corev1.ConditionTrue:
		return cluster.StatusTrue
	case corev1.ConditionFalse:
		return cluster.StatusFalse
	}
	return cluster.StatusUnknown
}

// Pod converts the part of a pod that is its own. PodClass converts the rest.
func Pod(p *corev1.Pod) cluster.Pod {
	out := cluster.Pod{
		Key:          cluster.PodKey(p.Namespace + "/" + p.Name),
		UID:          cluster.UID(p.UID),
		Node:         cluster.NodeName(p.Spec.NodeName),
		Nominated:    cluster.NodeName(p.Status.NominatedNodeName),
		Gated:        len(p.Spec.SchedulingGates) > 0,
		Finished:     p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
		Created:      cluster.At(p.CreationTimestamp.Time),
		Owner:        owner(metav1.GetControllerOf(p)),
		SafeToEvict:  clip(p.Annotations[cluster.AnnotationSafeToEvict]),
		DoNotDisrupt: p.Annotations[cluster.AnnotationDoNotDisrupt] == "true",
		LocalStorage: localStorage(p),
	}
	_, out.Mirror = p.Annotations[corev1.MirrorPodAnnotationKey]
	if p.DeletionTimestamp != nil {
		out.Deleting = cluster.At(p.DeletionTimestamp.Time)
	}
	out.Wishes = podWishes(p.Annotations)
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		out.GracePeriod = cluster.Seconds(min(*g, math.MaxInt32))
	}
	if p.Spec.NodeName != "" && !out.Finished && !out.Mirror {
		out.Changed = mayBeResized(p)
		out.Unstarted = p.Status.Phase == corev1.PodPending
		out.Unready = !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		out.Trouble = trouble(&p.Status)
	}
	if p.Spec.NodeName == "" {
		for _, c := range p.Status.Conditions {
			switch {
			case c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse:
			case c.Reason == corev1.PodReasonUnschedulable:
				out.Unschedulable = cluster.At(c.LastTransitionTime.Time)
			case c.Reason == corev1.PodReasonSchedulerError:
				out.Trouble = &cluster.PodTrouble{Scheduler: unique.Make(c.Message).Value()}
			}
		}
	}
	return out
}

// mostRestarts is one a second for twelve days; the agent asks whether a container was started twice.
const mostRestarts = 1 << 20

// trouble sums up since when a pod is not Ready, and what its containers tell that do not run, or have been started again.
func trouble(status *corev1.PodStatus) *cluster.PodTrouble {
	var out cluster.PodTrouble
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			out.Since = cluster.At(c.LastTransitionTime.Time)
		}
	}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			s := &list[i]
			if out.Waiting == "" {
				out.Waiting = cannotStart(s)
			}
			out.Restarts += min(max(s.RestartCount, 0), mostRestarts) // a kubelet's number: the sum stays one of its type
			if t := s.LastTerminationState.Terminated; t != nil && s.RestartCount > 0 {
				out.RestartedAt = max(out.RestartedAt, cluster.At(t.FinishedAt.Time))
			}
		}
	}
	if out == (cluster.PodTrouble{}) {
		return nil
	}
	return &out
}

// cannotStart is the reason for which the kubelet does not get a container to run; empty: it has not said that. A container that
// is being started for the first time waits with one of two reasons, and any other one is a failure.
func cannotStart(s *corev1.ContainerStatus) string {
	if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
		return unique.Make(clip(w.Reason)).Value()
	}
	return ""
}

func owner(ref *metav1.OwnerReference) *cluster.Owner {
	if ref == nil {
		return nil
	}
	return &cluster.Owner{Kind: ownerKind(ref), Name: ref.Name, UID: cluster.UID(ref.UID)}
}

// ownerKind tells the Job of Volcano from that of Kubernetes. A DaemonSet of any group makes one pod for each node.
func ownerKind(ref *metav1.OwnerReference) string {
	group, _, found := strings.Cut(ref.APIVersion, "/")
	if !found || ref.Kind == "DaemonSet" || group == appsv1.GroupName || group == batchv1.GroupName {
		return ref.Kind
	}
	return ref.Kind + "." + group
}

func localStorage(p *corev1.Pod) string {
	safe := map[string]bool{}
	for name := range strings.SplitSeq(p.Annotations[cluster.AnnotationSafeVolumes], ",") {
		safe[strings.TrimSpace(name)] = true
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		dies := v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
		if dies && !safe[v.Name] {
			return v.Name
		}
	}
	return ""
}

// PodClass converts the part of a pod that scheduling depends on. schedulers are the
// scheduler names whose verdict counts as kube-scheduler's.
//
// A DaemonSet's controller pins each pod to its node by a metadata.name field term. That
// term decides nothing once the pod is bound, and would make one class per node, so it
// is left out.
//
// The pod is a stripped one. Of one that is larger than MaxPod, the requests alone are kept.
func PodClass(p *corev1.Pod, schedulers []string) cluster.PodClass {
	if size := p.Size(); size > MaxPod {
		return tooLarge(p, size)
	}
	c := cluster.PodClass{
		Namespace:    p.Namespace,
		Labels:       p.Labels,
		Requests:     resourcelist.Resources(podRequests(p)),
		NodeSelector: p.Spec.NodeSelector,
		HostPorts:    hostPorts(&p.Spec),
	}
	c.Requests.Pods = 1
	if p.Spec.Priority != nil {
		c.Priority = *p.Spec.Priority
	}
	ref := metav1.GetControllerOf(p)
	if p.Spec.NodeName == "" || ref == nil || ref.Kind != "DaemonSet" {
		c.Affinity = nodeAffinity(p.Spec.Affinity)
	}
	for _, t := range p.Spec.Tolerations {
		c.Tolerations = append(c.Tolerations, cluster.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)})
	}
	c.NotUnderstood = append(setPodTerms(p, &c), notUnderstood(&p.Spec, schedulers)...)
	c.Prefers = preferences(p, &c)
	return c
}

func hostPorts(spec *corev1.PodSpec) []cluster.HostPort {
	var out []cluster.HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			hp := cluster.HostPort{IP: p.HostIP, Protocol: string(p.Protocol), Port: p.HostPort}
			if hp.IP == "" {
				hp.IP = "0.0.0.0"
			}
			if hp.Protocol == "" {
				hp.Protocol = string(corev1.ProtocolTCP)
			}
			out = append(out, hp)
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		// kube-scheduler counts the ports of sidecars, not those of init containers that end.
		if r := spec.InitContainers[i].RestartPolicy; r != nil && *r == corev1.ContainerRestartPolicyAlways {
			add(&spec.InitContainers[i])
		}
	}
	return out
}

func nodeAffinity(a *corev1.Affinity) []cluster.NodeTerm {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return NodeTerms(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
}

func requirements(in []corev1.NodeSelectorRequirement) []cluster.Requirement {
	var out []cluster.Requirement
	for _, r := range in {
		out = append(out, cluster.Requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values})
	}
	return out
}

// selectionOf maps the operators of node selectors to those of labels.NewRequirement.
var selectionOf = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

// labelRequirements converts matchExpressions. kube-scheduler drops a whole term when
// one requirement has a key or a value that no label can have (Gt -5, NotIn with a
// blank), whatever the operator; the API server accepts such a value only in objects
// from before it validated them. Such a requirement becomes one that nothing meets.
func labelRequirements(in []corev1.NodeSelectorRequirement) []cluster.Requirement {
	out := requirements(in)
	for i := range in {
		if _, err := labels.NewRequirement(in[i].Key, selectionOf[in[i].Operator], in[i].Values); err != nil {
			out[i] = cluster.Requirement{Key: in[i].Key, Operator: string(corev1.NodeSelectorOpIn)}
		}
	}
	return out
}

// ResourceClaims stands in PodClass.NotUnderstood for claims whose objects nobody has looked up; package devices does.
const ResourceClaims = "resourceClaims"

// notUnderstood lists the features of a pod that fit does not judge, by their names in
// the API.
func notUnderstood(spec *corev1.PodSpec, schedulers []string) []string {
	var out []string
	for i := range spec.Volumes {
		if kind := unsupportedVolume(&spec.Volumes[i]); kind != "" && !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	if len(spec.ResourceClaims) > 0 {
		out = append(out, ResourceClaims)
	}
	// NodeDeclaredFeatures: only nodes that say so in status.declaredFeatures take these.
	if spec.HostNetwork && spec.HostUsers != nil && !*spec.HostUsers {
		out = append(out, "hostUsers: false with hostNetwork")
	}
	if slices.ContainsFunc(slices.Concat(spec.Containers, spec.InitContainers), restartsAll) {
		out = append(out, "restartPolicyRules with action RestartAllContainers")
	}
	if spec.SchedulerName != "" && !slices.Contains(schedulers, spec.SchedulerName) {
		out = append(out, fmt.Sprintf("schedulerName %s", spec.SchedulerName))
	}
	return out
}

func restartsAll(c corev1.Container) bool {
	return slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
		return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
	})
}

// unsupportedVolume names the kind of a volume that VolumeRestrictions judges by the
// disk that it names, which fit does not do; empty for all other kinds.
func unsupportedVolume(v *corev1.Volume) string {
	switch s := &v.VolumeSource; {
	case s.AWSElasticBlockStore != nil:
		return "awsElasticBlockStore volume"
	case s.GCEPersistentDisk != nil:
		return "gcePersistentDisk volume"
	case s.ISCSI != nil:
		return "iscsi volume"
	case s.RBD != nil:
		return "rbd volume"
	}
	return ""
}

// DaemonSetClass is the class of the pods that a DaemonSet's template makes, and from what the
// API server completes their requests ("limits", "LimitRange x"); empty: it adds nothing.
// Tolerations are those without a RuntimeClass: the DaemonSet controller chooses the nodes and
// does not know them.
func DaemonSetClass(d *appsv1.DaemonSet, a Admission, schedulers []string) (c cluster.PodClass, completed string) {
	for _, x := range d.Status.Conditions {
		if x.Type == conditionTooLarge {
			return TooLarge(d.Namespace, cluster.Resources{Pods: 1}, 0, x.Message), ""
		}
	}
	p := daemonSetPod(d.Namespace, &d.Spec.Template)
	own := p.Spec.Tolerations
	completed = Admit(p, a)
	p.Spec.Tolerations = own
	return PodClass(p, schedulers), completed
}

// daemonSetPod is the pod that a DaemonSet's controller would make for a node that
// matches, with the tolerations that it always adds
// (kubernetes/pkg/controller/daemon/util.AddOrUpdateDaemonPodTolerations).
func daemonSetPod(namespace string, t *corev1.PodTemplateSpec) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: t.Labels}, Spec: *t.Spec.DeepCopy()}
	add := func(key string, effect corev1.TaintEffect) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if p.Spec.HostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return p
}

// NodeTerms converts the terms of a node selector: of a pod's affinity or of a volume's.
func NodeTerms(in []corev1.NodeSelectorTerm) []cluster.NodeTerm {
	out := make([]cluster.NodeTerm, 0, len(in))
	for _, t := range in {
		out = append(out, cluster.NodeTerm{Labels: labelRequirements(t.MatchExpressions), Fields: requirements(t.MatchFields)})
	}
	return out
}

// ownLabels are the labels of a Node without the one of the agent's cordon, which says nothing of the group's next Node.
func ownLabels(all map[string]string) map[string]string {
	if all[cluster.LabelNoLoadBalancer] != cluster.LabelOurs {
		return all
	}
	out := maps.Clone(all)
	delete(out, cluster.LabelNoLoadBalancer)
	return out
}
