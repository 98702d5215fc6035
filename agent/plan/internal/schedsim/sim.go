package schedsim

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Config holds the inputs of a Sim. The Sim writes to none of them but State.
type Config struct {
	Classes    []cluster.PodClass
	Namespaces []cluster.Namespace
	Dimensions *fit.Dimensions
	// State judges F7 to F12 and has the nodes that say so with their pods; nil: none of
	// the classes is constrained. The Sim marks it and rolls it back.
	State *fit.State
	// Binds are the classes that Bind will be asked for.
	Binds []int
	// Takes tells whether the shape of a node lets a class on, for the first nodes, which are so many; nil: the Sim asks the filters.
	Takes func(class, node int) bool
	Nodes int
	// Replicated tells by class that its pods are of a ReplicaSet, a StatefulSet or a
	// ReplicationController: kube-scheduler spreads these by its own default constraints.
	// nil: none is.
	Replicated []bool
}

// Node is a node to be added.
type Node struct {
	Info         *fit.NodeInfo // kept; nodes that share it cost less
	Allocatable  cluster.Resources
	Room         []int64 // what is left of it, over Config.Dimensions; copied
	VolumeLimits map[string]int64
	// Known tells that Config.State has the node already, as node number InState.
	Known   bool
	InState int
}

// Placement are pods of a class on a node.
type Placement struct{ Class, Node, Count int }

// Sim is a cluster on which pods are bound. It is not safe for concurrent use.
type Sim struct {
	cfg Config
	*tables
	shapes   []shape
	shapeIDs map[*fit.NodeInfo]int32
	domains  []map[string]int32 // per key, the domains by the label's value
	nodes    []node
	flat     []int64 // room for rooms

	selected []nodeCounts // per selection
	spread   [][]int64    // per domain counter, by domain
	inter    []interCount // per inter counter

	log     []Placement
	stands  []stood // changes of Stand, for Rollback
	marked  int     // of log, at the last Mark or Rollback: what came before is not to grow
	touched []int32 // nodes in the order of their changes; see view.seen
	changed []int32 // by node, its last place in touched
	views   []*view
	viewed  bool // there is a view
	draw    draw
	work    scratch
	// Steps counts what has been done: a set of nodes scored, or a node taken up anew.
	Steps int
	// Limit is the number of Steps at which Bind ends; 0: it ends at none.
	Limit int
}

// Spent tells whether the steps have reached the limit: pods that Bind has left may have room.
func (s *Sim) Spent() bool { return s.Limit > 0 && s.Steps >= s.Limit }

// shape holds the facts that a Sim has worked out about a NodeInfo.
type shape struct {
	info     *fit.NodeInfo
	domains  []int32 // per key; -1: the label is missing
	hostname bool
	eligible []int8 // per eligibility: 0 not judged, 1 yes, -1 no
}

// Standing says which pods Pack puts on a node.
type Standing int8

const (
	Open   Standing = iota
	Last            // those that no open node takes
	Closed          // none; Bind puts none there either
)

// stood is how a node stood before.
type stood struct {
	node int32
	was  Standing
}

type node struct {
	shape, state           int32
	standing               Standing
	room                   []int64
	milliCPU, memory       int64 // allocatable
	moreCPU, moreMemory    int64 // what LeastAllocated counts beyond the requests
	usedMilliCPU, usedByte int64 // requested
}

// New returns a Sim without nodes. It costs what the classes ask for: their labels, and the
// pairs of terms and classes of which one may select the other.
func New(cfg Config) *Sim {
	s := &Sim{cfg: cfg, shapeIDs: make(map[*fit.NodeInfo]int32), views: make([]*view, len(cfg.Classes))}
	s.tables = compile(&s.cfg)
	s.domains = make([]map[string]int32, len(s.keys))
	for i := range s.domains {
		s.domains[i] = make(map[string]int32)
	}
	s.selected = make([]nodeCounts, len(s.selections))
	s.spread = make([][]int64, len(s.counters))
	s.inter = make([]interCount, len(s.interCounters))
	return s
}

// Nodes is how many nodes there are.
func (s *Sim) Nodes() int { return len(s.nodes) }

