// Package history remembers the last 24 hours of what the agent saw and did, and the last hour
// minute by minute, for the page that draws them: of each node group its machines and bounds, the
// pending pods, the price of an hour, and each decision that was carried out.
//
// Memory is bounded: maxGroups groups of 2.9 kB, maxMarks decisions of which each word is cut, 1.1 MB
// in all; five groups and a hundred decisions take 70 kB. It refuses to decide, to read a clock, to
// touch a file (agent/statefile keeps what Save returns), and to be the record of anything: what does
// not fit is left out.
package history

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Step is the time between two samples of the day, and Steps how many are kept; FineStep and
// FineSteps are the same of the last hour.
const (
	Step      = 5 * time.Minute
	Steps     = int(24 * time.Hour / Step)
	FineStep  = time.Minute
	FineSteps = int(time.Hour / FineStep)
)

// Bounds of the memory.
const (
	maxGroups = 200 // the first by name that were seen; others are counted in the totals only
	maxMarks  = 500
	nameBytes = 64  // of a group's or a node's name
	wordBytes = 240 // of a reason
	idsBytes  = 400 // of the IDs of machines that were ended together
)

// absent says that a group was not there.
const absent = 0xffff

// History is the memory. The zero value is empty and ready. Safe for concurrent use.
type History struct {
	mu     sync.Mutex
	day    track
	hour   track
	marks  []Mark // a ring once it is full
	oldest int    // in marks
	marked int    // how many marks there ever were
}

// track is the samples of one resolution.
type track struct {
	step   time.Duration
	number int64   // of the newest sample: Unix time over step; 0: none
	total  []total // as a ring
	groups map[cluster.GroupID]*group
}

type total struct {
	number                int64 // which sample stands here
	pending, nodes, ready int32
	price                 float32
	priced                bool // some group has a price
}

// group is one group's samples, as rings: 2.3 kB of a day, 0.5 kB of an hour.
type group struct {
	seen                         int64 // number of the newest sample that has it
	min, max, target, membership []uint16
}

// sample is what is remembered of a Snapshot.
type sample struct {
	total
	groups []groupSample
}

type groupSample struct {
	id                           cluster.GroupID
	min, max, target, membership uint16
}

func small(n int) uint16 { return uint16(min(max(n, 0), absent-1)) }

// begun makes the tracks of a zero History. The caller holds the mutex.
func (h *History) begun() {
	if h.day.total == nil {
		h.day, h.hour = newTrack(Step, Steps), newTrack(FineStep, FineSteps)
	}
}

func newTrack(step time.Duration, steps int) track {
	return track{step: step, total: make([]total, steps), groups: map[cluster.GroupID]*group{}}
}

// Due tells that a sample of now would be a new one, so that a round in which nothing
// changed need not look at every machine.
func (h *History) Due(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun()
	return h.hour.numberOf(now) != h.hour.number
}

func (t *track) numberOf(at time.Time) int64 { return at.Unix() / int64(t.step/time.Second) }

// at is where a sample stands in the rings. A machine whose clock begins in 1970 asks for samples before it.
func (t *track) at(number int64) int {
	n := int64(len(t.total))
	return int((number%n + n) % n)
}

// Look takes a sample. The last one of each step stands, with the most pods that were
// pending at any of them.
func (h *History) Look(s *cluster.Snapshot) {
	taken := sampleOf(s)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun()
	h.day.take(taken, s.Now)
	h.hour.take(taken, s.Now)
}

func sampleOf(s *cluster.Snapshot) sample {
	out := sample{total: total{nodes: int32(len(s.Nodes))}}
	for i := range s.Pods {
		if !s.Pods[i].Unschedulable.IsZero() {
			out.pending++
		}
	}
	for _, n := range s.Nodes {
		if n.Ready == cluster.StatusTrue {
			out.ready++
		}
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		members := 0
		for k := range g.Instances {
			if g.Instances[k].Member {
				members++
			}
		}
		if g.Price > 0 && !g.PriceComputed {
			out.price += float32(g.Price) * float32(members)
			out.priced = true
		}
		out.groups = append(out.groups, groupSample{g.ID, small(g.Min), small(g.Max), small(g.Target), small(members)})
	}
	return out
}

