package purchase

import (
	"cmp"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// worthwhile tells the groups that are tried: those that may be bought and, where these are too many to be tried as kube-scheduler binds, of
// them those that no other one makes needless. Of 40 machine types in three zones fewer than 64 are left: 2 % of price less than by counts, and
// no second purchase (2 % of the pods before; worlds.TestPools, seeds 1001 to 1008). Of few groups all are tried: the world odd-3 of package worlds
// needs a second purchase without those that others replace.
func (w *Buyer) worthwhile(cost []float64) []bool {
	if w.unreplaced != nil {
		return w.unreplaced
	}
	out, can := make([]bool, len(w.Groups)), 0
	w.unreplaced = out
	for g := range out {
		if out[g] = w.Groups[g].CanGrow() && w.Groups[g].Template.Unknown == ""; out[g] {
			can++
		}
	}
	if can > mostGroups {
		w.leaveOut(out, cost)
	}
	return out
}

// leaveOut takes the groups out that another one makes needless: one that is no dearer, has as much room of everything, takes what the group takes of
// the pods that wait, can grow by a machine for each of them, and is in the same domains of all pods' terms. Which volumes or devices a machine
// reaches is not asked here: where pods wait for some, none is left out. It costs G * those that are left * (dimensions + D).
func (w *Buyer) leaveOut(out []bool, cost []float64) {
	waiting, keys, kept := 0, w.domainKeys(), []int(nil)
	for i := range w.Demands {
		c := &w.Snapshot.Classes[w.Demands[i].Class]
		if len(c.Volumes)+len(c.Claims) > 0 {
			return
		}
		waiting += w.Demands[i].Count()
	}
	for _, g := range w.byWorth(cost, out) {
		out[g] = !slices.ContainsFunc(kept, func(o int) bool { return w.Groups[o].Max-w.Groups[o].Size >= waiting && w.replaces(o, g, keys) })
		if out[g] {
			kept = append(kept, g)
		}
	}
}

// byWorth are groups by rising cost, of equal ones the larger machines first.
func (w *Buyer) byWorth(cost []float64, of []bool) (order []int) {
	size := make([]float64, len(of))
	for g := range of {
		if of[g] {
			order = append(order, g)
			for _, n := range w.room(g) {
				size[g] += math.Log1p(float64(max(0, n)))
			}
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Or(cmp.Compare(cost[x], cost[y]), cmp.Compare(size[y], size[x])) })
	return order
}

func (w *Buyer) room(g int) []int64 {
	room, _ := w.Template(&w.Groups[g])
	return room
}

// replaces tells whether a machine of a group does for all pods that one of another group does for.
func (w *Buyer) replaces(o, g int, keys []string) bool {
	if !binpack.Fits(w.room(o), w.room(g)) || slices.Contains(w.Peers(g), o) ||
		slices.ContainsFunc(keys, func(key string) bool { return w.Groups[o].Template.Labels[key] != w.Groups[g].Template.Labels[key] }) {
		return false
	}
	taken := w.TakenBy(o)
	return !slices.ContainsFunc(w.TakenBy(g), func(demand int) bool {
		_, has := slices.BinarySearch(taken, demand)
		return !has
	})
}

// domainKeys are the labels by which the terms of pods tell nodes apart, the hostname aside.
func (w *Buyer) domainKeys() (keys []string) {
	for i := range w.Snapshot.Classes {
		c := &w.Snapshot.Classes[i]
		for _, s := range c.Spread {
			keys = append(keys, s.TopologyKey)
		}
		for _, t := range slices.Concat(c.PodAffinity, c.PodAntiAffinity) {
			keys = append(keys, t.TopologyKey)
		}
	}
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return key == hostname })
}
