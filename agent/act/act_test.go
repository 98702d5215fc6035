package act

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// cloud notes what it is asked for.
type cloud struct {
	mu    sync.Mutex
	calls []string
	err   error
	enter func()
	hang  bool // until the context ends
}

func (c *cloud) Groups(context.Context) ([]cluster.NodeGroup, error) { return nil, nil }

func (c *cloud) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	if c.enter != nil {
		c.enter()
	}
	if c.hang {
		<-ctx.Done()
	}
	return c.note(ctx, fmt.Sprintf("resize %s %d %d", id, from, to))
}

func (c *cloud) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	return c.note(ctx, fmt.Sprintf("delete %s %v", id, ids))
}

func (c *cloud) note(ctx context.Context, call string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	return errors.Join(c.err, ctx.Err())
}

func executor(c *cloud, objects ...runtime.Object) (*Executor, *fake.Clientset, *record.FakeRecorder) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	client := fake.NewClientset(objects...)
	events := record.NewFakeRecorder(1000)
	return &Executor{Client: kubetest.Client(client), Cloud: c, Recorder: events, Log: log.WithField("service", "test")}, client, events
}

func node(name string, change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + kubeUID(cluster.UID(name))},
		Spec:   corev1.NodeSpec{ProviderID: "aws:///z/" + name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	if change != nil {
		change(n)
	}
	return n
}

func marked(n *corev1.Node) { cordon(n, decision.RuleUnneeded, time.Unix(1700000000, 0)) }

func pod(name, nodeName string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: kubeUID(cluster.UID(name))}, Spec: corev1.PodSpec{NodeName: nodeName}}
	if change != nil {
		change(p)
	}
	return p
}

func TestGrowIsOneCall(t *testing.T) {
	c := &cloud{}
	h, _, _ := executor(c)
	var pods []cluster.PodKey
	for i := range 300 {
		pods = append(pods, cluster.PodKey(fmt.Sprintf("ns/p%03d", i)))
	}
	got := h.Do(t.Context(), decision.Plan{Actions: []decision.Action{decision.Grow{Group: "g", From: 0, To: 9, Pods: pods, Rule: "U3", Why: "room"}}})
	if !slices.Equal(c.calls, []string{"resize g 0 9"}) {
		t.Errorf("calls %q", c.calls)
	}
	if len(got) != 1 || got[0].Action != "grow" || got[0].From != 0 || got[0].To != 9 || got[0].Error != "" || got[0].At.IsZero() {
		t.Errorf("outcomes %+v", got)
	}
}

func TestGrowRefusedIsAnOutcomeWithItsKind(t *testing.T) {
	c := &cloud{err: &provider.Error{Op: "resize", Group: "g", Kind: provider.Conflict, Err: errors.New("target is 4, not 3")}}
	h, _, _ := executor(c)
	got := h.Do(t.Context(), decision.Plan{Actions: []decision.Action{decision.Grow{Group: "g", From: 3, To: 5}}})
	if len(got) != 1 || got[0].Kind != "conflict" || !strings.Contains(got[0].Error, "target is 4") {
		t.Errorf("outcomes %+v", got)
	}
}

func TestCordonAndUncordonTouchOnlyOurs(t *testing.T) {
	foreign := corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule}
	h, other, _ := executor(&cloud{}, node("n", func(n *corev1.Node) { n.Labels = map[string]string{cluster.LabelNoLoadBalancer: ""} }))
	for _, a := range []decision.Action{decision.Cordon{Node: "n", UID: "uid-n"}, decision.Uncordon{Node: "n", UID: "uid-n"}} {
		h.Do(t.Context(), decision.Plan{Actions: []decision.Action{a}})
		if value, has := get(t, other, "n").Labels[cluster.LabelNoLoadBalancer]; !has || value != "" {
			t.Errorf("after %s somebody else's label is %q, %v", a, value, has)
		}
	}
	h, client, _ := executor(&cloud{}, node("n", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{foreign} }))
	h.Do(t.Context(), decision.Plan{Actions: []decision.Action{decision.Cordon{Node: "n", UID: "uid-n", Rule: decision.RuleInterrupted}}})
	n := get(t, client, "n")
	if by := n.Annotations[cluster.AnnotationCordoned]; !n.Spec.Unschedulable || !slices.ContainsFunc(n.Spec.Taints, isOurs) || !strings.HasSuffix(by, "Z D23") || n.Labels[cluster.LabelNoLoadBalancer] != cluster.LabelOurs {
		t.Errorf("cordoned: %+v %v", n.Spec, n.Annotations)
	}
	h.Do(t.Context(), decision.Plan{Actions: []decision.Action{decision.Uncordon{Node: "n", UID: "uid-n"}}})
	n = get(t, client, "n")
	if n.Spec.Unschedulable || !slices.Equal(n.Spec.Taints, []corev1.Taint{foreign}) || len(n.Annotations)+len(n.Labels) != 0 {
		t.Errorf("uncordoned: %+v %v", n.Spec, n.Annotations)
	}
}

