package convert

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/resourcelist"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func container(name string, requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests}}
}

func sidecar(name string, requests corev1.ResourceList) corev1.Container {
	c := container(name, requests)
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func TestRequestsAsTheSchedulerCounts(t *testing.T) {
	type r = cluster.Resources
	for name, c := range map[string]struct {
		pod  corev1.Pod
		want r
	}{
		"sum": {corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
			container("a", list("cpu", "100m", "memory", "64Mi")), container("b", list("cpu", "1", "ephemeral-storage", "1Gi"))}}},
			r{MilliCPU: 1100, Memory: 64 << 20, EphemeralStorage: 1 << 30}},
		"init is a floor": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container("i", list("cpu", "2")), container("j", list("memory", "1Gi"))},
			Containers:     []corev1.Container{container("a", list("cpu", "500m", "memory", "64Mi"))}}},
			r{MilliCPU: 2000, Memory: 1 << 30}},
		"sidecars count for all after them": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container("i", list("cpu", "2")), sidecar("s", list("cpu", "100m")), container("j", list("cpu", "3"))},
			Containers:     []corev1.Container{container("a", list("cpu", "500m"))}}},
			r{MilliCPU: 3100}},
		"sidecar and container": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar("s", list("cpu", "100m"))}, Containers: []corev1.Container{container("a", list("cpu", "500m"))}}},
			r{MilliCPU: 600}},
		"overhead": {corev1.Pod{Spec: corev1.PodSpec{Overhead: list("cpu", "250m", "memory", "120Mi"), Containers: []corev1.Container{container("a", list("cpu", "500m"))}}},
			r{MilliCPU: 750, Memory: 120 << 20}},
		"pod level wins for what it names": {corev1.Pod{Spec: corev1.PodSpec{
			Resources:  &corev1.ResourceRequirements{Requests: list("cpu", "4")},
			Containers: []corev1.Container{container("a", list("cpu", "500m", "memory", "64Mi"))}}},
			r{MilliCPU: 4000, Memory: 64 << 20}},
		"extended": {corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("a", list("nvidia.com/gpu", "2", "hugepages-2Mi", "4Mi"))}}},
			r{Extended: map[string]int64{"nvidia.com/gpu": 2, "hugepages-2Mi": 4 << 20}}},
		"fractions round up": {corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("a", list("cpu", "0.0001", "memory", "0.5"))}}},
			r{MilliCPU: 1, Memory: 1}},
		"resize in progress takes the larger": {corev1.Pod{
			Spec: corev1.PodSpec{Containers: []corev1.Container{container("a", list("cpu", "500m"))}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "a", AllocatedResources: list("cpu", "1"),
				Resources: &corev1.ResourceRequirements{Requests: list("cpu", "2")}}}}},
			r{MilliCPU: 2000}},
		"infeasible resize does not count": {corev1.Pod{
			Spec: corev1.PodSpec{Containers: []corev1.Container{container("a", list("cpu", "64"))}},
			Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "a", AllocatedResources: list("cpu", "1"),
					Resources: &corev1.ResourceRequirements{Requests: list("cpu", "1")}}}}},
			r{MilliCPU: 1000}},
	} {
		if got := resourcelist.Resources(podRequests(&c.pod)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		stripped := c.pod.DeepCopy()
		if _, err := Strip(stripped); err != nil {
			t.Fatal(err)
		}
		if got := resourcelist.Resources(podRequests(stripped)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, stripped: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestNotUnderstood(t *testing.T) {
	volume := func(s corev1.VolumeSource) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: s}}}
	}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want []string
	}{
		"plain":           {corev1.PodSpec{SchedulerName: "default-scheduler"}, nil},
		"claim":           {volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), nil},
		"ebs":             {volume(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}), []string{"awsElasticBlockStore volume"}},
		"gce":             {volume(corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}}), []string{"gcePersistentDisk volume"}},
		"iscsi":           {volume(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}), []string{"iscsi volume"}},
		"rbd":             {volume(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{}}), []string{"rbd volume"}},
		"fibre channel":   {volume(corev1.VolumeSource{FC: &corev1.FCVolumeSource{}}), nil},
		"config map":      {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), nil},
		"projected":       {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}), nil},
		"empty dir":       {volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), nil},
		"resource claims": {corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{}}}, []string{"resourceClaims"}},
		"scheduler":       {corev1.PodSpec{SchedulerName: "volcano"}, []string{"schedulerName volcano"}},
	} {
		if got := notUnderstood(&c.spec, []string{"default-scheduler"}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestConvertPod(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	yes, grace := true, int64(30)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", CreationTimestamp: since,
			Annotations:     map[string]string{cluster.AnnotationSafeToEvict: "false", cluster.AnnotationDoNotDisrupt: "true", cluster.AnnotationSafeVolumes: "scratch"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", UID: "r", Controller: &yes}}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Volumes: []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "ram", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: since, Message: "0/3 nodes"}}},
	}
	if _, err := Strip(p); err != nil {
		t.Fatal(err)
	}
	want := cluster.Pod{Key: "ns/p", UID: "u", Created: cluster.At(since.Time), Unschedulable: cluster.At(since.Time), SafeToEvict: "false", DoNotDisrupt: true,
		LocalStorage: "data", GracePeriod: 30, Owner: &cluster.Owner{Kind: "ReplicaSet", Name: "rs", UID: "r"}}
	if got := Pod(p); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	p.Spec.NodeName = "n" // once bound, an old condition means nothing
	if got := Pod(p); !got.Unschedulable.IsZero() || got.Node != "n" {
		t.Errorf("a bound pod is %+v", got)
	}
}
