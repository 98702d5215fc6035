package store

import (
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// nodeTable keeps the Nodes with the pods that are bound to them. It copies on write: a
// value in a Snapshot is never written to again, and the next change copies that one
// Node, so that a comparison of pointers finds exactly the Nodes that changed. Not safe
// for concurrent use.
type nodeTable struct {
	entries      map[cluster.NodeName]*nodeEntry
	listed       []*nodeEntry    // entries with a Node
	unshared     []*nodeEntry    // entries that no Snapshot shares completely
	lastSnapshot []*cluster.Node // the last slice handed out; nil when a Node changed since
	version      int             // counts changes of Nodes and of their static pods, but not of other pods
}

// nodeEntry is one node name: its Node, or only the pods that name it (a pod may be seen
// before its Node, and outlive it).
type nodeEntry struct {
	node       *cluster.Node // never nil; only Name and Pods hold while listed is false
	listed     bool
	index      int  // in nodeTable.listed
	sharesNode bool // a Snapshot has node
	sharesPods bool // a Snapshot has node.Pods
	unshared   bool // it is in nodeTable.unshared
}

func (t *nodeTable) get(name cluster.NodeName) (*cluster.Node, bool) {
	if e := t.entries[name]; e != nil && e.listed {
		return e.node, true
	}
	return nil, false
}

func (t *nodeTable) entry(name cluster.NodeName) *nodeEntry {
	e := t.entries[name]
	if e == nil {
		if t.entries == nil {
			t.entries = map[cluster.NodeName]*nodeEntry{}
		}
		e = &nodeEntry{node: &cluster.Node{Name: name}}
		t.entries[name] = e
	}
	return e
}

// prepareWrite copies the Node of an entry if a Snapshot has it.
func (t *nodeTable) prepareWrite(e *nodeEntry) {
	if e.sharesNode {
		n := *e.node
		e.node, e.sharesNode = &n, false
	}
	if !e.unshared {
		e.unshared = true
		t.unshared = append(t.unshared, e)
	}
	t.lastSnapshot = nil
}

// put replaces a Node except its pods.
func (t *nodeTable) put(n cluster.Node) {
	t.version++
	e := t.entry(n.Name)
	n.Pods = e.node.Pods
	e.node, e.sharesNode = &n, false
	t.prepareWrite(e)
	if !e.listed {
		e.listed, e.index = true, len(t.listed)
		t.listed = append(t.listed, e)
	}
}

// delete removes a Node and keeps the pods that name it, if there are any.
func (t *nodeTable) delete(name cluster.NodeName) {
	e := t.entries[name]
	if e == nil || !e.listed {
		return
	}
	t.version++
	last := t.listed[len(t.listed)-1]
	t.listed[e.index], last.index = last, e.index
	t.listed = slices.Delete(t.listed, len(t.listed)-1, len(t.listed))
	e.listed = false
	e.node, e.sharesNode = &cluster.Node{Name: name, Pods: e.node.Pods}, false
	t.lastSnapshot = nil
	t.deleteIfEmpty(e)
}

// deleteIfEmpty removes an entry without a Node and without pods.
func (t *nodeTable) deleteIfEmpty(e *nodeEntry) {
	if !e.listed && len(e.node.Pods) == 0 {
		delete(t.entries, e.node.Name)
	}
}

// pod returns the pod of that key on a node; it is valid until the next change.
func (t *nodeTable) pod(key cluster.PodKey, node cluster.NodeName) *cluster.Pod {
	e := t.entries[node]
	if e == nil {
		return nil
	}
	if i, ok := findPod(e.node.Pods, key); ok {
		return &e.node.Pods[i]
	}
	return nil
}

func findPod(pods []cluster.Pod, key cluster.PodKey) (int, bool) {
	return slices.BinarySearchFunc(pods, key, func(p cluster.Pod, key cluster.PodKey) int {
		return strings.Compare(string(p.Key), string(key))
	})
}

// putPod puts a pod on the node that it names; it replaces the pod with that key.
func (t *nodeTable) putPod(p cluster.Pod) {
	e := t.entry(p.Node)
	t.prepareWrite(e)
	p.Node = e.node.Name // one string for all pods of a node
	pods := e.node.Pods
	i, had := findPod(pods, p.Key)
	if p.Mirror && (!had || pods[i].Class != p.Class) {
		t.version++
	}
	switch {
	case had && e.sharesPods:
		e.node.Pods = slices.Clone(pods)
		e.node.Pods[i] = p
	case had:
		pods[i] = p
	case e.sharesPods:
		grown := make([]cluster.Pod, len(pods)+1)
		copy(grown, pods[:i])
		grown[i] = p
		copy(grown[i+1:], pods[i:])
		e.node.Pods = grown
	default:
		e.node.Pods = slices.Insert(pods, i, p)
	}
	e.sharesPods = false
}

// deletePod removes a pod from a node.
func (t *nodeTable) deletePod(key cluster.PodKey, node cluster.NodeName) {
	e := t.entries[node]
	if e == nil {
		return
	}
	i, had := findPod(e.node.Pods, key)
	if !had {
		return
	}
	if e.node.Pods[i].Mirror {
		t.version++
	}
	t.prepareWrite(e)
	if e.sharesPods {
		e.node.Pods = slices.Clone(e.node.Pods)
		e.sharesPods = false
	}
	e.node.Pods = slices.Delete(e.node.Pods, i, i+1)
	t.deleteIfEmpty(e)
}

// updatePods calls update with a copy of every pod, and stores the copy where update
// reports a change.
func (t *nodeTable) updatePods(do func(*cluster.Pod) bool) {
	for _, e := range t.entries {
		for i := range e.node.Pods {
			if p := e.node.Pods[i]; do(&p) {
				t.putPod(p)
			}
		}
	}
}

// maxSpareCapacity is how many unused elements the pod slice of a Node in a Snapshot may
// hold.
const maxSpareCapacity = 4

// snapshot returns the Nodes, which are not written to any more, and the pods that name
// a Node which is not listed. It returns the same slice again while nothing changed.
func (t *nodeTable) snapshot() (nodes []*cluster.Node, lost []cluster.Pod) {
	for _, e := range t.unshared {
		if pods := e.node.Pods; cap(pods) > len(pods)+maxSpareCapacity {
			e.node.Pods = append(make([]cluster.Pod, 0, len(pods)), pods...)
		}
		e.unshared, e.sharesNode, e.sharesPods = false, true, true
	}
	t.unshared = t.unshared[:0]
	if t.lastSnapshot == nil && len(t.listed) > 0 {
		t.lastSnapshot = make([]*cluster.Node, len(t.listed))
		for i, e := range t.listed {
			t.lastSnapshot[i] = e.node
		}
	}
	if len(t.entries) > len(t.listed) {
		for _, e := range t.entries {
			if !e.listed {
				lost = append(lost, e.node.Pods...)
			}
		}
	}
	return t.lastSnapshot, lost
}
