package binpack

import (
	"cmp"
	"math"
	"slices"
)

// The packer's strongest tool is the classic one for cutting stock (Gilmore and
// Gomory 1961): a linear program whose columns are the contents of one machine,
// found as they are needed. Its value, rounded up, is a lower bound that is nearly
// always the optimum, and its rounded solution nearly always reaches it. Products are
// converted explicitly so that no architecture fuses them into another result.
const (
	columnClasses   = 128              // more classes than this are left to the heuristics
	columnRounds    = 2_000            // columns entered in one linear program
	columnSteps     = 30_000           // steps of one search for a column
	columnGoodSteps = 1_000            // steps after which a column that helps is taken
	columnTotal     = 2_000_000        // steps of all searches of one packing
	ColumnPool      = 6_000_000        // and of one round
	CoarsePool      = ColumnPool / 100 // and of one with very many groups
	columnDives     = 30               // linear programs of one packing
	columnTries     = 3                // columns that are tried one after the other
	columnEps       = 1e-7
)

// colgen is one linear program for the items that are left.
type colgen struct {
	p     *Problem
	rows  []int // the items that take part
	need  []int // by row
	inv   [][]float64
	x     []float64
	basis [][]int // contents by row; nil: surplus
	exact bool    // every search for a column was complete
	total *int    // steps that are left for the whole packing
}

// solve returns the program's value.
func (c *colgen) solve() float64 {
	m := len(c.rows)
	c.inv, c.x, c.basis = make([][]float64, m), make([]float64, m), make([][]int, m)
	c.exact = true
	for r, i := range c.rows {
		per := min(MaxFit(c.p.Empty, c.p.Items[i].Size), c.need[r])
		c.inv[r] = make([]float64, m)
		c.inv[r][r] = 1 / float64(per)
		c.x[r] = float64(c.need[r]) / float64(per)
		c.basis[r] = make([]int, m)
		c.basis[r][r] = per
	}
	done := false
	for range columnRounds {
		y := c.prices()
		surplus := -1
		for r := range y {
			if y[r] < -columnEps && (surplus < 0 || y[r] < y[surplus]) {
				surplus = r
			}
		}
		col := make([]float64, m)
		var content []int
		if surplus >= 0 {
			col[surplus] = -1
		} else {
			var value float64
			if content, value = c.price(y); value <= 1+columnEps {
				done = true
				break
			}
			for r, n := range content {
				col[r] = float64(n)
			}
		}
		*c.total -= m * m / 8 // about as long as so many steps of a search
		if !c.enter(col, content) || *c.total <= 0 {
			break
		}
	}
	c.exact = c.exact && done
	sum := 0.0
	for r := range c.x {
		if c.basis[r] != nil {
			sum += c.x[r]
		}
	}
	return sum
}

func (c *colgen) prices() []float64 {
	y := make([]float64, len(c.rows))
	for r := range c.inv {
		if c.basis[r] == nil {
			continue
		}
		for k, v := range c.inv[r] {
			y[k] += v
		}
	}
	return y
}

// enter brings a column into the basis.
func (c *colgen) enter(col []float64, content []int) bool {
	m := len(c.rows)
	u := make([]float64, m)
	out, ratio := -1, math.Inf(1)
	for r := range m {
		for k, v := range col {
			u[r] += float64(c.inv[r][k] * v)
		}
		if u[r] > columnEps {
			if q := c.x[r] / u[r]; q < ratio-1e-12 {
				out, ratio = r, q
			}
		}
	}
	if out < 0 {
		return false
	}
	for k := range c.inv[out] {
		c.inv[out][k] /= u[out]
	}
	for r := range m {
		if r == out {
			continue
		}
		for k := range c.inv[r] {
			c.inv[r][k] -= float64(u[r] * c.inv[out][k])
		}
		c.x[r] = max(c.x[r]-float64(ratio*u[r]), 0)
	}
	c.x[out], c.basis[out] = ratio, content
	return true
}

// knapsack is the search for the most valuable content of one machine: depth first
// over the classes by value per share, cut off by what the room left can be worth.
type knapsack struct {
	c     *colgen
	y     []float64
	order []int
	// rate[k][j] is the most that one unit of axis j can still be worth from position
	// k of the order on; a class that needs nothing of the axis is in loose.
	rate, loose [][]float64
	room        []int64
	taken, best []int
	value       float64
	steps       int
	found       int // steps after which any column that helps is good enough
}

