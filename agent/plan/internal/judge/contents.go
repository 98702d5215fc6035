package judge

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/contents"
)

// A round that is not too large remembers the contents of each machine that is upcoming (decision.Reservation).
// The model draws ties, and has more empty machines in the next round than in this one: it would
// use them in another way, and buy again for the pods that it leaves. So before a round buys, each
// pod is put on the machine that earlier rounds chose for it.

// AsReserved is the solution that buys nothing and has each pod on the machine that earlier rounds chose for it; nil:
// there are no contents, or a purchase for the pods that are left is not useless. After a restart nobody knows the contents: the model
// puts the pods on machines as it did when these were bought, and no pod may be left that a purchase helps.
// It costs a model, three trials and useless.
func (w *Judge) AsReserved(cost []float64, withMarked bool) *packing.Solution {
	all := contents.Of(w.State)
	if len(all) == 0 && len(w.Next.OrphanedUpcoming) == 0 {
		return nil
	}
	j := w.newModel(cost, withMarked, all)
	defer j.rollback(j.begin)
	defer func() { w.Steps += j.sim.Steps }()
	nothing := make([]int, len(j.cost))
	m := j.mark()
	left, ok := j.run(nothing, 0, math.Inf(1))
	stuck := j.stuckOf(nothing, left)
	j.rollback(m)
	if !ok {
		return nil
	}
	rest := make(map[int]int) // by class, pods that a purchase would help if no other machine were upcoming
	for c, n := range left {
		if n <= stuck[c] {
			continue
		}
		if !j.constrained(c) || w.HeadroomName(c) != "" {
			return nil
		}
		rest[c] = n - stuck[c]
	}
	s := j.solution(trial{machines: nothing, all: nothing})
	if len(rest) > 0 && (len(all) == 0 || !j.useless(rest, stuck)) {
		return nil
	}
	s.Later = rest
	return s
}

// useless tells whether a purchase for some pods is useless now: when its machines and the upcoming ones have joined,
// kube-scheduler would put the pods that count on the upcoming ones on all of them, and these pods would find none that they may
// use; stuck are the pods beside them that no purchase helps. No pod waits longer for the others than a machine may take to join. The
// contents are off their machines afterwards.
// It costs coverLeft and a binding of all pods.
func (j *model) useless(rest, stuck map[int]int) bool {
	due := time.Time{}
	for _, q := range j.waits {
		if end := q.created.Time().Add(j.w.Policy.MaxNodeProvisionTime); rest[q.class] > 0 && (due.IsZero() || end.Before(due)) {
			due = end
		}
	}
	if j.w.Reached(due) {
		return false
	}
	x := make([]int, len(j.cost))
	j.coverLeft(x, maps.Clone(rest), j.groups)
	j.rollback(j.joined)
	j.addMachines(x)
	left, late := make(map[int]int), slices.Clone(j.lacking)
	for c, n := range j.onNodes {
		late[c] += n - j.early[c]
	}
	j.sort(0)
	for _, r := range runsOf(j.waits, j.early, late) {
		left[r.class] += r.n - j.sim.Bind(r.class, r.n)
	}
	for c, n := range rest {
		if left[c] < n+stuck[c] {
			return false
		}
	}
	j.w.WakeAt(due)
	return true
}

const (
	// contentPasses is how often pods are tried again that wait for a pod of another machine: a spread or an affinity.
	contentPasses = 32
	// contentLooks is how many machines of its group are tried that have no room for a content.
	contentLooks = 16
)

// placeContents puts pods on the machines that they were counted on, as far as the filters allow it.
// It costs contentPasses times the pods, and contentLooks times the contents.
func (j *model) placeContents(all []contents.Content) {
	if len(all) == 0 {
		return
	}
	nodes := j.nodesOf(all)
	for pass, some := 0, true; some && pass < contentPasses; pass++ {
		some = false
		for i := range all {
			if nodes[i] < 0 {
				continue
			}
			for k := range all[i].Pods {
				for r := &all[i].Pods[k]; r.N > 0 && j.lacking[r.Class] > 0 && j.sim.CanBind(r.Class, nodes[i]); r.N-- {
					j.sim.BindTo(r.Class, nodes[i])
					j.lacking[r.Class]--
					j.onNodes[r.Class]++
					some = true
					if by := j.reserved[r.Class]; by != nil && by[all[i].Group] > 0 {
						by[all[i].Group]--
					}
				}
			}
		}
	}
}

// nodesOf finds a machine for each content: the node that some of its pods run on, or else one of the first of its
// group that is free and has room for all; -1: there is none.
func (j *model) nodesOf(all []contents.Content) []int {
	out, taken := make([]int, len(all)), make([]bool, j.nodes)
	for i := range all {
		if out[i] = all[i].Node; out[i] >= 0 {
			taken[out[i]] = true
		}
	}
	free := make([][]int, len(j.cost))
	for n, g := range j.expected {
		if g >= 0 && !taken[n] {
			free[g] = append(free[g], n)
		}
	}
	for i := range all {
		if out[i] >= 0 {
			continue
		}
		list := free[all[i].Group]
		for k, n := range list[:min(len(list), contentLooks)] {
			if j.hasRoom(n, all[i].Pods) {
				out[i] = n
				copy(list[1:k+1], list[:k])
				free[all[i].Group] = list[1:]
				break
			}
		}
	}
	return out
}

// hasRoom tells whether a node has room for all of some pods, by size.
func (j *model) hasRoom(node int, pods []contents.Run) bool {
	room := slices.Clone(j.sim.Room(node)[:j.w.Dimensions.Len()])
	for _, r := range pods {
		size := j.w.Dimensions.Class(r.Class)
		if binpack.MaxFit(room, size) < r.N {
			return false
		}
		binpack.Sub(room, size, r.N)
	}
	return true
}