// TestCordonRefusesWhatIsSomebodyElses: between the plan and its act somebody cordoned
// the node, or another autoscaler marked it. A mark of ours on top could never be told
// from theirs again.
func TestCordonRefusesWhatIsSomebodyElses(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"cordoned": func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"marked": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: cluster.TaintToBeDeleted, Effect: corev1.TaintEffectNoSchedule}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, client, _ := executor(&cloud{}, node("n", change))
			before := get(t, client, "n")
			got := h.Do(t.Context(), decision.Plan{Actions: []decision.Action{decision.Cordon{Node: "n", UID: "uid-n"}}})
			if len(got) != 1 || !strings.Contains(got[0].Error, "by somebody else") {
				t.Errorf("outcomes %+v", got)
			}
			if n := get(t, client, "n"); n.ResourceVersion != before.ResourceVersion || len(n.Annotations) != 0 || len(n.Spec.Taints) != len(before.Spec.Taints) {
				t.Errorf("changed: %+v %v", n.Spec, n.Annotations)
			}
		})
	}
}

func get(t *testing.T, client *fake.Clientset, name string) *corev1.Node {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCordonRetriesAConflictAndRefusesAnotherNode(t *testing.T) {
	h, client, _ := executor(&cloud{}, node("n", nil))
	conflicts := 2
	client.PrependReactor("update", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts >= 0 {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n", errors.New("changed"))
		}
		return false, nil, nil
	})
	got := h.Do(t.Context(), decision.Plan{Actions: []decision.Action{decision.Cordon{Node: "n", UID: "uid-n"}}})
	if got[0].Error != "" || !get(t, client, "n").Spec.Unschedulable {
		t.Errorf("after two conflicts: %+v", got)
	}
	got = h.Do(t.Context(), decision.Plan{Actions: []decision.Action{decision.Uncordon{Node: "n", UID: "another"}}})
	if got[0].Error == "" || !get(t, client, "n").Spec.Unschedulable {
		t.Errorf("a node of another UID was changed: %+v", got)
	}
}

func TestEvictCarriesUIDAndGrace(t *testing.T) {
	h, client, _ := executor(&cloud{}, pod("p", "n", nil))
	var seen []*policyv1.Eviction
	var refuse error
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() == "eviction" {
			seen = append(seen, a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction))
			return true, nil, refuse
		}
		return false, nil, nil
	})
	evict := decision.Plan{Actions: []decision.Action{decision.Evict{Pod: "ns/p", UID: "u1", Node: "n", Grace: 30 * time.Second}}}
	got := h.Do(t.Context(), evict)
	if len(seen) != 1 || string(*seen[0].DeleteOptions.Preconditions.UID) != "u1" || *seen[0].DeleteOptions.GracePeriodSeconds != 30 || got[0].Error != "" {
		t.Fatalf("evictions %+v, outcomes %+v", seen, got)
	}
	refuse = apierrors.NewTooManyRequests("disruption budget", 10)
	if got = h.Do(t.Context(), evict); got[0].Kind != "TooManyRequests" {
		t.Errorf("a refused eviction gives %+v", got)
	}
	refuse = apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
	if got = h.Do(t.Context(), evict); got[0].Error != "" {
		t.Errorf("a pod that is gone gives %+v", got)
	}
}

