package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// nodeFacts are what follows from one Node with its pods, the classes and the Policy alone:
// no clock, no budget, no other Node. They are worked out once per value of a Node.
type nodeFacts struct {
	node           *cluster.Node
	gen            int               // of the classes' axes
	classes        []classCount      // of all pods here that are not finished
	room           []int64           // Allocatable less what is held
	requested      cluster.Resources // by pods that count for utilisation; Extended only on a node with GPUs
	daemonRequests cluster.Resources // the same of DaemonSet pods
	daemons        []cluster.UID     // DaemonSets with a pod here
	optOut         string            // which annotation keeps the Node
	toBeDeleted    bool              // marked for deletion
	cordonedByUs   bool              // with our cordon
	starting       bool              // it carries a taint that a young node loses by itself
	timed          bool              // a pod is terminating: drain plan depends on the clock
	drainKnown     bool              // drain plan is worked out
	drain          drainPlan         // what a drain would have to do, budgets aside; never where dated
	message        messageCache
}

// classCount is a class with pods on a node, and how many of them take room there.
type classCount struct{ class, n int32 }

// messageCache is a reason in words that was made for an earlier round: most nodes are held
// for the same reason round after round.
type messageCache struct {
	due   time.Time
	name  string
	words string
}

// refreshFacts brings the facts up to date with the Nodes of a round. changed are the
// classes that are not what they were.
func (w *roundState) refreshFacts(changed []bool) {
	e := w.e
	var moved map[*cluster.Node]*nodeFacts
	old, now := e.facts, e.oldFacts[:0]
	made := factsAllocator{axes: w.space.Len()}
	if len(old) == 0 && len(w.s.Nodes) > 0 {
		made.facts, made.rooms = make([]nodeFacts, len(w.s.Nodes)), make([]int64, len(w.s.Nodes)*made.axes)
	}
	for i, n := range w.s.Nodes {
		var f *nodeFacts
		if i < len(old) && old[i].node == n {
			f = old[i]
		} else if len(old) > 0 {
			if moved == nil {
				moved = factsByNode(old, w.s.Nodes)
			}
			f = moved[n]
		}
		if f == nil || f.gen != e.classes.gen || changed != nil && f.uses(changed) {
			f = made.next()
			w.fillFacts(f, n)
		}
		now = append(now, f)
	}
	clear(old)
	e.facts, e.oldFacts = now, old[:0]
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
	return slices.ContainsFunc(f.classes, func(h classCount) bool { return int(h.class) >= len(changed) || changed[h.class] })
}

// factsAllocator is where the facts of a first round are: one after the other, as they are read.
// Later ones come one by one, each with its own life.
type factsAllocator struct {
	facts []nodeFacts
	rooms []int64
	axes  int
}

func (b *factsAllocator) next() *nodeFacts {
	if len(b.facts) == 0 {
		return &nodeFacts{room: make([]int64, b.axes)}
	}
	f := &b.facts[0]
	f.room = b.rooms[:b.axes:b.axes]
	b.facts, b.rooms = b.facts[1:], b.rooms[b.axes:]
	return f
}

// fillFacts works the facts of a Node out.
func (w *roundState) fillFacts(f *nodeFacts, n *cluster.Node) {
	f.node, f.gen, f.optOut, f.toBeDeleted, f.cordonedByUs, f.starting = n, w.e.classes.gen, optedOut(n), toBeDeleted(n), cordonedByUs(n), slices.ContainsFunc(n.Taints, startingTaint)
	gpu := offersGPU(n)
	for i := range n.Pods {
		pod := &n.Pods[i]
		if pod.Finished {
			continue
		}
		takes, to := 1, &f.requested
		switch {
		case daemon(pod):
			if to = &f.daemonRequests; !slices.Contains(f.daemons, pod.Owner.UID) {
				f.daemons = append(f.daemons, pod.Owner.UID)
			}
		case w.expendable(pod):
			takes, to = 0, nil
		}
		if to != nil {
			addRequests(to, &w.s.Classes[pod.Class].Requests, gpu)
		}
		w.e.count.add(pod.Class, takes)
		f.timed = f.timed || !pod.Deleting.IsZero() || pod.Wishes != nil && pod.Wishes.KeepFor > 0
	}
	f.classes = w.e.count.take(nil)
	w.space.Capacity(f.room, n.Allocatable)
	w.takeHeld(f, f.room)
}

