package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// addOn is a row of agent/plan/testdata/addons.txt, whose decisions the tests of agent/plan make one by one.
type addOn struct {
	namespace, pod, owner, volumes, budget, annotation string
	blocked                                            []string
}

// TestAddOns: pods of add-ons in their default shape, all at once, beside a program that takes half of each of five machines. Machines are bought until each runs; explain
// tells of each just the reasons for which it keeps its node, and nodes with such pods stay when the program is gone; freed, they
// go, and what a controller makes runs elsewhere.
//
// kube-scheduler may fill a new node before the DaemonSet controller has made its pods for it. So those of DaemonSets ask for no cpu,
// of which alone a machine has too little; and no pod has a priority class, for which kube-scheduler would end pods that nobody makes again.
func TestAddOns(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=2s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=2s", "AUTOSCALER_SCALING_DELAY_AFTER_TAINT=500ms")
	s.workers(world.Workers{Name: "workers", Max: 20})
	rows := readAddOns(t)
	s.deploy("program", 5, "2", "16Mi")
	s.until("the program on five machines", func() bool { return s.running("program") == 5 })
	for _, daemons := range []bool{true, false} { // a DaemonSet buys no machine
		for _, a := range rows {
			if (a.owner == "DaemonSet") == daemons {
				s.addOn(a)
			}
		}
	}
	s.until("every add-on Running", func() bool { return s.addOnsRunning(rows) })
	bought := s.target()
	for _, a := range rows {
		if a.owner != "DaemonSet" {
			s.keeps(a, a.blocked)
		}
	}

	s.scale("program", 0)
	s.until("the program is gone", func() bool { return s.running("program") == 0 })
	mixed := s.nodesOf(rows, func(a addOn) bool { return len(a.blocked) > 0 })
	t.Logf("%d pods run on %d machines, %d of which have one that keeps its node", len(rows), bought, len(mixed))
	for node := range mixed {
		s.explains("explain node "+node, "NO   D6")
	}
	if got := s.target(); got < len(mixed) {
		t.Errorf("%d machines are left of %d that have a pod that keeps its node", got, len(mixed))
	}
	for _, a := range rows {
		if len(a.blocked) > 0 {
			s.free(a)
		}
	}
	s.until("machines go", func() bool { return s.target() < len(mixed) })
	made := slices.DeleteFunc(slices.Clone(rows), func(a addOn) bool { return a.owner != "ReplicaSet" && a.owner != "StatefulSet" })
	s.until("what controllers make is Running again", func() bool { return s.addOnsRunning(made) })
	t.Logf("freed, they run on %d", s.target())
}

func readAddOns(t *testing.T) (out []addOn) {
	t.Helper()
	text, err := os.ReadFile("../../../agent/plan/testdata/addons.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "|")
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		a := addOn{namespace: f[1], pod: f[2], owner: f[3], volumes: f[4], budget: f[6], annotation: f[7]}
		for _, name := range []string{"budget", "custom controller", "kube-system", "local storage"} {
			if strings.Contains(f[8], name) {
				a.blocked = append(a.blocked, name)
			}
		}
		out = append(out, a)
	}
	return out
}

// labels select the pods of an add-on. Names of pods are not its own: tests of others share them.
func (a addOn) labels() map[string]string { return map[string]string{"add-on": a.pod} }

func (a addOn) template() corev1.PodTemplateSpec {
	grace := int64(1)
	size := requests("200m", "16Mi")
	if a.owner == "DaemonSet" {
		delete(size.Requests, corev1.ResourceCPU)
	}
	out := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: a.labels()},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "c", Image: "nginx", Resources: size}}},
	}
	if a.annotation != "" {
		out.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/" + a.annotation: "true"}
	}
	for volume := range strings.FieldsSeq(a.volumes) {
		kind, name, _ := strings.Cut(volume, ":")
		v := corev1.Volume{Name: name}
		switch kind {
		case "host":
			v.HostPath = &corev1.HostPathVolumeSource{Path: "/var/lib/" + name}
		case "memory":
			v.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
		default:
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		out.Spec.Volumes = append(out.Spec.Volumes, v)
	}
	return out
}

