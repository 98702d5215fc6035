package plan

import "sync"

// desk is what a round is written on and what nobody reads once it is over: another
// round writes on it again.
type desk struct {
	option shelf // until the next option is packed
	choice shelf // until the next choice
	round  shelf // until the round is over, as is the rest
	shares slab[share]
	runs   slab[run]
	line   []waiter
	groups []group
	wants  [3][]want // as they are gathered; parts of them, and then as they are evened out; as they are divided
}

// desks are those that no round is sitting at; the collector may have them.
var desks = &sync.Pool{New: func() any { return new(desk) }}

// muchLarger is how many times as many wants as a round had a desk may have room for and
// be kept: what a burst was written on is not for the quiet rounds after it.
const muchLarger = 16

// leave ends a round that had so many wants. Nothing that it pointed to is kept alive.
func (d *desk) leave(wants int) {
	if cap(d.wants[0]) > wants*muchLarger {
		return
	}
	for _, s := range []*shelf{&d.option, &d.choice, &d.round} {
		s.takeBack()
		s.wipe()
	}
	d.shares.takeBackTo(&slab[share]{})
	d.runs.takeBackTo(&slab[run]{})
	d.runs.wipe()
	clear(d.groups[:cap(d.groups)])
	for i := range d.wants {
		clear(d.wants[i][:cap(d.wants[i])])
	}
	desks.Put(d)
}
