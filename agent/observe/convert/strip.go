package convert

import (
	"maps"
	"slices"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// The annotations of claims that kube-scheduler reads.
const (
	AnnotationBindCompleted = "pv.kubernetes.io/bind-completed"
	AnnotationSelectedNode  = "volume.kubernetes.io/selected-node"
)

var keptClaimAnnotations = []string{AnnotationBindCompleted, AnnotationSelectedNode, corev1.BetaStorageClassAnnotation}

// Strip is the informer factories' transform: it drops from each object what no
// service reads, before the object enters a cache. It changes the object in place;
// the reflector owns it.
func Strip(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		var kept []metav1.ManagedFieldsEntry
		if n, ok := obj.(*corev1.Node); ok {
			kept = append(taintOwners(n), labelOwner(n)...)
		}
		m.SetManagedFields(kept)
		m.SetFinalizers(nil)
		m.SetOwnerReferences(controllerOnly(m.GetOwnerReferences()))
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		stripPod(o)
	case *corev1.Node:
		stripNode(o)
	case *appsv1.ReplicaSet:
		size := corev1.PodTemplateSpec{}
		if n := o.Spec.Replicas; n == nil || *n > 0 { // of a Deployment most have none
			size = sizeAlone(&o.Spec.Template)
		}
		o.Spec.Template, o.Spec.Selector, o.Labels, o.Annotations = size, nil, nil, nil
	case *appsv1.StatefulSet:
		o.Spec.Template, o.Spec.Selector, o.Labels, o.Annotations = sizeAlone(&o.Spec.Template), nil, nil, nil
		if o.Spec.VolumeClaimTemplates != nil {
			o.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{} // that there are some is all that counts
		}
	case *batchv1.Job:
		o.Spec.Template, o.Spec.Selector, o.Labels, o.Annotations = sizeAlone(&o.Spec.Template), nil, nil, nil
	case *appsv1.DaemonSet:
		stripDaemonSet(o)
	case *corev1.LimitRange:
		stripLimitRange(o)
	case *corev1.ResourceQuota:
		o.Labels, o.Annotations, o.Spec.Hard = nil, nil, nil // its status is what the API server admits by
	case *nodev1.RuntimeClass:
		o.Labels, o.Annotations, o.Handler = nil, nil, ""
	case *corev1.Namespace:
		o.Labels, o.Annotations, o.Spec, o.Status = boundLabels(o.Labels), nil, corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
	case *policyv1.PodDisruptionBudget:
		stripBudget(o)
	case *corev1.PersistentVolumeClaim:
		stripClaim(o)
	case *corev1.PersistentVolume:
		stripVolume(o)
	case *storagev1.StorageClass:
		o.Labels, o.Annotations, o.Parameters, o.MountOptions = nil, nil, nil, nil
	case *storagev1.VolumeAttachment:
		o.Labels, o.Annotations, o.Status = nil, nil, storagev1.VolumeAttachmentStatus{}
	case *storagev1.CSIDriver:
		o.Labels, o.Annotations, o.Spec = nil, nil, storagev1.CSIDriverSpec{StorageCapacity: o.Spec.StorageCapacity}
	case *storagev1.CSINode:
		o.OwnerReferences, o.Labels, o.Annotations = nil, nil, nil
		for i := range o.Spec.Drivers {
			o.Spec.Drivers[i].NodeID, o.Spec.Drivers[i].TopologyKeys = "", nil
		}
		o.Spec.Drivers = fitting(o.Spec.Drivers, (*storagev1.CSINodeDriver).Size)
	case *resourcev1.DeviceClass:
		o.Labels, o.Annotations, o.Spec.Config = nil, nil, nil
	case *resourcev1.ResourceSlice:
		o.Labels, o.Annotations = nil, nil
	case *resourcev1.ResourceClaim:
		o.Labels, o.Annotations, o.Spec.Devices.Config, o.Status.Devices = nil, nil, nil, nil
		if a := o.Status.Allocation; a != nil {
			a.Devices.Config = nil
		}
	case *resourcev1.ResourceClaimTemplate:
		o.Labels, o.Annotations, o.Spec.ObjectMeta, o.Spec.Spec.Devices.Config = nil, nil, metav1.ObjectMeta{}, nil
	case *coordinationv1.Lease:
		o.OwnerReferences, o.Labels, o.Annotations = nil, nil, nil
	}
	return obj, nil
}

