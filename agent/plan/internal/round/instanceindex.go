package round

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// instanceIndex says which instance backs which Node, as long as neither the Nodes' names and
// addresses nor the groups' lists of instances change.
type instanceIndex struct {
	nodes  []*cluster.Node
	groups []indexedGroup
	id     cluster.Identity
	order  []int32 // of the Nodes by name
	byName map[cluster.NodeName]int
	group  []int32 // by Node, -1: none of ours
	inst   []*cluster.Instance
}

type indexedGroup struct {
	id        cluster.GroupID
	instances []cluster.Instance
}

// stillValid tells whether the index still holds, and takes over the Nodes' new values.
func (t *instanceIndex) stillValid(s *cluster.Snapshot) bool {
	if len(t.nodes) != len(s.Nodes) || len(t.groups) != len(s.Groups) {
		return false
	}
	for i := range s.Groups {
		if s.Groups[i].ID != t.groups[i].id || !Same(&s.Groups[i].Instances, &t.groups[i].instances) {
			return false
		}
	}
	for i, n := range s.Nodes {
		if o := t.nodes[i]; o != n {
			if n.Name != o.Name || n.ProviderID != o.ProviderID || n.SystemUUID != o.SystemUUID || !slices.Equal(n.Addresses, o.Addresses) {
				return false
			}
			t.nodes[i] = n
		}
	}
	return true
}

// matchInstances brings the index up to date.
func (w *State) matchInstances() {
	if !w.Cache.instances.stillValid(w.Snapshot) {
		w.Cache.instances.rebuild(w)
		w.rebuilt = true
	}
}

// rebuild finds the instance of each Node anew. It costs sorting N, and the instances.
func (t *instanceIndex) rebuild(w *State) {
	s := w.Snapshot
	*t = instanceIndex{nodes: slices.Clone(s.Nodes), id: cluster.Identify(s.Groups, s.Nodes),
		order: make([]int32, len(s.Nodes)), byName: make(map[cluster.NodeName]int, len(s.Nodes)),
		group: make([]int32, len(s.Nodes)), inst: make([]*cluster.Instance, len(s.Nodes))}
	t.groups = make([]indexedGroup, 0, len(s.Groups))
	for i := range s.Groups {
		t.groups = append(t.groups, indexedGroup{s.Groups[i].ID, s.Groups[i].Instances})
	}
	for i := range t.order {
		t.order[i] = int32(i)
	}
	slices.SortFunc(t.order, func(a, b int32) int { return CompareNames(s.Nodes[a], s.Nodes[b]) })
	for k, i := range t.order {
		t.byName[s.Nodes[i].Name] = k
		t.group[k] = -1
	}
	for g := range w.Groups {
		for i := range w.Groups[g].Instances {
			in := &w.Groups[g].Instances[i]
			if name, ok := t.id.Node[in.ID]; ok {
				if k := t.byName[name]; t.inst[k] == nil {
					t.group[k], t.inst[k] = int32(g), in
				}
			}
		}
	}
}
