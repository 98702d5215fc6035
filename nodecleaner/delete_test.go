package nodecleaner

import (
	"errors"
	"io"
	"testing"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// liveStories change the Node between the decision and its deletion.
var liveStories = []struct {
	name   string
	change func(*corev1.Node)
	kept   bool
}{
	{"N1 nothing changed", func(*corev1.Node) {}, false},
	{"N1 another Node of the same name", func(n *corev1.Node) { n.UID = "another" }, true},
	{"N2 another provider ID", func(n *corev1.Node) { n.Spec.ProviderID = "aws:///z/i-another" }, true},
	{"N3 Ready again", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue }, true},
	{"N3 kept", func(n *corev1.Node) { n.Annotations = map[string]string{cluster.AnnotationKeep: ""} }, true},
	{"N3 keep is false", func(n *corev1.Node) { n.Annotations = map[string]string{cluster.AnnotationKeep: "false"} }, false},
	{"N3 of the control plane", func(n *corev1.Node) { n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""} }, true},
}

func bare(client *fake.Clientset) *Service {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return &Service{deps: Deps{Client: client, MayAct: func() (bool, string) { return true, "" }}, log: log.WithField("service", "nodecleaner")}
}

func TestDeleteByRule(t *testing.T) {
	for _, c := range liveStories {
		t.Run(c.name, func(t *testing.T) {
			n := apiNode("n", id(0), corev1.ConditionUnknown)
			n.ResourceVersion = "7"
			c.change(n)
			client := fake.NewClientset(n)
			deleted := false
			client.PrependReactor("delete", "nodes", func(a kubetesting.Action) (bool, runtime.Object, error) {
				p := a.(kubetesting.DeleteActionImpl).DeleteOptions.Preconditions
				deleted = true
				if p == nil || p.UID == nil || *p.UID != "uid-n" || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
					t.Errorf("preconditions %+v", p)
				}
				return true, nil, nil
			})
			client.PrependReactor("*", "nodes", func(a kubetesting.Action) (bool, runtime.Object, error) {
				if a.GetVerb() != "get" && a.GetVerb() != "delete" {
					t.Errorf("the deletion of a Node did a %s", a.GetVerb()) // a finalizer is not taken away
				}
				return false, nil, nil
			})
			d := Deletion{Node: "n", UID: "uid-n", ProviderID: string(id(0)), Rule: "G3"}
			if err := bare(client).deleteOne(t.Context(), d); err != nil || deleted == c.kept {
				t.Errorf("deleted %t, want %t: %v", deleted, !c.kept, err)
			}
		})
	}
}

// TestDeleteLooksAgain: a Node that changes between the look and the deletion is looked
// at again, and not for ever.
func TestDeleteLooksAgain(t *testing.T) {
	client := fake.NewClientset(apiNode("n", id(0), corev1.ConditionUnknown))
	tries := 0
	client.PrependReactor("delete", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
		tries++
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n", errors.New("it changed"))
	})
	if err := bare(client).deleteOne(t.Context(), Deletion{Node: "n", UID: "uid-n", ProviderID: string(id(0))}); err == nil || tries != deleteTries {
		t.Errorf("%d tries, %v", tries, err)
	}
}

func taintsOf(t *testing.T, client *fake.Clientset) map[string]string {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, taint := range n.Spec.Taints {
		out[taint.Key] = taint.Value + ":" + string(taint.Effect)
	}
	return out
}

// TestFence: the out-of-service taint is put once, and not on a Node that changed.
func TestFence(t *testing.T) {
	client := fake.NewClientset(apiNode("n", id(0), corev1.ConditionUnknown))
	s := bare(client)
	if err := s.fence(t.Context(), Deletion{Node: "n", UID: "another", ProviderID: string(id(0))}); err != nil || len(taintsOf(t, client)) != 0 {
		t.Errorf("another Node was fenced: %v %v", taintsOf(t, client), err)
	}
	for range 2 {
		if err := s.fence(t.Context(), Deletion{Node: "n", UID: "uid-n", ProviderID: string(id(0))}); err != nil {
			t.Fatal(err)
		}
	}
	if got := taintsOf(t, client); len(got) != 1 || got["node.kubernetes.io/out-of-service"] != "nodeshutdown:NoExecute" {
		t.Errorf("taints %v", got)
	}
}

