package topology

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// balance spreads the pods that may go anywhere over the zones that others are bound to.
// Where pods keep away from each other on hosts, so many machines must come anyway;
// when all of these came in one zone, what is bound to the other zones would need
// machines of its own beside them.
func (b *Topology) balance() {
	w := b.w
	bound := make(map[int]int)
	for i := range w.Demands {
		if k := &w.Demands[i]; k.Domain > 0 && k.Buys && !k.PerPod {
			bound[k.Domain] += k.Count()
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
	out := make([]round.Demand, 0, len(w.Demands)+len(cells))
	turn := 0
	for i := range w.Demands {
		if k := &w.Demands[i]; k.Domain == 0 && k.Buys && k.Headroom == "" {
			out = b.deal(out, k, b.openDomains(k, cells), &turn)
		} else {
			out = append(out, *k)
		}
	}
	w.Demands = out
}

// forced is how many machines anti-affinity alone makes necessary for pods that may go
// anywhere.
func (b *Topology) forced() int {
	most := 0
	for _, at := range b.antiAffinity {
		n := 0
		for i := range b.w.Demands {
			k := &b.w.Demands[i]
			if k.Domain == 0 && k.Buys && b.sizes[k.Class][at.at] == at.room {
				n += k.Count()
			}
		}
		most = max(most, n)
	}
	return most
}

// openDomains are the domains with a group that could take a demand.
func (b *Topology) openDomains(k *round.Demand, cells []int) []int {
	w := b.w
	return slices.DeleteFunc(slices.Clone(cells), func(c int) bool {
		for g := range w.Groups {
			gr := &w.Groups[g]
			if b.GroupDomain[g] != c || gr.Template.Unknown != "" || !gr.CanGrow() && gr.Upcoming == 0 {
				continue
			}
			empty, shape := w.Template(gr)
			if binpack.MaxFit(empty, b.Size(k.Class)) > 0 && b.AllowsGroup(k, g) && w.Takes(k.Class, g, shape) {
				return false
			}
		}
		return true
	})
}

// deal deals the pods of a demand out to domains, a pod that had reserved a machine to
// the domain of that machine, and appends them; turn says whose turn it is, so that single pods
// alternate.
func (b *Topology) deal(out []round.Demand, k *round.Demand, cells []int, turn *int) []round.Demand {
	if len(cells) < 2 {
		return append(out, *k)
	}
	before := len(out)
	for _, c := range cells {
		out = append(out, round.Demand{Class: k.Class, Owner: k.Owner, Buys: true, Domain: c})
	}
	parts := out[before:]
	rest := b.dealReserved(parts, k.Keys, cells)
	for x := range parts {
		parts[x].Keys = append(make([]cluster.PodKey, 0, len(parts[x].Keys)+len(rest)/len(cells)+1), parts[x].Keys...)
	}
	least := func() *round.Demand {
		best := *turn % len(cells)
		for x := range parts {
			if y := (*turn + x) % len(cells); parts[y].Count() < parts[best].Count() {
				best = y
			}
		}
		*turn++
		return &parts[best]
	}
	for _, key := range rest {
		to := least()
		to.Keys = append(to.Keys, key)
	}
	for range k.Expected {
		least().Expected++
	}
	for x := range parts {
		slices.Sort(parts[x].Keys)
	}
	return out[:before+len(slices.DeleteFunc(parts, func(x round.Demand) bool { return x.Count() == 0 }))]
}

// dealReserved puts the pods that had reserved a machine to where it comes, and returns
// the others.
func (b *Topology) dealReserved(parts []round.Demand, keys []cluster.PodKey, cells []int) (rest []cluster.PodKey) {
	for _, key := range keys {
		at := -1
		if g := b.w.ReservedGroup(key); g >= 0 {
			at = slices.Index(cells, b.GroupDomain[g])
		}
		if at < 0 {
			rest = append(rest, key)
			continue
		}
		parts[at].Keys = append(parts[at].Keys, key)
	}
	return rest
}
