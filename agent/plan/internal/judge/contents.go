package judge

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// A round that is not too large remembers the contents of each machine that is upcoming (decision.Reservation).
// The model draws ties, and has more empty machines in the next round than in this one: it would
// use them in another way, and buy again for the pods that it leaves. So before a round buys, each
// pod is put on the machine that earlier rounds chose for it.

// content is the pods of one upcoming machine that still wait.
type content struct {
	group, machine int
	pods           []podRun
	node           int // of the round, where some of its pods run already; -1: none do
}

// machineNumber is an upcoming machine as the Memory names it.
type machineNumber struct{ group, machine int }

// contentList gathers contents.
type contentList struct {
	all []content
	at  map[machineNumber]int
}

func (l *contentList) add(m machineNumber, class, n int) {
	i, known := l.at[m]
	if !known {
		i = len(l.all)
		l.at[m] = i
		l.all = append(l.all, content{group: m.group, machine: m.machine, node: -1})
	}
	c := &l.all[i]
	if last := len(c.pods) - 1; last >= 0 && c.pods[last].class == class {
		c.pods[last].n += n
	} else {
		c.pods = append(c.pods, podRun{class, n})
	}
}

// contents are those of the Memory, by group and machine. It costs the reservations, the pods that wait
// and the pods of nodes that are upcoming or have just become Ready.
func (w *Round) contents() []content {
	of := make(map[cluster.PodKey]machineNumber)
	for _, r := range w.Memory.Reservations {
		if g, known := w.ByID[r.Group]; known && r.Machine > 0 {
			for _, key := range r.Pods {
				of[key] = machineNumber{g, r.Machine}
			}
		}
	}
	if len(of)+len(w.Memory.MissingByMachine) == 0 {
		return nil
	}
	l := contentList{at: make(map[machineNumber]int)}
	missing := w.missingByOwner()
	for i := range w.Demands {
		k := &w.Demands[i]
		if !k.Buys {
			continue
		}
		others := k.Expected
		for _, key := range k.Keys {
			if m, has := of[key]; has {
				l.add(m, k.Class, 1)
			} else if w.ReservedTo(key) == "" {
				others++ // its controller may have made it since
			}
		}
		l.addMissing(missing[k.Owner], k.Class, others)
	}
	w.findNodes(&l, of)
	out := l.all
	slices.SortFunc(out, func(a, b content) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.machine, b.machine))
	})
	return out
}

// missingPods are pods of one controller that count on an upcoming machine without a name.
type missingPods struct {
	machineNumber
	n int
}

// missingByOwner are the pods that controllers had still to make when machines were bought for them.
func (w *Round) missingByOwner() map[cluster.UID][]missingPods {
	out := make(map[cluster.UID][]missingPods)
	for _, r := range w.Memory.MissingByMachine {
		if g, known := w.ByID[r.Group]; known && r.Machine > 0 && r.Pods > 0 {
			out[r.Owner] = append(out[r.Owner], missingPods{machineNumber{g, r.Machine}, r.Pods})
		}
	}
	return out
}

// addMissing adds at most so many pods of a class, and takes them off the list.
func (l *contentList) addMissing(from []missingPods, class, most int) {
	for i := range from {
		if n := min(from[i].n, most); n > 0 {
			l.add(from[i].machineNumber, class, n)
			from[i].n -= n
			most -= n
		}
	}
}

// findNodes finds the nodes where some pods of a content run already.
func (w *Round) findNodes(l *contentList, of map[cluster.PodKey]machineNumber) {
	for _, i := range w.NewNodes() {
		for p := range w.Nodes[i].Pods {
			if m, has := of[w.Nodes[i].Pods[p].Key]; has && m.group == w.Nodes[i].Group {
				if k, waits := l.at[m]; waits && l.all[k].node < 0 {
					l.all[k].node = i
				}
			}
		}
	}
}

// AsReserved is the solution that buys nothing and has each pod on the machine that earlier rounds chose for it; nil:
// there are no contents, or a purchase would still help a pod that is not overtaken.
// It costs a judge, three trials and overtaken.
func (w *Round) AsReserved(cost []float64, withMarked bool) *packing.Solution {
	contents := w.contents()
	if len(contents) == 0 {
		return nil
	}
	j := w.newJudge(cost, withMarked, contents)
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
	if len(rest) > 0 && !j.overtaken(rest) {
		return nil
	}
	s.Overtaken = rest
	return s
}

// overtaken tells whether a purchase for some pods is useless now: when its machines and the upcoming ones have joined,
// kube-scheduler would put the pods that count on the upcoming ones on all of them, and these pods would find none that they may
// use. No pod waits longer for the others than a machine may take to join. The contents are off their machines afterwards.
// It costs coverLeft and a binding of all pods.
func (j *judge) overtaken(rest map[int]int) bool {
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
		if left[c] < n {
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
func (j *judge) placeContents(all []content) {
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
			for k := range all[i].pods {
				for r := &all[i].pods[k]; r.n > 0 && j.lacking[r.class] > 0 && j.sim.CanBind(r.class, nodes[i]); r.n-- {
					j.sim.BindTo(r.class, nodes[i])
					j.lacking[r.class]--
					j.onNodes[r.class]++
					some = true
					if by := j.reserved[r.class]; by != nil && by[all[i].group] > 0 {
						by[all[i].group]--
					}
				}
			}
		}
	}
}

// nodesOf finds a machine for each content: the node that some of its pods run on, or else one of the first of its
// group that is free and has room for all; -1: there is none.
func (j *judge) nodesOf(all []content) []int {
	out, taken := make([]int, len(all)), make([]bool, j.nodes)
	for i := range all {
		if out[i] = all[i].node; out[i] >= 0 {
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
		list := free[all[i].group]
		for k, n := range list[:min(len(list), contentLooks)] {
			if j.hasRoom(n, all[i].pods) {
				out[i] = n
				copy(list[1:k+1], list[:k])
				free[all[i].group] = list[1:]
				break
			}
		}
	}
	return out
}

// hasRoom tells whether a node has room for all of some pods, by size.
func (j *judge) hasRoom(node int, pods []podRun) bool {
	room := slices.Clone(j.sim.Room(node)[:j.w.Dimensions.Len()])
	for _, r := range pods {
		size := j.w.Dimensions.Class(r.class)
		if binpack.MaxFit(room, size) < r.n {
			return false
		}
		binpack.Sub(room, size, r.n)
	}
	return true
}