// TestMarkShutdown: the mark comes and goes, and a cloud controller manager's stays.
func TestMarkShutdown(t *testing.T) {
	client := fake.NewClientset(apiNode("n", id(0), corev1.ConditionUnknown))
	s := bare(client)
	mark := func(on bool) map[string]string {
		t.Helper()
		if err := s.markShutdown(t.Context(), Mark{Node: "n", UID: "uid-n", On: on}); err != nil {
			t.Fatal(err)
		}
		return taintsOf(t, client)
	}
	if got := mark(true); got[taintShutdown] != shutdownValue+":NoSchedule" {
		t.Errorf("taints %v", got)
	}
	if got := mark(false); len(got) != 0 {
		t.Errorf("taints %v", got)
	}
	n := apiNode("n", id(0), corev1.ConditionUnknown)
	n.Spec.Taints = []corev1.Taint{{Key: taintShutdown, Effect: corev1.TaintEffectNoSchedule}}
	if _, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := mark(false); len(got) != 1 {
		t.Errorf("somebody else's taint was taken: %v", got)
	}
}

// TestDecideMarksStoppedInstances: a stopped machine's Node is marked and kept, and the
// mark goes with the stop; nobody is marked who is Ready, and in mode observe nobody.
func TestDecideMarksStoppedInstances(t *testing.T) {
	w := newWorld()
	w.lose(0)
	w.phase(0, cluster.PhaseStopped)
	w.phase(1, cluster.PhaseStopped) // Ready still
	w.pass(20e9)
	if len(w.plan.Shutdown) != 1 || w.plan.Shutdown[0] != (Mark{Node: "n00", UID: "u00", On: true}) || w.held(0) != "G1" {
		t.Fatalf("marks %+v, held by %s", w.plan.Shutdown, w.held(0))
	}
	for name, set := range map[string]func(on bool){
		"mode observe":       func(on bool) { w.policy.Observe = on },
		"a cloud controller": func(on bool) { w.in.Coexist = map[bool]string{true: "it works"}[on] },
		"an outage":          func(on bool) { w.in.Outage = map[bool]string{true: "no answer"}[on] },
		"a stale group":      func(on bool) { w.in.Groups[0].Stale = map[bool]string{true: "throttled"}[on] },
		"an operator": func(on bool) {
			w.node(0).Annotations = map[string]string{cluster.AnnotationKeep: map[bool]string{true: "true"}[on]}
		},
	} {
		set(true)
		if w.step(); len(w.plan.Shutdown) != 0 {
			t.Errorf("%s: marks %+v", name, w.plan.Shutdown)
		}
		set(false)
	}
	w.node(2).Taints = []cluster.Taint{{Key: taintShutdown, Effect: "NoSchedule"}, {Key: "example.net/owner", Value: shutdownValue, Effect: "NoSchedule"}}
	if w.step(); len(w.plan.Shutdown) != 1 {
		t.Errorf("somebody else's mark is taken: %+v", w.plan.Shutdown)
	}
	w.node(0).Taints = append(w.node(0).Taints, cluster.Taint{Key: taintShutdown, Value: shutdownValue, Effect: "NoSchedule"})
	w.step()
	if len(w.plan.Shutdown) != 0 {
		t.Errorf("marked twice: %+v", w.plan.Shutdown)
	}
	w.phase(0, cluster.PhaseRunning)
	w.pass(10e9)
	if len(w.plan.Shutdown) != 1 || w.plan.Shutdown[0].On {
		t.Errorf("the mark stays: %+v", w.plan.Shutdown)
	}
	w.node(0).Ready = cluster.StatusTrue
	w.node(0).Taints = append(w.node(0).Taints, cluster.Taint{Key: "example.net/other", Effect: "NoSchedule"})
	if w.step(); len(w.plan.Shutdown) != 1 || w.plan.Shutdown[0].On {
		t.Errorf("the mark stays on a Ready Node: %+v", w.plan.Shutdown)
	}
	w.phase(0, cluster.PhaseStopped) // as a read says that lags
	if w.step(); len(w.plan.Shutdown) != 1 || w.plan.Shutdown[0].On {
		t.Errorf("the mark stays on a Ready Node: %+v", w.plan.Shutdown)
	}
}

func forbid(kubetesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("no"))
}
