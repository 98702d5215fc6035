package mixed

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// FilledBin is the content of one machine that an answer fills, by demand.
type FilledBin struct {
	Group, Times int
	Portions     []binpack.Portion
}

// StartFrom takes the expander's answer over as the warm start of a mixed packing: its contents are
// good ones, and a local search from it is often enough. A machine whose kind was
// left out is one of the kind that is better.
func (b *Problem) StartFrom(filled []FilledBin, which []int) {
	row := make(map[int]int, len(which))
	for r, i := range which {
		row[i] = r
	}
	left, used := slices.Clone(b.Count), make([]int, len(b.MachineTypes))
	var out []Bins
	cost := 0.0
	for _, s := range filled {
		f := Bins{Times: s.Times, Content: make([]int32, len(which))}
		for _, t := range s.Portions {
			r, ok := row[t.Item]
			if !ok {
				return
			}
			f.Content[r] += int32(t.N)
			left[r] -= t.N * s.Times
		}
		if f.MachineType = b.holds(&f); f.MachineType < 0 {
			return
		}
		if used[f.MachineType] += f.Times; used[f.MachineType] > b.MachineTypes[f.MachineType].Limit {
			return // the better kind has not as many
		}
		out = append(out, f)
		cost += float64(float64(s.Times) * b.MachineTypes[f.MachineType].Cost)
		b.Pool = append(b.Pool, f)
	}
	if slices.ContainsFunc(left, func(n int) bool { return n != 0 }) {
		return // it used what is there already, too
	}
	b.Best, b.Cost = out, cost
}

// holds is the cheapest kind that holds a content, -1 for none.
func (b *Problem) holds(f *Bins) int {
kinds:
	for k := range b.MachineTypes {
		room := slices.Clone(b.MachineTypes[k].Empty)
		for r, n := range f.Content {
			if n > 0 && (!b.MachineTypes[k].May[r] || binpack.MaxFit(room, b.Sizes[r]) < int(n)) {
				continue kinds
			}
			binpack.Sub(room, b.Sizes[r], int(n))
		}
		return k
	}
	return -1
}

// Alike tells that all machines are as good as each other.
func (b *Problem) Alike() bool {
	for i := 1; i < len(b.MachineTypes); i++ {
		if k := &b.MachineTypes[i]; k.Cost != b.MachineTypes[0].Cost || !k.covers(&b.MachineTypes[0]) || !b.MachineTypes[0].covers(k) {
			return false
		}
	}
	return true
}

// Dedupe leaves out machines that another is as good as for no more money. A machine that was left
// out counts again when its better is at its limit: the expander looks at it then.
func (b *Problem) Dedupe() {
	slices.SortStableFunc(b.MachineTypes, func(x, y MachineType) int { return cmp.Compare(x.Cost, y.Cost) })
	var out []MachineType
next:
	for _, k := range b.MachineTypes {
		for i := range out {
			if out[i].covers(&k) {
				continue next
			}
		}
		out = append(out, k)
	}
	b.MachineTypes = out
}

// covers tells whether a machine takes all that another takes.
func (k *MachineType) covers(o *MachineType) bool {
	for j, n := range o.Empty {
		if k.Empty[j] < n {
			return false
		}
	}
	for r, may := range o.May {
		if may && !k.May[r] {
			return false
		}
	}
	return true
}
