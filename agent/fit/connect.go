package fit

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit/labelindex"
)

// match finds the constraint classes that each matcher takes. Matchers with a requirement In are
// asked only about those that carry one of its values.
func (b *build) match() {
	b.matched, b.foreign = make([][]int32, len(b.matchers)), make([][]int32, len(b.matchers))
	var index labelindex.Index
	for m := range b.matchers {
		if b.matchers[m].selector == nil {
			continue
		}
		if in := labelindex.FirstIn(b.matchers[m].selector.Requirements); in != nil {
			index.Add(int32(m), in.Key, in.Values...)
		} else {
			index.Every = append(index.Every, int32(m))
		}
	}
	for tie := range int32(len(b.first)) {
		index.May(b.example(tie).Labels, func(m int32) { b.take(m, tie) })
	}
}

func (b *build) take(m, tie int32) {
	c := b.example(tie)
	if b.matchers[m].takes(c, b.known, false) {
		b.matched[m] = append(b.matched[m], tie)
	}
	if b.matchers[m].wide == nil {
		b.foreign[m] = b.matched[m] // whose term it is matters to a namespaceSelector only
	} else if b.matchers[m].takes(c, b.known, true) {
		b.foreign[m] = append(b.foreign[m], tie)
	}
}

// connect tells every constraint class what it is counted by and what keeps it out.
func (b *build) connect() {
	for id := range b.byCounter {
		src := &b.byCounter[id]
		if src.owners {
			b.connectOwners(int32(id), src)
			continue
		}
		for _, tie := range b.matched[src.matchers[0]] {
			if b.takenByAll(src.matchers[1:], tie) {
				b.incrementsByClass = append(b.incrementsByClass, [2]int32{tie, int32(id)})
			}
		}
	}
	b.incrementStart, b.increments = columns(len(b.first), b.incrementsByClass)
	fed := make([]bool, len(b.byCounter))
	for _, id := range b.increments {
		fed[id] = true
	}
	for tie, a := range b.constraints {
		if a != nil {
			a.anti = b.alive(int32(tie), a.anti, fed)
			a.existing = b.alive(int32(tie), a.existing, fed)
		}
	}
}

// connectOwners: the owners of the term keep out the pods that it selects. Where
// it selects none, its owners are not counted.
func (b *build) connectOwners(id int32, src *counterSource) {
	list := b.foreign[src.matchers[0]]
	if len(list) == 0 {
		return
	}
	for _, tie := range list {
		a := b.constraintsFor(tie)
		a.existing = append(a.existing, antiAffinityConstraint{counter: id})
	}
	for _, tie := range src.owned {
		b.incrementsByClass = append(b.incrementsByClass, [2]int32{tie, id})
	}
}

func (b *build) takenByAll(matchers []int32, tie int32) bool {
	for _, m := range matchers {
		if !b.matchers[m].takes(b.example(tie), b.known, false) {
			return false
		}
	}
	return true
}

// alive drops the terms that no pod of any class could ever break, and finds those
// that classes have against their own.
func (b *build) alive(tie int32, list []antiAffinityConstraint, fed []bool) []antiAffinityConstraint {
	list = slices.DeleteFunc(list, func(a antiAffinityConstraint) bool { return !fed[a.counter] })
	for i := range list {
		_, list[i].self = slices.BinarySearch(b.incrementsOfClass(tie), list[i].counter)
	}
	return list
}

// columns turns pairs into one list per constraint class, in the order of the pairs.
func columns(ties int, pairs [][2]int32) (start, list []int32) {
	start, list = make([]int32, ties+1), make([]int32, len(pairs))
	for _, p := range pairs {
		start[p[0]+1]++
	}
	for i := range ties {
		start[i+1] += start[i]
	}
	next := slices.Clone(start)
	for _, p := range pairs {
		list[next[p[0]]] = p[1]
		next[p[0]]++
	}
	return start, list
}
