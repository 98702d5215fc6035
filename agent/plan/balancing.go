package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// balance spreads the pods that may go anywhere over the zones that others are bound to.
// Where pods keep away from each other on hosts, so many machines must come anyway;
// when all of these came in one zone, what is bound to the other zones would need
// machines of its own beside them.
func (b *topology) balance() {
	w := b.w
	bound := make(map[int]int)
	for i := range w.demands {
		if k := &w.demands[i]; k.domain > 0 && k.buys && !k.perPod {
			bound[k.domain] += k.count()
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
	anywhere := func(k *demand) bool { return k.domain == 0 && k.buys && !k.perPod && k.headroom == "" }
	most := len(w.demands)
	for i := range w.demands {
		if k := &w.demands[i]; anywhere(k) {
			most += min(len(cells), k.count()) - 1
		}
	}
	out := make([]demand, 0, most+len(cells))
	turn := 0
	for i := range w.demands {
		if k := &w.demands[i]; anywhere(k) {
			out = b.deal(out, k, b.openDomains(k, cells), &turn)
		} else {
			out = append(out, *k)
		}
	}
	w.demands = out
}

// forced is how many machines anti-affinity alone makes necessary for pods that may go
// anywhere.
func (b *topology) forced() int {
	most := 0
	for _, at := range b.antiAffinity {
		n := 0
		for i := range b.w.demands {
			k := &b.w.demands[i]
			if k.domain == 0 && k.buys && b.sizes[k.class][at.at] == at.room {
				n += k.count()
			}
		}
		most = max(most, n)
	}
	return most
}

// openDomains are the domains with a group that could take a demand.
func (b *topology) openDomains(k *demand, cells []int) []int {
	w := b.w
	return slices.DeleteFunc(slices.Clone(cells), func(c int) bool {
		for g := range w.groups {
			gr := &w.groups[g]
			if b.groupDomain[g] != c || gr.Template.Unknown != "" || gr.rule != "" && gr.upcoming == 0 {
				continue
			}
			empty, shape := w.template(gr)
			if fit.MaxFit(empty, b.size(k.class)) > 0 && b.allowsGroup(k, g) && w.takes(k.class, g, shape) {
				return false
			}
		}
		return true
	})
}

// deal deals the pods of a demand out to domains, those that had reserved a machine to
// where it comes, and appends them; turn says whose turn it is, so that single pods
// alternate.
func (b *topology) deal(out []demand, k *demand, cells []int, turn *int) []demand {
	if len(cells) < 2 {
		return append(out, *k)
	}
	before := len(out)
	for _, c := range cells {
		out = append(out, demand{class: k.class, owner: k.owner, buys: true, domain: c})
	}
	parts, rest := out[before:], k.keys
	if len(b.w.in.Reservations) > 0 {
		rest = b.dealReserved(parts, k.keys, cells)
	}
	for x := range parts {
		parts[x].keys = append(make([]cluster.PodKey, 0, len(parts[x].keys)+len(rest)/len(cells)+1), parts[x].keys...)
	}
	least := func() *demand {
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
	return out[:before+len(slices.DeleteFunc(parts, func(x demand) bool { return x.count() == 0 }))]
}

// dealReserved puts the pods that had reserved a machine to where it comes, and returns
// the others.
func (b *topology) dealReserved(parts []demand, keys []cluster.PodKey, cells []int) (rest []cluster.PodKey) {
	for _, key := range keys {
		at := -1
		if g, ok := b.w.byID[b.w.reservedTo(key)]; ok {
			at = slices.Index(cells, b.groupDomain[g])
		}
		if at < 0 {
			rest = append(rest, key)
			continue
		}
		parts[at].keys = append(parts[at].keys, key)
	}
	return rest
}
