package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// zoneAssignment decides which pods go to which zone, before any machine is looked at: pod by
// pod, by the scheduler's rules, on one machine of every group that stands for all of
// its machines. Every demand of a class with terms on zones becomes one demand per domain.
type zoneAssignment struct {
	*topology
	state          *fit.State
	usable         []bool // by group
	rep            []int  // by group: its machine in state
	groups         [][]int
	placedMilliCPU []int64   // by domain: what is put there, in milli cores
	nodes          [][]int   // by domain
	sizeCost       []float64 // by group, of a machine
	known          map[domainQuery][]candidateDomain
	found          []candidateDomain // room for candidates
}

// demandRange is where the parts of a demand are, if it is divided.
type demandRange struct {
	from, to int
	is       bool
}

// assignZones turns every want that zones matter to into one demand per domain.
func (b *topology) assignZones() {
	w := b.w
	var keys []string
	anti := false
	for i := range w.s.Classes {
		c := &w.s.Classes[i]
		keysOf(c, func(key string) {
			if key != keyHostname && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		})
		for t := range c.PodAntiAffinity {
			anti = anti || c.PodAntiAffinity[t].TopologyKey != keyHostname
		}
	}
	slices.Sort(keys)
	cells := b.numberDomains(keys)
	if len(keys) == 0 {
		return
	}
	zones := fit.Scope{Without: func(key string) bool { return key == keyHostname }, NoLimits: true}
	s := &zoneAssignment{topology: b, known: make(map[domainQuery][]candidateDomain), state: w.fill(b.state.Within(zones)), groups: make([][]int, cells+1), nodes: make([][]int, cells+1), placedMilliCPU: make([]int64, cells+1)}
	s.represent()
	order, most, steps := make([]int, 0, len(w.demands)), 0, 0
	for i := range w.demands {
		class := w.demands[i].class
		if hasZoneTerms(&w.s.Classes[class]) || (anti || b.rank[class] == rankHosts && cells > 1) && s.state.Constrained(class) {
			order = append(order, i)
			most += min(cells, w.demands[i].count())
			steps += w.demands[i].count()
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Compare(b.rank[w.demands[x].class], b.rank[w.demands[y].class])
	})
	divided := make([]demandRange, len(w.demands))
	parts := make([]demand, 0, most+cells) // a demand allocates room for all domains first
	b.assignment = make([]assignmentStep, 0, steps)
	for _, i := range order {
		from := len(parts)
		parts = s.assign(parts, &w.demands[i])
		divided[i] = demandRange{from, len(parts), true}
	}
	out := make([]demand, 0, len(w.demands)-len(order)+len(parts))
	for i := range w.demands {
		if d := divided[i]; d.is {
			out = append(out, parts[d.from:d.to]...)
		} else {
			out = append(out, w.demands[i])
		}
	}
	w.demands = out
}

// represent adds one machine of every group that can have one.
func (s *zoneAssignment) represent() {
	w := s.w
	s.usable, s.rep = make([]bool, len(w.groups)), make([]int, len(w.groups))
	for g := range w.groups {
		gr := &w.groups[g]
		s.rep[g] = -1
		if gr.Template.Unknown != "" || gr.rule != "" && gr.upcoming+gr.grow == 0 {
			continue
		}
		s.usable[g] = true
		_, shape := w.template(gr)
		s.rep[g] = s.state.AddNode(shape, nil)
		s.groups[s.groupDomain[g]] = append(s.groups[s.groupDomain[g]], g)
	}
	for n := range w.nodes {
		if st := w.nodes[n].state; st == stateReady || st == stateUpcoming {
			s.nodes[s.nodeDomain[n]] = append(s.nodes[s.nodeDomain[n]], n)
		}
	}
	s.sizeCost = make([]float64, len(w.groups))
	for g := range w.groups {
		s.sizeCost[g] = w.groups[g].sizeCost()
	}
}

// zoneSkew is the smallest skew of a class's spread over zones; 0: it has none.
func zoneSkew(c *cluster.PodClass) int {
	least := 0
	for i := range c.Spread {
		if t := &c.Spread[i]; t.TopologyKey != keyHostname && (least == 0 || t.MaxSkew < least) {
			least = t.MaxSkew
		}
	}
	return least
}

// assignmentStep is one of those by which pods were divided: n of a class into a domain.
type assignmentStep struct{ class, domain, n int32 }

// candidateDomain is where a class would stand in a domain.
type candidateDomain struct {
	domain  int
	machine int     // index into state
	group   int     // -1: an existing node
	room    int     // pods of the class that can go there at most
	cost    float64 // of a pod
	taken   int
}

// domainQuery is all that candidates look at of a demand, where its volumes do not matter.
type domainQuery struct {
	equivalent int32 // of class: its size, and what it asks of a machine's shape
	groups     *bool // the groups that may be asked at all: see standing
	count      int
	buys       bool
}

