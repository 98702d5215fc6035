package topology

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// zoneAssignment decides which pods go to which zone, before any machine is looked at: pod by
// pod, by the scheduler's rules, on one machine of every group that stands for all of
// its machines. Every demand of a class with terms on zones becomes one demand per domain.
type zoneAssignment struct {
	*Topology
	state          *fit.State
	usable         []bool // by group
	rep            []int  // by group: its machine in state
	groups         [][]int
	placedMilliCPU []int64      // by domain: the pods that are put there, in milli cores
	rooms          [][]zoneRoom // by domain
	sizeCost       []float64    // by group, of a machine
	known          map[domainQuery][]candidateDomain
	perMachine     map[[2]int]int    // by class and group: see onMachine
	found          []candidateDomain // room for candidates
}

// demandRange is where the parts of a demand are, if it is divided.
type demandRange struct {
	from, to int
	is       bool
}

// assignZones turns every want that zones matter to into one demand per domain.
func (b *Topology) assignZones() {
	w := b.w
	names := make(map[string]bool)
	anti := false
	for i := range w.Snapshot.Classes {
		c := &w.Snapshot.Classes[i]
		fit.TopologyKeys(c, func(key string) {
			if key != KeyHostname {
				names[key] = true
			}
		})
		for t := range c.PodAntiAffinity {
			anti = anti || c.PodAntiAffinity[t].TopologyKey != KeyHostname
		}
	}
	keys := slices.Sorted(maps.Keys(names))
	cells := b.numberDomains(keys)
	b.hosts = b.State
	if len(keys) == 0 {
		return
	}
	b.hosts = w.Fill(b.State.Within(fit.Scope{Without: zoneKey}))
	zones := fit.Scope{Without: func(key string) bool { return key == KeyHostname }, NoLimits: true}
	s := &zoneAssignment{Topology: b, known: make(map[domainQuery][]candidateDomain), perMachine: make(map[[2]int]int), state: w.Fill(b.State.Within(zones)), groups: make([][]int, cells+1), placedMilliCPU: make([]int64, cells+1)}
	s.represent()
	order, most, steps := make([]int, 0, len(w.Demands)), 0, 0
	for i := range w.Demands {
		class := w.Demands[i].Class
		if BeyondHosts(&w.Snapshot.Classes[class]) || (anti || b.Rank[class] == RankHosts && cells > 1) && s.state.Constrained(class) {
			order = append(order, i)
			most += min(cells, w.Demands[i].Count())
			steps += w.Demands[i].Count()
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(b.Rank[w.Demands[x].Class], b.Rank[w.Demands[y].Class])
	})
	divided := make([]demandRange, len(w.Demands))
	parts := make([]round.Demand, 0, most+cells) // a demand allocates room for all domains first
	b.Assignment = make([]assignmentStep, 0, steps)
	for _, i := range order {
		from := len(parts)
		parts = s.assign(parts, &w.Demands[i])
		divided[i] = demandRange{from, len(parts), true}
	}
	out := make([]round.Demand, 0, len(w.Demands)-len(order)+len(parts))
	for i := range w.Demands {
		if d := divided[i]; d.is {
			out = append(out, parts[d.from:d.to]...)
		} else {
			out = append(out, w.Demands[i])
		}
	}
	w.Demands = out
}

// represent adds one machine of every group that can have one.
func (s *zoneAssignment) represent() {
	w := s.w
	s.usable, s.rep = make([]bool, len(w.Groups)), make([]int, len(w.Groups))
	for g := range w.Groups {
		gr := &w.Groups[g]
		s.rep[g] = -1
		if gr.Template.Unknown != "" || !gr.CanGrow() && gr.Upcoming+gr.Grow == 0 {
			continue
		}
		s.usable[g] = true
		_, shape := w.Template(gr)
		s.rep[g] = s.state.AddNode(shape, nil)
		s.groups[s.GroupDomain[g]] = append(s.groups[s.GroupDomain[g]], g)
	}
	s.collectRooms()
	s.sizeCost = make([]float64, len(w.Groups))
	for g := range w.Groups {
		s.sizeCost[g] = w.Groups[g].SizeCost()
	}
}

// ZoneSkew is the smallest skew of a class's spread over zones; 0: it has none.
func ZoneSkew(c *cluster.PodClass) int {
	least := 0
	for i := range c.Spread {
		if t := &c.Spread[i]; t.TopologyKey != KeyHostname {
			least = min(cmp.Or(least, t.MaxSkew), t.MaxSkew)
		}
	}
	return least
}