// Seed says how ties are drawn from here on. 0: the same node of equal ones each time.
func (s *Sim) Seed(seed uint64) { s.draw = draw(seed) }

// Room is the room that is left on a node; not to be changed, and valid until it changes.
func (s *Sim) Room(node int) []int64 { return s.nodes[node].room }

// AddNode adds a node and returns its index: 0, 1, 2 and so on. The pods that are on it
// are in its Room already; Put tells the scores of them.
// It costs the labels of the shape when that is new.
func (s *Sim) AddNode(n Node) int {
	at := len(s.nodes)
	id := s.shapeOf(n.Info)
	state := int32(n.InState)
	if s.cfg.State != nil && !n.Known {
		state = int32(s.cfg.State.AddNode(n.Info, n.VolumeLimits))
	}
	if len(s.flat) < len(n.Room) {
		s.flat = make([]int64, 64*max(len(n.Room), 1))
	}
	room := s.flat[:len(n.Room):len(n.Room)]
	s.flat = s.flat[len(n.Room):]
	copy(room, n.Room)
	s.nodes = append(s.nodes, node{shape: id, state: state, room: room, milliCPU: n.Allocatable.MilliCPU, memory: n.Allocatable.Memory,
		usedMilliCPU: n.Allocatable.MilliCPU - n.Room[0], usedByte: n.Allocatable.Memory - n.Room[1]})
	s.touch(at)
	return at
}

func (s *Sim) shapeOf(info *fit.NodeInfo) int32 {
	if id, ok := s.shapeIDs[info]; ok {
		return id
	}
	id := int32(len(s.shapes))
	s.shapeIDs[info] = id
	h := shape{info: info, domains: make([]int32, len(s.keys)), eligible: make([]int8, len(s.eligibilities))}
	_, h.hostname = info.Labels[labelHostname]
	h.hostname = h.hostname || info.Name == ""
	for k, key := range s.keys {
		value, has := info.Labels[key]
		if !has {
			h.domains[k] = -1
			continue
		}
		d, known := s.domains[k][value]
		if !known {
			d = int32(len(s.domains[k]))
			s.domains[k][value] = d
		}
		h.domains[k] = d
	}
	s.shapes = append(s.shapes, h)
	return id
}

func (s *Sim) eligible(shape, eligibility int32) bool {
	if eligibility < 0 {
		return true
	}
	h := &s.shapes[shape]
	if h.eligible[eligibility] == 0 {
		h.eligible[eligibility] = -1
		if s.eligibilities[eligibility].holds(h) {
			h.eligible[eligibility] = 1
		}
	}
	return h.eligible[eligibility] > 0
}

// Put tells the scores that n more pods of the class are on the node. Room and State have
// them already. terminating: they have a deletionTimestamp, and spread does not count
// them. It costs what counts the class.
func (s *Sim) Put(class, node, n int, terminating bool) {
	s.count(class, node, n, terminating)
	s.nodes[node].moreCPU += int64(n) * s.more[class].cpu
	s.nodes[node].moreMemory += int64(n) * s.more[class].memory
	s.touch(node)
}

// put binds n pods of the class; a negative n takes them away.
func (s *Sim) put(class, at, n int) {
	x := &s.nodes[at]
	size := s.cfg.Dimensions.Class(class)
	for j, v := range size {
		x.room[j] -= v * int64(n)
	}
	x.usedMilliCPU += size[0] * int64(n)
	x.usedByte += size[1] * int64(n)
	x.moreCPU += int64(n) * s.more[class].cpu
	x.moreMemory += int64(n) * s.more[class].memory
	s.count(class, at, n, false)
	s.touch(at)
}