// takeHeld takes what the pods of a Node take out of a room.
func (w *roundState) takeHeld(f *nodeFacts, room []int64) {
	for _, h := range f.classes {
		if h.n > 0 {
			fit.Sub(room, w.space.Class(int(h.class)), int(h.n))
		}
	}
}

// sorted returns pods by key; those of an observer are.
func sorted(pods []cluster.Pod) []cluster.Pod {
	for i := 1; i < len(pods); i++ {
		if pods[i].Key < pods[i-1].Key {
			pods = slices.Clone(pods)
			slices.SortStableFunc(pods, func(a, b cluster.Pod) int { return strings.Compare(string(a.Key), string(b.Key)) })
			break
		}
	}
	return pods
}

// classCounter counts pods by class. Its memory lives across rounds.
type classCounter struct {
	counts []int32 // by class: one more than was counted; 0: the class was not named
	named  []int32
	free   []classCount // room for answers
}

func (c *classCounter) add(class, n int) {
	if class >= len(c.counts) {
		c.counts = append(c.counts, make([]int32, class+1-len(c.counts))...)
	}
	if c.counts[class] == 0 {
		c.counts[class] = 1
		c.named = append(c.named, int32(class))
	}
	c.counts[class] += int32(n)
}

// take returns the counts in the order in which the classes were named, or, where
// order says something, in that order, and starts anew.
func (c *classCounter) take(order func(a, b int32) int) []classCount {
	if len(c.named) == 0 {
		return nil
	}
	if order != nil {
		slices.SortStableFunc(c.named, order)
	}
	n := len(c.named)
	if n > len(c.free) {
		c.free = make([]classCount, max(n, classCountsAtOnce))
	}
	out := c.free[:n:n]
	c.free = c.free[n:]
	for i, class := range c.named {
		out[i] = classCount{class, c.counts[class] - 1}
		c.counts[class] = 0
	}
	c.named = c.named[:0]
	return out
}

// addRequests adds a request to a sum, extended resources only where they are asked for.
func addRequests(sum, r *cluster.Resources, extended bool) {
	sum.MilliCPU += r.MilliCPU
	sum.Memory += r.Memory
	if extended {
		for name, amount := range r.Extended {
			set(&sum.Extended, name, sum.Extended[name]+amount)
		}
	}
}

// dueWords say when a node may go.
func (f *nodeFacts) dueWords(due time.Time) string {
	s := &f.message
	if s.words == "" || !s.due.Equal(due) || s.name != "" {
		*s = messageCache{due: due, words: "not needed: may go at " + stamp(due)}
	}
	return s.words
}

// unplaceableWords name the pod that keeps a node.
func (f *nodeFacts) unplaceableWords(pod cluster.PodKey) string {
	s := &f.message
	if s.words == "" || s.name != string(pod) {
		*s = messageCache{name: string(pod), words: "pod " + string(pod) + " has room nowhere else"}
	}
	return s.words
}

// drainPlan is what a drain has to do with the pods of a node.
type drainPlan struct {
	movable     int            // pods to be evicted
	classes     []classCount   // of them, those that need room elsewhere, the largest first
	budgeted    []*cluster.Pod // of them, those with budgets, by name
	terminating int            // pods already told to go
	blocked     []string       // every blocker of every pod, budgets included
	hard        []string       // the same without budgets, which time may heal
	grace       time.Duration
}

// classCountsAtOnce is for how many counts room is made at once.
const classCountsAtOnce = 64
