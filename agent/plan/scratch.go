package plan

import (
	"sync"
)

// scratch holds the buffers of one round. Nothing in it is read once the round is over;
// the buffers go back to a pool and the next round uses them.
type scratch struct {
	perOption   arena // until the next option is packed
	perChoice   arena // until the next choice
	perRound    arena // until the round is over, as is the rest
	allocations slots[allocation]
	runs        slots[run]
	unbound     []unboundPod
	groups      []group
	demands     [3][]demand // as they are gathered; parts of them, and then as they are evened out; as they are divided
}

// scratchPool is the pool of scratch buffers that no round uses; the garbage collector may
// free them.
var scratchPool = &sync.Pool{New: func() any { return new(scratch) }}

// maxOversize bounds the buffers that go back to the pool: room for at most so many times
// the demands of the round. The buffers of a burst are not kept for quiet rounds.
const maxOversize = 16

// release puts the buffers of a round with so many demands back into the pool. Nothing that
// they pointed to is kept alive.
func (d *scratch) release(wants int) {
	if cap(d.demands[0]) > wants*maxOversize {
		return
	}
	for _, s := range []*arena{&d.perOption, &d.perChoice, &d.perRound} {
		s.reset()
		s.zero()
	}
	d.allocations.resetTo(&slots[allocation]{})
	d.runs.resetTo(&slots[run]{})
	d.runs.zero()
	clear(d.groups[:cap(d.groups)])
	for i := range d.demands {
		clear(d.demands[i][:cap(d.demands[i])])
	}
	scratchPool.Put(d)
}
