package round

import (
	"cmp"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// nodeFacts follow from one Node with its pods, the classes and the Policy alone:
// no clock, no budget, no other Node. They are worked out once per value of a Node.
type nodeFacts struct {
	node           *cluster.Node
	gen            int               // of the classes' dimensions
	Classes        []ClassCount      // of all pods here that are not finished
	room           []int64           // Allocatable less what is held
	Requested      cluster.Resources // by pods that count for utilisation; Extended only on a node with GPUs
	DaemonRequests cluster.Resources // the same of DaemonSet pods
	daemons        []DaemonPod       // pods of DaemonSets
	ToBeDeleted    bool              // marked for deletion
	CordonedByUs   bool              // with our cordon
	coming         *comingNode       // what it soon is, while it is young; nil: not asked yet
	Timed          bool              // a pod is terminating: drain plan depends on the clock
	Expendable     bool              // a pod takes no room, so that Classes say less than there is
	DrainKnown     bool              // drain plan is worked out
	Drain          DrainPlan         // what a drain would have to do, budgets aside; never where dated
	message        messageCache
}

// messageCache is a reason in words that was made for an earlier round: most nodes are held
// for the same reason round after round.
type messageCache struct {
	due   time.Time
	name  string
	words string
}

// refreshFacts brings the facts up to date with the Nodes of a round. changed are the
// classes that are not what they were.
func (w *State) refreshFacts(changed []bool) {
	e := w.Cache
	var moved map[*cluster.Node]*nodeFacts
	old, now := e.Facts, e.oldFacts[:0]
	made := FactsAllocator{Dims: w.Dimensions.Len()}
	if len(old) == 0 {
		made.facts, made.rooms = make([]nodeFacts, len(w.Snapshot.Nodes)), make([]int64, len(w.Snapshot.Nodes)*made.Dims)
	}
	for i, n := range w.Snapshot.Nodes {
		var f *nodeFacts
		if i < len(old) && old[i].node == n {
			f = old[i]
		} else {
			if moved == nil {
				moved = factsByNode(old, w.Snapshot.Nodes)
			}
			f = moved[n]
		}
		if f == nil || f.gen != e.Classes.gen || changed != nil && f.uses(changed) {
			f = made.Next()
			w.FillFacts(f, n)
		}
		now = append(now, f)
	}
	clear(old)
	e.Facts, e.oldFacts = now, old[:0]
}

// factsByNode are the facts of Nodes that are not at the place where they were.
func factsByNode(old []*nodeFacts, nodes []*cluster.Node) map[*cluster.Node]*nodeFacts {
	out := make(map[*cluster.Node]*nodeFacts)
	for i, f := range old {
		if i >= len(nodes) || nodes[i] != f.node {
			out[f.node] = f
		}
	}
	return out
}

func (f *nodeFacts) uses(changed []bool) bool {
	return slices.ContainsFunc(f.Classes, func(h ClassCount) bool { return changed[h.Class] })
}

// FactsAllocator is where the facts of a first round are: one after the other, as they are read.
// Later ones come one by one, each with its own life.
type FactsAllocator struct {
	facts []nodeFacts
	rooms []int64
	Dims  int
}

func (b *FactsAllocator) Next() *nodeFacts {
	if len(b.facts) == 0 {
		return &nodeFacts{room: make([]int64, b.Dims)}
	}
	f := &b.facts[0]
	f.room = b.rooms[:b.Dims:b.Dims]
	b.facts, b.rooms = b.facts[1:], b.rooms[b.Dims:]
	return f
}

// FillFacts works the facts of a Node out.
func (w *State) FillFacts(f *nodeFacts, n *cluster.Node) {
	f.node, f.gen, f.ToBeDeleted, f.CordonedByUs = n, w.Cache.Classes.gen, ToBeDeleted(n), CordonedByUs(n)
	gpu := HasGPU(n)
	for i := range n.Pods {
		pod := &n.Pods[i]
		if pod.Finished {
			continue
		}
		takes, to := 1, &f.Requested
		switch {
		case Daemon(pod):
			to = &f.DaemonRequests
			if p, ok := daemonPod(pod); ok {
				f.daemons = append(f.daemons, p)
			}
		case w.Expendable(pod):
			takes, to, f.Expendable = 0, nil, true
		}
		if to != nil {
			addRequests(to, &w.Snapshot.Classes[pod.OnNode()].Requests, gpu)
		}
		w.Cache.Count.Add(pod.OnNode(), takes)
		f.Timed = f.Timed || !pod.Deleting.IsZero() || pod.Wishes != nil && pod.Wishes.KeepFor > 0
	}
	f.Classes = w.Cache.Count.Take(nil)
	w.Dimensions.Capacity(f.room, n.Allocatable)
	w.takeHeld(f, f.room)
}

// takeHeld takes what the pods of a Node take out of a room.
func (w *State) takeHeld(f *nodeFacts, room []int64) {
	for _, h := range f.Classes {
		binpack.Sub(room, w.Dimensions.Class(int(h.Class)), int(h.N))
	}
}

// Sorted returns pods by key; those of an observer are.
func Sorted(pods []cluster.Pod) []cluster.Pod {
	if slices.IsSortedFunc(pods, byKey) {
		return pods
	}
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, byKey)
	return pods
}

func byKey(a, b cluster.Pod) int { return cmp.Compare(a.Key, b.Key) }

// addRequests adds a request to a sum, extended resources only where they are asked for.
func addRequests(sum, r *cluster.Resources, extended bool) {
	sum.MilliCPU += r.MilliCPU
	sum.Memory += r.Memory
	if extended {
		for name, amount := range r.Extended {
			Set(&sum.Extended, name, sum.Extended[name]+amount)
		}
	}
}

// DueWords say when a node may go.
func (f *nodeFacts) DueWords(due time.Time) string {
	s := &f.message
	if !s.due.Equal(due) {
		*s = messageCache{due: due, words: "not needed: may go at " + Stamp(due)}
	}
	return s.words
}

// UnplaceableWords name the pod that keeps a node, and what keeps it off the others where because knows that.
func (f *nodeFacts) UnplaceableWords(pod cluster.PodKey, because func() string) string {
	why := ""
	if because != nil {
		why = because()
	}
	s := &f.message
	if s.name != string(pod)+why {
		*s = messageCache{name: string(pod) + why, words: "pod " + string(pod) + " has room nowhere else" + why}
	}
	return s.words
}

// DrainPlan lists the pods of a node that a drain evicts, and those that it leaves.
type DrainPlan struct {
	Movable     int            // pods to be evicted
	Classes     []ClassCount   // of them, those that need room elsewhere, the largest first
	Budgeted    []*cluster.Pod // of them, those with budgets, by name
	Terminating int            // pods already told to go
	Completing  []*cluster.Pod // pods that run to their end before the node goes, by name
	Blocked     []string       // every blocker of every pod, budgets included
	Hard        []string       // the same without budgets, which time may heal
	Grace       time.Duration
}
