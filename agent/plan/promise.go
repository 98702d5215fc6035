package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// promise writes down which pods of a want count on which group's machines: first
// those to whom it was promised before. What is left over is promised to pods that
// their controller has still to make.
func (w *roundState) promise(i int, shares []share) {
	k := &w.want[i]
	names := w.named(k, shares)
	for x, s := range shares {
		gr := &w.groups[s.group]
		if s.coming+s.new <= 0 {
			continue
		}
		if len(names[x]) > 0 {
			w.out.Promised = append(w.out.Promised, Pledge{Group: gr.ID, Pods: names[x]})
		}
		if missing := s.coming + s.new - len(names[x]); missing > 0 {
			set(&w.out.PromisedMissing, unmade(gr.ID, k.owner), missing)
		}
		if s.new > 0 && k.spare != "" {
			gr.spare += s.new
		} else if s.new > 0 {
			helped := names[x][min(s.coming, len(names[x])):]
			if len(w.in.Promised) > 0 && !slices.IsSorted(helped) { // else they are as in the want
				helped = slices.Sorted(slices.Values(helped))
			}
			if len(helped) > 0 {
				gr.runs = append(gr.runs, run{k.class, helped})
			}
			if gr.classes == 0 || gr.last != k.class { // wants of one class in several zones follow each other
				gr.classes, gr.last = gr.classes+1, k.class
			}
			gr.expected += s.new - len(helped)
		}
	}
}

// named says which of a want's pods count on which of the groups.
func (w *roundState) named(k *want, shares []share) [][]cluster.PodKey {
	w.pledged = slices.Grow(w.pledged[:0], len(shares))[:len(shares)]
	names := w.pledged
	clear(names)
	if len(w.in.Promised) == 0 {
		rest := k.keys
		for x, s := range shares {
			n := min(s.coming+s.new, len(rest))
			names[x], rest = rest[:n:n], rest[n:]
		}
		return names
	}
	taken := make([]bool, len(k.keys))
	for _, again := range []bool{true, false} {
		for x, s := range shares {
			for n, key := range k.keys {
				if len(names[x]) == s.coming+s.new {
					break
				}
				if taken[n] || again && w.promisedTo(key) != w.groups[s.group].ID {
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
func (w *roundState) sortPods(g *group) {
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
	if w.line.inOrder && total*8 > len(w.line.at) && w.merge(g, total) {
		return
	}
	for _, r := range g.runs {
		g.pods = append(g.pods, r.keys...)
	}
	slices.Sort(g.pods)
}

// merge finds the pods of a group's runs along the line; false where a class has two.
func (w *roundState) merge(g *group, total int) bool {
	w.pledged = slices.Grow(w.pledged[:0], len(w.s.Classes))[:len(w.s.Classes)]
	runs := w.pledged
	clear(runs)
	all := total == len(w.line.at) // all there are, so that no pod need be looked at
	for _, r := range g.runs {
		if runs[r.class] != nil {
			return false
		}
		runs[r.class] = r.keys
	}
	for _, x := range w.line.at {
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

// promised tells that an earlier round counted on machines for pods that still want room,
// or that are still to be made, and that these machines are coming or have just come. Any
// other promise says nothing about this round, and the next one does not know it any more:
// both have to decide alike. Found by fuzzing.
func (w *roundState) promised() bool {
	if len(w.in.Promised)+len(w.in.PromisedMissing) == 0 {
		return false
	}
	if w.counted == nil {
		any := w.counts()
		w.counted = &any
	}
	return *w.counted
}

// counts works promised out.
func (w *roundState) counts() bool {
	arriving := w.arriving()
	if len(arriving) == 0 {
		return false
	}
	for i := range w.want {
		k := &w.want[i]
		for _, id := range arriving {
			if w.in.PromisedMissing[unmade(id, k.owner)] > 0 {
				return true
			}
		}
		for _, key := range k.keys {
			if slices.Contains(arriving, w.promisedTo(key)) {
				return true
			}
		}
	}
	return false
}

// arriving are the groups of which a machine is coming, or has just become Ready.
func (w *roundState) arriving() (out []cluster.GroupID) {
	nodes := w.justReady()
	for i := range w.nodes {
		if w.nodes[i].state == stateComing {
			nodes = append(nodes, i)
		}
	}
	for g := range w.groups {
		if w.groups[g].coming+w.groups[g].grow > 0 || slices.ContainsFunc(nodes, func(n int) bool { return w.nodes[n].group == g }) {
			out = append(out, w.groups[g].ID)
		}
	}
	return out
}

// promisedTo is the group that an earlier round counted a pod on; empty: none.
func (w *roundState) promisedTo(key cluster.PodKey) cluster.GroupID {
	if w.promises == nil {
		if len(w.in.Promised) == 0 {
			return ""
		}
		w.promises = w.in.Promised.ByPod()
	}
	return w.promises[key]
}
