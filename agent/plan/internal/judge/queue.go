package judge

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// collectWaiting finds the pods that wait, and counts those that machines are bought for.
func (j *model) collectWaiting() {
	w := j.w
	j.lacking, j.onNodes = make([]int, len(w.Snapshot.Classes)), make([]int, len(w.Snapshot.Classes))
	for i := range w.Demands {
		if k := &w.Demands[i]; k.Buys {
			j.lacking[k.Class] += k.Count()
		}
	}
	j.waits = make([]queued, 0, len(w.Unbound.Waiting))
	for _, x := range w.Unbound.Waiting {
		p := &w.Snapshot.Pods[x.Pod]
		j.waits = append(j.waits, queued{w.Snapshot.Classes[x.Class].Priority, p.Created, p.Key, hashOf(p.Key), int(x.Class)})
	}
	for i := range w.Demands { // pods that are still to be made come last
		k := &w.Demands[i]
		for n := range k.Expected {
			key := cluster.PodKey(fmt.Sprint(k.Owner, " ", n))
			j.waits = append(j.waits, queued{w.Snapshot.Classes[k.Class].Priority, cluster.At(w.Now), key, hashOf(key), k.Class})
		}
	}
	j.sort(0)
}

// bindWaiting binds the pods that have room on a node that is there; the others are the queue.
func (j *model) bindWaiting() {
	j.sim.Seed(1) // as the first draw of a trial
	for _, r := range runsOf(j.waits, j.onNodes, j.lacking) {
		n := j.sim.Bind(r.class, r.n)
		j.lacking[r.class] -= n
		j.onNodes[r.class] += n
	}
}

// sort puts the pods in the order in which kube-scheduler takes them: by priority, then by age.
// Those of the same second are in any order, another one in each draw.
func (j *model) sort(draw int) {
	slices.SortFunc(j.waits, func(a, b queued) int {
		if c := cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.created, b.created)); c != 0 {
			return c
		}
		if draw > 0 {
			x, y := bits.RotateLeft64(a.hash, 8*draw), bits.RotateLeft64(b.hash, 8*draw)
			return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.key, b.key))
		}
		return cmp.Compare(a.key, b.key)
	})
}

// queue is the queue of a draw.
func (j *model) queue(draw int) []podRun {
	if j.queues[draw] == nil {
		j.sort(draw)
		j.queues[draw] = runsOf(j.waits, j.onNodes, j.lacking)
	}
	return j.queues[draw]
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
		if after[c] > 0 {
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