// candidates are the domains with a machine or a node that would take the class. They stand
// until it is called again. Many classes ask for the same.
func (s *zoneAssignment) candidates(k *demand) []candidateDomain {
	if len(s.w.s.Classes[k.class].Volumes) > 0 {
		s.found = s.lookFor(s.found[:0], k)
		return s.found
	}
	q := domainQuery{equivalent: s.w.e.classes.equivalent[k.class], count: k.count(), buys: k.buys}
	if s.constrained[k.class] && len(s.rep) > 0 {
		q.groups = &s.groupsWithLabels(k.class)[0]
	}
	known, ok := s.known[q]
	if !ok {
		known = s.lookFor(nil, k)
		s.known[q] = known
	}
	s.found = append(s.found[:0], known...)
	return s.found
}

func (s *zoneAssignment) lookFor(out []candidateDomain, k *demand) []candidateDomain {
	w := s.w
	size := w.space.Class(k.class)
	for cell := 1; cell < len(s.groups); cell++ {
		p := candidateDomain{domain: cell, machine: -1, group: -1, cost: math.Inf(1)}
		looked := 0
		for _, g := range s.groups[cell] {
			gr := &w.groups[g]
			empty, shape := w.template(gr)
			per := fit.MaxFit(empty, size)
			if per == 0 || !w.takes(k.class, g, shape) || !s.reachable(k.class, g) || !k.buys && gr.upcoming == 0 {
				continue
			}
			if looked++; looked > shortlistFrom && p.room >= k.count() {
				break
			}
			more := 0
			if gr.rule == "" && k.buys {
				more, _ = w.allowed(gr, k.count())
			}
			p.room = min(p.room+(gr.upcoming+gr.grow+more)*per, math.MaxInt32)
			if cost := s.sizeCost[g] * shareOf(size, empty); cost < p.cost {
				p.machine, p.group, p.cost = s.rep[g], g, cost
			}
		}
		if p.room < k.count() {
			for _, n := range s.nodes[cell] {
				if most := fit.MaxFit(w.nodes[n].room, size); most > 0 && w.passes(k.class, n) {
					p.room += min(most, k.count())
					if p.machine < 0 {
						p.machine = n
					}
				}
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
func (s *zoneAssignment) assign(out []demand, k *demand) []demand {
	spots := s.candidates(k)
	for range spots {
		out = append(out, demand{class: k.class, owner: k.owner, buys: k.buys})
	}
	parts := out[len(out)-len(spots):]
	for i := range spots {
		parts[i].domain = spots[i].domain
	}
	keys := s.placeReserved(k, spots, parts)
	left := len(keys) + k.expected
	weight := s.w.space.Class(k.class)
	bound := hasZoneTerms(&s.w.s.Classes[k.class]) || len(spots) == 1
	for left > 0 {
		best, most := s.next(k.class, spots, bound)
		if best < 0 {
			break
		}
		p, n := &spots[best], 1
		if most == math.MaxInt32 && bound { // nothing is counted: as well all at once
			n = min(left, p.room)
		}
		s.state.Put(k.class, p.machine, n)
		s.assignment = append(s.assignment, assignmentStep{int32(k.class), int32(p.domain), int32(n)})
		p.room -= n
		p.taken += n
		s.placedMilliCPU[p.domain] += int64(n) * (weight[0] + weight[1]>>23)
		named := min(n, len(keys))
		parts[best].keys = append(parts[best].keys, keys[:named]...)
		keys = keys[named:]
		parts[best].expected += n - named
		left -= n
	}
	for i := range parts {
		slices.Sort(parts[i].keys)
	}
	kept := slices.DeleteFunc(parts, func(x demand) bool { return x.count() == 0 })
	out = out[:len(out)-len(spots)+len(kept)]
	if left > 0 {
		out = append(out, demand{class: k.class, owner: k.owner, buys: k.buys, keys: keys, expected: left - len(keys), perPod: true})
	}
	return out
}

// placeReserved puts the pods that count on an upcoming machine into its domain, and returns the
// others.
func (s *zoneAssignment) placeReserved(k *demand, spots []candidateDomain, parts []demand) []cluster.PodKey {
	if len(s.w.in.Reservations) == 0 || !k.buys {
		return k.keys
	}
	var keys []cluster.PodKey
	for _, key := range k.keys {
		g, ok := s.w.byID[s.w.reservedTo(key)]
		i := -1
		if ok && s.usable[g] {
			i = slices.IndexFunc(spots, func(p candidateDomain) bool { return p.domain == s.groupDomain[g] && p.room > 0 })
		}
		if i < 0 || !s.state.Passes(k.class, s.rep[g]) {
			keys = append(keys, key)
			continue
		}
		s.state.Put(k.class, s.rep[g], 1)
		s.assignment = append(s.assignment, assignmentStep{int32(k.class), int32(s.groupDomain[g]), 1})
		spots[i].room--
		spots[i].taken++
		parts[i].keys = append(parts[i].keys, key)
	}
	return keys
}

// next is the domain for one more pod: where the class's own spread leaves most room,
// then the cheapest, then the emptiest. One that is not bound to zones and is only
// counted by others goes where the fewest of its like are.
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
		b := &spots[best]
		if !bound && p.taken != b.taken {
			if p.taken < b.taken {
				best, most = i, n
			}
			continue
		}
		if cmp.Or(cmp.Compare(most, n), cmp.Compare(p.cost, b.cost), cmp.Compare(s.placedMilliCPU[p.domain], s.placedMilliCPU[b.domain])) < 0 {
			best, most = i, n
		}
	}
	return best, most
}
