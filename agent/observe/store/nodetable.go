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
	listed       []*nodeEntry    // those with a Node
	unshared     []*nodeEntry    // those that no Snapshot shares whole
	lastSnapshot []*cluster.Node // the last slice handed out; nil when a Node changed since
	version      int             // counts changes of Nodes, those of their pods aside
}

// nodeEntry is one node name: its Node, or only the pods that name it (a pod may be seen
// before its Node, and outlive it).
type nodeEntry struct {
	node       *cluster.Node // never nil; only Name and Pods hold while listed is false
	listed     bool
	index      int  // in cells.rows
	sharesNode bool // a Snapshot has node
	sharesPods bool // a Snapshot has node.Pods
	unshared   bool // it is in cells.fresh
}

func (c *nodeTable) get(name cluster.NodeName) (*cluster.Node, bool) {
	if k := c.entries[name]; k != nil && k.listed {
		return k.node, true
	}
	return nil, false
}

func (c *nodeTable) entry(name cluster.NodeName) *nodeEntry {
	k := c.entries[name]
	if k == nil {
		if c.entries == nil {
			c.entries = map[cluster.NodeName]*nodeEntry{}
		}
		k = &nodeEntry{node: &cluster.Node{Name: name}}
		c.entries[name] = k
	}
	return k
}

// prepareWrite copies the Node of an entry if a Snapshot has it.
func (c *nodeTable) prepareWrite(k *nodeEntry) {
	if k.sharesNode {
		n := *k.node
		k.node, k.sharesNode = &n, false
	}
	if !k.unshared {
		k.unshared = true
		c.unshared = append(c.unshared, k)
	}
	c.lastSnapshot = nil
}

// put replaces a Node except its pods.
func (c *nodeTable) put(n cluster.Node) {
	c.version++
	k := c.entry(n.Name)
	n.Pods = k.node.Pods
	k.node, k.sharesNode = &n, false
	c.prepareWrite(k)
	if !k.listed {
		k.listed, k.index = true, len(c.listed)
		c.listed = append(c.listed, k)
	}
}

// delete removes a Node and keeps the pods that name it, if there are any.
func (c *nodeTable) delete(name cluster.NodeName) {
	k := c.entries[name]
	if k == nil || !k.listed {
		return
	}
	c.version++
	last := c.listed[len(c.listed)-1]
	c.listed[k.index], last.index = last, k.index
	c.listed = slices.Delete(c.listed, len(c.listed)-1, len(c.listed))
	k.listed = false
	k.node, k.sharesNode = &cluster.Node{Name: name, Pods: k.node.Pods}, false
	c.lastSnapshot = nil
	c.deleteIfEmpty(k)
}

// deleteIfEmpty removes an entry without a Node and without pods.
func (c *nodeTable) deleteIfEmpty(k *nodeEntry) {
	if !k.listed && len(k.node.Pods) == 0 {
		delete(c.entries, k.node.Name)
	}
}

// pod returns the pod of that key on a node; it is valid until the next change.
func (c *nodeTable) pod(key cluster.PodKey, node cluster.NodeName) *cluster.Pod {
	k := c.entries[node]
	if k == nil {
		return nil
	}
	if i, ok := findPod(k.node.Pods, key); ok {
		return &k.node.Pods[i]
	}
	return nil
}

func findPod(pods []cluster.Pod, key cluster.PodKey) (int, bool) {
	return slices.BinarySearchFunc(pods, key, func(p cluster.Pod, key cluster.PodKey) int {
		return strings.Compare(string(p.Key), string(key))
	})
}

// putPod puts a pod on the node that it names; it replaces the pod with that key.
func (c *nodeTable) putPod(p cluster.Pod) {
	k := c.entry(p.Node)
	c.prepareWrite(k)
	pods := k.node.Pods
	i, had := findPod(pods, p.Key)
	switch {
	case had && k.sharesPods:
		k.node.Pods = slices.Clone(pods)
		k.node.Pods[i] = p
	case had:
		pods[i] = p
	case k.sharesPods:
		grown := make([]cluster.Pod, len(pods)+1)
		copy(grown, pods[:i])
		grown[i] = p
		copy(grown[i+1:], pods[i:])
		k.node.Pods = grown
	default:
		k.node.Pods = slices.Insert(pods, i, p)
	}
	k.sharesPods = false
}

// deletePod removes a pod from a node.
func (c *nodeTable) deletePod(key cluster.PodKey, node cluster.NodeName) {
	k := c.entries[node]
	if k == nil {
		return
	}
	i, had := findPod(k.node.Pods, key)
	if !had {
		return
	}
	c.prepareWrite(k)
	if k.sharesPods {
		k.node.Pods = slices.Clone(k.node.Pods)
		k.sharesPods = false
	}
	k.node.Pods = slices.Delete(k.node.Pods, i, i+1)
	c.deleteIfEmpty(k)
}

// updatePods calls update with a copy of every pod, and stores the copy where update
// reports a change.
func (c *nodeTable) updatePods(do func(*cluster.Pod) bool) {
	for _, k := range c.entries {
		for i := range k.node.Pods {
			if p := k.node.Pods[i]; do(&p) {
				c.putPod(p)
			}
		}
	}
}

// maxSpareCapacity is how many unused elements the pod slice of a Node in a Snapshot may
// hold.
const maxSpareCapacity = 4

// snapshot returns the Nodes, which are not written to any more, and the pods that name
// a Node which is not listed. It returns the same slice again while nothing changed.
func (c *nodeTable) snapshot() (nodes []*cluster.Node, lost []cluster.Pod) {
	for _, k := range c.unshared {
		if pods := k.node.Pods; cap(pods) > len(pods)+maxSpareCapacity {
			k.node.Pods = append(make([]cluster.Pod, 0, len(pods)), pods...)
		}
		k.unshared, k.sharesNode, k.sharesPods = false, true, true
	}
	c.unshared = c.unshared[:0]
	if c.lastSnapshot == nil && len(c.listed) > 0 {
		c.lastSnapshot = make([]*cluster.Node, len(c.listed))
		for i, k := range c.listed {
			c.lastSnapshot[i] = k.node
		}
	}
	if len(c.entries) > len(c.listed) {
		for _, k := range c.entries {
			if !k.listed {
				lost = append(lost, k.node.Pods...)
			}
		}
	}
	return c.lastSnapshot, lost
}
