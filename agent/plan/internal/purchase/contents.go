package purchase

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// A round remembers the pods of each machine that is upcoming (decision.Reservation). kube-scheduler may use the machines in another way, and
// the next round would buy again for the pods that it leaves. So each pod goes first on the machine that an earlier round chose for it.

// contentLooks is how many machines of its group are tried that have no room for a content.
const contentLooks = 16

// placeContents puts pods on the machines that they count on, as far as the filters allow it. What the filters refuse now and did not when the
// machine was bought, a spread over hosts that have joined since, goes there all the same: when the machine is there, kube-scheduler decides.
// It costs contentLooks times the contents, and the pods for each that lets others in.
func (b *board) placeContents(all []content) {
	at := b.placesOf(all)
	place := func(put func(class, at, n int) int) (some bool) {
		for i := range all {
			for k := range all[i].Pods {
				r := &all[i].Pods[k]
				if n := min(r.N, *b.leftOf(r.Class)); at[i] >= 0 && n > 0 {
					n = put(r.Class, at[i], n)
					r.N -= n
					*b.leftOf(r.Class) -= n
					b.placed[r.Class] += n
					some = some || n > 0
				}
			}
		}
		return some
	}
	for place(b.fill) { // some pods wait for those of another machine
	}
	place(func(class, at, n int) int {
		n = min(n, binpack.MaxFit(b.sim.Room(at), b.Dimensions.Class(class)))
		if n == 0 || !b.passes(class, at) || b.sim.Refused(class, at) != fit.RuleSpread {
			return 0
		}
		b.sim.PutOn(class, at, n)
		b.placedOn(at)
		return n
	})
}

// placesOf finds a machine for each content: the node that some of its pods run on, or else one of the first of its
// group that is free and has room for all; -1: there is none.
func (b *board) placesOf(all []content) []int {
	free := make([][]int, len(b.Groups))
	for _, n := range b.NewNodes() {
		if g := b.Nodes[n].Group; g >= 0 {
			free[g] = append(free[g], n)
		}
	}
	for k, g := range b.machines {
		free[g] = append(free[g], len(b.Nodes)+k)
	}
	at := make([]int, len(all))
	for i := range all {
		if at[i] = all[i].Node; at[i] >= 0 {
			free[all[i].Group] = slices.DeleteFunc(free[all[i].Group], func(n int) bool { return n == at[i] })
		}
	}
	for i := range all {
		list := free[all[i].Group]
		for k := 0; at[i] < 0 && k < min(len(list), contentLooks); k++ {
			if b.hasRoom(list[k], all[i].Pods) {
				at[i] = list[k]
				free[all[i].Group] = slices.Delete(list, k, k+1)
			}
		}
	}
	return at
}

// hasRoom tells whether a place has room for all of some pods, by size.
func (b *board) hasRoom(at int, pods []podRun) bool {
	room := slices.Clone(b.sim.Room(at)[:b.Dimensions.Len()])
	for _, r := range pods {
		size := b.Dimensions.Class(r.Class)
		if binpack.MaxFit(room, size) < r.N {
			return false
		}
		binpack.Sub(room, size, r.N)
	}
	return true
}
