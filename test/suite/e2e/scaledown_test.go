package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestScaleDown: what keeps a node is named and keeps it; a drain that cannot end is
// undone, as far as it was ours; one that was cut off goes on; and a machine that
// vanished without a trace leaves no Node. The kubelets keep back other amounts than
// the defaults, and the agent counts with them.
func TestScaleDown(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	settings := []string{
		"AUTOSCALER_SCALING_UNNEEDED_FOR=2s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=2s", "AUTOSCALER_SCALING_DELAY_AFTER_TAINT=500ms",
		"AUTOSCALER_SCALING_MAX_POD_EVICTION_TIME=5s", "AUTOSCALER_SCALING_DELAY_AFTER_FAILURE=4s",
		"AUTOSCALER_NODECLEANER_SIGHT_INTERVAL=1s", "AUTOSCALER_NODECLEANER_GRACE=8s", "AUTOSCALER_NODECLEANER_KNOWN_FOR=5s",
		"AUTOSCALER_KUBELET_KUBE_RESERVED=cpu=500m,memory=1Gi", "AUTOSCALER_KUBELET_MAX_PODS=30",
	}
	s.start(settings...)
	s.workers(world.Workers{Name: "workers", Max: 20})
	for _, part := range []struct {
		name string
		run  func(*scene)
	}{
		{"kubelets keep back what the agent counts with", reservedAsCounted},
		{"blockers are named", blockersAreNamed},
		{"one budget over many nodes", oneBudget},
		{"a drain that cannot end is undone", drainIsUndone},
		{"new pods take the node back", newPodsTakeBack},
		{"killed in a drain", func(s *scene) { killedInADrain(s, settings) }},
		{"vanished without a trace", vanished},
	} {
		t.Run(part.name, func(t *testing.T) {
			on := *s
			on.t = t
			on.w.Cloud.ResetCalls()
			defer func() { s.agent = on.agent }()
			part.run(&on)
			on.empty()
		})
	}
}

// put makes a deployment like deploy's, changed by mutate.
func (s *scene) put(namespace, name string, n int, cpu string, mutate func(*corev1.PodTemplateSpec)) {
	s.t.Helper()
	labels := map[string]string{"app": name}
	replicas, grace := int32(n), int64(1)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "c", Image: "nginx", Resources: requests(cpu, "16Mi")}},
		},
	}
	if mutate != nil {
		mutate(&template)
	}
	_, err := s.client.AppsV1().Deployments(namespace).Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// budget lets at most n pods of an app be disrupted; again: the budget changes.