// price finds the most valuable content of one machine and its value.
func (c *colgen) price(y []float64) ([]int, float64) {
	s := &knapsack{c: c, y: y, order: c.byWorth(y), room: slices.Clone(c.p.Empty), taken: make([]int, len(c.rows)), best: make([]int, len(c.rows))}
	s.steps = min(columnSteps, *c.total)
	spent := s.steps
	s.found = columnGoodSteps
	s.rates()
	s.try(0, 0)
	*c.total -= spent - s.steps
	if s.steps <= 0 && s.value <= 1+columnEps {
		c.exact = false // nothing was found, and not everything was looked at
	}
	return s.best, s.value
}

// byWorth orders the classes that are worth anything by their value per share.
func (c *colgen) byWorth(y []float64) []int {
	weight := c.p.weights()
	worth := make([]float64, len(c.rows))
	var order []int
	for r := range c.rows {
		if y[r] <= columnEps {
			continue
		}
		share := 1e-12
		for j, v := range c.p.Items[c.rows[r]].Size {
			share = max(share, float64(float64(v)*weight[j]))
		}
		worth[r] = y[r] / share
		order = append(order, r)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(worth[b], worth[a]) })
	return order
}

func (s *knapsack) rates() {
	n, axes := len(s.order), len(s.room)
	s.rate, s.loose = make([][]float64, n+1), make([][]float64, n+1)
	s.rate[n], s.loose[n] = make([]float64, axes), make([]float64, axes)
	for k := n - 1; k >= 0; k-- {
		s.rate[k], s.loose[k] = slices.Clone(s.rate[k+1]), slices.Clone(s.loose[k+1])
		r := s.order[k]
		for j, v := range s.c.p.Items[s.c.rows[r]].Size {
			if v > 0 {
				s.rate[k][j] = max(s.rate[k][j], s.y[r]/float64(v))
			} else {
				s.loose[k][j] += float64(s.y[r] * float64(s.c.need[r]))
			}
		}
	}
}

func (s *knapsack) try(k int, v float64) {
	if v > s.value+1e-12 {
		s.value = v
		copy(s.best, s.taken)
	}
	if k == len(s.order) || s.steps <= 0 {
		return
	}
	s.steps--
	if s.found--; s.found < 0 && s.value > 1.0001 {
		return // good enough to go on with; only the proof needs every step
	}
	for j, have := range s.room {
		if s.rate[k][j] > 0 && v+float64(float64(have)*s.rate[k][j])+s.loose[k][j] <= s.value+1e-12 {
			return
		}
	}
	r := s.order[k]
	size := s.c.p.Items[s.c.rows[r]].Size
	for n := min(MaxFit(s.room, size), s.c.need[r]); n >= 0; n-- {
		Sub(s.room, size, n)
		s.taken[r] = n
		s.try(k+1, v+float64(s.y[r]*float64(n)))
		Sub(s.room, size, -n)
		s.taken[r] = 0
	}
}

// columnGeneration packs what k's open bins leave over into fresh bins by column generation, and
// returns a lower bound for that part (0 when none was proven).
func (p *Problem) columnGeneration(k *Packing) (better Packing, bound int, ok bool) {
	left := slices.Clone(k.Left)
	for _, f := range k.Fresh {
		for _, t := range f.Portions {
			left[t.Item] += f.Times * t.N
		}
	}
	d := &dive{p: p, total: columnTotal, nodes: columnDives}
	if p.Pool != nil {
		d.total = min(d.total, *p.Pool)
	}
	from := d.total
	d.down(Packing{Open: k.Open, Left: left}, true)
	if p.Pool != nil {
		*p.Pool -= from - d.total
	}
	return d.best, d.bound, d.found
}

// dive rounds the program's solution: it takes the whole part, fixes one machine of
// a column that is left in part, solves the linear program for the rest, and so on. Where
// the rest can no longer beat the best answer it goes back and fixes another column.
type dive struct {
	p     *Problem
	total int // steps of pricing that are left
	nodes int // linear programs that may still be solved
	best  Packing
	found bool
	bound int // what no answer can go below; 0: not proven
}

