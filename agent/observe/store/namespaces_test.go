package store

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestNamespacesAreThereWhileSomeClassAsks(t *testing.T) {
	w := New(nil)
	ns := func(label string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": label}}}
	}
	if got := w.PutNamespace(ns("a")); got != Never || w.contents().Namespaces != nil {
		t.Errorf("nobody asks: urgency %d, %+v", got, w.contents().Namespaces)
	}
	asks := pod("p", func(p *corev1.Pod) {
		p.Spec.Affinity = affinityOf(corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}})
	})
	w.PutPod(asks)
	want := []cluster.Namespace{{Name: "ns", Labels: map[string]string{"team": "a"}}}
	if got := w.contents().Namespaces; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := w.PutNamespace(ns("a")); got != Never {
		t.Errorf("the same again: urgency %d", got)
	}
	if got := w.PutNamespace(ns("b")); got != Soon || w.contents().Namespaces[0].Labels["team"] != "b" {
		t.Errorf("another label: urgency %d, %+v", got, w.contents().Namespaces)
	}
	if got := w.DeleteNamespace("ns"); got != Soon || len(w.contents().Namespaces) != 0 {
		t.Errorf("gone: urgency %d, %+v", got, w.contents().Namespaces)
	}
	if w.DeletePod("ns/p", ""); w.classes.selectingNamespaces != 0 {
		t.Errorf("%d classes ask after the last is gone", w.classes.selectingNamespaces)
	}
}
