package nodecleaner

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// TestNoWriteWithoutLeave: the right to act that is lost between the look at a Node and
// the write to it stops every kind of write.
func TestNoWriteWithoutLeave(t *testing.T) {
	d := reaper.Deletion{Node: "n", UID: "uid-n", ProviderID: string(id(0)), Rule: "G3"}
	for name, plan := range map[string]reaper.Plan{
		"delete": {Delete: []reaper.Deletion{d}}, "fence": {Fence: []reaper.Deletion{d}},
		"mark": {Shutdown: []reaper.Mark{{Node: "n", UID: "uid-n", On: true}}}, "claim": {Claims: []reaper.Claim{{Node: "n", UID: "uid-n", Group: "others"}}},
	} {
		for _, lost := range []bool{false, true} {
			client := fake.NewClientset(apiNode("n", id(0), corev1.ConditionUnknown))
			leads, writes := true, 0
			client.PrependReactor("*", "nodes", func(a kubetesting.Action) (bool, runtime.Object, error) {
				if a.GetVerb() == "get" {
					leads = !lost // while the answer was under way
				} else {
					writes++
				}
				return false, nil, nil
			})
			s := bare(client)
			s.deps.MayAct = func() (bool, string) { return leads, "another agent leads" }
			if err := s.act(t.Context(), plan, 1); err != nil || (writes == 0) != lost {
				t.Errorf("%s, the right lost %t: %d writes, %v", name, lost, writes, err)
			}
		}
	}
}

// TestNoWriteOutlivesItsRight: the deadline of each write is the end of the right to act,
// and where that is over nothing is written.
func TestNoWriteOutlivesItsRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(apiNode("n", id(0), corev1.ConditionUnknown))
		s := bare(client)
		until := time.Now().Add(7 * time.Second)
		s.deps.ActUntil = func() time.Time { return until }
		ran := false
		err := s.allowed(t.Context(), func(ctx context.Context) error {
			ran = true
			<-ctx.Done() // a read that stalls
			if !time.Now().Equal(until) {
				t.Errorf("ended at %s, want %s", time.Now(), until)
			}
			return s.may(ctx)
		})
		if err != nil || !ran {
			t.Errorf("ran %t, %v", ran, err)
		}
		if err := s.allowed(t.Context(), func(context.Context) error { t.Error("the right is over"); return nil }); err != nil {
			t.Error(err)
		}
		until = time.Time{}
		if err := s.allowed(t.Context(), func(context.Context) error { t.Error("the zero time is no right"); return nil }); err != nil {
			t.Error(err)
		}
	})
}

// TestHost (E2): a machine ID that every machine from one image has makes no Node ours.
func TestHost(t *testing.T) {
	own := Host{MachineID: "0f", BootID: "boot", SystemUUID: "ABCD", Addresses: []string{"10.0.0.1"}}
	node := func(machine, boot, system, address string) *corev1.Node {
		n := &corev1.Node{}
		n.Status.NodeInfo = corev1.NodeSystemInfo{MachineID: machine, BootID: boot, SystemUUID: system}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		return n
	}
	for name, c := range map[string]struct {
		host Host
		node *corev1.Node
		own  bool
	}{
		"a cloned worker":               {own, node("0f", "b2", "ef01", "10.0.0.2"), false},
		"its boot ID":                   {own, node("0f", "boot", "ef01", "10.0.0.2"), true},
		"its system UUID":               {own, node("0f", "b2", "abcd", "10.0.0.2"), true},
		"its address":                   {own, node("0f", "b2", "ef01", "10.0.0.1"), true},
		"another machine ID":            {own, node("0e", "boot", "abcd", "10.0.0.1"), false},
		"nothing is known":              {Host{}, node("", "", "", ""), false},
		"the machine ID alone is known": {Host{MachineID: "0f"}, node("0f", "", "", ""), false},
	} {
		if got := c.host.is(c.node); got != c.own {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestWorkersFromOneImage (E2): workers that report the leader's machine ID go like others.
func TestWorkersFromOneImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		nodes[0].Status.NodeInfo.MachineID = "0f"
		loop(t, c, func(_ *Config, d *Deps) {
			d.Host = Host{MachineID: "0f", BootID: "b1", Addresses: []string{"10.0.0.1"}}
		}, nodes, func(client *fake.Clientset, s *Service) {
			if wait(3 * time.Minute); has(t, client, "dead") {
				t.Errorf("%+v", s.Explain("dead"))
			}
		})
	})
}

