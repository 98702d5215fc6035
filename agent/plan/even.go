package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// even spreads the pods that may go anywhere over the zones that others are bound to.
// Where pods keep away from each other on hosts, so many machines must come anyway;
// when all of these came in one zone, what is bound to the other zones would need
// machines of its own beside them.
func (b *bonds) even() {
	w := b.w
	bound := make(map[int]int)
	for i := range w.want {
		if k := &w.want[i]; k.cell > 0 && k.buys && !k.hard {
			bound[k.cell] += k.count()
		}
	}
	if len(bound) < 2 || b.forced() < 2*len(bound) {
		return
	}
	cells := make([]int, 0, len(bound))
	for c := range bound {
		cells = append(cells, c)
	}
	slices.Sort(cells)
	out := make([]want, 0, len(w.want)+len(cells))
	turn := 0
	for i := range w.want {
		k := &w.want[i]
		if k.cell != 0 || !k.buys || k.hard || k.spare != "" {
			out = append(out, *k)
			continue
		}
		out = append(out, b.share(k, b.open(k, cells), &turn)...)
	}
	w.want = out
}

// forced is how many machines anti-affinity alone makes necessary for pods that may go
// anywhere.
func (b *bonds) forced() int {
	most := 0
	for _, at := range b.aparts {
		n := 0
		for i := range b.w.want {
			k := &b.w.want[i]
			if k.cell == 0 && k.buys && b.sizes[k.class][at.at] == at.room {
				n += k.count()
			}
		}
		most = max(most, n)
	}
	return most
}

// open are the cells with a group that could take a want.
func (b *bonds) open(k *want, cells []int) []int {
	w := b.w
	return slices.DeleteFunc(slices.Clone(cells), func(c int) bool {
		for g := range w.groups {
			gr := &w.groups[g]
			if b.cell[g] != c || gr.Template.Unknown != "" || gr.rule != "" && gr.coming == 0 {
				continue
			}
			empty, shape := w.template(gr)
			if fit.Most(empty, w.size(k.class)) > 0 && b.stands(k, g) && w.takes(k.class, g, shape) {
				return false
			}
		}
		return true
	})
}

// share deals the pods of a want out to cells, those that were promised a machine to
// where it comes; turn says whose turn it is, so that single pods alternate.
func (b *bonds) share(k *want, cells []int, turn *int) []want {
	if len(cells) < 2 {
		return []want{*k}
	}
	parts := make([]want, len(cells))
	for x, c := range cells {
		parts[x] = want{class: k.class, owner: k.owner, buys: true, cell: c}
	}
	var rest []cluster.PodKey
	for _, key := range k.keys {
		at := -1
		if g, ok := b.w.byID[b.w.promisedTo(key)]; ok && len(b.w.in.Promised) > 0 {
			at = slices.Index(cells, b.cell[g])
		}
		if at < 0 {
			rest = append(rest, key)
			continue
		}
		parts[at].keys = append(parts[at].keys, key)
	}
	least := func() *want {
		best := *turn % len(cells)
		for x := range parts {
			if y := (*turn + x) % len(cells); parts[y].count() < parts[best].count() {
				best = y
			}
		}
		*turn++
		return &parts[best]
	}
	for _, key := range rest {
		to := least()
		to.keys = append(to.keys, key)
	}
	for range k.expected {
		least().expected++
	}
	for x := range parts {
		slices.Sort(parts[x].keys)
	}
	return slices.DeleteFunc(parts, func(x want) bool { return x.count() == 0 })
}
