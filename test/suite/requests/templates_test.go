package requests

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

var (
	seed  = flag.Uint64("seed", 1, "seed of the drawn DaemonSets; 0: of the clock")
	count = flag.Int("daemonsets", 80, "how many are drawn")
)

// The namespaces differ in their LimitRanges. In "rivals" two of them default one resource: the
// API server takes either, so no less than either may be expected.
const (
	plain  = "plain"
	one    = "one"
	parts  = "parts"
	rivals = "rivals"
)

// TestTemplates draws DaemonSets, lets the real controller manager make their pods and the
// real API server complete them, and compares their requests, ports, selectors and tolerations
// with what the agent works out from the template.
func TestTemplates(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 39))
	cp := controlplane.ForTest(t, controlplane.Options{Fast: true, NodeMonitorGrace: time.Hour})
	c := cp.Client()
	furnish(t, c)
	drawn := map[string]*appsv1.DaemonSet{}
	for i := range *count {
		d := draw(r, i)
		made, err := c.AppsV1().DaemonSets(d.Namespace).Create(t.Context(), d, metav1.CreateOptions{})
		if apierrors.IsInvalid(err) {
			t.Logf("%s is no valid DaemonSet: %v", d.Name, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		drawn[made.Name] = made
	}
	pods := await(t, c, drawn)
	objects := read(t, c)
	compared := map[string]int{}
	for _, d := range objects.DaemonSets {
		if p := pods[d.Name]; p != nil {
			compare(t, objects, d, p)
			compared[d.Namespace]++
		}
	}
	t.Logf("compared, by namespace: %v", compared)
	if total := compared[plain] + compared[one] + compared[parts] + compared[rivals]; total < *count/2 || len(compared) < 4 {
		t.Errorf("%d pods of %d DaemonSets were made: that shows too little", total, *count)
	}
}

func furnish(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	container := func(name, namespace string, items ...corev1.LimitRangeItem) {
		t.Helper()
		for i := range items {
			if items[i].Type == "" {
				items[i].Type = corev1.LimitTypeContainer
			}
		}
		_, err := c.CoreV1().LimitRanges(namespace).Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.LimitRangeSpec{Limits: items}}, metav1.CreateOptions{})
		must(err)
	}
	for _, name := range []string{plain, one, parts, rivals} {
		_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(err)
	}
	container("items", one, corev1.LimitRangeItem{Default: list("cpu", "2"), DefaultRequest: list("memory", "70Mi")},
		corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "64")})
	container("cpu", parts, corev1.LimitRangeItem{Min: list("cpu", "5m")})
	container("memory", parts, corev1.LimitRangeItem{Max: list("memory", "16Gi"), Default: list("memory", "300Mi")})
	container("storage", parts, corev1.LimitRangeItem{DefaultRequest: list("ephemeral-storage", "1Gi")})
	container("more", rivals, corev1.LimitRangeItem{DefaultRequest: list("cpu", "700m", "memory", "10Mi")})
	container("less", rivals, corev1.LimitRangeItem{DefaultRequest: list("cpu", "300m", "memory", "20Mi")})
	for _, class := range []*nodev1.RuntimeClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Handler: "h", Overhead: &nodev1.Overhead{PodFixed: list("cpu", "250m", "memory", "160Mi")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "picky"}, Handler: "p", Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kata": "yes"}, Tolerations: []corev1.Toleration{
			{Key: "kata", Operator: corev1.TolerationOpExists}, {Key: "own", Operator: corev1.TolerationOpEqual, Value: "x", Effect: corev1.TaintEffectNoSchedule}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Handler: "b"},
	} {
		_, err := c.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{})
		must(err)
	}
	_, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"kubernetes.io/os": "linux"}}}, metav1.CreateOptions{})
	must(err)
	must(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller manager writes too
		n, err := c.CoreV1().Nodes().Get(t.Context(), "worker", metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Status.Capacity = list("cpu", "1000", "memory", "4Ti", "pods", "1000", "ephemeral-storage", "4Ti", "example.com/gpu", "1000", "hugepages-2Mi", "64Gi")
		n.Status.Allocatable = n.Status.Capacity
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
		_, err = c.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		return err
	}))
}

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// draw draws a DaemonSet. What API validation refuses is drawn too, and left out later.
func draw(r *rand.Rand, i int) *appsv1.DaemonSet {
	labels := map[string]string{"app": fmt.Sprintf("ds-%d", i)}
	spec := corev1.PodSpec{}
	for k := range 1 + r.IntN(3) {
		spec.Containers = append(spec.Containers, drawContainer(r, fmt.Sprintf("c%d", k)))
	}
	for k := range r.IntN(4) {
		c := drawContainer(r, fmt.Sprintf("i%d", k))
		if r.IntN(2) == 0 {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		spec.InitContainers = append(spec.InitContainers, c)
	}
	if r.IntN(3) == 0 {
		spec.Resources = &corev1.ResourceRequirements{}
		if r.IntN(3) > 0 {
			spec.Resources.Limits = list([][]string{{"cpu", "9"}, {"memory", "9Gi"}, {"cpu", "9", "memory", "9Gi"}, {"cpu", "9", "hugepages-2Mi", "64Mi"}}[r.IntN(4)]...)
		}
		if r.IntN(3) == 0 {
			spec.Resources.Requests = list([][]string{{"cpu", "8"}, {"memory", "8Gi"}}[r.IntN(2)]...)
		}
	}
	if name := []string{"", "", "heavy", "picky", "bare"}[r.IntN(5)]; name != "" {
		spec.RuntimeClassName = &name
	}
	spec.HostNetwork = r.IntN(4) == 0
	if r.IntN(3) == 0 {
		spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	}
	spec.Tolerations = [][]corev1.Toleration{nil, {{Operator: corev1.TolerationOpExists}}, {{Key: "own", Operator: corev1.TolerationOpExists}}, {{Key: "kata", Operator: corev1.TolerationOpEqual, Value: "1"}}}[r.IntN(4)]
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: labels["app"], Namespace: []string{plain, one, parts, rivals}[r.IntN(4)]}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}
}

