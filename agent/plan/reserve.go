package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// reserve writes down which pods of a demand count on which group's machines: first
// those to whom it was reserved before. What is left over is reserved for pods that
// their controller has still to make.
func (w *upPlanner) reserve(i int, shares []allocation) {
	k := &w.demands[i]
	names := w.named(k, shares)
	for x, s := range shares {
		gr := &w.groups[s.group]
		if s.upcoming+s.new <= 0 {
			continue
		}
		if len(names[x]) > 0 {
			w.out.Reservations = append(w.out.Reservations, decision.Reservation{Group: gr.ID, Pods: names[x]})
		}
		if missing := s.upcoming + s.new - len(names[x]); missing > 0 {
			set(&w.out.ReservedMissing, missingPodsKey(gr.ID, k.owner), missing)
		}
		if s.new > 0 && k.headroom != "" {
			gr.headroom += s.new
		} else if s.new > 0 {
			helped := names[x][min(s.upcoming, len(names[x])):]
			if len(w.in.Reservations) > 0 && !slices.IsSorted(helped) { // else they are as in the demand
				helped = slices.Sorted(slices.Values(helped))
			}
			if len(helped) > 0 {
				gr.runs = append(gr.runs, podRun{k.class, helped})
			}
			if gr.classes == 0 || gr.last != k.class { // demands of one class in several zones follow each other
				gr.classes, gr.last = gr.classes+1, k.class
			}
			gr.expected += s.new - len(helped)
		}
	}
}

// named says which of a demand's pods count on which of the groups.
func (w *upPlanner) named(k *demand, shares []allocation) [][]cluster.PodKey {
	w.keysByAllocation = slices.Grow(w.keysByAllocation[:0], len(shares))[:len(shares)]
	names := w.keysByAllocation
	clear(names)
	if len(w.in.Reservations) == 0 {
		rest := k.keys
		for x, s := range shares {
			n := min(s.upcoming+s.new, len(rest))
			names[x], rest = rest[:n:n], rest[n:]
		}
		return names
	}
	taken := make([]bool, len(k.keys))
	for _, again := range []bool{true, false} {
		for x, s := range shares {
			for n, key := range k.keys {
				if len(names[x]) == s.upcoming+s.new {
					break
				}
				if taken[n] || again && w.reservedTo(key) != w.groups[s.group].ID {
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
func (w *upPlanner) sortPods(g *group) {
	if len(g.runs) == 1 {
		g.pods = slices.Clip(g.runs[0].keys)
		return
	}
	total := 0
	for _, r := range g.runs {
		total += len(r.keys)
	}
	if total == 0 {
		return
	}
	g.pods = make([]cluster.PodKey, 0, total)
	if w.unbound.sorted && total*8 > len(w.unbound.waiting) && w.merge(g, total) {
		return
	}
	for _, r := range g.runs {
		g.pods = append(g.pods, r.keys...)
	}
	slices.Sort(g.pods)
}

// merge finds the pods of a group's runs along the line; false where a class has two.
func (w *upPlanner) merge(g *group, total int) bool {
	w.keysByAllocation = slices.Grow(w.keysByAllocation[:0], len(w.s.Classes))[:len(w.s.Classes)]
	runs := w.keysByAllocation
	clear(runs)
	all := total == len(w.unbound.waiting) // all there are, so that no pod need be looked at
	for _, r := range g.runs {
		if runs[r.class] != nil {
			return false
		}
		runs[r.class] = r.keys
	}
	for _, x := range w.unbound.waiting {
		if run := runs[x.class]; len(run) > 0 && (all || run[0] == w.s.Pods[x.pod].Key) {
			g.pods = append(g.pods, run[0])
			runs[x.class] = run[1:]
		}
	}
	if len(g.pods) == total {
		return true
	}
	g.pods = g.pods[:0]
	return false
}