// down completes out, and tells whether the search is over.
func (d *dive) down(out Packing, root bool) bool {
	if d.nodes--; d.nodes < 0 || d.total <= 0 {
		return true
	}
	c := &colgen{p: d.p, total: &d.total}
	for i, n := range out.Left {
		if n > 0 && d.p.Items[i].Fresh {
			c.rows, c.need = append(c.rows, i), append(c.need, n)
		}
	}
	if len(c.rows) == 0 {
		return d.take(out)
	}
	if len(c.rows) > columnClasses {
		return true
	}
	least := int(math.Ceil(c.solve() - 1e-6))
	if root && c.exact {
		d.bound = least
	}
	if d.found && out.Bins+least >= d.best.Bins {
		return false
	}
	for r, content := range c.basis {
		if n := int(c.x[r] + 1e-6); n > 0 && content != nil {
			d.p.put(c, &out, content, n)
		}
	}
	if rest := d.p.rest(out.Left, &out); rest.Unplaced() == 0 && d.take(rest) {
		return true
	}
	for _, r := range c.broken() {
		next := Packing{Bins: out.Bins, Open: out.Open, Fresh: slices.Clone(out.Fresh), Left: slices.Clone(out.Left)}
		if d.p.put(c, &next, c.basis[r], 1) && d.down(next, false) {
			return true
		}
	}
	return false
}

// take keeps an answer that is better, and tells whether none can be better still.
func (d *dive) take(k Packing) bool {
	if !d.found || k.Bins < d.best.Bins {
		d.best, d.found = k, true
	}
	return d.bound > 0 && d.best.Bins <= d.bound
}

// broken are the columns of which a part is left when the whole part is taken, the
// largest part first, at most columnTries.
func (c *colgen) broken() []int {
	part := func(r int) float64 { return c.x[r] - math.Floor(c.x[r]+1e-6) }
	var rows []int
	for r, content := range c.basis {
		if content != nil && part(r) > 1e-6 {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(part(b), part(a)) })
	return rows[:min(len(rows), columnTries)]
}

func (p *Problem) put(c *colgen, out *Packing, content []int, times int) bool {
	var parts []Portion
	for r, n := range content {
		if n = min(n, out.Left[c.rows[r]]); n > 0 {
			parts = append(parts, Portion{c.rows[r], n})
			times = min(times, out.Left[c.rows[r]]/n)
		}
	}
	if len(parts) == 0 {
		return false
	}
	room := slices.Clone(p.Empty)
	for _, t := range parts {
		Sub(room, p.Items[t.Item].Size, t.N)
		out.Left[t.Item] -= t.N * times
	}
	out.Fresh = append(out.Fresh, FreshBins{times, room, parts})
	out.Bins += times
	return true
}

// rest completes an answer by first fit over what is left.
func (p *Problem) rest(left []int, out *Packing) Packing {
	sub := &Problem{Empty: p.Empty, Limit: math.MaxInt32, Arena: p.ownArena()}
	var which []int
	for i, n := range left {
		if n > 0 {
			sub.Items = append(sub.Items, Item{Size: p.Items[i].Size, Count: n, Fresh: p.Items[i].Fresh})
			which = append(which, i)
		}
	}
	k := Packing{Bins: out.Bins, Open: out.Open, Fresh: slices.Clone(out.Fresh), Left: slices.Clone(out.Left)}
	if len(sub.Items) == 0 {
		return k
	}
	best := Packing{Bins: math.MaxInt32}
	for by := range orderings {
		if f := sub.FirstFit(sub.Order(by)); f.Unplaced() == 0 && f.Bins < best.Bins {
			best = f
		}
	}
	for _, mode := range []int{fillLargest, fillDot} {
		if f := sub.fill(mode); f.Unplaced() == 0 && f.Bins < best.Bins {
			best = f
		}
	}
	for _, f := range best.Fresh {
		for i := range f.Portions {
			f.Portions[i].Item = which[f.Portions[i].Item]
			k.Left[f.Portions[i].Item] -= f.Times * f.Portions[i].N
		}
		k.Fresh = append(k.Fresh, f)
		k.Bins += f.Times
	}
	return k
}
