package observe

import (
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// cells keep the Nodes with the pods that are bound to them. A value that a Snapshot
// has taken is never written to again: the next change makes a copy of that one Node,
// so that whoever compares pointers sees what changed and nothing else. Not safe for
// concurrent use.
type cells struct {
	at    map[cluster.NodeName]*cell
	rows  []*cell         // those with a Node
	fresh []*cell         // those that no Snapshot shares whole
	taken []*cluster.Node // the last slice handed out; nil when a Node changed since
	looks int             // counts changes of Nodes, those of their pods aside
}

// cell is one node name: its Node, or only the pods that name it (pods may be seen
// before their Node, and outlive it).
type cell struct {
	node       *cluster.Node // never nil; only Name and Pods hold while listed is false
	listed     bool
	index      int  // in cells.rows
	sharesNode bool // a Snapshot has node
	sharesPods bool // a Snapshot has node.Pods
	fresh      bool // it is in cells.fresh
}

func (c *cells) get(name cluster.NodeName) (*cluster.Node, bool) {
	if k := c.at[name]; k != nil && k.listed {
		return k.node, true
	}
	return nil, false
}

func (c *cells) cell(name cluster.NodeName) *cell {
	k := c.at[name]
	if k == nil {
		if c.at == nil {
			c.at = map[cluster.NodeName]*cell{}
		}
		k = &cell{node: &cluster.Node{Name: name}}
		c.at[name] = k
	}
	return k
}

// touch readies a cell for a change of its Node.
func (c *cells) touch(k *cell) {
	if k.sharesNode {
		n := *k.node
		k.node, k.sharesNode = &n, false
	}
	if !k.fresh {
		k.fresh = true
		c.fresh = append(c.fresh, k)
	}
	c.taken = nil
}

// put replaces all of a Node but its pods.
func (c *cells) put(n cluster.Node) {
	c.looks++
	k := c.cell(n.Name)
	n.Pods = k.node.Pods
	k.node, k.sharesNode = &n, false
	c.touch(k)
	if !k.listed {
		k.listed, k.index = true, len(c.rows)
		c.rows = append(c.rows, k)
	}
}

// drop forgets a Node and keeps the pods that name it, if there are any.
func (c *cells) drop(name cluster.NodeName) {
	k := c.at[name]
	if k == nil || !k.listed {
		return
	}
	c.looks++
	last := c.rows[len(c.rows)-1]
	c.rows[k.index], last.index = last, k.index
	c.rows = slices.Delete(c.rows, len(c.rows)-1, len(c.rows))
	k.listed = false
	k.node, k.sharesNode = &cluster.Node{Name: name, Pods: k.node.Pods}, false
	c.taken = nil
	c.tidy(k)
}

// tidy forgets a cell that holds nothing.
func (c *cells) tidy(k *cell) {
	if !k.listed && len(k.node.Pods) == 0 {
		delete(c.at, k.node.Name)
	}
}

// pod returns the pod of that key on a node; it is valid until the next change.
func (c *cells) pod(key cluster.PodKey, node cluster.NodeName) *cluster.Pod {
	k := c.at[node]
	if k == nil {
		return nil
	}
	if i, ok := find(k.node.Pods, key); ok {
		return &k.node.Pods[i]
	}
	return nil
}

func find(pods []cluster.Pod, key cluster.PodKey) (int, bool) {
	return slices.BinarySearchFunc(pods, key, func(p cluster.Pod, key cluster.PodKey) int {
		return strings.Compare(string(p.Key), string(key))
	})
}

// putPod puts a pod on the node that it names, in place of the one of that key.
func (c *cells) putPod(p cluster.Pod) {
	k := c.cell(p.Node)
	c.touch(k)
	pods := k.node.Pods
	i, had := find(pods, p.Key)
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

// dropPod takes a pod off a node.
func (c *cells) dropPod(key cluster.PodKey, node cluster.NodeName) {
	k := c.at[node]
	if k == nil {
		return
	}
	i, had := find(k.node.Pods, key)
	if !had {
		return
	}
	c.touch(k)
	if k.sharesPods {
		k.node.Pods = slices.Clone(k.node.Pods)
		k.sharesPods = false
	}
	k.node.Pods = slices.Delete(k.node.Pods, i, i+1)
	c.tidy(k)
}

// each calls do with a copy of every pod and puts it back where do says that it
// changed it.
func (c *cells) each(do func(*cluster.Pod) bool) {
	for _, k := range c.at {
		for i := range k.node.Pods {
			if p := k.node.Pods[i]; do(&p) {
				c.putPod(p)
			}
		}
	}
}

// slack is how much room for more pods a Node in a Snapshot may hold on to.
const slack = 4

// snapshot returns the Nodes, which nobody writes to any more, and the pods that name
// a Node which is not listed. While nothing changed it is the same slice again.
func (c *cells) snapshot() (nodes []*cluster.Node, lost []cluster.Pod) {
	for _, k := range c.fresh {
		if pods := k.node.Pods; cap(pods) > len(pods)+slack {
			k.node.Pods = append(make([]cluster.Pod, 0, len(pods)), pods...)
		}
		k.fresh, k.sharesNode, k.sharesPods = false, true, true
	}
	c.fresh = c.fresh[:0]
	if c.taken == nil && len(c.rows) > 0 {
		c.taken = make([]*cluster.Node, len(c.rows))
		for i, k := range c.rows {
			c.taken[i] = k.node
		}
	}
	if len(c.at) > len(c.rows) {
		for _, k := range c.at {
			if !k.listed {
				lost = append(lost, k.node.Pods...)
			}
		}
	}
	return c.taken, lost
}
