package fit

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit/devices"
)

// The rules of the filters that look at what other pods are where, in
// kube-scheduler's order.
const (
	RuleVolumeRestrictions = "F7"  // VolumeRestrictions: ReadWriteOncePod
	RuleVolumeLimits       = "F8"  // NodeVolumeLimits: CSI attach limits
	RuleVolumeBinding      = "F9"  // VolumeBinding: node affinity of volumes, topologies of claims
	RuleVolumeZone         = "F10" // VolumeZone
	RuleSpread             = "F11" // PodTopologySpread
	RuleInterPod           = "F12" // InterPodAffinity, existing pods' anti-affinity included
	RuleDevices            = "F13" // DynamicResources: claims, and devices of ResourceSlices
)

const labelHostname = "kubernetes.io/hostname"

// State is a set of nodes with what is on each, as the filters F7 to F13 see it. It
// grows by nodes and changes by pods; a judgement costs what the class asks for and
// not what the cluster holds. Not safe for concurrent use: a judgement
// remembers which devices it has found.
//
// Every distinct (selector, namespaces, topology key) has one counter per domain of
// its key, kept up to date by Put; a judgement reads the counters of the node's own
// domains. The minimum that a spread constraint is held against is kept up to date
// too (domainMinimum).
type State struct {
	*tables
	counters      []counter
	eligibleNodes []eligibleNodes
	minimums      []domainMinimum

	domains []int32 // per node, len(keys) each: the node's domain of each key; -1: label missing
	shapeOf []int32 // per node

	shapes       []*NodeInfo
	shapeIDs     map[*NodeInfo]int32
	shapeDomains []int32  // per shape, as domains
	eligible     []uint64 // per shape, a bit for each of eligs

	names  [][]string         // per key, the domains' values; fresh for a template's own
	values []map[string]int32 // per key, the domains by value

	devices *devices.Allocator
	has     []int32 // per node, the allocator's state
	given   []int32 // for Rollback, what nodes had before pods with claims came

	claims   []int32 // users of each claim
	limits   []int64 // per node, len(drivers) each; -1: none
	attached []int32 // per node, len(drivers) each: distinct handles
	handles  map[uint64]int32

	log    []change
	logged bool
}

// fresh is the name of a domain that is one template's node alone. No label value
// has a zero byte.
const fresh = "\x00"

// NewState returns a State without nodes. The classes are those of one Snapshot and
// are kept, not copied.
func NewState(classes []cluster.PodClass, namespaces []cluster.Namespace) *State {
	ties := newConstraintClasses(classes, namespaces)
	t := &tables{constraintClasses: ties, hostname: -1, constraints: make([]*constraints, len(ties.first))}
	s := &State{tables: t, shapeIDs: map[*NodeInfo]int32{}, handles: map[uint64]int32{}, devices: devices.New()}
	b := &build{tables: t, s: s, ids: map[string]int32{}}
	for tie := range t.first {
		b.terms(int32(tie))
	}
	b.volumes()
	b.claims()
	b.match()
	b.connect()
	b.indexEligibilities()
	s.names = make([][]string, len(t.keys))
	s.values = make([]map[string]int32, len(t.keys))
	for i := range s.values {
		s.values[i] = map[string]int32{}
	}
	return s
}

// AddNode adds a node without pods, but for those of its shape's Daemons, and returns its
// index: 0, 1, 2 and so on. The shape is kept, not copied, and must not change
// afterwards; many nodes of one shape cost little when they share it. A shape without a
// name is a template: each node of it is a hostname of its own, whatever its labels say.
// A driver that volumeLimits does not list has no limit.
func (s *State) AddNode(shape *NodeInfo, volumeLimits map[string]int64) int {
	node := len(s.shapeOf)
	id := s.shapeID(shape)
	s.shapeOf = append(s.shapeOf, id)
	k := len(s.keys)
	s.domains = append(s.domains, s.shapeDomains[int(id)*k:int(id)*k+k]...)
	if s.hostname >= 0 && shape.Name == "" {
		s.domains[node*k+int(s.hostname)] = int32(len(s.names[s.hostname]))
		s.names[s.hostname] = append(s.names[s.hostname], fresh)
	}
	for _, driver := range s.drivers {
		limit, has := volumeLimits[driver]
		if !has {
			limit = -1
		}
		s.limits, s.attached = append(s.limits, limit), append(s.attached, 0)
	}
	s.has = append(s.has, s.devices.Has(shape.Devices, s.plugged(shape)))
	s.joinAll(node, 1, shape.Name == "")
	if s.logged {
		s.log = append(s.log, change{kind: changeNode})
	}
	for _, class := range shape.Daemons {
		s.Put(class, node, 1)
	}
	return node
}