// take remembers a sample of a moment.
func (t *track) take(s sample, now time.Time) {
	number := t.numberOf(now)
	if number < t.number {
		return // a clock that was set back: the newer samples stand
	}
	at, is := t.at(number), s.total
	if is.number = number; t.total[at].number == number {
		is.pending = max(is.pending, t.total[at].pending)
	}
	t.begin(number)
	for _, g := range s.groups {
		if of := t.of(g.id); of != nil {
			of.seen = number
			of.min[at], of.max[at], of.target[at], of.membership[at] = g.min, g.max, g.target, g.membership
		}
	}
	t.total[at] = is
}

// begin makes room for a sample: its place is empty in every group, and groups that no
// sample knows any more are forgotten.
func (t *track) begin(number int64) {
	if number == t.number {
		return
	}
	steps := int64(len(t.total))
	for id, g := range t.groups {
		if number-g.seen >= steps {
			delete(t.groups, id)
			continue
		}
		for n := max(t.number+1, number-steps+1); n <= number; n++ {
			g.membership[t.at(n)] = absent
		}
	}
	t.number = number
}

// of is a group's memory; nil: there is no room for another group.
func (t *track) of(id cluster.GroupID) *group {
	if g := t.groups[id]; g != nil {
		return g
	}
	if len(t.groups) >= maxGroups {
		return nil
	}
	n := len(t.total)
	all := make([]uint16, 4*n)
	g := &group{min: all[:n:n], max: all[n : 2*n : 2*n], target: all[2*n : 3*n : 3*n], membership: all[3*n:]}
	for i := range g.membership {
		g.membership[i] = absent
	}
	t.groups[id] = g
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
	// Hour is the last hour of it, minute by minute.
	Hour *View `json:"hour,omitempty"`
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
	h.begun()
	v, hour := h.day.view(now), h.hour.view(now)
	v.Hour = &hour
	for i := range h.marks {
		if m := h.marks[(h.oldest+i)%len(h.marks)]; !m.At.Before(v.Start) {
			v.Marks = append(v.Marks, m)
		}
	}
	return v
}

func (t *track) view(now time.Time) View {
	last := t.numberOf(now)
	first := last - int64(len(t.total)) + 1
	v := View{Start: time.Unix(first*int64(t.step/time.Second), 0).UTC(), Step: t.step}
	priced := false
	prices := make([]float64, 0, len(t.total))
	for n := first; n <= last; n++ {
		is := t.total[t.at(n)]
		if is.number != n {
			is = total{pending: -1, nodes: -1, ready: -1, price: -1}
		}
		v.Pending, v.Nodes, v.Ready = append(v.Pending, int(is.pending)), append(v.Nodes, int(is.nodes)), append(v.Ready, int(is.ready))
		prices = append(prices, float64(is.price))
		priced = priced || is.priced
	}
	if priced {
		v.Price = prices
	}
	for id, g := range t.groups {
		if out, ok := t.viewOf(g, first, last); ok {
			out.Name = string(id)
			v.Groups = append(v.Groups, out)
		}
	}
	slices.SortFunc(v.Groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

func (t *track) viewOf(g *group, first, last int64) (out Group, ok bool) {
	for n := first; n <= last; n++ {
		at := t.at(n)
		if t.total[at].number != n || g.membership[at] == absent {
			out.Min, out.Max, out.Target, out.Machines = append(out.Min, -1), append(out.Max, -1), append(out.Target, -1), append(out.Machines, -1)
			continue
		}
		ok = true
		out.Min, out.Max = append(out.Min, int(g.min[at])), append(out.Max, int(g.max[at]))
		out.Target, out.Machines = append(out.Target, int(g.target[at])), append(out.Machines, int(g.membership[at]))
	}
	return out, ok
}
