package mixed

import (
	"cmp"
	"slices"
)

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
