package binpack

import (
	"cmp"
	"slices"
)

// fill completes one bin at a time: always the class that best matches the room that
// is left. A content found for a fresh bin is used as often as the counts allow. It costs the
// classes times the bins of different content, by fillDot times the pods of these, at most
// fillSteps, and is paid from the round's pool.
func (p *Problem) fill(mode int) Packing {
	k, rooms := p.start()
	w := p.weights()
	order := p.byLargest(w)
	if mode == fillDot { // of equal scores the first item
		slices.Sort(order)
	}
	steps, most := 0, fillSteps
	if p.Pool != nil {
		most = min(most, *p.Pool*fillDivisor)
		defer func() { *p.Pool -= min(*p.Pool, steps/fillDivisor) }()
	}
	for b := range rooms {
		if steps > most {
			break
		}
		k.Open[b] = p.content(rooms[b], k.Left, w, order, mode, func(l *Item) bool { return l.mayGo(b) }, &steps, most)
		for _, t := range k.Open[b] {
			k.Left[t.Item] -= t.N
		}
	}
	if p.Empty == nil {
		return k
	}
	for k.Bins < p.Limit && steps < most {
		room := slices.Clone(p.Empty)
		parts := p.content(room, k.Left, w, order, mode, func(l *Item) bool { return l.Fresh }, &steps, most)
		if len(parts) == 0 {
			break
		}
		k.repeat(FreshBins{Room: room, Portions: parts}, p.Limit)
	}
	return k
}

// repeat adds a fresh bin as often as its content and the limit allow.
func (k *Packing) repeat(bin FreshBins, limit int) {
	bin.Times = limit - k.Bins
	for _, t := range bin.Portions {
		bin.Times = min(bin.Times, k.Left[t.Item]/t.N)
	}
	for _, t := range bin.Portions {
		k.Left[t.Item] -= bin.Times * t.N
	}
	k.Fresh = append(k.Fresh, bin)
	k.Bins += bin.Times
}

// content fills one bin. Its room only shrinks, so that a class which does not fit once is not
// looked at again.
func (p *Problem) content(room []int64, left []int, w []float64, order []int, mode int, may func(*Item) bool, steps *int, most int) []Portion {
	var parts []Portion
	live := make([]int, 0, len(order))
	for _, i := range order {
		l := &p.Items[i]
		*steps += 1 + len(l.Size)/8
		if left[i] == 0 || !may(l) {
			continue
		}
		n := MaxFit(room, l.Size)
		if n == 0 {
			continue
		}
		if mode == fillLargest { // the scores do not change with the room
			n = min(n, left[i])
			Sub(room, l.Size, n)
			parts = append(parts, Portion{i, n})
			continue
		}
		live = append(live, i)
	}
	if mode == fillDot {
		parts = p.contentByDot(room, left, w, live, steps, most)
	}
	slices.SortFunc(parts, func(a, b Portion) int { return cmp.Compare(a.Item, b.Item) })
	return parts
}

// contentByDot adds pod after pod of the class whose size points most to where the room is.
func (p *Problem) contentByDot(room []int64, left []int, w []float64, live []int, steps *int, most int) (parts []Portion) {
	taken := make([]int, len(live))
	for *steps <= most {
		best, score, kept := -1, -1.0, 0
		for k, i := range live {
			l := &p.Items[i]
			*steps += 1 + len(l.Size)/8
			if left[i] > taken[k] && Fits(room, l.Size) {
				s := 0.0
				for j, v := range l.Size {
					s += float64(v) * w[j] * float64(room[j]) * w[j]
				}
				if s > score {
					best, score = kept, s
				}
				live[kept], taken[kept] = i, taken[k]
				kept++
			} else if taken[k] > 0 {
				parts = append(parts, Portion{i, taken[k]})
			}
		}
		live, taken = live[:kept], taken[:kept]
		if best < 0 {
			return parts
		}
		Sub(room, p.Items[live[best]].Size, 1)
		taken[best]++
	}
	for k, n := range taken {
		if n > 0 {
			parts = append(parts, Portion{live[k], n})
		}
	}
	return parts
}

// byLargest are the items by falling share of their largest dimension; equal items keep their
// order.
func (p *Problem) byLargest(w []float64) []int {
	order, share := make([]int, len(p.Items)), make([]float64, len(p.Items))
	for i := range order {
		order[i] = i
		for j, v := range p.Items[i].Size {
			share[i] = max(share[i], float64(v)*w[j])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(share[b], share[a]) })
	return order
}