// addOn makes what makes an add-on's pod, or the pod itself where the controller is none of Kubernetes' own.
func (s *scene) addOn(a addOn) {
	s.t.Helper()
	ctx, one := s.t.Context(), int32(1)
	_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	if a.budget != "-" {
		n, err := strconv.Atoi(a.budget)
		if err != nil {
			s.t.Fatal(err)
		}
		least := intstr.FromInt32(int32(1 - n)) // of pods that other controllers make a budget can count the least alone
		if _, err := s.client.PolicyV1().PodDisruptionBudgets(a.namespace).Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: a.pod},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: a.labels()}}}, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	meta, template, apps := metav1.ObjectMeta{Name: a.pod}, a.template(), s.client.AppsV1()
	selector := &metav1.LabelSelector{MatchLabels: a.labels()}
	switch a.owner {
	case "ReplicaSet":
		_, err = apps.Deployments(a.namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: selector, Template: template}}, metav1.CreateOptions{})
	case "StatefulSet":
		_, err = apps.StatefulSets(a.namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &one, Selector: selector, Template: template}}, metav1.CreateOptions{})
	case "DaemonSet":
		_, err = apps.DaemonSets(a.namespace).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
	default:
		version, kind, _ := strings.Cut(a.owner, " ")
		controller := true
		template.Name = a.pod
		template.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: a.pod, UID: types.UID("owner-of-" + a.pod), Controller: &controller}}
		s.until("the pod "+a.pod+" is made", func() bool { // its service account comes a moment after the namespace
			_, err = s.client.CoreV1().Pods(a.namespace).Create(ctx, &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, metav1.CreateOptions{})
			return err == nil
		})
	}
	if err != nil {
		s.t.Fatalf("%s: %v", a.pod, err)
	}
}

// podOfAddOn is a pod of an add-on that is not going.
func (s *scene) podOfAddOn(a addOn) *corev1.Pod {
	pods, err := s.client.CoreV1().Pods(a.namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: "add-on=" + a.pod, ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil {
			return p
		}
	}
	return nil
}

func (s *scene) addOnsRunning(rows []addOn) bool {
	for _, a := range rows {
		if p := s.podOfAddOn(a); p == nil || p.Status.Phase != corev1.PodRunning {
			return false
		}
	}
	return true
}

// keeps waits until explain gives just these reasons for which an add-on's pod keeps its node.
func (s *scene) keeps(a addOn, want []string) {
	s.t.Helper()
	var got string
	s.until(fmt.Sprintf("%s/%s keeps its node for %q alone", a.namespace, a.pod, want), func() bool {
		p := s.podOfAddOn(a)
		if p == nil {
			return false
		}
		out, _ := s.command("explain", "pod", a.namespace+"/"+p.Name, "--output", "json")
		var x struct {
			Pod *struct{ Blockers []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(out), &x); err != nil || x.Pod == nil {
			return false
		}
		var names []string
		for _, b := range x.Pod.Blockers {
			names = append(names, b.Name)
		}
		slices.Sort(names)
		if text := fmt.Sprint(names); text != got {
			got = text
			s.t.Logf("%s/%s: %v", a.namespace, p.Name, names)
		}
		return slices.Equal(names, want)
	})
}

// nodesOf are the nodes of the pods of some rows.
func (s *scene) nodesOf(rows []addOn, of func(addOn) bool) map[string]bool {
	out := map[string]bool{}
	for _, a := range rows {
		if p := s.podOfAddOn(a); p != nil && of(a) {
			out[p.Spec.NodeName] = true
		}
	}
	return out
}

// free does what docs/scaling-rules.md says: the annotation on the pod, and a budget that allows a disruption.
func (s *scene) free(a addOn) {
	s.t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"}}}`)
	if p := s.podOfAddOn(a); p != nil { // it may have gone with its node a moment before, freed as its node's other pods
		if _, err := s.client.CoreV1().Pods(a.namespace).Patch(s.t.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			s.t.Fatal(err)
		}
	}
	if a.budget == "-" {
		return
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the disruption controller writes to it, too
		budgets := s.client.PolicyV1().PodDisruptionBudgets(a.namespace)
		b, err := budgets.Get(s.t.Context(), a.pod, metav1.GetOptions{})
		if err == nil {
			none := intstr.FromInt32(0)
			b.Spec.MinAvailable = &none
			_, err = budgets.Update(s.t.Context(), b, metav1.UpdateOptions{})
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
