package binpack

// LowerBound is a number of fresh bins that no answer can go below: by axis, the
// demand beyond the open bins' room, and the pods of which no two share a bin.
func (p *Problem) LowerBound() int {
	if p.Empty == nil {
		return 0
	}
	left := p.ownArena().ints.Alloc(len(p.Items), 0)
	for i := range left {
		left[i] = p.Items[i].Count
	}
	return p.bound(left, 0)
}

// bound is the lower bound for what is left when the open bins from first on are
// still to be filled.
func (p *Problem) bound(left []int, first int) int {
	need := 0
	for j := range p.Empty {
		var want int64
		for i := range p.Items {
			if p.Items[i].Fresh {
				want += p.Items[i].Size[j] * int64(left[i])
			}
		}
		for b := first; b < len(p.Open); b++ {
			want -= max(p.Open[b][j], 0)
		}
		if want > 0 && p.Empty[j] > 0 {
			need = max(need, int((want+p.Empty[j]-1)/p.Empty[j]))
		}
		if first < len(p.Open) {
			continue
		}
		big := 0
		for i := range p.Items {
			// A daemon may ask for more of an axis than a machine has: room below zero is as good as none.
			if size := p.Items[i].Size[j]; p.Items[i].Fresh && size > 0 && size*2 > p.Empty[j] {
				big += left[i]
			}
		}
		need = max(need, big)
	}
	if first >= len(p.Open) {
		for i := range p.Items {
			if per := MaxFit(p.Empty, p.Items[i].Size); p.Items[i].Fresh && per > 0 {
				need = max(need, (left[i]+per-1)/per)
			}
		}
	}
	return need
}

// EachFits tells whether every class for itself would fit into the open bins and n fresh
// ones.
func (p *Problem) EachFits(n int) bool {
	for i := range p.Items {
		l := &p.Items[i]
		if n*MaxFit(p.Empty, l.Size)+l.roomInOpen(p.Open) < l.Count {
			return false
		}
	}
	return true
}
