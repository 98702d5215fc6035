package convert

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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
		if got := obj.Size(); got > 2<<10 {
			t.Errorf("of a %T %d bytes are kept", obj, got)
		}
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
