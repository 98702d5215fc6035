package store

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func (s *Store) PutNamespace(n *corev1.Namespace) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, had := s.namespaces.get(n.Name); had && maps.Equal(old.Labels, n.Labels) {
		return Never
	}
	s.namespaces.put(n.Name, cluster.Namespace{Name: n.Name, Labels: n.Labels})
	return s.namespaceUrgency()
}

func (s *Store) DeleteNamespace(name string) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaces.delete(name)
	return s.namespaceUrgency()
}

func (s *Store) namespaceUrgency() Urgency {
	if s.classes.selectingNamespaces > 0 {
		return Soon
	}
	return Never
}

// namespacesIfSelected returns the namespaces while some class selects them by labels,
// and nil otherwise: a Snapshot carries what a decision reads.
func (s *Store) namespacesIfSelected() []cluster.Namespace {
	if s.classes.selectingNamespaces == 0 {
		return nil
	}
	return s.namespaces.snapshot()
}
