// Package history remembers the last 24 hours of what the agent saw and did, for the page
// that draws them: of each node group its machines and bounds, the pending pods, the price
// of an hour, and each decision that was carried out.
//
// Memory is bounded: a sample each five minutes, maxGroups groups, maxMarks decisions of
// which each word is cut, 1 MB in all; five groups and a hundred decisions take 60 kB. It
// refuses to decide, to read a clock, and to be the record of anything: what does not fit
// is left out, and a restart forgets it.
package history

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Step is the time between two samples, and Steps how many are kept.
const (
	Step  = 5 * time.Minute
	Steps = int(24 * time.Hour / Step)
)

// Bounds of the memory.
const (
	maxGroups = 200 // the first by name that were seen; others are counted in the totals only
	maxMarks  = 500
	nameBytes = 64  // of a group's or a node's name
	wordBytes = 240 // of a reason
)

// absent says that a group was not there.
const absent = 0xffff

// History is the memory. The zero value is empty and ready. Safe for concurrent use.
type History struct {
	mu     sync.Mutex
	number int64 // of the newest sample: Unix time over Step; 0: none
	total  [Steps]total
	groups map[cluster.GroupID]*group
	marks  []Mark // a ring once it is full
	oldest int    // in marks
}

type total struct {
	number                int64 // which sample stands here
	pending, nodes, ready int32
	price                 float32
	priced                bool // some group has a price
}

// group is one group's samples, 2.3 kB.
type group struct {
	seen                         int64 // number of the newest sample that has it
	min, max, target, membership [Steps]uint16
}

func small(n int) uint16 { return uint16(min(max(n, 0), absent-1)) }

// Due tells that a sample of now would be a new one, so that a round in which nothing
// changed need not look at every machine.
func (h *History) Due(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return numberOf(now) != h.number
}

func numberOf(t time.Time) int64 { return t.Unix() / int64(Step/time.Second) }

// Look takes a sample. The last one of each Step stands, with the most pods that were
// pending at any of them.
func (h *History) Look(s *cluster.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	number := numberOf(s.Now)
	if number < h.number {
		return // a clock that was set back: the newer samples stand
	}
	at := int(number % int64(Steps))
	t := total{number: number, nodes: int32(len(s.Nodes))}
	if old := &h.total[at]; old.number == number {
		t.pending = old.pending
	}
	pending := int32(0)
	for i := range s.Pods {
		if !s.Pods[i].Unschedulable.IsZero() {
			pending++
		}
	}
	t.pending = max(t.pending, pending)
	for _, n := range s.Nodes {
		if n.Ready == cluster.StatusTrue {
			t.ready++
		}
	}
	h.begin(number)
	for i := range s.Groups {
		g := &s.Groups[i]
		members := 0
		for k := range g.Instances {
			if g.Instances[k].Member {
				members++
			}
		}
		if g.Price > 0 && !g.PriceComputed {
			t.price += float32(g.Price) * float32(members)
			t.priced = true
		}
		if of := h.of(g.ID); of != nil {
			of.seen = number
			of.min[at], of.max[at], of.target[at], of.membership[at] = small(g.Min), small(g.Max), small(g.Target), small(members)
		}
	}
	h.total[at] = t
}

// begin makes room for a sample: its place is empty in every group, and groups that no
// sample knows any more are forgotten.
func (h *History) begin(number int64) {
	if number == h.number {
		return
	}
	for id, g := range h.groups {
		if number-g.seen >= int64(Steps) {
			delete(h.groups, id)
			continue
		}
		for n := max(h.number+1, number-int64(Steps)+1); n <= number; n++ {
			g.membership[n%int64(Steps)] = absent
		}
	}
	h.number = number
}

// of is a group's memory; nil: there is no room for another group.
func (h *History) of(id cluster.GroupID) *group {
	if g := h.groups[id]; g != nil {
		return g
	}
	if len(h.groups) >= maxGroups {
		return nil
	}
	if h.groups == nil {
		h.groups = map[cluster.GroupID]*group{}
	}
	g := &group{}
	for i := range g.membership {
		g.membership[i] = absent
	}
	h.groups[id] = g
	return g
}

// View is the memory in a form to draw, oldest sample first. A sample that was not taken
// is -1.
type View struct {
	Start   time.Time     `json:"start"`
	Step    time.Duration `json:"step"`
	Pending []int         `json:"pending"`
	Nodes   []int         `json:"nodes"`
	Ready   []int         `json:"ready"`
	Price   []float64     `json:"price,omitempty"` // empty: no group has one
	Groups  []Group       `json:"groups,omitempty"`
	Marks   []Mark        `json:"marks,omitempty"`
}

// Group is one group of a View.
type Group struct {
	Name     string `json:"name"`
	Min      []int  `json:"min"`
	Max      []int  `json:"max"`
	Target   []int  `json:"target"`
	Machines []int  `json:"machines"`
}

// View returns the 24 hours that end at now, groups by name, decisions oldest first.
func (h *History) View(now time.Time) View {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := numberOf(now)
	first := last - int64(Steps) + 1
	v := View{Start: time.Unix(first*int64(Step/time.Second), 0).UTC(), Step: Step}
	priced := false
	prices := make([]float64, 0, Steps)
	for n := first; n <= last; n++ {
		t := h.total[n%int64(Steps)]
		if t.number != n {
			t = total{pending: -1, nodes: -1, ready: -1, price: -1}
		}
		v.Pending, v.Nodes, v.Ready = append(v.Pending, int(t.pending)), append(v.Nodes, int(t.nodes)), append(v.Ready, int(t.ready))
		prices = append(prices, float64(t.price))
		priced = priced || t.priced
	}
	if priced {
		v.Price = prices
	}
	for id, g := range h.groups {
		if out, ok := h.view(g, first, last); ok {
			out.Name = string(id)
			v.Groups = append(v.Groups, out)
		}
	}
	slices.SortFunc(v.Groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	for i := range h.marks {
		if m := h.marks[(h.oldest+i)%len(h.marks)]; !m.At.Before(v.Start) {
			v.Marks = append(v.Marks, m)
		}
	}
	return v
}

func (h *History) view(g *group, first, last int64) (out Group, ok bool) {
	for n := first; n <= last; n++ {
		at := n % int64(Steps)
		if h.total[at].number != n || g.membership[at] == absent {
			out.Min, out.Max, out.Target, out.Machines = append(out.Min, -1), append(out.Max, -1), append(out.Target, -1), append(out.Machines, -1)
			continue
		}
		ok = true
		out.Min, out.Max = append(out.Min, int(g.min[at])), append(out.Max, int(g.max[at]))
		out.Target, out.Machines = append(out.Target, int(g.target[at])), append(out.Machines, int(g.membership[at]))
	}
	return out, ok
}