// TestStandbyKeepsTheLedger: an agent that has never led knows, when it takes over, whose
// Nodes are managed, without any annotation; one that begins then does not.
func TestStandbyKeepsTheLedger(t *testing.T) {
	for _, stoodBy := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, nodes := twoNodes()
			c.group.Instances[0].Phase, c.group.Target = cluster.PhaseRunning, 2
			c.group.ReadAt = time.Now()
			for _, n := range nodes {
				n.Annotations = nil
			}
			var leads atomic.Bool
			leads.Store(!stoodBy)
			loop(t, c, func(_ *Config, d *Deps) {
				d.MayAct = func() (bool, string) { return leads.Load(), "another agent leads" }
				if !stoodBy {
					c.group.Instances[0].Phase, c.group.Target = cluster.PhaseGone, 1
				}
			}, nodes, func(client *fake.Clientset, s *Service) {
				wait(time.Minute)
				c.mu.Lock()
				c.group.Instances[0].Phase, c.group.Target, c.group.ReadAt = cluster.PhaseGone, 1, time.Now()
				c.mu.Unlock()
				if wait(time.Minute); !has(t, client, "dead") {
					t.Error("a standby deletes")
				}
				leads.Store(true)
				wait(15 * time.Minute)
				if has(t, client, "dead") == stoodBy {
					t.Errorf("stood by %t: %+v", stoodBy, s.Explain("dead"))
				}
			})
		})
	}
}

// TestClaims: the leader writes the group on Nodes that live, once; an agent in mode
// observe writes nothing.
func TestClaims(t *testing.T) {
	for _, mode := range []string{ModeDelete, ModeObserve} {
		synctest.Test(t, func(t *testing.T) {
			c, nodes := twoNodes()
			nodes[0].Annotations, nodes[1].Annotations = nil, nil
			loop(t, c, func(cfg *Config, _ *Deps) { cfg.Mode = mode }, nodes, func(client *fake.Clientset, _ *Service) {
				wait(2 * time.Minute)
				writes := 0
				for _, a := range client.Actions() {
					if a.GetVerb() == "update" && a.GetResource().Resource == "nodes" {
						writes++
					}
				}
				live, err := client.CoreV1().Nodes().Get(t.Context(), "live", metav1.GetOptions{})
				if want := mode == ModeDelete; err != nil || (live.Annotations[cluster.AnnotationGroup] == "workers") != want || (writes == 1) != want {
					t.Errorf("mode %s: %d writes, %v, %v", mode, writes, live.Annotations, err)
				}
			})
		})
	}
}

// TestNewsOfNodes: the group that the leader writes on a Node is no news that begins a round, so
// that a large cluster is not judged again for each few of its Nodes.
func TestNewsOfNodes(t *testing.T) {
	was := apiNode("n", id(0), corev1.ConditionTrue)
	for _, c := range []struct {
		name   string
		change func(*corev1.Node)
		news   bool
	}{
		{"nothing", func(*corev1.Node) {}, false},
		{"its group is written", func(n *corev1.Node) { n.Annotations = map[string]string{cluster.AnnotationGroup: "workers"} }, false},
		{"it is kept", func(n *corev1.Node) { n.Annotations = map[string]string{cluster.AnnotationKeep: ""} }, true},
		{"it is not Ready", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, true},
		{"it has a taint", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoExecute}} }, true},
	} {
		s := bare(fake.NewClientset())
		s.wake = make(chan struct{}, 1)
		now := was.DeepCopy()
		c.change(now)
		s.changed(was, now)
		if got := len(s.wake) > 0; got != c.news {
			t.Errorf("%s: news %t", c.name, got)
		}
	}
	for nodes, want := range map[int]int{1: 10, 1_000: 10, 5_000: 50} {
		if got := len(claims(reaper.Plan{Claims: make([]reaper.Claim, 100)}, nodes)); got != want {
			t.Errorf("%d Nodes are written in a round of %d, want %d", got, nodes, want)
		}
	}
}

// TestObserveFirst (M2): the first day is told in STATUS= and in the Node's reason, and its
// begin survives a restart.
func TestObserveFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		c, nodes := twoNodes()
		first := func(cfg *Config, d *Deps) { cfg.ObserveFirst, d.StateDir = 24*time.Hour, state }
		var began time.Time
		loop(t, c, first, nodes, func(client *fake.Clientset, s *Service) {
			wait(23 * time.Hour)
			began = s.Memory().Installed
			if v := s.Explain("dead"); !has(t, client, "dead") || v.Rule != "M2" || !v.Would || s.Status() == "" || len(s.Breakers()) > 0 {
				t.Errorf("%+v; status %q", v, s.Status())
			}
		})
		m, err := Peek(state)
		if err != nil || !m.Installed.Equal(began) || began.IsZero() {
			t.Fatalf("the first start %s is kept as %s: %v", began, m.Installed, err)
		}
		loop(t, c, first, nodes, func(client *fake.Clientset, s *Service) {
			if wait(75 * time.Minute); has(t, client, "dead") {
				t.Errorf("the day is over: %+v", s.Explain("dead"))
			}
		})
	})
}
