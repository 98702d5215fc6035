package convert

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// many are n values; 2,400 of them take 36 KB.
func many(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("value-%06d", i)
	}
	return out
}

func manyLabels(n int) map[string]string {
	out := map[string]string{corev1.LabelHostname: "h"}
	for _, v := range many(n) {
		out[v] = v
	}
	return out
}

func oneOf(n int) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: many(n)}}}
}

func amounts(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "example.com/x": resource.MustParse("1")}}
}

// TestTooLargePod: of a pod that is too large the requests and the priority are kept, and why.
func TestTooLargePod(t *testing.T) {
	always, priority := corev1.ContainerRestartPolicyAlways, int32(7)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Labels: manyLabels(2400)}, Spec: corev1.PodSpec{Priority: &priority,
		Containers:     []corev1.Container{{Resources: amounts("1")}, {Resources: amounts("2")}},
		InitContainers: []corev1.Container{{Resources: amounts("500m"), RestartPolicy: &always}}}}
	got := PodClass(p, nil)
	want := cluster.PodClass{Namespace: "n", Priority: 7, TooLarge: true, NotUnderstood: got.NotUnderstood, Requests: cluster.Resources{MilliCPU: 3500, Pods: 1}}
	if !reflect.DeepEqual(got, want) || len(got.NotUnderstood) != 1 || !strings.Contains(got.NotUnderstood[0], "at most 16 KiB") {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	p.Labels = manyLabels(400) // 12 KB
	if got := PodClass(p, nil); got.TooLarge || len(got.Labels) != 401 {
		t.Errorf("a pod within the bound: %v, %d labels", got.NotUnderstood, len(got.Labels))
	}
}

// TestStripBounds: what an informer keeps of each kind has a bound, whatever its author has written.
func TestStripBounds(t *testing.T) {
	const n = 20000
	noise := metav1.ObjectMeta{Name: "x", Namespace: "n", Labels: manyLabels(n), Annotations: manyLabels(n), Finalizers: many(n),
		OwnerReferences: []metav1.OwnerReference{{Name: strings.Join(many(n), "")}}}
	noise.Annotations[cluster.AnnotationDelay+"a"], noise.Annotations[AnnotationSelectedNode] = strings.Join(many(n), ""), strings.Join(many(n), "")
	for _, v := range many(n) {
		noise.Annotations[cluster.AnnotationDelay+v] = v
	}
	template := corev1.PodTemplateSpec{ObjectMeta: *noise.DeepCopy(), Spec: corev1.PodSpec{NodeSelector: manyLabels(n), Containers: []corev1.Container{{Args: many(n)}}}}
	for _, obj := range []interface {
		runtime.Object
		Size() int
	}{
		&corev1.Node{ObjectMeta: *noise.DeepCopy()},
		hostileNode(n),
		hostileDrivers(n),
		&corev1.Namespace{ObjectMeta: *noise.DeepCopy()},
		&corev1.PersistentVolumeClaim{ObjectMeta: *noise.DeepCopy(), Spec: corev1.PersistentVolumeClaimSpec{Selector: oneOf(n)}},
		&corev1.PersistentVolume{ObjectMeta: *noise.DeepCopy()},
		&appsv1.DaemonSet{ObjectMeta: *noise.DeepCopy(), Spec: appsv1.DaemonSetSpec{Selector: oneOf(n), Template: template}},
		&appsv1.ReplicaSet{ObjectMeta: *noise.DeepCopy(), Spec: appsv1.ReplicaSetSpec{Selector: oneOf(n), Template: template}},
		&policyv1.PodDisruptionBudget{ObjectMeta: *noise.DeepCopy(), Spec: policyv1.PodDisruptionBudgetSpec{Selector: oneOf(n)}},
	} {
		if _, err := Strip(obj); err != nil {
			t.Fatal(err)
		}
		most := 2 << 10
		switch obj.(type) {
		case *corev1.Node:
			most += 4 * maxNodeList // taints, addresses, resources, managed fields
		case *storagev1.CSINode:
			most += maxNodeList
		}
		if got := obj.Size(); got > most {
			t.Errorf("of a %T %d bytes are kept", obj, got)
		}
	}
}

