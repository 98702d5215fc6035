package schedsim

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// Bind binds n pods of a class one after the other and returns how many found a node; fewer where the steps reach the
// limit. It costs n times the sets of nodes that differ to the class, and the nodes that have changed
// since the class was last bound.
func (s *Sim) Bind(class, n int) int {
	if s.Spent() {
		return 0
	}
	v := s.viewOf(class)
	for done := range n {
		if s.Spent() {
			return done
		}
		at := s.next(v)
		if at < 0 {
			return done
		}
		s.place(v, at)
	}
	return n
}

// Pack puts up to n pods of a class on the first nodes that take any, and on those that stand Last after all others; it returns how many.
// It costs the sets of nodes that differ to the class for each node that it fills, and the nodes that have changed since the class was
// last bound.
func (s *Sim) Pack(class, n int) (done int) {
	v := s.viewOf(class)
	for done < n && !s.Spent() {
		at := s.first(v)
		if at < 0 {
			break
		}
		k := s.Fill(class, at, min(n-done, binpack.MaxFit(s.nodes[at].room, v.size)))
		if done += k; k == 0 { // as in next
			v.remove(at)
			continue
		}
		s.refresh(v, at)
		v.seen = len(s.touched)
	}
	return done
}

// first is the first node that passes, one that stands Last after all others; -1: none passes.
func (s *Sim) first(v *view) int {
	w := &s.work
	w.sets = append(w.sets[:0], make([]bool, len(v.sets))...)
	for _, id := range v.live {
		s.Steps++
		w.sets[id] = !v.constrained || s.cfg.State.Passes(v.class, int(s.nodes[v.sets[id].any()].state))
	}
	for tier := range v.first {
		from, n, found := v.first[tier], v.first[tier], false
		v.first[tier] = int32(len(v.where))
		for ; int(n) < len(v.where) && !found; n++ {
			if id := v.where[n].set - 1; id >= 0 && boolInt(v.sets[id].last) == tier {
				v.first[tier] = min(v.first[tier], n)
				found = w.sets[id]
			}
		}
		if s.Steps += int(n-from) / nodesPerStep; found {
			return int(n - 1)
		}
	}
	return -1
}

// nodesPerStep is how many nodes first passes by for what a step costs.
const nodesPerStep = 32

// BindTo binds one pod of a class to a node, whatever its score.
func (s *Sim) BindTo(class, node int) { s.place(s.viewOf(class), node) }

// place puts one pod where it belongs and takes the node up anew.
func (s *Sim) place(v *view, at int) {
	s.put(v.class, at, 1)
	if v.constrained {
		s.cfg.State.Put(v.class, int(s.nodes[at].state), 1)
	}
	if k := len(s.log) - 1; k >= s.marked && s.log[k].Class == v.class && s.log[k].Node == at {
		s.log[k].Count++
	} else {
		s.log = append(s.log, Placement{v.class, at, 1})
	}
	s.refresh(v, at)
	v.seen = len(s.touched)
}

// next draws one of the best nodes; -1: none passes.
func (s *Sim) next(v *view) int {
	for {
		best, _ := s.evaluate(v)
		if len(best) == 0 {
			return -1
		}
		total := 0
		for _, id := range best {
			total += len(v.sets[id].buckets[0].nodes)
		}
		k := s.draw.below(total)
		for _, id := range best {
			nodes := v.sets[id].buckets[0].nodes
			if k >= len(nodes) {
				k -= len(nodes)
				continue
			}
			at := int(nodes[k])
			if v.constrained && !s.cfg.State.Passes(v.class, int(s.nodes[at].state)) {
				// Two nodes claim one hostname: the other has changed what holds for this one.
				v.remove(at)
				break
			}
			return at
		}
	}
}

// Best are the nodes with the highest score for one more pod of the class, in their order;
// none where no node passes.
func (s *Sim) Best(class int) []int {
	v := s.viewOf(class)
	best, _ := s.evaluate(v)
	var out []int
	for _, id := range best {
		for _, n := range v.sets[id].buckets[0].nodes {
			out = append(out, int(n))
		}
	}
	slices.Sort(out)
	return out
}

// Fill puts up to n pods of a class on a node that has room for them and whose shape lets them on: as many as the other
// filters allow, whatever they score. It returns how many.
func (s *Sim) Fill(class, at, n int) int {
	if s.cfg.State != nil && s.cfg.State.Constrained(class) {
		n = min(n, s.cfg.State.MaxFit(class, int(s.nodes[at].state)))
	}
	if n > 0 {
		s.PutOn(class, at, n)
	}
	return max(n, 0)
}

// PutOn puts n pods of a class on a node, whatever the filters say.
func (s *Sim) PutOn(class, at, n int) {
	if s.cfg.State != nil && s.cfg.State.Constrained(class) {
		s.cfg.State.Put(class, int(s.nodes[at].state), n)
	}
	s.put(class, at, n)
	if k := len(s.log) - 1; k >= s.marked && s.log[k].Class == class && s.log[k].Node == at {
		s.log[k].Count += n
	} else {
		s.log = append(s.log, Placement{class, at, n})
	}
}

// Forget drops what is remembered to bind a class: the next time it looks at all nodes.
func (s *Sim) Forget(class int) { s.views[class] = nil }

// Refused is the rule of the first filter beyond room and shape that refuses one more pod of a class on a node; empty: none does.
func (s *Sim) Refused(class, node int) (rule string) {
	if s.cfg.State == nil {
		return ""
	}
	rule, _ = s.cfg.State.Refused(class, int(s.nodes[node].state))
	return rule
}
