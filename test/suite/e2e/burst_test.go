package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestBurstIsOneCall: 300 pods are one SetDesiredCapacity of exactly the machines
// that hold them, for several shapes of pod, also with the slow default rate limits
// of a real controller manager and scheduler. The reaction is measured and printed,
// not judged: a loaded test machine must not make it fail.
func TestBurstIsOneCall(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, tc := range []struct {
		name, cpu, memory string
		fast              bool
		want              int
	}{
		// m5.xlarge: 4 cores and 16 GiB. Less 2x100m reserved: 38 pods of 100m.
		{"cpu bound", "100m", "64Mi", true, 8},
		// 110 pods a node.
		{"pod count bound", "10m", "16Mi", true, 3},
		// 14.8 GiB after 7.5 % for the hypervisor, less reserved: 28 pods of 500Mi.
		{"memory bound", "10m", "500Mi", true, 11},
		{"default rate limits", "100m", "64Mi", false, 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, func(o *world.Options) { o.Fast = tc.fast })
			s.start()
			s.workers(world.Workers{Name: "workers", Max: 40})
			pending := s.firstUnschedulable()
			s.deploy("burst", 300, tc.cpu, tc.memory)
			s.until("300 Running", func() bool { return s.running("burst") == 300 })
			calls := s.resizes()
			if len(calls) != 1 {
				t.Fatalf("%d SetDesiredCapacity calls, want one: %v", len(calls), calls)
			}
			t.Logf("first Unschedulable to SetDesiredCapacity: %s", calls[0].At.Sub(<-pending).Round(time.Millisecond))
			g, _ := s.w.Cloud.Group("workers")
			if g.Desired != tc.want || len(s.nodes()) != tc.want {
				t.Errorf("target %d, %d nodes; %d machines hold the pods", g.Desired, len(s.nodes()), tc.want)
			}
		})
	}
}

// TestLonePods: single pods, each on its own, bring one machine each.
func TestLonePods(t *testing.T) {
	s := newScene(t, nil)
	s.start()
	s.workers(world.Workers{Name: "workers", Max: 40})
	var took []time.Duration
	for i := range 5 {
		pending := s.firstUnschedulable()
		pod, err := s.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "lone-", Labels: map[string]string{"app": "lone"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx", Resources: requests("3", "1Gi")}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := <-pending
		s.until("a call for "+pod.Name, func() bool { return len(s.resizes()) == i+1 })
		took = append(took, s.resizes()[i].At.Sub(at))
		s.until(pod.Name+" Running", func() bool { return s.running("lone") == i+1 })
	}
	slices.Sort(took)
	t.Logf("Unschedulable to SetDesiredCapacity: median %s, all %v", took[2].Round(time.Millisecond), took)
	if g, _ := s.w.Cloud.Group("workers"); g.Desired != 5 {
		t.Errorf("target %d for 5 pods of 3 cores on machines of 4", g.Desired)
	}
}

// firstUnschedulable tells when a watch first shows a pod that the scheduler could
// not place, from now on.
func (s *scene) firstUnschedulable() <-chan time.Time {
	s.t.Helper()
	out := make(chan time.Time, 1)
	w, err := s.client.CoreV1().Pods("default").Watch(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	old := map[string]bool{}
	pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range pods.Items {
		old[p.Name] = true
	}
	go func() {
		defer w.Stop()
		for e := range w.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok || e.Type == watch.Deleted || old[p.Name] {
				continue
			}
			if unschedulable(p) {
				out <- time.Now()
				return
			}
		}
	}()
	return out
}

// unschedulable tells whether kube-scheduler has found no place for a pod.
func unschedulable(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
	})
}

// calls of an action that the cloud carried out.
func (s *scene) calls(action string) []aws.Call {
	return s.w.Cloud.Calls(func(c aws.Call) bool { return c.Action == action && c.Done })
}

// TestTrickledBurst: 300 pods of ten ReplicaSets that come a second apart are two orders at
// most, of exactly the machines that hold them. The machines of the first order come within a
// second or two, and kube-scheduler puts later pods on them while the first ones back off. Where
// a slow host stretches the burst beyond what the agent waits for (AUTOSCALER_SCALING_BURST_HOLD),
// or makes no pod for so long that the burst seems to be over, only the total is judged.
func TestTrickledBurst(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	s.start()
	s.workers(world.Workers{Name: "workers", Max: 40})
	for i := range 10 {
		s.deploy(fmt.Sprintf("trickle-%d", i), 30, "100m", "64Mi")
		<-time.After(time.Second) // the pace of the burst, not a wait for anything
	}
	var made []time.Time // whole seconds
	s.until("a verdict on all pods", func() bool {
		pods, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil || len(pods.Items) != 300 || slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return len(p.Status.Conditions) == 0 }) {
			return false
		}
		for _, p := range pods.Items {
			made = append(made, p.CreationTimestamp.Time)
		}
		return true
	})
	judged := time.Now()
	s.until("300 Running", func() bool {
		n := 0
		for i := range 10 {
			n += s.running(fmt.Sprintf("trickle-%d", i))
		}
		return n == 300
	})
	calls := s.resizes()
	took, gap := judged.Sub(calls[0].At), time.Duration(0)
	slices.SortFunc(made, time.Time.Compare)
	for i := range made[1:] {
		gap = max(gap, made[i+1].Sub(made[i]))
	}
	t.Logf("%d orders; the last pod was judged %s after the first order; for %s no pod was made", len(calls), took.Round(time.Millisecond), gap)
	if took < 13*time.Second && gap < 2*time.Second && len(calls) > 2 {
		t.Errorf("%d orders, want two at most:\n%s", len(calls), s.agent.Tail(300))
	}
	if g, _ := s.w.Cloud.Group("workers"); g.Desired != 8 || len(s.nodes()) != 8 {
		t.Errorf("target %d, %d nodes; 8 machines hold the pods", g.Desired, len(s.nodes()))
	}
}
