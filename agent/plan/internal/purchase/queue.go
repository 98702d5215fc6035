package purchase

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// queued is a pod in kube-scheduler's queue, run are pods of one class that follow each other there.
type (
	queued struct {
		priority int32
		created  cluster.Moment
		key      cluster.PodKey
		hash     uint64
		class    int
	}
	run struct{ class, n int }
)

// collectQueue finds the pods that wait, and those that controllers have still to make.
func (b *board) collectQueue() {
	if b.large {
		return
	}
	hash := func(key cluster.PodKey) uint64 {
		h := fnv.New64a()
		h.Write([]byte(key))
		return h.Sum64()
	}
	for _, x := range b.Unbound.Waiting {
		p := &b.Snapshot.Pods[x.Pod]
		b.waits = append(b.waits, queued{b.Snapshot.Classes[x.Class].Priority, p.Created, p.Key, hash(p.Key), int(x.Class)})
	}
	for i := range b.Demands {
		k := &b.Demands[i]
		if k.Headroom != "" {
			continue
		}
		for n := range k.Expected {
			key := cluster.PodKey(fmt.Sprint(k.Owner, " ", n))
			b.waits = append(b.waits, queued{b.Snapshot.Classes[k.Class].Priority, cluster.At(b.Now), key, hash(key), k.Class})
		}
	}
	b.sortQueue(0)
}

// sortQueue sorts by priority and age. Pods of one second are in another order in each draw.
func (b *board) sortQueue(draw int) {
	slices.SortFunc(b.waits, func(x, y queued) int {
		if c := cmp.Or(cmp.Compare(y.priority, x.priority), cmp.Compare(x.created, y.created)); c != 0 {
			return c
		}
		if draw > 0 {
			if c := cmp.Compare(bits.RotateLeft64(x.hash, 8*draw), bits.RotateLeft64(y.hash, 8*draw)); c != 0 {
				return c
			}
		}
		return cmp.Compare(x.key, y.key)
	})
}

// runs are the pods that are left in the order of the queue, without headroom; class after class where pods are placed by counts.
func (b *board) runs() (out []run) {
	if b.large {
		for _, c := range b.order {
			if b.left[c] > 0 {
				out = append(out, run{c, b.left[c]})
			}
		}
		return out
	}
	after, left := slices.Clone(b.placed), slices.Clone(b.left)
	for i := range b.waits {
		c := b.waits[i].class
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
			out = append(out, run{c, 1})
		}
	}
	return out
}

// queue is the queue of a draw.
func (b *board) queue(draw int) []run {
	for draw >= len(b.queues) {
		b.queues = append(b.queues, nil)
	}
	if b.queues[draw] == nil {
		b.sortQueue(draw)
		b.queues[draw] = b.runs()
	}
	return b.queues[draw]
}
