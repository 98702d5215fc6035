package scaleup

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/purchase"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// portion is how many pods of a demand are put on one machine of a group.
type portion struct{ group, machine, n int }

// machinesOf are, by demand, the upcoming machines that pods are put on, where the solution says so. It costs the machines
// and what is on them.
func (w *Planner) machinesOf(a *purchase.Solution) [][]portion {
	out, number := make([][]portion, len(w.Demands)), make([]int, len(w.Groups))
	for b := range a.Bins {
		pl := &a.Bins[b]
		if pl.Node >= 0 && w.Nodes[pl.Node].State != round.StateUpcoming {
			continue
		}
		number[pl.Group]++
		for _, t := range pl.Portions {
			out[t.Demand] = append(out[t.Demand], portion{pl.Group, number[pl.Group], t.N})
		}
	}
	return out
}

// reserveByMachine remembers the pods of a demand that count on a group, by machine: the names of the pods that exist,
// and the number of pods that their controller has still to make.
func (w *Planner) reserveByMachine(g int, names []cluster.PodKey, missing int, owner cluster.UID, machines []portion) {
	id := w.Groups[g].ID
	for _, m := range machines {
		if m.group != g {
			continue
		}
		n := min(m.n, len(names))
		if n > 0 {
			w.Next.Reservations = append(w.Next.Reservations, decision.Reservation{Group: id, Machine: m.machine, Pods: names[:n:n]})
			names = names[n:]
		}
		if n = min(m.n-n, missing); n > 0 {
			w.Next.MissingByMachine = append(w.Next.MissingByMachine, decision.MissingReservation{Group: id, Machine: m.machine, Owner: owner, Pods: n})
			missing -= n
		}
	}
	if len(names) > 0 {
		w.Next.Reservations = append(w.Next.Reservations, decision.Reservation{Group: id, Pods: names})
	}
}

// sortMissing puts the pods that are still to be made in the order that Memory has.
func (w *Planner) sortMissing() {
	slices.SortFunc(w.Next.MissingByMachine, func(a, b decision.MissingReservation) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Owner, b.Owner))
	})
}

// reserve writes down which pods of a demand count on which group's machines: first
// those that counted on them in earlier rounds. The rest is reserved for pods that
// their controller has not made yet.
func (w *Planner) reserve(i int, shares []purchase.Allocation, machines []portion) {
	k := &w.Demands[i]
	keys := k.Keys
	if w.patient != nil && w.patient[i].Pods > 0 {
		keys = w.patient[i].Keys
	}
	names := w.named(keys, shares)
	w.nameRest(i, shares, names)
	for x, s := range shares {
		gr := &w.Groups[s.Group]
		if s.Upcoming+s.New <= 0 {
			continue
		}
		missing := s.Upcoming + s.New - len(names[x])
		w.reserveByMachine(s.Group, names[x], missing, k.Owner, machines)
		if missing > 0 {
			round.Set(&w.Next.ReservedMissing, round.MissingPodsKey(gr.ID, k.Owner), missing)
		}
		if s.New > 0 && k.Headroom != "" {
			gr.Headroom += s.New
		} else if s.New > 0 {
			helped := names[x][min(s.Upcoming, len(names[x])):]
			if (len(w.Memory.Reservations) > 0 || w.patient != nil) && !slices.IsSorted(helped) { // else they are as in the demand
				helped = slices.Sorted(slices.Values(helped))
			}
			if len(helped) > 0 {
				gr.Runs = append(gr.Runs, round.PodRun{Class: k.Class, Keys: helped})
			}
			gr.Classes++
			gr.Expected += s.New - len(helped)
		}
	}
}

// nameRest finds the pods of a demand that count on no machine, and those that count on one that is coming.
func (w *Planner) nameRest(i int, shares []purchase.Allocation, names [][]cluster.PodKey) {
	var coming, taken []cluster.PodKey
	for x, s := range shares {
		coming = append(coming, names[x][:min(s.Upcoming, len(names[x]))]...)
		taken = append(taken, names[x]...)
	}
	slices.Sort(coming)
	slices.Sort(taken)
	w.coming[i] = coming
	w.rest[i] = slices.DeleteFunc(slices.Clone(w.Demands[i].Keys), func(k cluster.PodKey) bool { _, is := slices.BinarySearch(taken, k); return is })
}

// named says which of a demand's pods count on which of the groups: those that did so in earlier rounds, and then the first ones.
func (w *Planner) named(keys []cluster.PodKey, shares []purchase.Allocation) [][]cluster.PodKey {
	w.keysByAllocation = slices.Grow(w.keysByAllocation[:0], len(shares))[:len(shares)]
	names := w.keysByAllocation
	clear(names)
	if len(w.Memory.Reservations) == 0 {
		rest := keys
		for x, s := range shares {
			n := min(s.Upcoming+s.New, len(rest))
			names[x], rest = rest[:n:n], rest[n:]
		}
		return names
	}
	taken := make([]bool, len(keys))
	for _, again := range []bool{true, false} {
		for x, s := range shares {
			for n, key := range keys {
				if len(names[x]) == s.Upcoming+s.New {
					break
				}
				if taken[n] || again && w.ReservedTo(key) != w.Groups[s.Group].ID {
					continue
				}
				taken[n] = true
				names[x] = append(names[x], key)
			}
		}
	}
	return names
}

// sortPods sorts the pods that a group grows for. Where the Snapshot lists its pods in
// order, every class's pods are found along the way, which is cheaper than sorting names.
func (w *Planner) sortPods(g *round.Group) {
	if len(g.Runs) == 1 {
		g.Pods = slices.Clip(g.Runs[0].Keys)
		return
	}
	total := 0
	for _, r := range g.Runs {
		total += len(r.Keys)
	}
	if total == 0 {
		return
	}
	g.Pods = make([]cluster.PodKey, 0, total)
	if w.Unbound.Sorted && total*8 > len(w.Unbound.Waiting) && w.merge(g, total) {
		return
	}
	for _, r := range g.Runs {
		g.Pods = append(g.Pods, r.Keys...)
	}
	slices.Sort(g.Pods)
}

// merge finds the pods of a group's runs along the line; false where a class has two.
func (w *Planner) merge(g *round.Group, total int) bool {
	w.keysByAllocation = slices.Grow(w.keysByAllocation[:0], len(w.Snapshot.Classes))[:len(w.Snapshot.Classes)]
	runs := w.keysByAllocation
	clear(runs)
	all := total == len(w.Unbound.Waiting) // all there are, so that no pod need be looked at
	for _, r := range g.Runs {
		if runs[r.Class] != nil {
			return false
		}
		runs[r.Class] = r.Keys
	}
	for _, x := range w.Unbound.Waiting {
		if run := runs[x.Class]; len(run) > 0 && (all || run[0] == w.Snapshot.Pods[x.Pod].Key) {
			g.Pods = append(g.Pods, run[0])
			runs[x.Class] = run[1:]
		}
	}
	if len(g.Pods) == total {
		return true
	}
	g.Pods = g.Pods[:0]
	return false
}
