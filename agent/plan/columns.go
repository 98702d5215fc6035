package plan

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// The packer's strongest tool is the classic one for cutting stock (Gilmore and
// Gomory 1961): a linear programme whose columns are the contents of one machine,
// found as they are needed. Its value, rounded up, is a lower bound that is nearly
// always the optimum, and its rounded solution nearly always reaches it. Products are
// converted explicitly so that no architecture fuses them into another result.
const (
	columnClasses = 24     // more classes than this are left to the heuristics
	columnRounds  = 400    // columns entered in one programme
	columnSteps   = 30_000 // steps of one search for a column
	columnEps     = 1e-7
)

// columns is one programme for the loads that are left.
type columns struct {
	p     *problem
	rows  []int // the loads that take part
	need  []int // by row
	inv   [][]float64
	x     []float64
	basis [][]int // contents by row; nil: surplus
	exact bool    // every search for a column was complete
}

// solve returns the programme's value.
func (c *columns) solve() float64 {
	m := len(c.rows)
	c.inv, c.x, c.basis = make([][]float64, m), make([]float64, m), make([][]int, m)
	c.exact = true
	for r, i := range c.rows {
		per := min(fit.Most(c.p.empty, c.p.loads[i].size), c.need[r])
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
		if !c.enter(col, content) {
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

func (c *columns) prices() []float64 {
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
func (c *columns) enter(col []float64, content []int) bool {
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

// price finds the most valuable content of one machine.
func (c *columns) price(y []float64) ([]int, float64) {
	m := len(c.rows)
	order := make([]int, 0, m)
	weight := c.p.weights()
	worth := make([]float64, m)
	for r := range m {
		if y[r] > columnEps {
			share := 1e-12
			for j, v := range c.p.loads[c.rows[r]].size {
				share = max(share, float64(float64(v)*weight[j]))
			}
			worth[r] = y[r] / share
			order = append(order, r)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case worth[a] > worth[b]:
			return -1
		case worth[a] < worth[b]:
			return 1
		}
		return 0
	})
	axes := len(c.p.empty)
	// rate[k][j] is the most that one unit of axis j can still be worth from
	// position k of the order on; a class that needs nothing of it counts apart.
	rate := make([][]float64, len(order)+1)
	loose := make([][]float64, len(order)+1)
	rate[len(order)], loose[len(order)] = make([]float64, axes), make([]float64, axes)
	for k := len(order) - 1; k >= 0; k-- {
		rate[k], loose[k] = slices.Clone(rate[k+1]), slices.Clone(loose[k+1])
		r := order[k]
		for j, v := range c.p.loads[c.rows[r]].size {
			if v > 0 {
				rate[k][j] = max(rate[k][j], y[r]/float64(v))
			} else {
				loose[k][j] += float64(y[r] * float64(c.need[r]))
			}
		}
	}
	room, taken, best := slices.Clone(c.p.empty), make([]int, m), make([]int, m)
	value, steps := 0.0, columnSteps
	var try func(k int, v float64)
	try = func(k int, v float64) {
		if v > value+1e-12 {
			value = v
			copy(best, taken)
		}
		if k == len(order) || steps <= 0 {
			return
		}
		steps--
		for j := range room {
			if rate[k][j] > 0 && v+float64(float64(room[j])*rate[k][j])+loose[k][j] <= value+1e-12 {
				return
			}
		}
		r := order[k]
		size := c.p.loads[c.rows[r]].size
		for n := min(fit.Most(room, size), c.need[r]); n >= 0; n-- {
			fit.Take(room, size, n)
			taken[r] = n
			try(k+1, v+float64(y[r]*float64(n)))
			fit.Take(room, size, -n)
			taken[r] = 0
		}
	}
	try(0, 0)
	if steps <= 0 {
		c.exact = false
	}
	return best, value
}

// cut packs what k's open bins leave over into fresh bins by the programme, and
// returns a lower bound for that part (0 when none was proven).
func (p *problem) cut(k *packing) (better packing, bound int, ok bool) {
	left := slices.Clone(k.left)
	for _, f := range k.fresh {
		for _, t := range f.parts {
			left[t.load] += f.times * t.n
		}
	}
	out := packing{open: k.open, left: left}
	for round := 0; ; round++ {
		c := &columns{p: p}
		for i, n := range left {
			if n > 0 && p.loads[i].fresh {
				c.rows, c.need = append(c.rows, i), append(c.need, n)
			}
		}
		if len(c.rows) == 0 {
			return out, bound, true
		}
		if len(c.rows) > columnClasses || round > 50 {
			return packing{}, bound, false
		}
		value := c.solve()
		if round == 0 && c.exact {
			bound = int(math.Ceil(value - 1e-6))
		}
		if !p.take(c, &out) {
			return packing{}, bound, false
		}
		if rest := p.rest(left, &out); rest.unplaced() == 0 && bound > 0 && rest.bins <= bound {
			return rest, bound, true
		}
	}
}

// take writes the whole part of a programme's solution into an answer; where there
// is none, one machine of the largest column.
func (p *problem) take(c *columns, out *packing) bool {
	whole, top := false, -1
	for r, content := range c.basis {
		if content == nil {
			continue
		}
		if n := int(c.x[r] + 1e-6); n > 0 {
			whole = p.put(c, out, content, n) || whole
		}
		if top < 0 || c.x[r] > c.x[top] {
			top = r
		}
	}
	return whole || top >= 0 && p.put(c, out, c.basis[top], 1)
}

func (p *problem) put(c *columns, out *packing, content []int, times int) bool {
	var parts []part
	for r, n := range content {
		if n = min(n, out.left[c.rows[r]]); n > 0 {
			parts = append(parts, part{c.rows[r], n})
			times = min(times, out.left[c.rows[r]]/n)
		}
	}
	if len(parts) == 0 {
		return false
	}
	room := slices.Clone(p.empty)
	for _, t := range parts {
		fit.Take(room, p.loads[t.load].size, t.n)
		out.left[t.load] -= t.n * times
	}
	out.fresh = append(out.fresh, freshBins{times, room, parts})
	out.bins += times
	return true
}

// rest completes an answer by first fit over what is left.
func (p *problem) rest(left []int, out *packing) packing {
	sub := &problem{empty: p.empty, limit: math.MaxInt32}
	var which []int
	for i, n := range left {
		if n > 0 {
			sub.loads = append(sub.loads, load{size: p.loads[i].size, count: n, fresh: p.loads[i].fresh, on: []bool{}})
			which = append(which, i)
		}
	}
	k := packing{bins: out.bins, open: out.open, fresh: slices.Clone(out.fresh), left: slices.Clone(out.left)}
	if len(sub.loads) == 0 {
		return k
	}
	best := packing{bins: math.MaxInt32}
	for _, order := range sub.orders() {
		if f := sub.firstFit(order); f.unplaced() == 0 && f.bins < best.bins {
			best = f
		}
	}
	for _, mode := range []int{fillLargest, fillDot} {
		if f := sub.fill(mode); f.unplaced() == 0 && f.bins < best.bins {
			best = f
		}
	}
	for _, f := range best.fresh {
		for i := range f.parts {
			f.parts[i].load = which[f.parts[i].load]
			k.left[f.parts[i].load] -= f.times * f.parts[i].n
		}
		k.fresh = append(k.fresh, f)
		k.bins += f.times
	}
	return k
}
