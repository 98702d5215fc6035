package binpack

import "slices"

// LowerBound is a number of fresh bins that no answer can go below: by dimension, the demand beyond the open bins' room, and
// where there are no open bins the pods of which no two share a bin, and what each item needs by itself.
func (p *Problem) LowerBound() (need int) {
	if p.Empty == nil {
		return 0
	}
	want, big := make([]int64, len(p.Empty)), make([]int, len(p.Empty)) // by dimension: what is asked for, and the pods that take more than half of a bin
	for i := range p.Items {
		l := &p.Items[i]
		if !l.Fresh {
			continue
		}
		l.Take(want, -l.Count)
		if len(p.Open) > 0 {
			continue
		}
		for _, x := range l.Amounts {
			// A daemon may ask for more of a dimension than a machine has: room below zero is as good as none.
			if x.N*2 > p.Empty[x.Dimension] {
				big[x.Dimension] += l.Count
			}
		}
		if per := l.MaxFit(p.Empty); per > 0 {
			need = max(need, (l.Count+per-1)/per)
		}
	}
	p.takeOpen(want)
	for j, n := range want {
		if p.Empty[j] > 0 {
			need = max(need, int((n+p.Empty[j]-1)/p.Empty[j]))
		}
		need = max(need, big[j])
	}
	return need
}

// takeOpen takes the room of the open bins that any item may go on out of a demand. It costs these bins times the dimensions.
func (p *Problem) takeOpen(demand []int64) {
	var usable Bins
	for i := range p.Items {
		usable.AddAll(p.Items[i].On)
	}
	for b := usable.Next(0); b >= 0; b = usable.Next(b + 1) {
		for j, n := range p.Open[b][:len(demand)] {
			demand[j] -= max(n, 0)
		}
	}
}

// EachFits tells whether every class for itself would fit into the open bins and n fresh
// ones.
func (p *Problem) EachFits(n int) bool {
	for i := range p.Items {
		l := &p.Items[i]
		if n*l.MaxFit(p.Empty)+l.roomInOpen(p.Open) < l.Count {
			return false
		}
	}
	return true
}

// Infeasible tells that the open bins alone cannot hold everything: a dimension or a class
// lacks room even when nothing else is in the way.
func (p *Problem) Infeasible() bool {
	lacks := make([]int64, len(p.Items[0].Size)) // by dimension: the demand beyond the room
	for i := range p.Items {
		p.Items[i].Take(lacks, -p.Items[i].Count)
	}
	p.takeOpen(lacks)
	if slices.ContainsFunc(lacks, func(n int64) bool { return n > 0 }) {
		return true
	}
	for i := range p.Items {
		if p.Items[i].roomInOpen(p.Open) < p.Items[i].Count {
			return true
		}
	}
	return false
}

// roomInOpen is how many pods of the item the open bins would take if nothing else went there;
// its count stands for more.
func (l *Item) roomInOpen(open [][]int64) (n int) {
	for b := l.On.Next(0); b >= 0 && n < l.Count; b = l.On.Next(b + 1) {
		n += l.MaxFit(open[b])
	}
	return min(n, l.Count)
}