// controllerOnly leaves the reference to the controller. One that no controller would write is as none:
// the pod is not taken for one that somebody makes again.
func controllerOnly(refs []metav1.OwnerReference) []metav1.OwnerReference {
	for i := range refs {
		if r := &refs[i]; r.Controller != nil && *r.Controller && len(r.Kind) <= maxValue && len(r.Name) <= maxValue && len(r.UID) <= maxValue {
			return refs[i : i+1 : i+1]
		}
	}
	return nil
}

// stripBudget keeps the selector and what the budget allows. A selector that is too large becomes one
// that selects every pod of the namespace: the API server's eviction asks the whole one.
func stripBudget(b *policyv1.PodDisruptionBudget) {
	b.Labels, b.Annotations = nil, nil
	b.Spec = policyv1.PodDisruptionBudgetSpec{Selector: boundSelector(b.Spec.Selector, metav1.LabelSelector{}), UnhealthyPodEvictionPolicy: b.Spec.UnhealthyPodEvictionPolicy}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Status.ObservedGeneration, DisruptionsAllowed: b.Status.DisruptionsAllowed,
		CurrentHealthy: b.Status.CurrentHealthy, DesiredHealthy: b.Status.DesiredHealthy}
}

// only keeps the named entries.
func only(m map[string]string, keys []string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if v, ok := m[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = v
		}
	}
	return kept
}

func stripClaim(c *corev1.PersistentVolumeClaim) {
	c.Labels, c.Annotations = nil, clipped(only(c.Annotations, keptClaimAnnotations))
	c.Spec.DataSource, c.Spec.DataSourceRef = nil, nil
	// An invalid operator: a claim whose selector is not kept matches no volume.
	c.Spec.Selector = boundSelector(c.Spec.Selector, metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Operator: "TooLarge"}}})
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase}
}

func stripVolume(v *corev1.PersistentVolume) {
	v.Labels, v.Annotations = boundLabels(v.Labels), only(v.Annotations, []string{corev1.BetaStorageClassAnnotation})
	v.Spec.MountOptions = nil
	if s := v.Spec.CSI; s != nil {
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: s.Driver, VolumeHandle: s.VolumeHandle}
	}
	v.Status = corev1.PersistentVolumeStatus{Phase: v.Status.Phase}
}

// stripNode keeps what a decision of the scaler, the nodecleaner or the csrsigner reads. A
// service that writes to a Node gets it from the API server first.
func stripNode(n *corev1.Node) {
	delay := "" // the first of them is told, and the others say no more
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		if key != cluster.AnnotationGroup && key != cluster.AnnotationBoot && !decidesOfNode(key) || delay != "" && strings.HasPrefix(key, cluster.AnnotationDelay) {
			delete(n.Annotations, key)
		} else if strings.HasPrefix(key, cluster.AnnotationDelay) {
			delay = key
		}
	}
	n.Labels, n.Annotations = boundLabels(n.Labels), clipped(n.Annotations)
	st := corev1.NodeStatus{Capacity: n.Status.Capacity, Allocatable: n.Status.Allocatable, Addresses: n.Status.Addresses}
	i := n.Status.NodeInfo
	st.NodeInfo = corev1.NodeSystemInfo{MachineID: i.MachineID, SystemUUID: i.SystemUUID, BootID: i.BootID,
		KubeletVersion: unique.Make(clip(i.KubeletVersion)).Value()} // one text for all Nodes of a version
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady || c.Status == corev1.ConditionTrue {
			st.Conditions = append(st.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime, LastHeartbeatTime: c.LastHeartbeatTime})
		}
	}
	n.Status = st
	boundNode(n)
}

