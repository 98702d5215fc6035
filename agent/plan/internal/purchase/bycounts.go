package purchase

import (
	"cmp"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// In a round that is too large to bind pods one by one, pods are placed by counts: as many of a class as a place takes, on the first places that take
// any. A purchase is packed then: machine after machine is filled with pods whose sizes are most like the room that is left (Panigrahy et al.,
// "Heuristics for Vector Bin Packing", 2011), and in the end becomes the cheapest machine that holds its content.

// packed is a purchase with the order in which its pods were put on the board.
type packed struct {
	groups []int                // of its machines
	puts   []schedsim.Placement // their nodes are places of the board; those beyond the board's are the machines
	left   []int                // by class
}

// filling is a packing at work.
type filling struct {
	*board
	y       []int // machines by group, those of balanced sets by their own
	left    []int
	from    int   // the first place that is a machine of the packing
	rank    []int // groups in the order in which they are opened
	classes []int // that are left, large ones first
}

// packTries is how often a packing begins again with more machines; ways is how many groups are tried as the first one; mostLike is how many
// classes are compared with the room of a machine. Pods that depend on others are bound one by one where they are more than a fewPods-th of the places.
const packTries, ways, mostLike, fewPods = 6, 3, 256, 8

// byCounts puts the cheapest of a few packings on the board with its pods. What it leaves is bought for at once.
func (b *board) byCounts() {
	var best packed
	least := math.Inf(1)
	for _, open := range b.openings() {
		if b.sim.Spent() && best.groups != nil {
			break
		}
		f := b.pack(open)
		if score := b.scoreOf(f); score < least {
			best, least = f, score
		}
	}
	b.sim.Limit = b.sim.Steps + round.SearchPart.Budget()/2
	for try := 0; ; try++ {
		m := b.mark()
		left := b.arrange(best)
		if try == repairs || b.lacks(left) == 0 {
			break
		}
		x := b.purchaseOf(best.groups)
		some := sum(x)
		b.coverOn(x, slices.Clone(left), b.groups)
		if sum(x) == some {
			break
		}
		added := b.machines[m.machines+len(best.groups):]
		best.groups = slices.Concat(best.groups, added)
		b.rollback(m)
	}
}

// purchaseOf is a purchase of some machines.
func (b *board) purchaseOf(groups []int) []int {
	x, y := b.none(), b.none()
	for _, g := range groups {
		y[g]++
	}
	for g, n := range y {
		if n > 0 {
			x[b.standsFor(g)] += n
		}
	}
	return x
}

// scoreOf is the price of a packing, with what has to be bought for the pods that it leaves when all its machines are there.
func (b *board) scoreOf(f packed) float64 {
	x, left := b.purchaseOf(f.groups), f.left
	if b.Constraints != nil {
		m := b.mark()
		defer b.rollback(m)
		left = b.arrange(f)
		b.coverOn(x, left, b.groups)
	}
	return b.price(x) * (1 + lostCosts*float64(b.lacks(left)))
}

// arrange puts a packing on the board: all machines join, and pods go where they were put, those that the filters refuse there anywhere.
func (b *board) arrange(f packed) (left []int) {
	for _, g := range f.groups {
		b.add(g)
	}
	left = slices.Clone(b.left)
	for _, p := range f.puts {
		left[p.Class] -= b.fill(p.Class, p.Node, min(p.Count, left[p.Class]))
	}
	for _, c := range b.order {
		left[c] -= b.place(c, left[c])
	}
	return left
}

// opening is the groups of the machines that are there before pods are placed, and the order in which more are opened.
type opening struct{ open, rank []int }

// slacks are by opening how much more room than the pods need its machines have: sizes do not add up to whole machines.
var slacks = []float64{1, 1.1, 1.15, 1.2}

// alikeCosts is by how much a pair of groups may cost more than another and is taken where its machines are more alike.
const alikeCosts = 1.03

// openings are the ways in which a packing begins.
func (b *board) openings() (out []opening) {
	hosts, spread := b.hosts()
	need, rank := b.needs(), b.rank()
	if hosts == 0 && !spread {
		for k := range rank[:min(len(rank), ways)] {
			out = append(out, opening{rank: slices.Concat(rank[k:k+1], rank[:k], rank[k+1:])})
		}
	} else {
		for _, slack := range slacks {
			out = append(out, b.openFor(float64(hosts), slack, need, rank))
		}
	}
	if b.zones != nil {
		out = append(out, b.openZones(float64(hosts), need, rank))
	}
	return slices.CompactFunc(out, func(x, y opening) bool { return slices.Equal(x.open, y.open) && slices.Equal(x.rank, y.rank) })
}

// openFor opens so many machines at least, of the one or two groups of which they cost least and have room for all pods. It costs the groups squared.
func (b *board) openFor(hosts, slack float64, need []int64, rank []int) (o opening) {
	holds := make([]float64, len(b.cost)) // the share of all that a machine holds
	for _, g := range rank {
		holds[g] = 1 / share(need, b.rooms[g])
	}
	least, nearest := math.Inf(1), math.Inf(1)
	pairs := func(visit func(large, small int, n, m float64)) {
		for _, large := range rank {
			visit(large, large, max(hosts, math.Ceil(slack/holds[large])), 0)
			for _, small := range rank {
				if holds[small]*hosts < slack && slack < holds[large]*hosts {
					n := math.Ceil((slack - hosts*holds[small]) / (holds[large] - holds[small]))
					visit(large, small, n, hosts-n)
				}
			}
		}
	}
	pairs(func(x, y int, n, m float64) { least = min(least, n*b.cost[x]+m*b.cost[y]) })
	best, numbers := [2]int{}, [2]float64{}
	pairs(func(x, y int, n, m float64) { // machines of one size hold pods of all sizes
		if apart := holds[x] - holds[y]; n*b.cost[x]+m*b.cost[y] < least*alikeCosts && apart < nearest {
			best, numbers, nearest = [2]int{x, y}, [2]float64{n, m}, apart
		}
	})
	all, large := int(numbers[0]+numbers[1]), int(numbers[0])
	for i := range all { // in turn
		if (i+1)*large/all > i*large/all {
			o.open = append(o.open, best[0])
		} else {
			o.open = append(o.open, best[1])
		}
	}
	o.rank = slices.Clone(rank)
	slices.SortStableFunc(o.rank, func(x, y int) int { return boolCompare(x == best[0], y == best[0]) })
	return o
}

// openZones opens machines of the first group of a rank in each zone, evenly.
func (b *board) openZones(hosts float64, need []int64, rank []int) (o opening) {
	seen, list, room := make([]bool, len(b.Groups)), []int{}, make([]int64, len(need))
	for _, g := range rank {
		if !seen[b.zones[g]] {
			seen[b.zones[g]] = true
			list = append(list, g)
			binpack.Sub(room, b.rooms[g], -1)
		}
	}
	o.rank = rank
	for i := range int(max(hosts, math.Ceil(share(need, room)*float64(len(list))))) {
		o.open = append(o.open, list[i%len(list)])
	}
	return o
}

// boolCompare puts what is true first.
func boolCompare(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// hosts is how many machines the pods need at least that keep others off theirs, and whether pods are spread over hosts.
func (b *board) hosts() (n int, spread bool) {
	m := b.mark()
	defer b.rollback(m)
	before := len(b.machines)
	for _, c := range b.order {
		if b.left[c] == 0 || b.units[c] == 0 || !b.Constrained(c) {
			continue
		}
		spread = spread || b.evenly(c)
		if !b.excludes(c) {
			continue
		}
		left := b.left[c] - b.place(c, b.left[c])
		g := b.largest(c)
		for k := 1; left > 0 && k > 0 && !b.sim.Spent(); left -= k {
			k = b.fill(c, b.add(g), left)
		}
	}
	return len(b.machines) - before, spread
}

// largest is the group of whose machine a pod of a class takes the smallest share.
func (b *board) largest(class int) int {
	size, best, least := b.Dimensions.Class(class), -1, math.Inf(1)
	for _, g := range b.groups {
		if part := share(size, b.rooms[g]); part < least && b.takes(class, g) {
			best, least = g, part
		}
	}
	return best
}

// pack fills what is open, then machine after machine; those that are opened for pods that are spread over hosts are there from the beginning.
func (b *board) pack(o opening) (f packed) {
	for try := range packTries {
		m := b.mark()
		s := filling{board: b, y: b.none(), left: slices.Clone(b.left), from: b.sim.Nodes(), rank: o.rank}
		s.order()
		short := s.fillOpen(o.open)
		if short <= len(o.open) {
			s.fillLike()
			s.fillRest()
		}
		f = s.packed(m)
		b.rollback(m)
		more, n := max(short, len(f.groups)), len(o.open)
		if more > n && (short > 0 || try == 0 && s.spreads()) {
			if short > 0 && more < 2*n && try < packTries-2 {
				more = min(more, n+1+n<<try/100)
			}
			for i := range more - n {
				o.open = append(o.open, o.open[i%n])
			}
			continue
		}
		break
	}
	return f
}

// order sorts the classes that are left by priority and size.
func (s *filling) order() {
	for _, c := range s.board.order {
		if s.left[c] > 0 && s.units[c] > 0 {
			s.classes = append(s.classes, c)
		}
	}
	size := make([]float64, len(s.left))
	for _, c := range s.classes {
		size[c] = share(s.Dimensions.Class(c), s.rooms[s.rank[0]])
	}
	slices.SortStableFunc(s.classes, func(x, y int) int {
		return cmp.Or(cmp.Compare(s.Snapshot.Classes[y].Priority, s.Snapshot.Classes[x].Priority), cmp.Compare(size[y], size[x]))
	})
}

// spreads tells whether pods are spread over hosts: a machine that joins later closes those that are there.
func (s *filling) spreads() bool {
	return slices.ContainsFunc(s.board.order, func(c int) bool { return s.board.left[c] > 0 && s.evenly(c) })
}

// open opens a machine of a group, or of its balanced set; -1: the limits do not allow one.
func (s *filling) open(g int) int {
	if set := s.sets[g]; set != nil {
		g = -1
		for _, o := range set {
			if gr := &s.Groups[o]; gr.CanGrow() && gr.Size+gr.Grow+s.y[o] < gr.Max && (g < 0 || gr.Size+gr.Grow+s.y[o] < s.Groups[g].Size+s.Groups[g].Grow+s.y[g]) {
				g = o
			}
		}
	}
	if g < 0 || growth.Beside(s.State, s.y, g) <= 0 {
		return -1
	}
	s.y[g]++
	return s.add(g)
}

// drop takes the machine that was opened last back.
func (s *filling) drop(m mark) {
	s.y[s.machines[len(s.machines)-1]]--
	s.rollback(m)
}

// fillOpen opens machines, and places the pods on them that depend on others: those first that keep others off their host, and of each kind large
// ones. It returns how many machines hold the pods that are spread over hosts, where these are too few.
func (s *filling) fillOpen(open []int) (short int) {
	if len(open) == 0 {
		return 0
	}
	for _, g := range open {
		if s.open(g) < 0 {
			break
		}
	}
	for _, apart := range []bool{true, false} {
		for _, c := range s.classes {
			if s.excludes(c) != apart || !apart && !(s.evenly(c) && s.left[c]*fewPods > len(open)) {
				continue
			}
			n := s.place(c, s.left[c])
			if s.left[c] -= n; s.left[c] > 0 && n > 0 && !apart {
				short = max(short, len(open)*(s.left[c]+n)/n+1)
			}
		}
	}
	// Pods that are spread come before others that count for them.
	all := s.classes
	s.classes = slices.DeleteFunc(slices.Clone(all), func(c int) bool { return len(s.Snapshot.Classes[c].Spread) == 0 })
	for at := s.from; at < s.sim.Nodes() && len(s.classes) > 0; at++ {
		s.fillMachine(at)
	}
	s.classes = all
	for at := s.from; at < s.sim.Nodes(); at++ {
		s.fillMachine(at)
	}
	for _, c := range s.classes {
		s.left[c] -= s.place(c, s.left[c])
	}
	return short
}

// fillLike opens machine after machine of the first group of the rank that takes something, the same machine again as long as there are pods for it.
func (s *filling) fillLike() {
	for more := true; more && !s.sim.Spent(); {
		more = false
		for _, g := range s.rank {
			m := s.mark()
			at := s.open(g)
			if at < 0 {
				continue
			}
			content, depend := s.fillMachine(at)
			if len(content) == 0 {
				s.drop(m)
				continue
			}
			more = true
			for again := !depend; again && !slices.ContainsFunc(content, func(p schedsim.Placement) bool { return s.left[p.Class] < p.Count }); {
				m, at := s.mark(), s.open(g)
				if at < 0 {
					break
				}
				for i := range content {
					again = again && s.fill(content[i].Class, at, content[i].Count) == content[i].Count
				}
				if !again {
					s.drop(m)
					break
				}
				for i := range content {
					s.left[content[i].Class] -= content[i].Count
				}
			}
			break
		}
	}
}

// fillMachine fills a machine with pods whose sizes are most like the room that is left, one after the other. It tells what it put there, and whether
// some of it depends on other pods. It costs mostLike for each pod.
func (s *filling) fillMachine(at int) (content []schedsim.Placement, depend bool) {
	s.classes = slices.DeleteFunc(s.classes, func(c int) bool { return s.left[c] == 0 })
	stride := (len(s.classes) + mostLike - 1) / mostLike
	var some []int
	for i := at % max(stride, 1); i < len(s.classes); i += stride {
		if c := s.classes[i]; s.passes(c, at) {
			some = append(some, c)
		}
	}
	empty, room := s.rooms[s.machines[at-len(s.Nodes)]], s.sim.Room(at)
	weight := func(k int) float64 { return float64(room[k]) / float64(max(empty[k], 1)) / float64(max(empty[k], 1)) }
	for len(some) > 0 {
		s.sim.Steps += 1 + len(some)/64
		pick, like, cpu, memory := -1, -1.0, weight(0), weight(1)
		n := 0
		for _, c := range some {
			size := s.Dimensions.Class(c)
			if s.left[c] == 0 || !binpack.Fits(room, size) {
				continue
			}
			some[n] = c
			if dot := float64(size[0])*cpu + float64(size[1])*memory; dot > like {
				pick, like = n, dot
			}
			n++
		}
		if some = some[:n]; pick < 0 {
			break
		}
		c := some[pick]
		if s.sim.Fill(c, at, 1) == 0 {
			some = slices.Delete(some, pick, pick+1)
			continue
		}
		s.left[c]--
		depend = depend || s.Constrained(c)
		if i := slices.IndexFunc(content, func(p schedsim.Placement) bool { return p.Class == c }); i >= 0 {
			content[i].Count++
		} else {
			content = append(content, schedsim.Placement{Class: c, Node: at, Count: 1})
		}
	}
	if s.tree != nil {
		s.tree.set(at, s.sim.Room(at))
	}
	return content, depend
}

// fillRest places what is left on what is open, and opens machines for what remains.
func (s *filling) fillRest() {
	for _, c := range s.classes {
		depends := s.Constrained(c)
		s.left[c] -= s.place(c, s.left[c])
		for opened := true; opened && s.left[c] > 0 && !s.sim.Spent(); {
			opened = false
			for _, g := range s.rank {
				if !s.takes(c, g) {
					continue
				}
				m := s.mark()
				at := s.open(g)
				if at < 0 {
					continue
				}
				if n := s.fill(c, at, s.left[c]); n > 0 {
					s.left[c], opened = s.left[c]-n, true
					break
				}
				s.drop(m)
			}
			if depends && opened { // it may have opened another place
				s.left[c] -= s.place(c, s.left[c])
			}
		}
	}
}

// packed is what has been done since a mark, each machine as cheap as its content allows; those that stay empty are left out.
func (s *filling) packed(m mark) (f packed) {
	f.puts, f.left = slices.Clone(s.sim.Placed(m.sim)), s.left
	on := make([][]int, s.sim.Nodes()-s.from)
	for _, p := range f.puts {
		if p.Node >= s.from {
			on[p.Node-s.from] = append(on[p.Node-s.from], p.Class)
		}
	}
	cheapest := slices.SortedStableFunc(slices.Values(s.groups), func(x, y int) int { return cmp.Compare(s.cost[x], s.cost[y]) })
	use, y := make([]int64, s.Dimensions.Len()), slices.Clone(s.y)
	to := make([]int, len(on)) // the places that the machines have then
	for i, classes := range on {
		g := s.machines[s.from+i-len(s.Nodes)]
		if to[i] = s.from + len(f.groups); len(classes) == 0 {
			y[g]--
			continue
		}
		for k := range use {
			use[k] = s.rooms[g][k] - s.sim.Room(s.from + i)[k]
		}
		for _, o := range cheapest {
			if s.cost[o] >= s.cost[g] {
				break
			}
			if s.sets[o] == nil && s.domains[o] == s.domains[g] && binpack.Fits(s.rooms[o], use) && !slices.ContainsFunc(classes, func(c int) bool { return !s.takes(c, o) }) && growth.Beside(s.State, y, o) > 0 {
				y[g]--
				y[o]++
				g = o
				break
			}
		}
		f.groups = append(f.groups, g)
	}
	for i := range f.puts {
		if p := &f.puts[i]; p.Node >= s.from {
			p.Node = to[p.Node-s.from]
		}
	}
	return f
}
