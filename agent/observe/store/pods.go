package store

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// ownedPods counts the pods of one controller.
type ownedPods struct {
	owner *cluster.Owner // shared by all of them
	pods  int
	live  int
}

// PutPod stores a pod. A pod that was bound to another node before must be deleted first
// (ReplacePods does so).
func (s *Store) PutPod(p *corev1.Pod) Urgency { return s.put(s.readPod(p, nil)) }

// put stores a pod that was read.
func (s *Store) put(p *PodRow) Urgency {
	row, class := p.row, *p.class
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volumes.SetPod(row.Key, p.volumes, &class)
	s.devices.SetPod(row.Key, p.devices, &class)
	s.setClass(&row, class)
	if s.classes.rows[row.Class].TooLarge {
		s.volumes.DeletePod(row.Key)
		s.devices.DeletePod(row.Key)
	}
	old, had := s.pod(row.Key, row.Node)
	if had {
		s.releaseClass(&old)
		if samePod(&old, &row) {
			return Never
		}
	}
	s.countOwned(&row, 1)
	if had {
		s.countOwned(&old, -1)
	}
	if row.Node == "" {
		s.pods.put(row.Key, row)
	} else {
		if had && old.Node == "" {
			s.pods.delete(row.Key)
		}
		s.nodes.putPod(row)
		s.volumesChanged(row.Node, row.Class)
	}
	switch {
	case !row.Unschedulable.IsZero() && (old.Unschedulable.IsZero() || old.UID != row.UID):
		if s.unschedulableSince.IsZero() {
			s.unschedulableSince = time.Now()
		}
		return Soon
	case had && old.Node == row.Node && old.Deleting == row.Deleting && old.Class == row.Class && old.Takes == row.Takes && old.Gated == row.Gated &&
		old.Finished == row.Finished && old.UID == row.UID:
		return Never
	}
	return Later
}

// pod returns the pod with that key, pending or on that node.
func (s *Store) pod(key cluster.PodKey, node cluster.NodeName) (cluster.Pod, bool) {
	if p, ok := s.pods.get(key); ok {
		return p, true
	}
	if p := s.nodes.pod(key, node); p != nil {
		return *p, true
	}
	return cluster.Pod{}, false
}

// samePod compares two rows of one key.
func samePod(a, b *cluster.Pod) bool {
	return a.UID == b.UID && a.Class == b.Class && a.Takes == b.Takes && a.Changed == b.Changed && a.Node == b.Node && a.Nominated == b.Nominated &&
		a.Unschedulable == b.Unschedulable && a.Created == b.Created && a.Deleting == b.Deleting &&
		(a.Owner == b.Owner || a.Owner != nil && b.Owner != nil && *a.Owner == *b.Owner) &&
		a.Gated == b.Gated && a.Finished == b.Finished && a.Unready == b.Unready && a.Troubles() == b.Troubles() && a.Unstarted == b.Unstarted && a.Mirror == b.Mirror && a.DoNotDisrupt == b.DoNotDisrupt &&
		a.SafeToEvict == b.SafeToEvict && a.LocalStorage == b.LocalStorage && a.GracePeriod == b.GracePeriod && a.Asked() == b.Asked() &&
		slices.Equal(a.Budgets, b.Budgets)
}

// DeletePod removes a pod that was last seen on that node ("": pending).
func (s *Store) DeletePod(key cluster.PodKey, node cluster.NodeName) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.pod(key, node)
	if !had {
		return Never
	}
	s.volumes.DeletePod(key)
	s.devices.DeletePod(key)
	s.countOwned(&old, -1)
	if old.Node == "" {
		s.pods.delete(key)
	} else {
		s.nodes.deletePod(key, old.Node)
		s.volumesChanged(old.Node, old.Class)
	}
	s.releaseClass(&old)
	if old.Owner != nil && old.Owner.Kind == "Job" {
		delete(s.controllers, old.Owner.UID) // the pod may have succeeded, and the status of the Job is updated later
		s.updateMissing(old.Owner.UID)
	}
	if n, ok := s.nodes.get(old.Node); ok && draining(n) {
		return Soon // the drain of that node may have ended
	}
	return Later
}

func draining(n *cluster.Node) bool {
	for _, t := range n.Taints {
		if t.Key == cluster.TaintToBeDeleted {
			return true
		}
	}
	return false
}

// countOwned counts the pods of a controller, and lets them share its owner reference.
func (s *Store) countOwned(p *cluster.Pod, by int) {
	if p.Owner == nil {
		return
	}
	b := s.podsByController[p.Owner.UID]
	if b == nil {
		b = &ownedPods{owner: p.Owner}
		s.podsByController[p.Owner.UID] = b
	}
	if *b.owner == *p.Owner {
		p.Owner = b.owner
	}
	if b.pods += by; b.pods <= 0 {
		delete(s.podsByController, p.Owner.UID)
	}
	if !p.Finished && p.Deleting.IsZero() {
		if b.live += by; b.live <= 0 {
			s.forgetGone(p.Owner.UID)
		}
		s.updateMissing(p.Owner.UID)
	}
}
