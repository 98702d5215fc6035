package mixed

import (
	"cmp"
	"math"
	"slices"
)

// master is the master problem for what is left: cover every class, at
// the least cost.
type master struct {
	b     *Problem
	left  []int
	used  []int
	rows  []int // the classes that take part
	inv   [][]float64
	x     []float64
	basis []Bins // by row; kind -1: surplus
	next  int    // the kind whose column is looked for next
	done  bool   // no search found a column that helps
}

func (b *Problem) newMaster(left, used []int) *master {
	p := &master{b: b, left: left, used: used}
	for r, n := range left {
		if n > 0 {
			p.rows = append(p.rows, r)
		}
	}
	m := len(p.rows)
	p.inv, p.x, p.basis = make([][]float64, m), make([]float64, m), make([]Bins, m)
	flat := make([]float64, m*m)
	for i, r := range p.rows { // begin with machines of one class each
		k, per := p.single(r)
		p.inv[i] = flat[i*m : (i+1)*m]
		p.inv[i][i] = 1 / float64(per)
		p.x[i] = float64(left[r]) / float64(per)
		p.basis[i] = Bins{MachineType: k, Content: make([]int32, len(left))}
		p.basis[i].Content[r] = int32(per)
	}
	return p
}

// single is the cheapest kind of machine for one class alone, and how many pods of it
// it takes. Where every kind is used up, the dive will find no answer.
func (p *master) single(r int) (kind, per int) {
	kind, per = -1, 1
	for k := range p.b.MachineTypes {
		kd := &p.b.MachineTypes[k]
		n := min(mostOf(kd.Empty, p.b.Sizes[r]), p.left[r])
		if !kd.May[r] || n == 0 || p.used[k] >= kd.Limit && kind >= 0 {
			continue
		}
		if kind < 0 || p.used[kind] >= p.b.MachineTypes[kind].Limit || kd.Cost/float64(n) < p.b.MachineTypes[kind].Cost/float64(per) {
			kind, per = k, n
		}
	}
	return kind, per
}

func mostOf(room, size []int64) int {
	most := int64(math.MaxInt32)
	for j, n := range size {
		if n > 0 {
			most = min(most, room[j]/n)
		}
	}
	return int(max(most, 0))
}

// solve returns the master problem's value.
func (p *master) solve() float64 {
	for entered := 0; entered < mixedEntered && p.b.work > 0; entered++ {
		y := p.prices()
		f, ok := p.surplus(y)
		if !ok {
			f, ok = p.find(y, 0)
		}
		if !ok {
			f, ok = p.known(y)
		}
		if !ok {
			f, ok = p.find(y, 1)
		}
		if !ok && len(p.rows) > mixedSmall {
			break // the last of it is not worth what looking far for it takes
		}
		if !ok {
			f, ok = p.find(y, mixedExact)
		}
		if !ok || !p.enter(f) {
			p.done = !ok
			break
		}
	}
	value := 0.0
	for i, f := range p.basis {
		if f.MachineType >= 0 {
			value += float64(p.x[i] * p.b.MachineTypes[f.MachineType].Cost)
		}
	}
	return value
}

// prices is what one more pod of each class costs.
func (p *master) prices() []float64 {
	y := make([]float64, len(p.left))
	for i, f := range p.basis {
		if f.MachineType < 0 {
			continue
		}
		c := p.b.MachineTypes[f.MachineType].Cost
		for k, v := range p.inv[i] {
			y[p.rows[k]] += float64(c * v)
		}
	}
	return y
}

// surplus looks for a class that is worth nothing more.
func (p *master) surplus(y []float64) (Bins, bool) {
	worst := -1
	for i, r := range p.rows {
		if y[r] < -1e-9 && (worst < 0 || y[r] < y[p.rows[worst]]) {
			worst = i
		}
	}
	if worst < 0 {
		return Bins{}, false
	}
	return Bins{MachineType: -1, Times: p.rows[worst]}, true
}

func (p *master) worth(f Bins, y []float64) float64 {
	sum := 0.0
	for _, r := range p.rows {
		if n := f.Content[r]; n > 0 {
			sum += float64(y[r] * float64(min(n, int32(p.left[r]))))
		}
	}
	return sum
}

