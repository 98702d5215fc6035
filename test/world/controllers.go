package world

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
)

// controllers are the ones beside ReplicaSets: of Deployments, DaemonSets, StatefulSets and Jobs. They make the pods that are wanted
// and report them; they refuse updates in steps, volumes that are not there yet, and retries.
func (m *models) controllers() {
	m.claims()
	m.quotas()
	m.deployments()
	m.daemonSets()
	w, of := m.world, m.owned()
	for _, s := range apiserver.List[*appsv1.StatefulSet](w.API, "apps/statefulsets", "") {
		pods := of[string(s.UID)]
		for i := range int(*s.Spec.Replicas) {
			name := fmt.Sprint(s.Name, "-", i)
			at := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Name == name })
			if at < 0 {
				m.pod(s, "StatefulSet", "apps/v1", &s.Spec.Template, func(p *corev1.Pod) {
					p.Name, p.GenerateName = name, ""
					m.claimsOf(s, p)
				})
			}
			if (at < 0 || !isReady(pods[at])) && s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
				break
			}
		}
		next := s.DeepCopy()
		next.Status.ObservedGeneration, next.Status.Replicas = s.Generation, int32(len(pods))
		_ = w.API.Update("apps/statefulsets", next, "status")
	}
	for _, j := range apiserver.List[*batchv1.Job](w.API, "batch/jobs", "") {
		pods, want := of[string(j.UID)], int32(1)
		if j.Spec.Parallelism != nil {
			want = *j.Spec.Parallelism
		}
		if j.Spec.Completions != nil {
			want = min(want, *j.Spec.Completions)
		}
		for range int(want) - len(pods) {
			m.pod(j, "Job", "batch/v1", &j.Spec.Template, func(p *corev1.Pod) { p.Labels["job-name"] = j.Name })
		}
		next := j.DeepCopy()
		next.Status.Active = int32(len(pods))
		_ = w.API.Update("batch/jobs", next, "status")
	}
}

// claimsOf gives a pod of a StatefulSet its claims.
func (m *models) claimsOf(s *appsv1.StatefulSet, p *corev1.Pod) {
	for _, t := range s.Spec.VolumeClaimTemplates {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: t.Name + "-" + p.Name, Namespace: p.Namespace, Labels: t.Labels}, Spec: *t.Spec.DeepCopy()}
		_ = m.world.API.Create("/persistentvolumeclaims", c) // the one that is there is its own
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}})
	}
}

// claims binds the claims and volumes that name each other; it provisions none.
func (m *models) claims() {
	w := m.world
	for _, c := range apiserver.List[*corev1.PersistentVolumeClaim](w.API, "/persistentvolumeclaims", "") {
		v := apiserver.Get[*corev1.PersistentVolume](w.API, "/persistentvolumes", "", c.Spec.VolumeName)
		if v == nil || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.Namespace != c.Namespace || v.Spec.ClaimRef.Name != c.Name || c.Status.Phase == corev1.ClaimBound {
			continue
		}
		volume, claim := v.DeepCopy(), c.DeepCopy()
		volume.Spec.ClaimRef.UID = c.UID
		_ = w.API.Update("/persistentvolumes", volume, "")
		volume = apiserver.Get[*corev1.PersistentVolume](w.API, "/persistentvolumes", "", v.Name).DeepCopy()
		volume.Status.Phase = corev1.VolumeBound
		_ = w.API.Update("/persistentvolumes", volume, "status")
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
		_ = w.API.Update("/persistentvolumeclaims", claim, "")
		claim = apiserver.Get[*corev1.PersistentVolumeClaim](w.API, "/persistentvolumeclaims", c.Namespace, c.Name).DeepCopy()
		claim.Status.Phase, claim.Status.AccessModes, claim.Status.Capacity = corev1.ClaimBound, v.Spec.AccessModes, v.Spec.Capacity
		_ = w.API.Update("/persistentvolumeclaims", claim, "status")
	}
}

// quotas tells what is used of each quota.
func (m *models) quotas() {
	w := m.world
	for _, q := range apiserver.List[*corev1.ResourceQuota](w.API, "/resourcequotas", "") {
		next := q.DeepCopy()
		next.Status.Hard, next.Status.Used = q.Spec.Hard, apiserver.Used(q, apiserver.List[*corev1.Pod](w.API, "/pods", q.Namespace))
		_ = w.API.Update("/resourcequotas", next, "status")
	}
}

// owned are the pods that are not going, by the UID of their controller.
func (m *models) owned() map[string][]*corev1.Pod {
	of := map[string][]*corev1.Pod{}
	for _, p := range apiserver.List[*corev1.Pod](m.world.API, "/pods", "") {
		if owner := metav1.GetControllerOf(p); owner != nil && p.DeletionTimestamp == nil {
			of[string(owner.UID)] = append(of[string(owner.UID)], p)
		}
	}
	return of
}

