package scaleup

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// fillQueue puts the pods in the order in which kube-scheduler takes them: by priority, then
// by age. Pods that have room on a node that is there go onto it; the others are the queue.
func (j *judge) fillQueue() {
	w := j.w
	left := make([]int, len(w.Snapshot.Classes))
	for i := range w.Demands {
		if k := &w.Demands[i]; k.Buys {
			left[k.Class] += k.Count()
		}
	}
	all := make([]queued, 0, len(w.Unbound.Waiting))
	for _, x := range w.Unbound.Waiting {
		if left[x.Class] > 0 {
			p := &w.Snapshot.Pods[x.Pod]
			all = append(all, queued{w.Snapshot.Classes[x.Class].Priority, p.Created, p.Key, hashOf(p.Key), int(x.Class)})
		}
	}
	there := slices.Clone(left)
	for d := range j.queues {
		slices.SortFunc(all, func(a, b queued) int {
			if c := cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.created, b.created)); c != 0 {
				return c
			}
			if d > 0 { // of the same second, in any order
				return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.key, b.key))
			}
			return cmp.Compare(a.key, b.key)
		})
		if d == 0 {
			j.sim.Seed(1) // as the first draw of a trial
			for _, r := range runsOf(all, nil, left) {
				there[r.class] -= j.sim.Bind(r.class, r.n)
			}
		}
		bound := slices.Clone(left) // of each class those that come first
		for c := range bound {
			bound[c] -= there[c]
		}
		j.queues[d] = runsOf(all, bound, there)
	}
	for _, r := range j.queues[0] {
		j.pods += r.n
	}
}

// queued is a pod on its place in kube-scheduler's queue.
type queued struct {
	priority int32
	created  cluster.Moment
	key      cluster.PodKey
	hash     uint64
	class    int
}

func hashOf(key cluster.PodKey) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return h.Sum64()
}

// runsOf are the pods as runs of one class, of each class as many as are left after some.
func runsOf(all []queued, after, left []int) (out []podRun) {
	after, left = slices.Clone(after), slices.Clone(left)
	for i := range all {
		c := all[i].class
		if after != nil && after[c] > 0 {
			after[c]--
			continue
		}
		if left[c] == 0 {
			continue
		}
		left[c]--
		if k := len(out) - 1; k >= 0 && out[k].class == c {
			out[k].n++
		} else {
			out = append(out, podRun{c, 1})
		}
	}
	return out
}

// podRun are pods of one class that follow each other in the queue.
type podRun struct{ class, n int }
