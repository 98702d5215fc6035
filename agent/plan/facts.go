package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// facts are what follows from one Node with its pods, the classes and the Policy alone:
// no clock, no budget, no other Node. They are worked out once per value of a Node.
type facts struct {
	node    *cluster.Node
	gen     int               // of the classes' axes
	classes []heldClass       // of all pods here that are not finished
	room    []int64           // Allocatable less what is held
	asked   cluster.Resources // by pods that count for utilisation; Extended only on a node with GPUs
	served  cluster.Resources // the same of DaemonSet pods
	daemons []cluster.UID     // DaemonSets with a pod here
	opted   string            // which annotation keeps the Node
	mark    bool              // marked for deletion
	ours    bool              // with our cordon
	starts  bool              // it carries a taint that a young node loses by itself
	dated   bool              // a pod is terminating: cargo depends on the clock
	laden   bool              // cargo is worked out
	cargo   cargo             // what a drain would have to do, budgets aside; never where dated
	stays   saying
}

// heldClass is a class with pods on a node, and how many of them take room there.
type heldClass struct{ class, n int32 }

// saying is a reason in words that was made for an earlier round: most nodes are held
// for the same reason round after round.
type saying struct {
	due   time.Time
	name  string
	words string
}

// learnNodes brings the facts up to date with the Nodes of a round. changed are the
// classes that are not what they were.
func (w *world) learnNodes(changed []bool) {
	e := w.e
	var moved map[*cluster.Node]*facts
	old, now := e.facts, e.spare[:0]
	made := bulk{axes: w.space.Axes()}
	if e.count.many = nil; len(old) == 0 && len(w.s.Nodes) > 0 {
		made.facts, made.rooms = make([]facts, len(w.s.Nodes)), make([]int64, len(w.s.Nodes)*made.axes)
		e.count.many = new(slab[heldClass])
	}
	for i, n := range w.s.Nodes {
		var f *facts
		if i < len(old) && old[i].node == n {
			f = old[i]
		} else if len(old) > 0 {
			if moved == nil {
				moved = strays(old, w.s.Nodes)
			}
			f = moved[n]
		}
		if f == nil || f.gen != e.classes.gen || changed != nil && f.uses(changed) {
			f = made.next()
			w.work(f, n)
		}
		now = append(now, f)
	}
	clear(old)
	e.facts, e.spare = now, old[:0]
}

// strays are the facts of Nodes that are not at the place where they were.
func strays(old []*facts, nodes []*cluster.Node) map[*cluster.Node]*facts {
	out := make(map[*cluster.Node]*facts)
	for i, f := range old {
		if i >= len(nodes) || nodes[i] != f.node {
			out[f.node] = f
		}
	}
	return out
}

func (f *facts) uses(changed []bool) bool {
	return slices.ContainsFunc(f.classes, func(h heldClass) bool { return int(h.class) >= len(changed) || changed[h.class] })
}

// bulk is where the facts of a first round are: one after the other, as they are read.
// Later ones come one by one, each with its own life.
type bulk struct {
	facts []facts
	rooms []int64
	axes  int
}

func (b *bulk) next() *facts {
	if len(b.facts) == 0 {
		return &facts{room: make([]int64, b.axes)}
	}
	f := &b.facts[0]
	f.room = b.rooms[:b.axes:b.axes]
	b.facts, b.rooms = b.facts[1:], b.rooms[b.axes:]
	return f
}

// work works the facts of a Node out.
func (w *world) work(f *facts, n *cluster.Node) {
	f.node, f.gen, f.opted, f.mark, f.ours, f.starts = n, w.e.classes.gen, optedOut(n), marked(n), ours(n), slices.ContainsFunc(n.Taints, startingTaint)
	gpu := offersGPU(n)
	for i := range n.Pods {
		pod := &n.Pods[i]
		if pod.Finished {
			continue
		}
		takes, to := 1, &f.asked
		switch {
		case daemon(pod):
			if to = &f.served; !slices.Contains(f.daemons, pod.Owner.UID) {
				f.daemons = append(f.daemons, pod.Owner.UID)
			}
		case w.expendable(pod):
			takes, to = 0, nil
		}
		if to != nil {
			demand(to, &w.s.Classes[pod.Class].Requests, gpu)
		}
		w.e.count.add(pod.Class, takes)
		f.dated = f.dated || !pod.Deleting.IsZero() || pod.Wishes != nil && pod.Wishes.KeepFor > 0
	}
	f.classes = w.e.count.take(nil)
	w.space.Room(f.room, n.Allocatable)
	w.takeHeld(f, f.room)
}

// takeHeld takes what the pods of a Node take out of a room.
func (w *world) takeHeld(f *facts, room []int64) {
	for _, h := range f.classes {
		if h.n > 0 {
			fit.Take(room, w.space.Class(int(h.class)), int(h.n))
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

// counter counts pods by class. Its memory lives across rounds.
type counter struct {
	counts []int32 // by class: one more than was counted; 0: the class was not named
	named  []int32
	many   *slab[heldClass] // where answers are, of a first round; nil: each by itself
}

func (c *counter) add(class, n int) {
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
func (c *counter) take(order func(a, b int32) int) []heldClass {
	if len(c.named) == 0 {
		return nil
	}
	if order != nil {
		slices.SortStableFunc(c.named, order)
	}
	var out []heldClass
	if n := len(c.named); c.many != nil {
		out = c.many.lend(n, 0)
	} else {
		out = make([]heldClass, n)
	}
	for i, class := range c.named {
		out[i] = heldClass{class, c.counts[class] - 1}
		c.counts[class] = 0
	}
	c.named = c.named[:0]
	return out
}

// demand adds a request to a sum, extended resources only where they are asked for.
func demand(sum, r *cluster.Resources, extended bool) {
	sum.MilliCPU += r.MilliCPU
	sum.Memory += r.Memory
	if extended {
		for name, amount := range r.Extended {
			set(&sum.Extended, name, sum.Extended[name]+amount)
		}
	}
}

// usage is a utilisation in whole per cent and the limit that it is above.
type usage struct {
	percent int
	limit   float64
}

// manyUsages bounds how many are remembered in words: a utilisation beyond that is made
// of what nobody reports.
const manyUsages = 1000

// busyWords say that a node is used too much to go. Few of them differ.
func (e *Engine) busyWords(util, limit float64) string {
	if !(util < manyUsages/100) || len(e.busy) > manyUsages {
		return "utilisation " + percent(util) + " is above " + percent(limit)
	}
	key := usage{int(math.RoundToEven(util * 100)), limit}
	words, ok := e.busy[key]
	if !ok {
		words = "utilisation " + percent(util) + " is above " + percent(limit)
		set(&e.busy, key, words)
	}
	return words
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 0, 64) + "%" }

// dueWords say when a node may go.
func (f *facts) dueWords(due time.Time) string {
	s := &f.stays
	if s.words == "" || !s.due.Equal(due) || s.name != "" {
		*s = saying{due: due, words: "not needed: may go at " + stamp(due)}
	}
	return s.words
}

// homelessWords name the pod that keeps a node.
func (f *facts) homelessWords(pod cluster.PodKey) string {
	s := &f.stays
	if s.words == "" || s.name != string(pod) {
		*s = saying{name: string(pod), words: "pod " + string(pod) + " has room nowhere else"}
	}
	return s.words
}
