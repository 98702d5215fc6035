package plan

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// filledBin is the content of one machine that an answer fills, by demand.
type filledBin struct {
	group, times int
	portions     []portion
}

// startFrom takes the expander's answer over as the warm start of a mixed packing: what it knows of good
// contents is worth knowing, and a local search from it is often enough. A machine whose kind was
// left out is one of the kind that is better.
func (b *mixed) startFrom(filled []filledBin, which []int) {
	row := make(map[int]int, len(which))
	for r, i := range which {
		row[i] = r
	}
	left, used := slices.Clone(b.count), make([]int, len(b.machineTypes))
	var out []mixedBins
	cost := 0.0
	for _, s := range filled {
		f := mixedBins{times: s.times, content: make([]int32, len(which))}
		for _, t := range s.portions {
			r, ok := row[t.item]
			if !ok {
				return
			}
			f.content[r] += int32(t.n)
			left[r] -= t.n * s.times
		}
		if f.machineType = b.holds(&f); f.machineType < 0 {
			return
		}
		if used[f.machineType] += f.times; used[f.machineType] > b.machineTypes[f.machineType].limit {
			return // the better kind has not as many
		}
		out = append(out, f)
		cost += float64(float64(s.times) * b.machineTypes[f.machineType].cost)
		b.pool = append(b.pool, f)
	}
	if slices.ContainsFunc(left, func(n int) bool { return n != 0 }) {
		return // it used what is there already, too
	}
	b.best, b.cost = out, cost
}

// holds is the cheapest kind that holds a content, -1 for none.
func (b *mixed) holds(f *mixedBins) int {
kinds:
	for k := range b.machineTypes {
		room := slices.Clone(b.machineTypes[k].empty)
		for r, n := range f.content {
			if n > 0 && (!b.machineTypes[k].may[r] || fit.MaxFit(room, b.sizes[r]) < int(n)) {
				continue kinds
			}
			fit.Sub(room, b.sizes[r], int(n))
		}
		return k
	}
	return -1
}

// alike tells that all machines are as good as each other.
func (b *mixed) alike() bool {
	for i := 1; i < len(b.machineTypes); i++ {
		if k := &b.machineTypes[i]; k.cost != b.machineTypes[0].cost || !k.covers(&b.machineTypes[0]) || !b.machineTypes[0].covers(k) {
			return false
		}
	}
	return true
}

// dedupe leaves out machines that another is as good as for no more money. What is left
// out counts again when its better is at its limit: the expander looks at it then.
func (b *mixed) dedupe() {
	slices.SortStableFunc(b.machineTypes, func(x, y machineType) int { return cmp.Compare(x.cost, y.cost) })
	var out []machineType
next:
	for _, k := range b.machineTypes {
		for i := range out {
			if out[i].covers(&k) {
				continue next
			}
		}
		out = append(out, k)
	}
	b.machineTypes = out
}

// covers tells whether a machine takes all that another takes.
func (k *machineType) covers(o *machineType) bool {
	for j, n := range o.empty {
		if k.empty[j] < n {
			return false
		}
	}
	for r, may := range o.may {
		if may && !k.may[r] {
			return false
		}
	}
	return true
}
