// Package devices allocates the devices of one node to the claims of a pod as kube-scheduler's allocator does
// (k8s.io/dynamic-resource-allocation/structured of 1.36: the first solution of an exhaustive search, device by device in
// the order of pools and slices): counts and all, lists of alternatives, constraints over attributes, shared counters,
// admin access, taints.
//
// What a node has left is a state with a number, and so is what a pod asks for: a pair of them is searched once for a round, and
// nodes that are alike share their states, so that a judgement is one look into a map. Selectors are not evaluated here: a device
// says which of them select it.
//
// It refuses to judge devices that several nodes or several claims share: whoever makes the values leaves these out and
// says so.
package devices

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const (
	mostResults = 32 // AllocationResultsMaxSize: devices of one claim
	// searchSteps bound one search, allSteps what all of them may take before each gets fewSteps. A search that ends so has
	// found nothing: the upstream one is cut off by time.
	searchSteps = 20_000
	allSteps    = 2_000_000
	fewSteps    = 200
)

// Allocator knows the states of nodes and the demands of pods. Not safe for concurrent use.
type Allocator struct {
	demands   [][]cluster.DeviceClaim // that are not allocated, by pod
	demandIDs map[string]int32
	named     map[string]bool // attributes that constraints name
	machines  []machine
	bySource  map[source]int32 // the state that each had first
	byContent map[string]int32 // machines
	states    []state
	stateIDs  map[string]int32
	next      map[[2]int32]int32
	steps     int
}

// New has no demands and no machines. Demands are told first.
func New() *Allocator {
	return &Allocator{
		demandIDs: map[string]int32{}, named: map[string]bool{}, bySource: map[source]int32{}, byContent: map[string]int32{},
		stateIDs: map[string]int32{}, next: map[[2]int32]int32{},
	}
}

type source struct {
	devices *cluster.Devices
	plugged string
}

// machine holds what a set of devices is, whoever has them.
type machine struct {
	*cluster.Devices
	plugged  []string // extended resources of a device plug-in: no devices are asked for in their place
	counters []counter
	uses     [][]use    // per device
	selected [][]choice // per demand, what each alternative may take; nil until asked
}

type counter struct {
	pool  string
	total int64
}

// use is what a device takes of a counter.
type use struct {
	counter int
	amount  int64
}

type state struct {
	machine int32
	taken   []bool
}

// Demand numbers what claims ask for; -1: nothing, they are allocated.
func (a *Allocator) Demand(claims []cluster.DeviceClaim) int32 {
	open := slices.DeleteFunc(slices.Clone(claims), func(c cluster.DeviceClaim) bool { return c.On != nil })
	if len(open) == 0 {
		return -1
	}
	key := string(cluster.AppendClaims(nil, open))
	if id, ok := a.demandIDs[key]; ok {
		return id
	}
	for i := range open {
		for _, c := range open[i].Constraints {
			a.named[c.Attribute] = true
		}
	}
	id := int32(len(a.demands))
	a.demandIDs[key], a.demands = id, append(a.demands, open)
	return id
}

// Has numbers what a node has left, which has extended resources of a device plug-in. It costs the devices, once for each value.
func (a *Allocator) Has(d *cluster.Devices, plugged []string) int32 {
	if d == nil {
		d = &none
	}
	from := source{d, strings.Join(plugged, "\n")}
	if id, ok := a.bySource[from]; ok {
		return id
	}
	key := string(a.appendMachine(cluster.AppendStrings(nil, plugged), d))
	m, ok := a.byContent[key]
	if !ok {
		m = int32(len(a.machines))
		a.byContent[key], a.machines = m, append(a.machines, newMachine(d, plugged))
	}
	taken := make([]bool, len(d.Devices))
	for i := range d.Devices {
		taken[i] = d.Devices[i].Taken
	}
	id := a.state(m, taken)
	a.bySource[from] = id
	return id
}

var none cluster.Devices

// appendMachine appends all that a search reads of the devices, but for who has them.
func (a *Allocator) appendMachine(b []byte, d *cluster.Devices) []byte {
	text := func(s string) { b = cluster.AppendString(b, s) }
	sets := func(list []cluster.CounterSet) {
		b = append(strconv.AppendInt(b, int64(len(list)), 10), ' ')
		for _, s := range list {
			text(s.Pool)
			text(s.Name)
			for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
				text(name)
				b = append(strconv.AppendInt(b, s.Counters[name], 10), ' ')
			}
			b = append(b, ';')
		}
	}
	text(d.Unready)
	sets(d.Counters)
	for i := range d.Devices {
		x := &d.Devices[i]
		b = cluster.AppendStrings(cluster.AppendStrings(b, x.Matches), x.Fails)
		sets(x.Consumes)
		for _, t := range slices.Concat(x.Taints, x.Ruled) {
			text(t.Key)
			text(t.Value)
			text(t.Effect)
		}
		b = append(b, '|')
		for _, name := range slices.Sorted(maps.Keys(x.Attributes)) {
			if a.named[name] {
				text(name)
				text(x.Attributes[name])
			}
		}
		b = append(b, '\n')
	}
	return b
}

func newMachine(d *cluster.Devices, plugged []string) machine {
	m := machine{Devices: d, plugged: plugged, uses: make([][]use, len(d.Devices))}
	at := map[[3]string]int{}
	for _, s := range d.Counters {
		for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
			at[[3]string{s.Pool, s.Name, name}] = len(m.counters)
			m.counters = append(m.counters, counter{s.Pool, s.Counters[name]})
		}
	}
	for i := range d.Devices {
		for _, s := range d.Devices[i].Consumes {
			for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
				if c, known := at[[3]string{s.Pool, s.Name, name}]; known {
					m.uses[i] = append(m.uses[i], use{c, s.Counters[name]})
				}
			}
		}
	}
	return m
}

func (a *Allocator) state(machine int32, taken []bool) int32 {
	key := binary.LittleEndian.AppendUint32(nil, uint32(machine))
	for i := 0; i < len(taken); i += 8 {
		bits := byte(0)
		for k := i; k < min(i+8, len(taken)); k++ {
			if taken[k] {
				bits |= 1 << (k - i)
			}
		}
		key = append(key, bits)
	}
	if id, ok := a.stateIDs[string(key)]; ok {
		return id
	}
	id := int32(len(a.states))
	a.stateIDs[string(key)], a.states = id, append(a.states, state{machine, taken})
	return id
}

// Take is the state after one more pod with the demand; -1: its claims cannot be allocated.
func (a *Allocator) Take(from, demand int32) int32 {
	if demand < 0 {
		return from
	}
	key := [2]int32{from, demand}
	to, known := a.next[key]
	if !known {
		to = -1
		if taken := a.search(from, demand); taken != nil {
			to = a.state(a.states[from].machine, taken)
		}
		a.next[key] = to
	}
	return to
}

// Most is how many pods with the demand fit one after the other, and at most limit.
func (a *Allocator) Most(from, demand int32, limit int) (n int) {
	for ; n < limit; n++ {
		switch to := a.Take(from, demand); to {
		case from:
			return limit // it takes nothing from anybody
		case -1:
			return n
		default:
			from = to
		}
	}
	return n
}
