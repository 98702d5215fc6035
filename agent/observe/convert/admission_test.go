package convert

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func limited(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

// TestDaemonSetIsCompleted: test/suite/requests compares drawn ones with a real API server.
func TestDaemonSetIsCompleted(t *testing.T) {
	type r = cluster.Resources
	always, kata := corev1.ContainerRestartPolicyAlways, "kata"
	rangeOf := func(name string, defaults corev1.ResourceList) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypePod, DefaultRequest: list("cpu", "64")}, {Type: corev1.LimitTypeContainer, DefaultRequest: defaults}}}}
	}
	sidecar := limited("s", nil, list("cpu", "300m"))
	sidecar.RestartPolicy = &always
	one := func(c corev1.Container) corev1.PodSpec { return corev1.PodSpec{Containers: []corev1.Container{c}} }
	podLevel := func(c corev1.Container, requests, limits corev1.ResourceList) corev1.PodSpec {
		s := one(c)
		s.Resources = &corev1.ResourceRequirements{Requests: requests, Limits: limits}
		return s
	}
	overhead := one(limited("a", list("cpu", "100m"), nil))
	overhead.RuntimeClassName = &kata
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: kata}, Overhead: &nodev1.Overhead{PodFixed: list("cpu", "250m", "memory", "160Mi")}}
	for name, c := range map[string]struct {
		spec  corev1.PodSpec
		with  Admission
		want  r
		added string
	}{
		"requests alone":       {one(limited("a", list("cpu", "1"), nil)), Admission{}, r{MilliCPU: 1000}, ""},
		"limits alone":         {one(limited("a", nil, list("cpu", "1", "memory", "1Gi"))), Admission{}, r{MilliCPU: 1000, Memory: 1 << 30}, "limits"},
		"each resource alone":  {one(limited("a", list("cpu", "50m"), list("cpu", "1", "memory", "2Gi"))), Admission{}, r{MilliCPU: 50, Memory: 2 << 30}, "limits"},
		"an extended resource": {one(limited("a", nil, list("nvidia.com/gpu", "2"))), Admission{}, r{Extended: map[string]int64{"nvidia.com/gpu": 2}}, "limits"},
		"an init container": {corev1.PodSpec{Containers: []corev1.Container{limited("a", list("cpu", "50m"), nil)}, InitContainers: []corev1.Container{limited("i", nil, list("cpu", "1"))}},
			Admission{}, r{MilliCPU: 1000}, "limits"},
		"a sidecar":                             {corev1.PodSpec{Containers: []corev1.Container{limited("a", nil, list("cpu", "1"))}, InitContainers: []corev1.Container{sidecar}}, Admission{}, r{MilliCPU: 1300}, "limits"},
		"a pod's limits, no request":            {podLevel(limited("a", nil, nil), nil, list("cpu", "1")), Admission{}, r{MilliCPU: 1000}, "pod-level limits"},
		"a pod's limits, a container's request": {podLevel(limited("a", list("cpu", "200m"), nil), nil, list("cpu", "1")), Admission{}, r{MilliCPU: 200}, ""},
		"a pod's request":                       {podLevel(limited("a", list("cpu", "200m"), nil), list("cpu", "700m"), list("cpu", "1")), Admission{}, r{MilliCPU: 700}, ""},
		"a pod's limit before a LimitRange":     {podLevel(limited("a", nil, nil), nil, list("cpu", "1")), Admission{LimitRanges: []*corev1.LimitRange{rangeOf("l", list("cpu", "100m"))}}, r{MilliCPU: 1000}, "pod-level limits, LimitRange l"},
		"a LimitRange":                          {one(limited("a", nil, nil)), Admission{LimitRanges: []*corev1.LimitRange{rangeOf("l", list("cpu", "1"))}}, r{MilliCPU: 1000}, "LimitRange l"},
		"limits before a LimitRange":            {one(limited("a", nil, list("cpu", "2"))), Admission{LimitRanges: []*corev1.LimitRange{rangeOf("l", list("cpu", "1"))}}, r{MilliCPU: 2000}, "limits"},
		"two LimitRanges, the larger": {one(limited("a", nil, nil)), Admission{LimitRanges: []*corev1.LimitRange{rangeOf("l", list("cpu", "1", "memory", "1Gi")), rangeOf("m", list("cpu", "2"))}},
			r{MilliCPU: 2000, Memory: 1 << 30}, "LimitRange l, LimitRange m"},
		"overhead":                  {overhead, Admission{RuntimeClass: class}, r{MilliCPU: 350, Memory: 160 << 20}, "overhead of RuntimeClass kata"},
		"a RuntimeClass not known":  {overhead, Admission{}, r{MilliCPU: 100}, ""},
		"a LimitRange adds nothing": {one(limited("a", list("cpu", "3"), nil)), Admission{LimitRanges: []*corev1.LimitRange{rangeOf("l", list("cpu", "1"))}}, r{MilliCPU: 3000}, ""},
	} {
		for _, l := range c.with.LimitRanges {
			if _, err := Strip(l); err != nil {
				t.Fatal(err)
			}
		}
		d := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: c.spec}}}
		if _, err := Strip(d); err != nil {
			t.Fatal(err)
		}
		got, added := DaemonSetClass(d, c.with, nil)
		if c.want.Pods = 1; !got.Requests.Equal(c.want) || added != c.added {
			t.Errorf("%s: %+v by %q, want %+v by %q", name, got.Requests, added, c.want, c.added)
		}
		if again, _ := DaemonSetClass(d, c.with, nil); !reflect.DeepEqual(again, got) {
			t.Errorf("%s: a second look says %+v", name, again.Requests)
		}
	}
}

