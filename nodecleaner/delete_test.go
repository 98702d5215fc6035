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
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
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
	return &Service{deps: Deps{Client: kubetest.Client(client), MayAct: func() (bool, string) { return true, "" }}, log: log.WithField("service", "nodecleaner")}
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
			d := reaper.Deletion{Node: "n", UID: "uid-n", ProviderID: string(id(0)), Rule: "G3"}
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
	if err := bare(client).deleteOne(t.Context(), reaper.Deletion{Node: "n", UID: "uid-n", ProviderID: string(id(0))}); err == nil || tries != deleteTries {
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
	if err := s.fence(t.Context(), reaper.Deletion{Node: "n", UID: "another", ProviderID: string(id(0))}); err != nil || len(taintsOf(t, client)) != 0 {
		t.Errorf("another Node was fenced: %v %v", taintsOf(t, client), err)
	}
	for range 2 {
		if err := s.fence(t.Context(), reaper.Deletion{Node: "n", UID: "uid-n", ProviderID: string(id(0))}); err != nil {
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
		if err := s.markShutdown(t.Context(), reaper.Mark{Node: "n", UID: "uid-n", On: on}); err != nil {
			t.Fatal(err)
		}
		return taintsOf(t, client)
	}
	if got := mark(true); got[reaper.TaintShutdown] != reaper.ShutdownValue+":NoSchedule" {
		t.Errorf("taints %v", got)
	}
	if got := mark(false); len(got) != 0 {
		t.Errorf("taints %v", got)
	}
	n := apiNode("n", id(0), corev1.ConditionUnknown)
	n.Spec.Taints = []corev1.Taint{{Key: reaper.TaintShutdown, Effect: corev1.TaintEffectNoSchedule}}
	if _, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := mark(false); len(got) != 1 {
		t.Errorf("somebody else's taint was taken: %v", got)
	}
}

func forbid(kubetesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("no"))
}