func (s *Sim) count(class, at, n int, terminating bool) {
	inc := s.incrementsOf(class)
	if len(inc.selections)+len(inc.inter) == 0 {
		return
	}
	h := &s.shapes[s.nodes[at].shape]
	for _, id := range inc.selections {
		if terminating {
			break
		}
		s.selected[id].add(at, int32(n))
		for _, c := range s.selections[id].counters {
			k := &s.counters[c]
			if d := h.domains[k.key]; d >= 0 && s.eligible(s.nodes[at].shape, k.eligibility) {
				s.spread[c] = grown(s.spread[c], d)
				s.spread[c][d] += int64(n)
			}
		}
	}
	for _, i := range inc.inter {
		c := &s.inter[i.counter]
		if s.interCounters[i.counter].key < 0 {
			c.perNode.add(at, int32(int64(n)*i.weight))
			c.pods += n
		} else if d := h.domains[s.interCounters[i.counter].key]; d >= 0 {
			c.byDomain = grown(c.byDomain, d)
			c.byDomain[d] += int64(n) * i.weight
			c.pods += n
		}
	}
}

func grown(list []int64, d int32) []int64 {
	for int(d) >= len(list) {
		list = append(list, 0)
	}
	return list
}

// Stand says which pods may go to a node from now on.
func (s *Sim) Stand(node int, as Standing) {
	x := &s.nodes[node]
	if x.standing == as {
		return
	}
	s.stands = append(s.stands, stood{int32(node), x.standing})
	x.standing = as
	s.touch(node)
}

// IsOpen tells that a node is not closed.
func (s *Sim) IsOpen(node int) bool { return s.nodes[node].standing != Closed }

func (s *Sim) touch(node int) {
	if !s.viewed { // a view begins with all nodes
		return
	}
	for node >= len(s.changed) {
		s.changed = append(s.changed, 0)
	}
	s.changed[node] = int32(len(s.touched))
	s.touched = append(s.touched, int32(node))
}

// ResetOrder drops the order of the nodes that the scores remember from earlier what-ifs, so that ties are broken as in a new Sim. It costs
// the classes; what is bound next looks at all nodes.
func (s *Sim) ResetOrder() {
	clear(s.views)
	s.touched, s.viewed = s.touched[:0], false
}

// Mark is a moment to which Rollback returns.
type Mark struct{ log, stands, nodes, state int }

// Mark begins a what-if. Marks nest.
func (s *Sim) Mark() Mark {
	m := Mark{log: len(s.log), stands: len(s.stands), nodes: len(s.nodes)}
	s.marked = m.log
	if s.cfg.State != nil {
		m.state = s.cfg.State.Mark()
	}
	return m
}

// Rollback takes away what was bound and added since the mark. It costs what was done since
// then. Pods that were added by Put stay: callers add them before the first Mark.
func (s *Sim) Rollback(m Mark) {
	for i := len(s.log) - 1; i >= m.log; i-- {
		s.put(s.log[i].Class, s.log[i].Node, -s.log[i].Count)
	}
	for i := len(s.stands) - 1; i >= m.stands; i-- {
		s.nodes[s.stands[i].node].standing = s.stands[i].was
		s.touch(int(s.stands[i].node))
	}
	for i := m.nodes; i < len(s.nodes); i++ {
		s.touch(i)
	}
	s.log, s.stands, s.nodes, s.marked = s.log[:m.log], s.stands[:m.stands], s.nodes[:m.nodes], m.log
	if s.cfg.State != nil {
		s.cfg.State.Rollback(m.state)
	}
}

// Placed are the pods that were bound since a mark, one run after the other.
func (s *Sim) Placed(m Mark) []Placement { return s.log[m.log:] }

// draw is splitmix64; 0 draws the first each time.
type draw uint64

func (d *draw) below(n int) int {
	if *d == 0 || n < 2 {
		return 0
	}
	*d += 0x9e3779b97f4a7c15
	x := uint64(*d)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(n))
}

// nodeCounts counts per node, in pages that appear where something is counted.
type nodeCounts [][]int32

const pageSize = 64

func (c *nodeCounts) add(node int, n int32) {
	p := node / pageSize
	for p >= len(*c) {
		*c = append(*c, nil)
	}
	if (*c)[p] == nil {
		(*c)[p] = make([]int32, pageSize)
	}
	(*c)[p][node%pageSize] += n
}

func (c nodeCounts) at(node int) int32 {
	if p := node / pageSize; p < len(c) && c[p] != nil {
		return c[p][node%pageSize]
	}
	return 0
}
