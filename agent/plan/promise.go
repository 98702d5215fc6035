package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// openPromises makes room for what will be promised, and for the names in the groups'
// purchases.
func (w *world) openPromises(a *answer) {
	total := 0
	by := make([]int, len(w.groups))
	for i := range w.want {
		for g, s := range a.shares[i] {
			total += s.coming + s.new
			by[g] += s.new
		}
	}
	if total == 0 {
		return
	}
	w.out.Promised = make(map[cluster.PodKey]cluster.GroupID, total)
	for g, n := range by {
		w.groups[g].pods = make([]cluster.PodKey, 0, n)
	}
}

// promise writes down which pods of a want count on which group's machines: first
// those to whom it was promised before. What is left over is promised to pods that
// their controller has still to make.
func (w *world) promise(i int, shares map[int]share) {
	k := &w.want[i]
	groups := slices.Sorted(maps.Keys(shares))
	names := w.named(k, groups, shares)
	for x, g := range groups {
		s, gr := shares[g], &w.groups[g]
		if s.coming+s.new <= 0 {
			continue
		}
		for _, key := range names[x] {
			w.out.Promised[key] = gr.ID
		}
		if missing := s.coming + s.new - len(names[x]); missing > 0 {
			set(&w.out.PromisedMissing, unmade(gr.ID, k.owner), missing)
		}
		if s.new > 0 && k.spare != "" {
			gr.spare += s.new
		} else if s.new > 0 {
			helped := names[x][min(s.coming, len(names[x])):]
			slices.Sort(helped)
			gr.pods = append(gr.pods, helped...)
			if last := len(gr.runs) - 1; last < 0 || gr.runs[last].class != k.class {
				gr.classes++ // wants of one class in several zones follow each other
			}
			gr.runs = append(gr.runs, run{k.class, len(helped)})
			gr.expected += s.new - len(helped)
		}
	}
}

// named says which of a want's pods count on which of the groups.
func (w *world) named(k *want, groups []int, shares map[int]share) [][]cluster.PodKey {
	names := make([][]cluster.PodKey, len(groups))
	if len(w.in.Promised) == 0 {
		rest := k.keys
		for x, g := range groups {
			n := min(shares[g].coming+shares[g].new, len(rest))
			names[x], rest = rest[:n:n], rest[n:]
		}
		return names
	}
	taken := make([]bool, len(k.keys))
	for _, again := range []bool{true, false} {
		for x, g := range groups {
			for n, key := range k.keys {
				if len(names[x]) == shares[g].coming+shares[g].new {
					break
				}
				if taken[n] || again && w.in.Promised[key] != w.groups[g].ID {
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
func (w *world) sortPods(g *group) {
	if slices.IsSorted(g.pods) {
		return
	}
	ordered := len(g.pods)*8 > len(w.s.Pods) && slices.IsSortedFunc(w.s.Pods, func(a, b cluster.Pod) int { return strings.Compare(string(a.Key), string(b.Key)) })
	runs := make([][]cluster.PodKey, len(w.s.Classes))
	at := 0
	for _, r := range g.runs {
		ordered = ordered && runs[r.class] == nil
		runs[r.class] = g.pods[at : at+r.n]
		at += r.n
	}
	if !ordered {
		slices.Sort(g.pods)
		return
	}
	sorted := make([]cluster.PodKey, 0, len(g.pods))
	for i := range w.s.Pods {
		pod := &w.s.Pods[i]
		if run := runs[pod.Class]; len(run) > 0 && run[0] == pod.Key {
			sorted = append(sorted, pod.Key)
			runs[pod.Class] = run[1:]
		}
	}
	g.pods = sorted
}