// pod makes a pod of a controller.
func (m *models) pod(owner apiserver.Object, kind, version string, t *corev1.PodTemplateSpec, change func(*corev1.Pod)) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: owner.GetName() + "-", Namespace: owner.GetNamespace(), Labels: maps.Clone(t.Labels), Annotations: maps.Clone(t.Annotations),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true)}}},
		Spec: *t.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable}}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	if change != nil {
		change(p)
	}
	if err := m.world.API.Create("/pods", p); err != nil {
		m.world.Tell("a pod of %s: %v", owner.GetName(), err)
	}
}

// deployments keep one ReplicaSet for their template; the pods of others go at once.
func (m *models) deployments() {
	w := m.world
	known := map[string]bool{}
	sets := apiserver.List[*appsv1.ReplicaSet](w.API, "apps/replicasets", "")
	for _, d := range apiserver.List[*appsv1.Deployment](w.API, "apps/deployments", "") {
		known[string(d.UID)] = true
		hash := fnv.New32a()
		fmt.Fprint(hash, d.Spec.Template.String())
		name, made := fmt.Sprintf("%s-%x", d.Name, hash.Sum32()), int32(0)
		want := map[string]int32{name: *d.Spec.Replicas}
		found := false
		for _, rs := range sets {
			if owner := metav1.GetControllerOf(rs); owner == nil || owner.UID != d.UID {
				continue
			}
			found = found || rs.Name == name
			made += rs.Status.Replicas
			if *rs.Spec.Replicas != want[rs.Name] {
				next := rs.DeepCopy()
				next.Spec.Replicas = new(want[rs.Name])
				_ = w.API.Update("apps/replicasets", next, "")
			}
		}
		if !found {
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: d.Namespace,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID, Controller: new(true)}}},
				Spec: appsv1.ReplicaSetSpec{Replicas: new(*d.Spec.Replicas), Selector: d.Spec.Selector.DeepCopy(), Template: *d.Spec.Template.DeepCopy()}}
			rs.Spec.Template.Labels = maps.Clone(rs.Spec.Template.Labels)
			rs.Spec.Template.Labels["pod-template-hash"] = fmt.Sprintf("%x", hash.Sum32())
			_ = w.API.Create("apps/replicasets", rs)
		}
		next := d.DeepCopy()
		next.Status.ObservedGeneration, next.Status.Replicas = d.Generation, made
		_ = w.API.Update("apps/deployments", next, "status")
	}
	for _, rs := range sets {
		if owner := metav1.GetControllerOf(rs); owner != nil && !known[string(owner.UID)] {
			_ = w.API.Delete("apps/replicasets", rs.Namespace, rs.Name, new(int64(0)))
		}
	}
}

// daemonTolerations are those of every pod of a DaemonSet.
var daemonTolerations = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable}

func (m *models) daemonSets() {
	w := m.world
	sets := apiserver.List[*appsv1.DaemonSet](w.API, "apps/daemonsets", "")
	if len(sets) == 0 {
		return
	}
	seen := store.FromObjects(store.Objects{Nodes: apiserver.List[*corev1.Node](w.API, "/nodes", ""), DaemonSets: sets, LimitRanges: apiserver.List[*corev1.LimitRange](w.API, "/limitranges", "")})
	classes := map[string]*cluster.PodClass{}
	for _, d := range seen.DaemonSets {
		classes[string(d.UID)] = &seen.Classes[d.Class]
	}
	of := m.owned()
	for _, d := range sets {
		on, want := map[string]bool{}, int32(0)
		for _, p := range of[string(d.UID)] {
			on[daemonOn(p)] = true
		}
		for _, n := range seen.Nodes {
			if c := classes[string(d.UID)]; c == nil || !fit.DaemonRunsOn(c, &fit.NodeInfo{Name: n.Name, Labels: n.Labels, Taints: n.Taints}) {
				continue
			}
			if want++; on[string(n.Name)] {
				continue
			}
			m.pod(d, "DaemonSet", "apps/v1", &d.Spec.Template, func(p *corev1.Pod) {
				bindDaemon(p, string(n.Name))
			})
		}
		next := d.DeepCopy()
		next.Status.ObservedGeneration, next.Status.DesiredNumberScheduled, next.Status.CurrentNumberScheduled = d.Generation, want, int32(len(on))
		_ = w.API.Update("apps/daemonsets", next, "status")
	}
}

// bindDaemon gives a pod the affinity to one node and the tolerations that the DaemonSet controller gives it.
func bindDaemon(p *corev1.Pod, node string) {
	here := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{here}}}}
	for _, key := range daemonTolerations {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

// daemonOn is the node that a DaemonSet's pod is for.
func daemonOn(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}