// drawContainer requests some resources, limits others, and both of some.
func drawContainer(r *rand.Rand, name string) corev1.Container {
	c := corev1.Container{Name: name, Image: "x"}
	amount := func(low int64) *resource.Quantity {
		return resource.NewQuantity(low+r.Int64N(2)*low, resource.BinarySI)
	}
	set := func(name corev1.ResourceName, request, limit *resource.Quantity) {
		how := r.IntN(5)
		if how == 1 || how == 3 {
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			c.Resources.Requests[name] = *request
		}
		if how == 2 || how == 3 {
			if c.Resources.Limits == nil {
				c.Resources.Limits = corev1.ResourceList{}
			}
			c.Resources.Limits[name] = *limit
		}
	}
	set(corev1.ResourceCPU, resource.NewMilliQuantity(50+r.Int64N(400), resource.DecimalSI), resource.NewMilliQuantity(500+r.Int64N(900), resource.DecimalSI))
	set(corev1.ResourceMemory, amount(20<<20), amount(128<<20))
	set(corev1.ResourceEphemeralStorage, amount(1<<20), amount(8<<20))
	if r.IntN(5) == 0 { // an extended resource is limited; the request is the same or missing
		c.Resources.Limits = merged(c.Resources.Limits, list("example.com/gpu", "2"))
	}
	if r.IntN(6) == 0 {
		c.Resources.Limits = merged(c.Resources.Limits, list("hugepages-2Mi", "4Mi", "cpu", "3"))
	}
	if r.IntN(3) == 0 {
		c.Ports = []corev1.ContainerPort{{ContainerPort: 9000 + r.Int32N(900)}}
	}
	return c
}

