package store

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func (w *Store) PutNamespace(n *corev1.Namespace) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, had := w.namespaces.get(n.Name); had && maps.Equal(old.Labels, n.Labels) {
		return Never
	}
	w.namespaces.put(n.Name, cluster.Namespace{Name: n.Name, Labels: n.Labels})
	return w.namespaceUrgency()
}

func (w *Store) DeleteNamespace(name string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.namespaces.delete(name)
	return w.namespaceUrgency()
}

func (w *Store) namespaceUrgency() Urgency {
	if w.classes.selectingNamespaces > 0 {
		return Soon
	}
	return Never
}

// namespacesIfSelected returns the namespaces while some class selects them by labels,
// and nil otherwise: a Snapshot carries what a decision reads.
func (w *Store) namespacesIfSelected() []cluster.Namespace {
	if w.classes.selectingNamespaces == 0 {
		return nil
	}
	return w.namespaces.snapshot()
}
