// Package labelindex finds what a set of labels may satisfy without asking everything: selectors, node
// affinities and nodes by the values of the labels that they need. It refuses to decide: what it finds may still not match.
package labelindex

import (
	"cmp"
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Index finds what may take a set of labels without asking what needs a value that is not among them.
type Index struct {
	Every   []int32 // may take any labels
	byLabel map[string]map[string][]int32
}

// Add adds what takes only labels with one of these values.
func (x *Index) Add(id int32, key string, values ...string) {
	byValue := x.ofKey(key)
	for _, v := range slices.Compact(slices.Sorted(slices.Values(values))) {
		byValue[v] = append(byValue[v], id)
	}
}

// ofKey holds the entries that have been added with a key, by value.
func (x *Index) ofKey(key string) map[string][]int32 {
	if x.byLabel == nil {
		x.byLabel = map[string]map[string][]int32{}
	}
	if x.byLabel[key] == nil {
		x.byLabel[key] = map[string][]int32{}
	}
	return x.byLabel[key]
}

// Sharing is how many have been added with one of the values.
func (x *Index) Sharing(r *cluster.Requirement) (n int) {
	for _, v := range r.Values {
		n += len(x.byLabel[r.Key][v])
	}
	return n
}

// May calls back for whatever may take the labels.
func (x *Index) May(labels map[string]string, call func(id int32)) {
	for _, id := range x.Every {
		call(id)
	}
	for key, byValue := range x.byLabel {
		if value, has := labels[key]; has {
			for _, id := range byValue[value] {
				call(id)
			}
		}
	}
}

// NeededLabels lists labels of which a node needs one of the values each, or a class refuses it: nodeSelector, and what
// is required In a list by the only term of the node affinity. There may be more that it needs.
func NeededLabels(c *cluster.PodClass) (list []cluster.Requirement) {
	for _, key := range slices.Sorted(maps.Keys(c.NodeSelector)) {
		list = append(list, cluster.Requirement{Key: key, Operator: "In", Values: []string{c.NodeSelector[key]}})
	}
	if len(c.Affinity) == 1 {
		for _, r := range c.Affinity[0].Labels {
			if r.Operator == "In" {
				list = append(list, r)
			}
		}
	}
	return list
}

// FirstIn is a requirement In of the list; nil: there is none.
func FirstIn(list []cluster.Requirement) *cluster.Requirement {
	for i := range list {
		if list[i].Operator == "In" {
			return &list[i]
		}
	}
	return nil
}

// NodeIndex finds the nodes that have the labels which a class needs. The zero value is without nodes.
type NodeIndex struct {
	nodes int
	label func(node int) map[string]string
	keys  Index // of the keys that a class has asked for
}

// NewNodeIndex is of so many nodes with these labels, which must not change afterwards.
func NewNodeIndex(nodes int, labels func(node int) map[string]string) *NodeIndex {
	return &NodeIndex{nodes: nodes, label: labels}
}

// May are the nodes of which some may pass a class by their labels; all: any node may. It costs the nodes once for each key.
func (x *NodeIndex) May(c *cluster.PodClass) (nodes []int32, all bool) {
	needs := NeededLabels(c)
	if len(needs) == 0 {
		return nil, true
	}
	for i := range needs {
		if key := needs[i].Key; x.keys.byLabel[key] == nil {
			x.keys.ofKey(key) // it has been asked for also where no node has it
			for n := range x.nodes {
				if value, has := x.label(n)[key]; has {
					x.keys.Add(int32(n), key, value)
				}
			}
		}
	}
	least := slices.MinFunc(needs, func(r, o cluster.Requirement) int { return cmp.Compare(x.keys.Sharing(&r), x.keys.Sharing(&o)) })
	for _, v := range least.Values {
		nodes = append(nodes, x.keys.byLabel[least.Key][v]...)
	}
	return nodes, false
}