func stripPod(p *corev1.Pod) {
	p.Annotations = only(p.Annotations, keptAnnotations)
	stripSpec(&p.Spec)
	p.Spec.ReadinessGates = nil
	st := corev1.PodStatus{Phase: p.Status.Phase, NominatedNodeName: p.Status.NominatedNodeName, ResourceClaimStatuses: p.Status.ResourceClaimStatuses}
	for _, c := range p.Status.Conditions {
		switch c.Type {
		case corev1.PodScheduled, corev1.PodResizePending:
			if c.Message = clip(c.Message); c.Reason != corev1.PodReasonSchedulerError {
				c.Message = "" // what the filters say anew
			}
			st.Conditions = append(st.Conditions, c)
		case corev1.PodReady:
			kept := corev1.PodCondition{Type: c.Type, Status: c.Status}
			if c.Status != corev1.ConditionTrue {
				kept.LastTransitionTime = c.LastTransitionTime
			}
			st.Conditions = append(st.Conditions, kept)
		}
	}
	st.ContainerStatuses = resizeStatus(p.Status.ContainerStatuses)
	st.InitContainerStatuses = resizeStatus(p.Status.InitContainerStatuses)
	if r := p.Status.Resources; r != nil && p.Spec.Resources != nil {
		st.Resources, st.AllocatedResources = &corev1.ResourceRequirements{Requests: r.Requests}, p.Status.AllocatedResources
	}
	p.Status = st
}

func resizeStatus(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range in {
		kept := corev1.ContainerStatus{Name: s.Name}
		if s.Resources != nil {
			kept.AllocatedResources, kept.Resources = s.AllocatedResources, &corev1.ResourceRequirements{Requests: s.Resources.Requests}
		}
		if reason := cannotStart(&s); reason != "" {
			kept.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
		}
		if t := s.LastTerminationState.Terminated; t != nil && s.RestartCount > 0 {
			kept.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: t.FinishedAt}
		}
		if kept.RestartCount = s.RestartCount; s.Resources != nil || kept.State.Waiting != nil || kept.RestartCount > 0 {
			out = append(out, kept)
		}
	}
	return out
}

// stripDaemonSet keeps the limits of its template: they become requests (Admit).
func stripDaemonSet(d *appsv1.DaemonSet) {
	d.Annotations = only(d.Annotations, []string{appsv1.DeprecatedTemplateGeneration})
	d.Labels, d.Spec.Selector, d.Spec.Template.Annotations = nil, nil, nil
	s := &d.Spec.Template.Spec
	containers, inits := slices.Clone(s.Containers), slices.Clone(s.InitContainers)
	stripSpec(s)
	for i := range containers {
		s.Containers[i].Resources.Limits = containers[i].Resources.Limits
	}
	for i := range inits {
		s.InitContainers[i].Resources.Limits = inits[i].Resources.Limits
	}
	boundTemplate(d)
}

func stripLimitRange(l *corev1.LimitRange) {
	l.Labels, l.Annotations = nil, nil
	var kept []corev1.LimitRangeItem
	for _, item := range l.Spec.Limits {
		if item.Type == corev1.LimitTypeContainer {
			kept = append(kept, corev1.LimitRangeItem{Type: item.Type, DefaultRequest: item.DefaultRequest})
		}
	}
	l.Spec.Limits = kept
}

func stripSpec(s *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			c := list[i]
			list[i] = corev1.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules,
				Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}}
		}
	}
	// A Volume is 30 pointers wide: the kept ones move to a slice of their own size.
	s.Volumes = append([]corev1.Volume(nil), slices.DeleteFunc(s.Volumes, nodeIndependent)...)
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.Ephemeral != nil {
			v.Ephemeral = &corev1.EphemeralVolumeSource{} // its claim is found by name
		}
	}
	s.EphemeralContainers, s.SecurityContext, s.DNSConfig, s.HostAliases, s.ImagePullSecrets = nil, nil, nil, nil, nil
}

// nodeIndependent reports whether every node can provide a volume and no data is lost
// with the node. Every pod has such a volume: its token.
func nodeIndependent(v corev1.Volume) bool {
	s := &v.VolumeSource
	return s.ConfigMap != nil || s.Secret != nil || s.Projected != nil || s.DownwardAPI != nil || s.CSI != nil || s.NFS != nil || s.Image != nil
}