func (s *scene) budget(app string, n int) {
	s.t.Helper()
	most, budgets := intstr.FromInt32(int32(n)), s.client.PolicyV1().PodDisruptionBudgets("default")
	// The disruption controller writes to it, too.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		made, err := budgets.Get(s.t.Context(), app, metav1.GetOptions{})
		if err == nil {
			made.Spec.MaxUnavailable = &most
			_, err = budgets.Update(s.t.Context(), made, metav1.UpdateOptions{})
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		_, err = budgets.Create(s.t.Context(), &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: app},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// fill brings n machines, each with one pod that leaves room for small ones only, and
// returns the names of their Nodes.
func (s *scene) fill(n int) []string {
	s.t.Helper()
	s.deploy("filler", n, "2500m", "64Mi")
	s.until("fillers Running", func() bool { return s.running("filler") == n })
	var names []string
	for _, node := range s.nodes() {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	if len(names) != n {
		s.t.Fatalf("%d nodes for %d fillers", len(names), n)
	}
	return names
}

// settled makes app's pods, one on each of n filled machines, and takes the fillers
// away.
func (s *scene) settled(app string, n int, mutate func(*corev1.PodTemplateSpec)) {
	s.t.Helper()
	s.fill(n)
	s.put("default", app, n, "300m", mutate)
	s.until(app+" Running", func() bool { return s.running(app) == n })
	s.scale("filler", 0)
}

func (s *scene) target() int { g, _ := s.w.Cloud.Group("workers"); return g.Desired }

// lines of the journal, from byte offset since on, that contain all words.
func (s *scene) lines(since int, words ...string) (n int) {
	b, err := os.ReadFile(s.agent.Log)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b[since:])) {
		if containsAll(line, words) {
			n++
		}
	}
	return n
}

// now is the end of the journal.
func (s *scene) now() int {
	st, err := os.Stat(s.agent.Log)
	if err != nil {
		s.t.Fatal(err)
	}
	return int(st.Size())
}

// empty removes everything and waits until the agent has brought the group to nothing.
func (s *scene) empty() {
	s.t.Helper()
	ctx, background := s.t.Context(), metav1.DeletePropagationBackground
	all, how := metav1.ListOptions{}, metav1.DeleteOptions{PropagationPolicy: &background}
	for _, namespace := range []string{"default", "kube-system"} {
		for _, err := range []error{
			s.client.AppsV1().Deployments(namespace).DeleteCollection(ctx, how, all),
			s.client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, how, all),
			s.client.CoreV1().Pods(namespace).DeleteCollection(ctx, how, all),
		} {
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.until("back at nothing", func() bool { return s.target() == 0 && len(s.nodes()) == 0 })
}

func reservedAsCounted(s *scene) {
	s.deploy("small", 60, "10m", "16Mi")
	s.until("60 Running", func() bool { return s.running("small") == 60 })
	if n := s.target(); n != 2 || len(s.resizes()) != 1 {
		s.t.Errorf("target %d by %v; 30 pods are the most of a machine", n, s.resizes())
	}
	for _, n := range s.nodes() {
		if cpu, pods := n.Status.Allocatable.Cpu().MilliValue(), n.Status.Allocatable.Pods().Value(); cpu != 3400 || pods != 30 {
			s.t.Errorf("node %s offers %dm and %d pods, want 3400m and 30", n.Name, cpu, pods)
		}
	}
}

func blockersAreNamed(s *scene) {
	since := s.now()
	names := s.fill(8)
	on := func(i int, more func(*corev1.PodTemplateSpec)) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) {
			p.Spec.NodeName = names[i]
			if more != nil {
				more(p)
			}
		}
	}
	patch := func(name, text string) {
		if _, err := s.client.CoreV1().Nodes().Patch(s.t.Context(), name, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	_, err := s.client.CoreV1().Pods("default").Create(s.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "naked"},
		Spec: corev1.PodSpec{NodeName: names[0], Containers: []corev1.Container{{Name: "c", Image: "nginx"}}}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.put("default", "unsafe", 1, "10m", on(1, func(p *corev1.PodTemplateSpec) {
		p.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false"
	}))
	s.put("default", "disk", 1, "10m", on(2, func(p *corev1.PodTemplateSpec) {
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}))
	s.put("kube-system", "system", 1, "10m", on(3, nil))
	s.put("default", "never", 1, "10m", on(4, nil))
	s.budget("never", 0)
	patch(names[5], `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}}}`)
	patch(names[6], `{"spec":{"unschedulable":true}}`)
	s.scale("filler", 0)
	s.until("the free node is gone", func() bool { return len(s.nodes()) == 7 })
	s.until("every reason told", func() bool {
		for i, words := range [][]string{{"D6", "default/naked"}, {"D6", "safe-to-evict=false"}, {"D6", "volume scratch"}, {"D6", "kube-system/system"},
			{"D6", "PodDisruptionBudget default/never"}, {"D5", "scale-down-disabled"}, {"D10", "cordoned by somebody else"}} {
			if s.lines(since, append(words, names[i])...) == 0 {
				return false
			}
		}
		return true
	})
	<-time.After(4 * time.Second) // longer than an unneeded node stays
	if got := len(s.calls("TerminateInstanceInAutoScalingGroup")); got != 1 || len(s.nodes()) != 7 {
		s.t.Errorf("%d machines were terminated, %d nodes are left; one of eight was free to go", got, len(s.nodes()))
	}
	for _, app := range []string{"unsafe", "disk", "never"} {
		if s.running(app) != 1 {
			s.t.Errorf("%s does not run", app)
		}
	}
	patch(names[5], `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":null}}}`)
	patch(names[6], `{"spec":{"unschedulable":null}}`)
}

// oneBudget: nodes go one after the other, and never more pods than the budget allows.
func oneBudget(s *scene) {
	s.fill(5)
	s.put("default", "web", 5, "300m", nil)
	s.budget("web", 1)
	s.until("web Running", func() bool { return s.running("web") == 5 })
	s.scale("filler", 0)
	least := 5
	took := s.until("one node", func() bool {
		if n := s.running("web"); n >= 0 {
			least = min(least, n)
		}
		return s.target() == 1 && len(s.nodes()) == 1
	})
	s.t.Logf("4 of 5 nodes under a budget of one went in %s", took.Round(time.Second))
	if least < 4 || s.running("web") != 5 {
		s.t.Errorf("%d of 5 pods ran at one moment, %d run now", least, s.running("web"))
	}
}

// drainIsUndone: the budget closes when the first of two pods has gone.
func drainIsUndone(s *scene) {
	since := s.now()
	s.fill(2)
	s.put("default", "stuck", 6, "150m", func(p *corev1.PodTemplateSpec) { p.Annotations[machine.AnnotationStop] = "900ms" })
	s.budget("stuck", 1)
	s.until("stuck Running", func() bool { return s.running("stuck") == 6 })
	s.scale("filler", 0)
	s.until("an eviction", func() bool { return s.lines(since, `msg="evict default/stuck`) > 0 })
	s.budget("stuck", 0)
	s.until("the mark is taken back", func() bool { return s.lines(since, `msg="uncordon`) > 0 })
	// The taint node.kubernetes.io/unschedulable is taken off by the node controller,
	// in its own time.
	s.until("nodes without cordon and taints", func() bool {
		return !slices.ContainsFunc(s.nodes(), func(n corev1.Node) bool { return n.Spec.Unschedulable || len(n.Spec.Taints) > 0 })
	})
	if calls := s.calls("TerminateInstanceInAutoScalingGroup"); len(calls) > 0 {
		s.t.Errorf("terminated: %v", calls)
	}
	s.until("all run", func() bool { return s.running("stuck") == 6 && len(s.nodes()) == 2 })
}

// newPodsTakeBack: pods that need the node arrive while it is drained.
func newPodsTakeBack(s *scene) {
	since := s.now()
	s.settled("slow", 2, func(p *corev1.PodTemplateSpec) {
		long := int64(12)
		p.Spec.TerminationGracePeriodSeconds = &long
		p.Annotations[machine.AnnotationStop] = "9s"
	})
	s.until("an eviction", func() bool { return s.lines(since, `msg="evict default/slow`) > 0 })
	s.w.Cloud.ResetCalls()
	s.deploy("fresh", 2, "2500m", "64Mi")
	took := s.until("fresh pods Running", func() bool { return s.running("fresh") == 2 })
	s.t.Logf("pods that needed the node ran after %s", took.Round(10*time.Millisecond))
	if len(s.resizes()) != 0 || s.target() != 2 || len(s.calls("TerminateInstanceInAutoScalingGroup")) != 0 {
		s.t.Errorf("target %d, resizes %v", s.target(), s.resizes())
	}
}

// killedInADrain: the mark is on the Node, so the next agent goes on, without the
// state file too.
func killedInADrain(s *scene, settings []string) {
	since := s.now()
	s.settled("web", 3, func(p *corev1.PodTemplateSpec) {
		long := int64(5)
		p.Spec.TerminationGracePeriodSeconds = &long
		p.Annotations[machine.AnnotationStop] = "1500ms"
	})
	s.until("an eviction", func() bool { return s.lines(since, `msg="evict default/web`) > 0 })
	s.agent.Kill()
	if err := os.RemoveAll(s.w.StateDir()); err != nil {
		s.t.Fatal(err)
	}
	s.w.Cloud.ResetCalls()
	s.start(settings...)
	s.until("one node", func() bool { return s.target() == 1 && len(s.nodes()) == 1 && s.running("web") == 3 })
	if n := len(s.calls("TerminateInstanceInAutoScalingGroup")); n != 2 || len(s.resizes()) != 0 {
		s.t.Errorf("%d terminations, resizes %v", n, s.resizes())
	}
}

// vanished: EC2 lists the instance no more, not even as terminated. Its Node goes on
// two sights and a Lease that nobody renews.
func vanished(s *scene) {
	names := s.fill(3)
	id := ""
	for _, i := range s.w.Cloud.Instances() {
		for _, n := range s.nodes() {
			if n.Name == names[0] && strings.HasSuffix(n.Spec.ProviderID, "/"+i.ID) {
				id = i.ID
			}
		}
	}
	s.w.Fleet.Terminate(id)
	if err := s.w.Cloud.Vanish(id); err != nil {
		s.t.Fatal(err)
	}
	took := s.until("its Node is gone", func() bool {
		return !slices.ContainsFunc(s.nodes(), func(n corev1.Node) bool { return n.Name == names[0] })
	})
	s.t.Logf("the Node of a vanished machine was deleted after %s", took.Round(time.Second))
}