func TestTerminateLooksOnceMore(t *testing.T) {
	daemon := func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
	}
	owned := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: new(true)}}
	}
	for name, c := range map[string]struct {
		node    *corev1.Node
		pods    []*corev1.Pod
		act     decision.Terminate
		deleted bool
		why     string
	}{
		"empty":         {node("n", marked), nil, decision.Terminate{Node: "n", NodeUID: "uid-n"}, true, ""},
		"daemon only":   {node("n", marked), []*corev1.Pod{pod("d", "n", daemon)}, decision.Terminate{Node: "n", NodeUID: "uid-n"}, true, ""},
		"finished only": {node("n", marked), []*corev1.Pod{pod("f", "n", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, decision.Terminate{Node: "n", NodeUID: "uid-n"}, true, ""},
		"as a daemon":   {node("n", marked), []*corev1.Pod{pod("d", "n", func(p *corev1.Pod) { p.Annotations = map[string]string{cluster.AnnotationDaemonPod: "true"} })}, decision.Terminate{Node: "n", NodeUID: "uid-n"}, true, ""},
		"runs to its end": {node("n", marked), []*corev1.Pod{pod("j", "n", func(p *corev1.Pod) {
			p.Annotations = map[string]string{cluster.AnnotationSafeToEvict: cluster.SafeOnCompletion}
		})}, decision.Terminate{Node: "n", NodeUID: "uid-n"}, false, "pod ns/j is on node n"},
		"work came":      {node("n", marked), []*corev1.Pod{pod("w", "n", nil)}, decision.Terminate{Node: "n", NodeUID: "uid-n"}, false, "pod ns/w is on node n"},
		"work, by force": {node("n", marked), []*corev1.Pod{pod("w", "n", owned)}, decision.Terminate{Node: "n", NodeUID: "uid-n", Forced: true}, true, ""},
		"lone, by force": {node("n", marked), []*corev1.Pod{pod("w", "n", nil)}, decision.Terminate{Node: "n", NodeUID: "uid-n", Forced: true}, false, "pod ns/w is on node n"},
		"kept, by force": {node("n", marked), []*corev1.Pod{pod("w", "n", func(p *corev1.Pod) {
			owned(p)
			p.Annotations = map[string]string{cluster.AnnotationSafeToEvict: "false"}
		})}, decision.Terminate{Node: "n", NodeUID: "uid-n", Forced: true}, false, "pod ns/w is on node n"},
		"unmarked by force": {node("n", nil), nil, decision.Terminate{Node: "n", NodeUID: "uid-n", Forced: true}, false, "no longer carries"},
		"work elsewhere":    {node("n", marked), []*corev1.Pod{pod("w", "other", nil)}, decision.Terminate{Node: "n", NodeUID: "uid-n"}, true, ""},
		"uncordoned":        {node("n", nil), nil, decision.Terminate{Node: "n", NodeUID: "uid-n"}, false, "no longer carries"},
		"another node now":  {node("n", marked), nil, decision.Terminate{Node: "n", NodeUID: "old"}, false, "another one now"},
		"node is gone":      {nil, nil, decision.Terminate{Node: "n", NodeUID: "uid-n"}, true, ""},
		"never joined":      {node("other", nil), nil, decision.Terminate{}, true, ""},
		"joined after all":  {node("n", nil), nil, decision.Terminate{}, false, "has become node n"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if c.node != nil {
				objects = append(objects, c.node)
			}
			for _, p := range c.pods {
				objects = append(objects, p)
			}
			cl := &cloud{}
			h, _, _ := executor(cl, objects...)
			c.act.Group, c.act.Instance = "g", "aws:///z/n"
			got := h.Do(t.Context(), decision.Plan{Actions: []decision.Action{c.act}})
			if (len(cl.calls) == 1) != c.deleted || len(got) != 1 || !strings.Contains(got[0].Error, c.why) || (got[0].Error == "") != c.deleted {
				t.Errorf("calls %q, outcomes %+v", cl.calls, got)
			}
		})
	}
}