// A pod in the host network claims its ports of the host. The nodes of a DaemonSet are chosen
// without its RuntimeClass's tolerations; its pods keep to the class's node selector.
func TestDaemonSetInTheHostNetwork(t *testing.T) {
	kata := "kata"
	spec := corev1.PodSpec{HostNetwork: true, RuntimeClassName: &kata, NodeSelector: map[string]string{"own": "yes"}, Containers: []corev1.Container{{Name: "a", Ports: []corev1.ContainerPort{{ContainerPort: 9100}}}}}
	d := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	class := &nodev1.RuntimeClass{Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kata": "yes"}, Tolerations: []corev1.Toleration{{Key: "kata", Operator: corev1.TolerationOpExists}}}}
	c, _ := DaemonSetClass(d, Admission{RuntimeClass: class}, nil)
	if want := []cluster.HostPort{{IP: "0.0.0.0", Protocol: "TCP", Port: 9100}}; !reflect.DeepEqual(c.HostPorts, want) {
		t.Errorf("host ports %v, want %v", c.HostPorts, want)
	}
	if want := map[string]string{"own": "yes", "kata": "yes"}; !reflect.DeepEqual(c.NodeSelector, want) {
		t.Errorf("node selector %v, want %v", c.NodeSelector, want)
	}
	for _, tol := range c.Tolerations {
		if tol.Key == "kata" {
			t.Error("the DaemonSet controller does not know a RuntimeClass's toleration")
		}
	}
	if d.Spec.Template.Spec.Containers[0].Ports[0].HostPort != 0 || len(d.Spec.Template.Spec.NodeSelector) != 1 {
		t.Error("the template was changed")
	}
}

// A pod that is resized as a whole takes the larger side, as kube-scheduler 1.36 counts it.
func TestPodLevelResize(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: list("cpu", "1")}, Containers: []corev1.Container{limited("a", list("cpu", "100m"), nil)}},
		Status: corev1.PodStatus{AllocatedResources: list("cpu", "2"), Resources: &corev1.ResourceRequirements{Requests: list("cpu", "3")}}}
	if _, err := Strip(p); err != nil {
		t.Fatal(err)
	}
	if got := podRequests(p)[corev1.ResourceCPU]; got.String() != "3" {
		t.Errorf("cpu %s, want 3", got.String())
	}
	p.Status.Resources = nil
	if got := podRequests(p)[corev1.ResourceCPU]; got.String() != "1" {
		t.Errorf("cpu %s without a resize, want 1", got.String())
	}
}