// shapeID works out what a shape means to the classes' terms, once.
func (s *State) shapeID(shape *NodeInfo) int32 {
	if id, ok := s.shapeIDs[shape]; ok {
		return id
	}
	id := int32(len(s.shapes))
	s.shapeIDs[shape] = id
	s.shapes = append(s.shapes, shape)
	at := len(s.shapeDomains)
	for k := range s.keys {
		s.shapeDomains = append(s.shapeDomains, s.domainOf(shape, k))
	}
	s.addEligible(shape, s.shapeDomains[at:])
	return id
}

// domainOf is the domain that a shape's label names. For a template's hostname any
// number but -1 will do: AddNode puts the node's own.
func (s *State) domainOf(shape *NodeInfo, key int) int32 {
	if shape.Name == "" && int32(key) == s.hostname {
		return 0
	}
	value, has := shape.Labels[s.keys[key]]
	if !has {
		return -1
	}
	if d, ok := s.values[key][value]; ok {
		return d
	}
	d := int32(len(s.names[key]))
	s.names[key] = append(s.names[key], value)
	s.values[key][value] = d
	return d
}

// Put tells that n more pods of the class are on the node; a negative n takes them
// away again, exactly.
func (s *State) Put(class, node, n int) { s.put(class, node, n, false) }

// PutTerminating is Put for pods with a deletionTimestamp: anti-affinity, affinity and
// volumes see them, spread does not count them.
func (s *State) PutTerminating(class, node, n int) { s.put(class, node, n, true) }

func (s *State) put(class, node, n int, leaving bool) {
	if n == 0 {
		return
	}
	row := s.domains[node*len(s.keys):]
	for _, id := range s.incrementsOf(class) {
		c := &s.counters[id]
		domain := row[c.key]
		if domain < 0 {
			continue
		}
		if c.eligible < 0 {
			c.count.add(domain, int32(n))
			c.sum += int64(n)
			continue
		}
		if !leaving && s.counts(node, s.eligibleNodes[c.eligible].eligibility) {
			to := c.count.add(domain, int32(n))
			c.sum += int64(n)
			s.move(c, to-int32(n), to)
		}
	}
	s.putVolumes(class, node, n)
	if !leaving { // it keeps what it has
		s.putClaims(s.constraintsOf(class), node, n)
	}
	if s.logged {
		kind := changePut
		if leaving {
			kind = changeTerminating
		}
		s.log = append(s.log, change{kind: kind, class: int32(class), node: int32(node), n: int32(n)})
	}
}

// Refused judges one more pod of the class on the node as it is now: the rule of the
// first filter that refuses it, in the scheduler's order and words; "" when it
// passes. F0 to F6 are judged by Refused and by Dimensions.Short.
func (s *State) Refused(class, node int) (rule, words string) {
	a := s.constraintsOf(class)
	if a == nil {
		return "", ""
	}
	for i := range stateFilters {
		if w := stateFilters[i].words(s, a, node); w != "" {
			return stateFilters[i].rule, w
		}
	}
	return "", ""
}

// Passes is Refused without the words. It does not allocate, but for devices that are looked for the first time.
func (s *State) Passes(class, node int) bool {
	a := s.constraintsOf(class)
	return a == nil || s.passes(a, node)
}

func (s *State) passes(a *constraints, node int) bool {
	return s.passesVolumes(a, node, nil) &&
		s.spreadHolds(a, node) == "" && s.interPod(a, node) == ""
}

// stateFilters are in kube-scheduler's order. A claim that cannot be had is said
// before any node is looked at (PreFilter).
var stateFilters = []struct {
	rule  string
	words func(s *State, a *constraints, node int) string
}{
	{RuleVolumeBinding, func(_ *State, a *constraints, _ int) string { return a.refused }},
	{RuleVolumeRestrictions, (*State).restricted},
	{RuleVolumeLimits, (*State).limited},
	{RuleVolumeBinding, (*State).bound},
	{RuleVolumeZone, (*State).placed},
	{RuleSpread, (*State).spreadHolds},
	{RuleInterPod, (*State).interPod},
	{RuleDevices, (*State).allocatable},
}
