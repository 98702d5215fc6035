package e2e

import (
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// startTaint is what the machines of these tests register with.
const startTaint = "network.example.com/agent-not-ready"

// startsSlowly gives the machines of a cluster a start: the first one of each instance type has started
// at once, each further one has a taint and lacks the label "late" for a time.
func startsSlowly(slow time.Duration) func(*machine.Config) {
	var mu sync.Mutex
	seen := map[string]int{}
	return func(c *machine.Config) {
		mu.Lock()
		defer mu.Unlock()
		seen[c.InstanceType]++
		after := slow
		if seen[c.InstanceType] == 1 {
			after = 0
		} else {
			c.Start.Taints = []corev1.Taint{{Key: startTaint, Value: "true", Effect: corev1.TaintEffectNoExecute}}
		}
		c.Start.Phases = []machine.Phase{{After: after, Labels: map[string]string{"late": "yes"}, Untaint: []string{startTaint}}}
	}
}

// TestAMachineThatStartsSlowlyIsOneMachine: a group has one node that has started, and three pods more want
// room; the machine that is bought for them is Ready with a taint for 8 s, and a label that the pods ask
// for comes 8 s late. One machine is bought, on each cloud.
func TestAMachineThatStartsSlowlyIsOneMachine(t *testing.T) {
	t.Parallel() // it mostly waits
	types := map[string]string{"asg": "m5.xlarge", "externalgrpc": "m5.2xlarge", "nova": "m1.workers"}
	first := map[string]string{"asg": "2500m", "externalgrpc": "6", "nova": "2500m"}
	more := map[string]string{"asg": "1100m", "externalgrpc": "2100m", "nova": "1100m"}
	s := newScene(t, func(o *world.Options) {
		o.Providers = []string{"asg", "externalgrpc", "nova"}
		o.Pace = world.Pace{Launch: 300 * time.Millisecond, Boot: 300 * time.Millisecond, Terminate: 300 * time.Millisecond, Seed: 7}
		o.Tune = startsSlowly(8 * time.Second)
	})
	promise := map[string]any{}
	for _, name := range s.w.Providers {
		promise["on-"+name] = map[string]any{"template": map[string]any{"labels": map[string]string{"late": "yes"}}}
	}
	s.start("AUTOSCALER_SCALING_SCALE_DOWN=false", "AUTOSCALER_OBSERVE_SLOW=2s")
	if err := s.w.PutSection("groups", promise); err != nil {
		t.Fatal(err)
	}
	for i, name := range s.w.Providers {
		data, err := s.w.RenderUserData(t.Context(), s.binary, s.w.Clouds[i].RenderFlags()...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.w.PutWorkersIn(t.Context(), s.w.Clouds[i], world.Workers{Name: "on-" + name, Max: 8, InstanceType: types[name], UserData: data}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range s.w.Providers {
		if err := s.w.WaitForGroup(t.Context(), s.binary, "on-"+name); err != nil {
			t.Fatal(err)
		}
		s.deploySelecting("first-"+name, 1, first[name], map[string]string{corev1.LabelInstanceTypeStable: types[name], "late": "yes"})
	}
	each := func(prefix string, n int) func() bool {
		return func() bool {
			for _, name := range s.w.Providers {
				if s.running(prefix+name) != n {
					return false
				}
			}
			return true
		}
	}
	s.until("a pod Running on the first machine of each cloud", each("first-", 1))
	for _, name := range s.w.Providers {
		s.deploySelecting("more-"+name, 3, more[name], map[string]string{corev1.LabelInstanceTypeStable: types[name], "late": "yes"})
	}
	s.until("explain node tells that each second machine is starting", func() bool {
		told := 0
		for _, n := range s.nodes() {
			if out, _ := s.command("explain", "node", n.Name); strings.Contains(out, "starting: the taint "+startTaint+" has not passed yet, the label late has not come yet") {
				told++
			}
		}
		return told == len(s.w.Providers)
	})
	t.Logf("three pods more Running on each cloud after %s", s.until("three pods more Running on each cloud", each("more-", 3)))
	for i, name := range s.w.Providers {
		if g, _ := s.w.Clouds[i].Group("on-" + name); g.Target != 2 {
			t.Errorf("%s: target %d, want 2: one machine more", name, g.Target)
		}
	}
}

// TestATaintThatStaysIsTold: a machine whose taint does not pass in its time is told by name, in the
// journal, in an Event and in a metric; the template learns it, and nothing is bought that would have it too.
func TestATaintThatStaysIsTold(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, func(o *world.Options) {
		o.Tune = func(c *machine.Config) {
			c.Start.Taints = []corev1.Taint{{Key: startTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
		}
	})
	s.start("AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME=12s", "AUTOSCALER_SCALING_SCALE_DOWN=false", "AUTOSCALER_SCALER_IDLE=2s")
	s.workers(world.Workers{Name: "workers", Max: 8})
	s.deploy("web", 3, "500m", "64Mi")
	s.journal("held node", "I7", startTaint)
	s.until("an Event on the node", func() bool {
		list, err := s.client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,reason=NodeNotStarted"})
		return err == nil && len(list.Items) > 0 && strings.Contains(list.Items[0].Message, startTaint)
	})
	s.until("the metric", func() bool { return strings.Contains(string(s.metrics()), "autoscaler_node_not_started{node=") })
	s.until("the pods are held for the taint", func() bool {
		out, _ := s.command("explain", "group", "workers")
		return strings.Contains(out, startTaint)
	})
	if g, _ := s.w.Cloud.Group("workers"); g.Desired != 1 {
		t.Errorf("target %d, want 1", g.Desired)
	}
}

// TestAPersonsTaintIsMeant: kubectl taints a young node that has room. Pods that do not tolerate the taint
// get a machine of their own at once; the taint of that machine's start buys none.
func TestAPersonsTaintIsMeant(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, func(o *world.Options) { o.Tune = startsSlowly(4 * time.Second) })
	s.start("AUTOSCALER_SCALING_SCALE_DOWN=false")
	s.workers(world.Workers{Name: "workers", Max: 8})
	s.deploy("first", 1, "500m", "64Mi")
	s.until("the first pod is Running", func() bool { return s.running("first") == 1 })
	node := s.nodes()[0].Name
	cp := s.w.ControlPlane
	if out, err := exec.CommandContext(t.Context(), cp.Binaries().Path("kubectl"), "--kubeconfig", cp.Kubeconfig(), "taint", "node", node, "mine=yes:NoSchedule").CombinedOutput(); err != nil {
		t.Fatalf("kubectl taint: %v\n%s", err, out)
	}
	s.deploy("more", 2, "500m", "64Mi")
	s.until("two pods more are Running", func() bool { return s.running("more") == 2 })
	if g, _ := s.w.Cloud.Group("workers"); g.Desired != 2 {
		t.Errorf("target %d, want 2", g.Desired)
	}
}
