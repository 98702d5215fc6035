package binpack

import (
	"cmp"
	"slices"
)

// weights is the worth of one unit of each dimension: one over what a bin has of it. The
// scale is that of the fresh bin, or of the largest open bin where there is none.
func (p *Problem) weights() []float64 {
	w := make([]float64, len(p.Items[0].Size))
	for i := range w {
		var most int64
		if p.Empty != nil {
			most = p.Empty[i]
		}
		if most == 0 {
			for _, b := range p.Open {
				most = max(most, b[i])
			}
		}
		if most > 0 {
			w[i] = 1 / float64(most)
		}
	}
	return w
}

// The orders in which first fit is tried: by largest share, by the sum of the shares of
// cpu and memory, which is Cluster Autoscaler's, and by shares weighted with how scarce each dimension is.
const (
	ByShare = iota
	ByPair
	byScarcity
)

// Order sorts the items, the first to be placed first.
func (p *Problem) Order(by int) []int {
	order := make([]int, len(p.Items))
	for i := range order {
		order[i] = i
	}
	w := p.weights()
	if by == byScarcity {
		scarce := make([]float64, len(w))
		for i := range p.Items {
			for _, x := range p.Items[i].Amounts {
				scarce[x.Dimension] += float64(x.N) * w[x.Dimension] * float64(p.Items[i].Count)
			}
		}
		for j := range w {
			w[j] *= scarce[j]
		}
	}
	keys := make([]itemKey, len(p.Items))
	for i := range p.Items {
		keys[i] = itemKey{orderKey(by, &p.Items[i], w), i}
	}
	slices.SortFunc(keys, func(a, b itemKey) int { // equal ones stay as they come
		return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.item, b.item))
	})
	for n := range keys {
		order[n] = keys[n].item
	}
	return order
}

// orderKey is the key by which an order sorts an item, from its size and the weights of the dimensions.
func orderKey(by int, l *Item, w []float64) (key float64) {
	size := l.Size
	switch by {
	case ByShare:
		for _, x := range l.Amounts {
			key = max(key, float64(x.N)*w[x.Dimension])
		}
		if key >= 1 { // all of a dimension, as anti-affinity makes it: the larger first
			key += float64(float64(size[0])*w[0]) + float64(float64(size[1])*w[1])
		}
	case ByPair:
		key = float64(float64(size[0])*w[0]) + float64(float64(size[1])*w[1])
	default:
		for _, x := range l.Amounts {
			key += float64(float64(x.N) * w[x.Dimension])
		}
	}
	return key
}

// byClassPriority is the order by share, within falling priority; nil, so that nothing is placed: all items have the same priority.
func (p *Problem) byClassPriority() []int {
	if !slices.ContainsFunc(p.Items, func(l Item) bool { return l.Prio != p.Items[0].Prio }) {
		return nil
	}
	order := p.Order(ByShare)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Items[b].Prio, p.Items[a].Prio) })
	return order
}

// itemKey is by what an item is put in order.
type itemKey struct {
	key  float64
	item int
}

// byPriority is the order when not everything fits: what matters most goes first,
// then what is small, so that a limit helps as many pods as it can.
func (p *Problem) byPriority() []int {
	w := p.weights()
	keys := make([]float64, len(p.Items))
	order := make([]int, len(p.Items))
	for i := range order {
		order[i] = i
		for _, x := range p.Items[i].Amounts {
			keys[i] = max(keys[i], float64(x.N)*w[x.Dimension])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.Items[b].Prio, p.Items[a].Prio), cmp.Compare(keys[a], keys[b]))
	})
	return order
}