// assignmentStep is one of those by which pods were divided: n of a class into a domain.
type assignmentStep struct{ Class, Domain, N int32 }

// candidateDomain is where a class would stand in a domain.
type candidateDomain struct {
	domain  int
	machine int     // index into state
	group   int     // -1: an existing node
	room    int     // pods of the class that can go there at most
	cost    float64 // of a pod
	per     int     // pods of the class on one machine of group
	free    int     // pods of the class that rooms of the domain still take: see zoneRoom
	taken   int
}

// domainQuery is all that candidates look at of a demand, where its volumes do not matter.
type domainQuery struct {
	equivalent int32  // of class: its size, and what it asks of a machine's shape
	keys       string // the topology keys that a template has to tell: see Reachable
	count      int
	buys       bool
}

// candidates are the domains with a machine or a node that would take the class. They stand
// until it is called again. Many classes ask for the same.
func (s *zoneAssignment) candidates(k *round.Demand) []candidateDomain {
	if len(s.w.Snapshot.Classes[k.Class].Volumes) > 0 {
		s.found = s.lookFor(s.found[:0], k)
		return s.found
	}
	q := domainQuery{equivalent: s.w.Cache.Classes.Equivalent[k.Class], keys: topologyKeys(&s.w.Snapshot.Classes[k.Class]), count: k.Count(), buys: k.Buys}
	known, ok := s.known[q]
	if !ok {
		known = s.lookFor(nil, k)
		s.known[q] = known
	}
	s.found = append(s.found[:0], known...)
	return s.found
}

func (s *zoneAssignment) lookFor(out []candidateDomain, k *round.Demand) []candidateDomain {
	w := s.w
	size, filters := w.Dimensions.Class(k.Class), w.FiltersOf(k.Class)
	for cell := 1; cell < len(s.groups); cell++ {
		p := candidateDomain{domain: cell, machine: -1, group: -1, cost: math.Inf(1)}
		looked := 0
		for _, g := range s.groups[cell] {
			gr := &w.Groups[g]
			empty, shape := w.Template(gr)
			per := binpack.MaxFit(empty, size)
			if per == 0 || !w.Takes(k.Class, g, shape) || !s.Reachable(k.Class, g) {
				continue
			}
			if looked++; looked > ShortlistFrom && p.room >= k.Count() {
				break
			}
			more := 0
			if k.Buys {
				more = growth.Count(w, gr, k.Count())
			}
			p.room = min(p.room+(gr.Upcoming+gr.Grow+more)*per, math.MaxInt32)
			if cost := s.sizeCost[g] * shareOf(size, empty); cost < p.cost {
				p.machine, p.group, p.cost = s.rep[g], g, cost
			}
		}
		for r := range s.rooms[cell] {
			n := s.rooms[cell][r].node
			if p.room >= k.Count() || n < 0 {
				break
			}
			if more := binpack.MaxFit(w.Nodes[n].Room, size); more > 0 && filters.Passes(n) {
				p.room, p.machine = p.room+min(more, k.Count()), n
			}
		}
		if p.machine >= 0 {
			p.cost = math.Floor(math.Log(p.cost) / logNearly)
			out = append(out, p)
		}
	}
	return out
}

// costTolerance is up to which ratio two zones cost the same: then the emptier is taken.
const costTolerance = 1.15

var logNearly = math.Log(costTolerance)

// shareOf is how much of a machine a pod takes.
func shareOf(size, empty []int64) float64 {
	most := 0.0
	for j, n := range size {
		if n > 0 {
			most = max(most, float64(n)/float64(empty[j]))
		}
	}
	return most
}

