package store

import (
	"crypto/sha256"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/devices"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/volumes"
)

// PodRow is what the Store takes of one pod. A corev1.Pod takes thirty times the memory, so
// a list of a whole cluster is held as values of PodRow.
type PodRow struct {
	row     cluster.Pod
	class   *cluster.PodClass // without its volumes; equal classes of one PodReader are one
	volumes volumes.Use
	devices devices.Use
}

// PodReader reads the pods of one list. Pods of the list share their class, their owner and
// the name of their node. Not safe for concurrent use.
type PodReader struct {
	store     *Store
	classes   map[classKey]*cluster.PodClass
	allowance allowance // the list is in memory beside what the Store holds
	owners    map[cluster.Owner]*cluster.Owner
	nodes     map[cluster.NodeName]cluster.NodeName
	buf       []byte
}

// PodReader makes a reader of one list of pods.
func (s *Store) PodReader() *PodReader {
	return &PodReader{store: s, classes: map[classKey]*cluster.PodClass{}, owners: map[cluster.Owner]*cluster.Owner{}, nodes: map[cluster.NodeName]cluster.NodeName{}}
}

// Read returns what the Store takes of a pod. Nothing keeps the pod.
func (r *PodReader) Read(p *corev1.Pod) *PodRow { return r.store.readPod(p, r) }

// readPod reads a pod; shared may be nil.
func (s *Store) readPod(p *corev1.Pod, shared *PodReader) *PodRow {
	class := convert.PodClass(p, s.schedulers)
	out := &PodRow{row: convert.Pod(p), class: &class, volumes: volumes.PodUse(p), devices: devices.PodUse(p)}
	if shared != nil {
		shared.share(out)
	}
	return out
}

// share replaces the parts of a row that the reader has met before.
func (r *PodReader) share(p *PodRow) {
	if p.class = r.class(p.class); p.class.TooLarge {
		p.volumes, p.devices = volumes.Use{}, devices.Use{} // what they demand is not kept either
	}
	if p.row.Owner != nil {
		if o, ok := r.owners[*p.row.Owner]; ok {
			p.row.Owner = o
		} else {
			r.owners[*p.row.Owner] = p.row.Owner
		}
	}
	name, ok := r.nodes[p.row.Node]
	if !ok {
		name = p.row.Node
		r.nodes[name] = name
	}
	p.row.Node = name
}

// class returns the class of the list that equals c.
func (r *PodReader) class(c *cluster.PodClass) *cluster.PodClass {
	r.buf = cluster.AppendClass(r.buf[:0], c)
	key := classKey(sha256.Sum256(r.buf))
	if known, ok := r.classes[key]; ok {
		return known
	}
	if !r.allowance.take(c.Namespace, len(r.buf)) {
		without := withhold(c)
		return r.class(&without)
	}
	r.classes[key] = c
	return c
}

// ReplacePods makes the Store hold exactly the pods of a list. A pod that is not listed is
// gone, and so is a pod that is listed on another node: the listed one has the same name and
// no more, even if no watch event said so.
func (s *Store) ReplacePods(list []*PodRow) Urgency {
	gone := s.podNodes()
	for _, p := range list {
		if node, ok := gone[p.row.Key]; ok && (node == "" || node == p.row.Node) {
			delete(gone, p.row.Key)
		}
	}
	most := Never
	for _, key := range slices.Sorted(maps.Keys(gone)) {
		most = max(most, s.DeletePod(key, gone[key]))
	}
	for _, p := range list {
		most = max(most, s.put(p))
	}
	return most
}

// podNodes returns every pod with its node ("": pending).
func (s *Store) podNodes() map[cluster.PodKey]cluster.NodeName {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[cluster.PodKey]cluster.NodeName{}
	for _, key := range s.pods.keys {
		out[key] = ""
	}
	for name, e := range s.nodes.entries {
		for i := range e.node.Pods {
			out[e.node.Pods[i].Key] = name
		}
	}
	return out
}
