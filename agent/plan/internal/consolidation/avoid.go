package consolidation

import (
	"cmp"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// Bounds of one look for nodes to avoid: nodes that are avoided at once, and that are tried for that.
const (
	mostAvoided = 10
	mostTried   = 30
)

// avoid finds nodes that new pods should keep away from: all their pods together have room on the other nodes, whatever moving them
// counts for and however young they are. The agent moves none of these pods: they end by themselves, in rollouts, as Jobs, and
// when a workload shrinks, and the nodes become idle or cheap to replace. Nodes that are avoided already stay so as long as that holds.
// It costs movable, and Fit for at most 30 sets of nodes.
func (w *Search) avoid() {
	was := w.Memory.Avoided
	if was == nil {
		was = &decision.Avoided{}
	}
	if w.Snapshot.Stale != "" || !w.Reached(was.Looked.Add(lookEvery)) {
		w.Next.Avoided = w.Memory.Avoided
		return
	}
	next := &decision.Avoided{Looked: w.Now, Since: make(map[cluster.NodeName]time.Time)}
	w.Next.Avoided = next
	rank := func(i int) int {
		if _, is := was.Since[w.Nodes[i].Name]; is {
			return 0
		}
		return 1
	}
	list := w.movable()
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	var from []int
	for _, i := range list[:min(len(list), mostTried)] {
		if len(from) == mostAvoided || !w.mover.Look(0) {
			return
		}
		try := append(slices.Clone(from), i)
		if idle, ok := w.mover.Fit(try, nil, 0); !ok || len(idle) > 0 { // a node that nothing needs goes, and is no room
			continue
		}
		from = try
		name := w.Nodes[i].Name
		since, is := was.Since[name]
		if !is {
			since = w.Now
		}
		next.Since[name] = since
	}
}