// assign appends what of a demand goes to which domain, and last what goes nowhere as far as
// zones can tell.
func (s *zoneAssignment) assign(out []round.Demand, k *round.Demand) []round.Demand {
	spots := s.candidates(k)
	for range spots {
		out = append(out, round.Demand{Class: k.Class, Owner: k.Owner, Buys: k.Buys, Deferral: k.Deferral, DeferralRule: k.DeferralRule})
	}
	parts := out[len(out)-len(spots):]
	for i := range spots {
		parts[i].Domain = spots[i].domain
	}
	keys := s.placeReserved(k, spots, parts)
	left := len(keys) + k.Expected
	s.measureRooms(k.Class, left, spots)
	weight := s.weight(k.Class)
	bound := BeyondHosts(&s.w.Snapshot.Classes[k.Class]) || len(spots) == 1
	for left > 0 {
		best, most := s.next(k.Class, spots, bound)
		if best < 0 {
			break
		}
		p, n := &spots[best], 1
		if most == math.MaxInt32 && bound { // nothing is counted: as well all at once
			n = min(left, p.room)
			if p.free > 0 {
				n = min(n, p.free)
			}
		}
		s.state.Put(k.Class, p.machine, n)
		s.Assignment = append(s.Assignment, assignmentStep{int32(k.Class), int32(p.domain), int32(n)})
		p.room -= n
		p.taken += n
		p.free -= n
		for p.free < 0 {
			p.free += max(p.per, 1)
		}
		s.placedMilliCPU[p.domain] += int64(n) * weight
		named := min(n, len(keys))
		parts[best].Keys = append(parts[best].Keys, keys[:named]...)
		keys = keys[named:]
		parts[best].Expected += n - named
		left -= n
	}
	for i := range parts {
		slices.Sort(parts[i].Keys)
		s.fill(k.Class, &spots[i])
	}
	kept := slices.DeleteFunc(parts, func(x round.Demand) bool { return x.Count() == 0 })
	out = out[:len(out)-len(spots)+len(kept)]
	if left > 0 {
		out = append(out, round.Demand{Class: k.Class, Owner: k.Owner, Buys: k.Buys, Deferral: k.Deferral, DeferralRule: k.DeferralRule, Keys: keys, Expected: left - len(keys), PerPod: true})
	}
	return out
}

// weight is the amount that a pod of a class adds to placedMilliCPU: its memory counts at 8 GiB a core.
func (s *zoneAssignment) weight(class int) int64 {
	size := s.w.Dimensions.Class(class)
	return size[0] + size[1]>>23
}

// placeReserved puts the pods that count on an upcoming machine into its domain, and returns the
// others.
func (s *zoneAssignment) placeReserved(k *round.Demand, spots []candidateDomain, parts []round.Demand) []cluster.PodKey {
	if len(s.w.Memory.Reservations) == 0 || !k.Buys {
		return k.Keys
	}
	weight := s.weight(k.Class)
	var keys []cluster.PodKey
	for _, key := range k.Keys {
		g, i := s.w.ReservedGroup(key), -1
		if g >= 0 && s.usable[g] {
			i = slices.IndexFunc(spots, func(p candidateDomain) bool { return p.domain == s.GroupDomain[g] && p.room > 0 })
		}
		if i < 0 || !s.state.Passes(k.Class, s.rep[g]) {
			keys = append(keys, key)
			continue
		}
		s.state.Put(k.Class, s.rep[g], 1)
		s.Assignment = append(s.Assignment, assignmentStep{int32(k.Class), int32(s.GroupDomain[g]), 1})
		spots[i].room--
		s.putReserved(k.Class, g)
		s.placedMilliCPU[spots[i].domain] += weight // the others of its class go where they went in the round that reserved
		parts[i].Keys = append(parts[i].Keys, key)
	}
	return keys
}

// next is the domain for one more pod: where room costs nothing more, then
// where the class's own spread leaves most room, then the cheapest, then the emptiest. One that is
// not bound to zones and is only counted by others goes where the fewest of its like are.
func (s *zoneAssignment) next(class int, spots []candidateDomain, bound bool) (best, most int) {
	best = -1
	for i := range spots {
		p := &spots[i]
		if p.room <= 0 {
			continue
		}
		n := s.state.MaxFit(class, p.machine)
		if n == 0 {
			continue
		}
		if best < 0 {
			best, most = i, n
			continue
		}
		b, fewest := &spots[best], 0
		if !bound {
			fewest = cmp.Compare(p.taken, b.taken)
		}
		if cmp.Or(cmp.Compare(min(b.free, 1), min(p.free, 1)), fewest, cmp.Compare(most, n), cmp.Compare(p.cost, b.cost), cmp.Compare(s.placedMilliCPU[p.domain], s.placedMilliCPU[b.domain])) < 0 {
			best, most = i, n
		}
	}
	return best, most
}

// ShortlistFrom is the number of groups from which on only the promising are looked at
// closely.
const ShortlistFrom = 16