func merged(a, b corev1.ResourceList) corev1.ResourceList {
	if a == nil {
		a = corev1.ResourceList{}
	}
	for name, q := range b {
		a[name] = q
	}
	return a
}

// await waits for a pod of each DaemonSet; the API server may refuse one for good, of which the
// controller manager makes an Event.
func await(t *testing.T, c kubernetes.Interface, drawn map[string]*appsv1.DaemonSet) map[string]*corev1.Pod {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		pods := map[string]*corev1.Pod{}
		all, err := c.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range all.Items {
			pods[all.Items[i].Labels["app"]] = &all.Items[i]
		}
		refused := map[string]string{}
		events, err := c.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Reason == "FailedCreate" {
				refused[e.InvolvedObject.Name] = e.Message
			}
		}
		var open []string
		for name := range drawn {
			if pods[name] == nil && refused[name] == "" {
				open = append(open, name)
			}
		}
		if len(open) == 0 {
			for name, why := range refused {
				t.Logf("%s is refused: %.200s", name, why)
			}
			return pods
		}
		if time.Now().After(deadline) {
			slices.Sort(open)
			t.Fatalf("no pods of %v", open)
		}
	}
}

// read reads what the agent watches.
func read(t *testing.T, c kubernetes.Interface) (o store.Objects) {
	t.Helper()
	sets, err1 := c.AppsV1().DaemonSets(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	ranges, err2 := c.CoreV1().LimitRanges(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	classes, err3 := c.NodeV1().RuntimeClasses().List(t.Context(), metav1.ListOptions{})
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range sets.Items {
		o.DaemonSets = append(o.DaemonSets, &sets.Items[i])
	}
	for i := range ranges.Items {
		o.LimitRanges = append(o.LimitRanges, &ranges.Items[i])
	}
	for i := range classes.Items {
		o.RuntimeClasses = append(o.RuntimeClasses, &classes.Items[i])
	}
	return o
}

// compare compares the class of a DaemonSet with the class of its pod.
func compare(t *testing.T, o store.Objects, d *appsv1.DaemonSet, p *corev1.Pod) {
	t.Helper()
	o.DaemonSets, o.Pods = []*appsv1.DaemonSet{d}, []*corev1.Pod{p}
	s := store.FromObjects(o)
	want, real := s.Classes[s.DaemonSets[0].Class], s.Classes[s.Pods[0].Class]
	same := func(what string, a, b any) {
		t.Helper()
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s/%s: %s %+v by its template (%s), the API server made %+v of %+v", d.Namespace, d.Name, what, a, s.DaemonSets[0].Completed, b, d.Spec.Template.Spec)
		}
	}
	if d.Namespace == rivals {
		if !want.Requests.Max(real.Requests).Equal(want.Requests) {
			same("requests", want.Requests, real.Requests)
		}
	} else {
		same("requests", want.Requests, real.Requests)
	}
	same("node selector", want.NodeSelector, real.NodeSelector)
	same("host ports", want.HostPorts, real.HostPorts)
	same("revision", s.DaemonSets[0].Revision, real.Labels[cluster.LabelTemplateGeneration])
	same("tolerations", tolerations(o, d, want.Tolerations), tolerationSet(real.Tolerations))
}

// tolerations are those of the DaemonSet's class with what its RuntimeClass adds.
func tolerations(o store.Objects, d *appsv1.DaemonSet, own []cluster.Toleration) []string {
	p := &corev1.Pod{}
	for _, t := range own {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	var a convert.Admission
	for _, c := range o.RuntimeClasses {
		if n := d.Spec.Template.Spec.RuntimeClassName; n != nil && *n == c.Name {
			a.RuntimeClass = c
		}
	}
	convert.Admit(p, a)
	return tolerationSet(convert.PodClass(p, nil).Tolerations)
}

func tolerationSet(in []cluster.Toleration) (out []string) {
	for _, t := range in {
		out = append(out, fmt.Sprint(t))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