// hostileNode has n of everything that a kubelet writes.
func hostileNode(n int) *corev1.Node {
	long := strings.Repeat("x", n)
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.NodeSpec{ProviderID: long},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{}, NodeInfo: corev1.NodeSystemInfo{MachineID: long, SystemUUID: long, BootID: long}}}
	for i, v := range many(n) {
		out.Spec.Taints = append(out.Spec.Taints, corev1.Taint{Key: v, Effect: corev1.TaintEffectNoSchedule})
		out.Status.Addresses = append(out.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.%d.%d", i>>8, i&255)})
		out.Status.Capacity[corev1.ResourceName("example.com/"+v)] = resource.MustParse("1")
		out.ManagedFields = append(out.ManagedFields, metav1.ManagedFieldsEntry{Manager: v, FieldsV1: ownsTaints})
	}
	out.Status.Allocatable = out.Status.Capacity
	return out
}

func hostileDrivers(n int) *storagev1.CSINode {
	out := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	for _, v := range many(n) {
		out.Spec.Drivers = append(out.Spec.Drivers, storagev1.CSINodeDriver{Name: v, NodeID: v, TopologyKeys: []string{v}})
	}
	return out
}

// TestLongNode: of lists that are too long the agent's own taints, the first addresses and the resources of every machine
// are kept; a Node within the bounds is kept whole.
func TestLongNode(t *testing.T) {
	n := hostileNode(2000)
	n.Status.Capacity["cpu"], n.Status.Capacity["pods"] = resource.MustParse("4"), resource.MustParse("110")
	for _, key := range []string{cluster.TaintToBeDeleted, corev1.TaintNodeUnreachable} {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	if _, err := Strip(n); err != nil {
		t.Fatal(err)
	}
	got := Node(n)
	if len(got.Taints) < 100 || len(got.Taints) > 300 || got.Taints[0].Key != cluster.TaintToBeDeleted || got.Taints[1].Key != corev1.TaintNodeUnreachable {
		t.Errorf("%d taints, %v", len(got.Taints), got.Taints)
	}
	if len(got.Addresses) < 50 || got.Addresses[0] != "10.0.0.0" {
		t.Errorf("%d addresses, %v", len(got.Addresses), got.Addresses)
	}
	if got.Capacity.MilliCPU != 4000 || got.Capacity.Pods != 110 || len(got.Capacity.Extended) != 0 {
		t.Errorf("capacity %+v", got.Capacity)
	}
	small := hostileNode(60)
	want := small.DeepCopy()
	if _, err := Strip(small); err != nil || !reflect.DeepEqual(Node(small), Node(want)) || len(small.ManagedFields) != 60 {
		t.Errorf("a Node within the bounds became %+v, %v", small, err)
	}
}

// TestTooLargeTemplate: what a DaemonSet that is too large takes of a machine is not known, and is said.
func TestTooLargeTemplate(t *testing.T) {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d"}, Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: manyLabels(2400)}}},
		Status: appsv1.DaemonSetStatus{Conditions: []appsv1.DaemonSetCondition{{Type: "Other", Message: strings.Repeat("x", 1<<20)}}}}
	if _, err := Strip(d); err != nil {
		t.Fatal(err)
	}
	c, completed := DaemonSetClass(d, Admission{}, nil)
	if !c.TooLarge || completed != "" || len(c.Labels) > 0 || len(d.Status.Conditions) != 1 {
		t.Errorf("%+v, %q, %+v", c, completed, d.Status)
	}
}

// TestTooLargeSelectors: a budget that is not read protects its whole namespace, and a claim that is
// not read takes no volume.
func TestTooLargeSelectors(t *testing.T) {
	b := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: oneOf(2400)}}
	c := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{Selector: oneOf(2400)}}
	for _, o := range []any{b, c} {
		if _, err := Strip(o); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err != nil || !s.Matches(labels.Set{"app": "other"}) {
		t.Errorf("the budget selects %v, %v", s, err)
	}
	if s, err := metav1.LabelSelectorAsSelector(c.Spec.Selector); err == nil {
		t.Errorf("the claim's selector is %v, want an invalid one", s)
	}
	small := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: oneOf(3)}}
	if _, err := Strip(small); err != nil || !reflect.DeepEqual(small.Spec.Selector, oneOf(3)) {
		t.Errorf("a small selector became %v, %v", small.Spec.Selector, err)
	}
}