func TestTerminationsOfAGroupAreOneCallWithErrorsToEach(t *testing.T) {
	c := &cloud{err: errors.Join(&provider.Error{Op: "delete", Group: "g", Instance: "aws:///z/b", Kind: provider.Exhausted, Err: errors.New("no")})}
	h, _, _ := executor(c, node("a", marked), node("b", marked))
	got := h.Do(t.Context(), decision.Plan{Actions: []decision.Action{
		decision.Terminate{Group: "g", Instance: "aws:///z/a", Node: "a", NodeUID: "uid-a"},
		decision.Terminate{Group: "g", Instance: "aws:///z/b", Node: "b", NodeUID: "uid-b"},
	}})
	if !slices.Equal(c.calls, []string{"delete g [aws:///z/a aws:///z/b]"}) {
		t.Errorf("calls %q", c.calls)
	}
	if got[0].Error != "" || got[1].Kind != "exhausted" {
		t.Errorf("outcomes %+v", got)
	}
}

func TestStopFinishesTheActionItIsInAndStartsNoOther(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &cloud{enter: cancel} // SIGTERM arrives while the first resize is under way
	h, _, _ := executor(c)
	got := h.Do(ctx, decision.Plan{Actions: []decision.Action{decision.Grow{Group: "a", To: 1}, decision.Terminate{Group: "b", Instance: "aws:///z/b"}}})
	if len(got) != 1 || got[0].Group != "a" || got[0].Error != "" || len(c.calls) != 1 {
		t.Errorf("calls %q, outcomes %+v", c.calls, got)
	}
}

func TestLosingTheLeaseEndsTheRound(t *testing.T) {
	c := &cloud{}
	h, _, _ := executor(c)
	var asked atomic.Int32
	h.MayAct = func() (bool, string) { return asked.Add(1) == 1, "lost" }
	h.Do(t.Context(), decision.Plan{Actions: []decision.Action{decision.Grow{Group: "a", To: 1}, decision.Grow{Group: "b", To: 1}}})
	if len(c.calls) != 1 {
		t.Errorf("calls %q, want one", c.calls)
	}
}

// TestAnActionEndsWithTheLease: 15 s after the last renewal another agent may lead, and a
// write of this one must have ended before. One that is renewed meanwhile goes on.
func TestAnActionEndsWithTheLease(t *testing.T) {
	for name, c := range map[string]struct{ renewals, want time.Duration }{
		"lost":    {0, 10 * time.Second},
		"renewed": {16 * time.Second, 26 * time.Second},
		"kept":    {time.Hour, actionTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, _, _ := executor(&cloud{hang: true})
				began := time.Now()
				h.Until = func() time.Time {
					renewed := min(time.Since(began), c.renewals).Truncate(2 * time.Second)
					return began.Add(renewed + 10*time.Second)
				}
				got := h.Do(t.Context(), decision.Plan{Actions: []decision.Action{decision.Grow{Group: "g", To: 1}}})
				if took := time.Since(began); took != c.want || len(got) != 1 || got[0].Error == "" {
					t.Errorf("ended after %s, want %s; outcomes %+v", took, c.want, got)
				}
			})
		})
	}
}

// TestTheLeaseIsAskedForAgainRightBeforeAWrite: what an action looks at first may take
// as long as the Lease lasts.
func TestTheLeaseIsAskedForAgainRightBeforeAWrite(t *testing.T) {
	for name, a := range map[string]decision.Action{
		"terminate": decision.Terminate{Group: "g", Instance: "aws:///z/n", Node: "n", NodeUID: "uid-n"},
		"cordon":    decision.Cordon{Node: "free", UID: "uid-free"},
		"uncordon":  decision.Uncordon{Node: "n", UID: "uid-n"},
		"soften":    decision.SoftTaint{Node: "free", UID: "uid-free"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cloud{}
			h, client, _ := executor(c, node("n", marked), node("free", nil))
			var lost atomic.Bool
			h.MayAct = func() (bool, string) { return !lost.Load(), "the Lease is lost" }
			client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				lost.Store(true)
				return false, nil, nil
			})
			got := h.Do(t.Context(), decision.Plan{Actions: []decision.Action{a}})
			if len(got) != 1 || !strings.Contains(got[0].Error, "the Lease is lost") || len(c.calls) > 0 {
				t.Errorf("calls %q, outcomes %+v", c.calls, got)
			}
			for _, done := range client.Actions() {
				if done.GetVerb() == "update" {
					t.Errorf("%s %s", done.GetVerb(), done.GetResource().Resource)
				}
			}
		})
	}
}
