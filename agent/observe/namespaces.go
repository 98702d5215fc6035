package observe

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func (w *world) putNamespace(n *corev1.Namespace) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, had := w.namespaces.get(n.Name); had && maps.Equal(old.Labels, n.Labels) {
		return Never
	}
	w.namespaces.put(n.Name, cluster.Namespace{Name: n.Name, Labels: n.Labels})
	return w.namespaceUrgency()
}

func (w *world) dropNamespace(name string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.namespaces.drop(name)
	return w.namespaceUrgency()
}

func (w *world) namespaceUrgency() Urgency {
	if w.classes.asking > 0 {
		return Soon
	}
	return Never
}

// askedNamespaces returns the namespaces when some class asks for their labels, and
// none otherwise: a Snapshot carries what a decision reads.
func (w *world) askedNamespaces() []cluster.Namespace {
	if w.classes.asking == 0 {
		return nil
	}
	return w.namespaces.snapshot()
}
