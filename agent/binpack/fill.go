package binpack

import (
	"slices"
)

// fill completes one bin at a time: always the class that best matches the room that
// is left. A content found for a fresh bin is used as often as the counts allow. It costs the
// classes times the pods of the bins of different content, at most fillSteps, and is paid from
// the round's pool.
func (p *Problem) fill(mode int) Packing {
	k, rooms := p.start()
	w := p.weights()
	steps, most := 0, fillSteps
	if p.Pool != nil {
		most = min(most, *p.Pool*fillDivisor)
		defer func() { *p.Pool -= min(*p.Pool, steps/fillDivisor) }()
	}
	for b := range rooms {
		if steps > most {
			break
		}
		k.Open[b] = p.content(rooms[b], k.Left, w, mode, func(l *Item) bool { return l.mayGo(b) }, &steps, most)
		for _, t := range k.Open[b] {
			k.Left[t.Item] -= t.N
		}
	}
	if p.Empty == nil {
		return k
	}
	for k.Bins < p.Limit && steps < most {
		room := slices.Clone(p.Empty)
		parts := p.content(room, k.Left, w, mode, func(l *Item) bool { return l.Fresh }, &steps, most)
		if len(parts) == 0 {
			break
		}
		times := p.Limit - k.Bins
		for _, t := range parts {
			times = min(times, k.Left[t.Item]/t.N)
		}
		for _, t := range parts {
			k.Left[t.Item] -= times * t.N
		}
		k.Fresh = append(k.Fresh, FreshBins{times, room, parts})
		k.Bins += times
	}
	return k
}

func (p *Problem) content(room []int64, left []int, w []float64, mode int, may func(*Item) bool, steps *int, most int) []Portion {
	taken := make(map[int]int)
	for {
		best, score := -1, -1.0
		for i := range p.Items {
			*steps += 1 + len(p.Items[i].Size)/8
			l := &p.Items[i]
			if left[i] <= taken[i] || !may(l) || MaxFit(room, l.Size) == 0 {
				continue
			}
			s := 0.0
			for j, v := range l.Size {
				if mode == fillDot {
					s += float64(v) * w[j] * float64(room[j]) * w[j]
				} else {
					s = max(s, float64(v)*w[j])
				}
			}
			if s > score {
				best, score = i, s
			}
		}
		if best < 0 || *steps > most {
			break
		}
		Sub(room, p.Items[best].Size, 1)
		taken[best]++
	}
	var parts []Portion
	for i := range p.Items {
		if taken[i] > 0 {
			parts = append(parts, Portion{i, taken[i]})
		}
	}
	return parts
}