// known looks among the columns of earlier programmes for the one that is worth most
// for its cost.
func (p *master) known(y []float64) (Bins, bool) {
	best, score := -1, 1+1e-6
	for i, f := range p.b.Pool {
		if p.used[f.MachineType] >= p.b.MachineTypes[f.MachineType].Limit {
			continue
		}
		if v := p.worth(f, y) / p.b.MachineTypes[f.MachineType].Cost; v > score {
			best, score = i, v
		}
	}
	p.b.work -= len(p.b.Pool) * len(p.rows)
	if best < 0 {
		return Bins{}, false
	}
	return p.b.Pool[best], true
}

// find searches for a new column, kind after kind; without steps by greed alone.
func (p *master) find(y []float64, steps int) (Bins, bool) {
	var best Bins
	score := 1 + 1e-6
	if steps == 0 {
		score = 1 + 1e-4
	}
	for range p.b.MachineTypes {
		k := p.next
		p.next = (p.next + 1) % len(p.b.MachineTypes)
		if p.used[k] >= p.b.MachineTypes[k].Limit {
			continue
		}
		s := p.b.knapsack(k, p.left, y, steps, p.b.MachineTypes[k].Cost*mixedEnough)
		if v := s.value / p.b.MachineTypes[k].Cost; v > score {
			best, score = Bins{MachineType: k, Content: s.best}, v
			if score > mixedEnough {
				break
			}
		}
	}
	if best.Content == nil {
		return Bins{}, false
	}
	if len(p.b.Pool) == mixedPool {
		p.b.Pool = slices.Delete(p.b.Pool, 0, mixedPool/4)
	}
	p.b.Pool = append(p.b.Pool, best)
	return best, true
}

// enter brings a column into the basis.
func (p *master) enter(f Bins) bool {
	m := len(p.rows)
	p.b.work -= m * m / 4
	col := make([]float64, m)
	for i, r := range p.rows {
		switch {
		case f.MachineType < 0 && f.Times == r:
			col[i] = -1
		case f.MachineType >= 0:
			col[i] = float64(min(f.Content[r], int32(p.left[r])))
		}
	}
	u := make([]float64, m)
	out, ratio := -1, math.Inf(1)
	for i := range m {
		for k, v := range col {
			if v != 0 {
				u[i] += float64(p.inv[i][k] * v)
			}
		}
		if u[i] > 1e-7 {
			if q := p.x[i] / u[i]; q < ratio-1e-12 {
				out, ratio = i, q
			}
		}
	}
	if out < 0 {
		return false
	}
	pivot := p.inv[out]
	for k := range pivot {
		pivot[k] /= u[out]
	}
	for i := range m {
		if i == out || u[i] == 0 {
			continue
		}
		row := p.inv[i]
		for k, v := range pivot {
			if v != 0 {
				row[k] -= float64(u[i] * v)
			}
		}
		p.x[i] = max(p.x[i]-float64(ratio*u[i]), 0)
	}
	p.x[out], p.basis[out] = ratio, f
	return true
}

// integerColumns are the columns of which the solution takes at least one machine.
func (p *master) integerColumns() []Bins {
	var out []Bins
	for i, f := range p.basis {
		if n := int(p.x[i] + 1e-6); n > 0 && f.MachineType >= 0 {
			out = append(out, Bins{f.MachineType, n, f.Content})
		}
	}
	slices.SortStableFunc(out, func(a, b Bins) int { return cmp.Compare(b.Times, a.Times) })
	return out
}

// fractionalColumns are the columns of which the solution takes a part of a machine, the largest
// part first.
func (p *master) fractionalColumns() []Bins {
	var at []int
	for i, f := range p.basis {
		if f.MachineType >= 0 && p.x[i] > 1e-6 {
			at = append(at, i)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(p.x[b], p.x[a]) })
	out := make([]Bins, len(at))
	for i, k := range at {
		out[i] = Bins{p.basis[k].MachineType, 1, p.basis[k].Content}
	}
	return out
}
