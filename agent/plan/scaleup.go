package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// scaleUp finds room for the pending pods and buys what is missing.
func (w *roundState) scaleUp() {
	if len(w.demands) == 0 {
		w.buy(nil)
		return
	}
	w.compileTopology()
	w.limitPackSteps()
	best := w.baselineSolution(w.mixedSolution(w.bestSolution()))
	if w.topology != nil && best.bought() > 0 && w.deferDemands() {
		best = w.baselineSolution(w.mixedSolution(w.bestSolution()))
	}
	w.applySolution(best)
	w.explain(best)
	w.buy(best)
}

// bestSolution tries a few ways and takes the one that buys least: as if nothing had
// been reserved, in several sequences of the groups; with what was reserved; and with
// the nodes that carry our mark, which pods may need back. An answer with marked nodes may not help fewer pods than
// the same without.
func (w *roundState) bestSolution() *solution {
	best := w.solveOnce(false, false)
	if best.bought()+best.unplaced() == 0 {
		return best
	}
	promised := w.hasReservations()
	marked := slices.ContainsFunc(w.nodes, func(n node) bool { return n.state == stateMarked })
	plain := best
	best = w.tryPermutations(best)
	var kept *solution
	if promised && best.bought() > 0 {
		if kept = w.solveOnce(true, false); kept != nil && kept.bought() < best.bought() {
			best = kept
		}
	}
	if !marked {
		return best
	}
	if a := w.solveOnce(false, true); a.unplaced() <= plain.unplaced() && a.bought() < best.bought() || a.unplaced() < best.unplaced() && a.bought() <= best.bought() {
		best = a
	}
	if kept != nil && best.bought() > 0 {
		if a := w.solveOnce(true, true); a != nil && a.unplaced() <= kept.unplaced() && a.bought() < best.bought() {
			best = a
		}
	}
	return best
}

// maxPermutations bounds the sequences of groups that one round tries: all of four.
const maxPermutations = 24

// tryPermutations looks for a sequence of the groups with upcoming machines that buys nothing
// at all. After a restart nothing says for whom a machine of which group was bought;
// one of the sequences is the one in which the groups were chosen then. A sequence
// that would buy, even if less, is no such memory and is not taken.
func (w *roundState) tryPermutations(best *solution) *solution {
	var groups []int
	for g := range w.groups {
		if w.groups[g].upcoming+w.groups[g].grow > 0 {
			groups = append(groups, g)
		}
	}
	if len(groups) < 2 || best.bought() == 0 {
		return best
	}
	for _, largest := range []bool{true, false} {
		v := w.solveVerified(false, func(v *solver) bool { v.openUpcoming(groups, largest); return true })
		if v.a.bought() == 0 && v.a.unplaced() <= best.unplaced() {
			return &v.a
		}
	}
	for _, order := range permutations(groups, maxPermutations) {
		v := w.solveVerified(false, func(v *solver) bool { v.fillUpcomingInOrder(order); return true })
		if v.a.bought() == 0 && v.a.unplaced() <= best.unplaced() {
			return &v.a
		}
	}
	return best
}

// openUpcoming turns the machines that are upcoming into places, so that all of them are filled
// together: machines of several sizes may have been bought for one purpose.
func (v *solver) openUpcoming(groups []int, largest bool) {
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(a, b int) int {
		c := cmp.Compare(v.w.groups[a].sizeCost(), v.w.groups[b].sizeCost())
		if largest {
			return -c
		}
		return c
	})
	for _, g := range groups {
		if v.w.groups[g].Template.Unknown != "" {
			continue
		}
		empty, _ := v.w.template(&v.w.groups[g])
		for range v.upcoming[g] {
			v.a.bins = append(v.a.bins, bin{node: -1, group: g, room: slices.Clone(empty)})
		}
		v.upcoming[g] = 0
	}
}

// solveOnce solves one way; nil when reservations were to be kept and there are none.
func (w *roundState) solveOnce(keep, withMarked bool) *solution {
	v := w.solveVerified(withMarked, func(v *solver) bool { return !keep || v.keepReservations() })
	if v == nil {
		return nil
	}
	return &v.a
}

// maxAttempts is how often one question is asked when the packer is wrong about a class.
const maxAttempts = 3

// solveVerified solves and verifies; nil when first says that there is no point.
func (w *roundState) solveVerified(withMarked bool, first func(*solver) bool) *solver {
	for try := 0; ; try++ {
		v := w.newSolver(withMarked)
		v.mayAsk = try < maxAttempts
		if !first(v) {
			return nil
		}
		v.solve()
		if v.verify() {
			return v
		}
	}
}

// applySolution takes the room that pending pods count on, and remembers reservations.
func (w *roundState) applySolution(a *solution) {
	w.topology.apply(a)
	for _, p := range a.bins {
		if p.node < 0 || !p.used && p.headroom == nil {
			continue
		}
		n := &w.nodes[p.node]
		n.room = p.room
		n.inUse = n.inUse || p.used || n.state == stateMarked
		for _, s := range p.headroom {
			n.keepHeadroom(s.class, s.count)
		}
	}
	counts, runs := 0, w.scratch.perRound.ints.alloc(len(w.groups), 0)
	for i := range w.demands {
		if w.demands[i].buys {
			counts += len(a.allocations[i])
			for _, s := range a.allocations[i] {
				runs[s.group]++
			}
		}
	}
	if counts > 0 {
		w.out.Reservations = make(decision.Reservations, 0, counts)
	}
	for g, n := range runs {
		w.groups[g].runs = w.scratch.runs.alloc(0, n)
	}
	for i := range w.demands {
		switch k := &w.demands[i]; {
		case k.buys:
			w.reserve(i, a.allocations[i])
		case k.deferral != "":
			w.keepDeferredReservations(k)
		}
	}
	for g, n := range a.grow {
		w.groups[g].grow += n
	}
}

// missingPodsKey is the key of reservations to pods that a controller has still to make.
func missingPodsKey(g cluster.GroupID, owner cluster.UID) string {
	return string(g) + " " + string(owner)
}

// buy writes one Grow for every group that gets machines.
func (w *roundState) buy(a *solution) {
	for i := range w.groups {
		g := &w.groups[i]
		if g.grow <= 0 && !(g.raise && g.size > g.target) {
			continue
		}
		w.grew, g.bought = true, true
		w.sortPods(g)
		act := decision.Grow{Group: g.ID, From: g.target, To: g.size + g.grow, Pods: g.pods, Expected: g.expected, Rule: decision.RuleGrow}
		var why []string
		if g.target < g.Min {
			why = append(why, fmt.Sprintf("the target is below the minimum of %d", g.Min))
		}
		if g.headroom > 0 {
			why = append(why, headroomWords(g.headroom))
			act.Rule = decision.RuleHeadroom
		}
		if a != nil && a.grow[i] > 0 && len(g.pods)+g.expected > 0 {
			act.Rule = decision.RuleGrow
			why = append(why, fmt.Sprintf("no room for %s of %d classes", pods(len(g.pods)+g.expected), g.classes))
		} else if g.headroom == 0 {
			act.Rule = decision.RuleMin
		}
		act.Why = strings.Join(why, "; ")
		w.act(act)
	}
}

// explain holds every pending pod that this round buys nothing for.
func (w *roundState) explain(a *solution) {
	defer w.joinHeld(len(w.plan.Held))
	for i := range w.demands {
		k := &w.demands[i]
		if !k.buys && k.deferral == "" {
			continue
		}
		if k.headroom != "" {
			w.explainHeadroom(k, i, a)
			continue
		}
		coming := 0
		var groups []string
		for _, s := range a.allocations[i] {
			n := s.upcoming
			if k.deferral != "" {
				n += s.new // others' machine has room for it
			}
			if n > 0 {
				coming += n
				groups = append(groups, string(w.groups[s.group].ID))
			}
		}
		if a.on[i] > 0 {
			w.heldPods(k, a.on[i], decision.RuleRoomOnNode, "there is room on a node: the scheduler will place it")
		}
		if coming > 0 {
			w.heldPods(k, coming, decision.RuleRoomUpcoming, "counts on a machine that is coming in group "+strings.Join(groups, ", "))
		}
		if a.left[i] > 0 && k.deferral != "" {
			w.heldPods(k, a.left[i], decision.RuleDeferred, k.deferral)
		} else if a.left[i] > 0 {
			refusals := w.refusals(k.class, a.grow)
			w.heldPods(k, a.left[i], decision.RuleNoGroup, everyGroup(refusals))
			w.plan.Held[len(w.plan.Held)-1].Groups = refusals
		}
	}
}

// joinHeld makes one of the reasons from a position on that pods of one class have in
// several zones. Wants of one class follow each other.
func (w *roundState) joinHeld(from int) {
	if w.topology == nil {
		return
	}
	held := w.plan.Held[from:]
	out := held[:0]
	for _, h := range held {
		at := len(out) - 1
		for at >= 0 && out[at].Class == h.Class && (out[at].Rule != h.Rule || out[at].Why != h.Why) {
			at--
		}
		if at < 0 || out[at].Class != h.Class || out[at].Kind != "pod" || h.Kind != "pod" {
			out = append(out, h)
			continue
		}
		out[at].Count += h.Count
		out[at].Name = min(out[at].Name, h.Name)
	}
	w.plan.Held = w.plan.Held[:from+len(out)]
}

// everyGroup says of every group by name why it does not help.
func everyGroup(refusals []decision.Refusal) string {
	if len(refusals) == 0 {
		return "there is no node group"
	}
	said := make([]string, len(refusals))
	for i, r := range refusals {
		said[i] = "group " + r.Name + ": " + r.Why
	}
	return strings.Join(said, "; ")
}

// refusals says for every group why it does not help a class; grown is how much each
// grows in this round.
func (w *roundState) refusals(class int, grown []int) []decision.Refusal {
	out := make([]decision.Refusal, len(w.groups))
	for i := range w.groups {
		g := &w.groups[i]
		rule, why := w.whyNot(g, class)
		if rule == "" {
			why = fmt.Sprintf("grows by %d in this round, and the rest waits for the next", grown[i])
		}
		out[i] = decision.Refusal{Name: string(g.ID), Rule: rule, Why: why}
	}
	return out
}

// whyNot says why a group cannot be grown for a class; an empty rule means that it can.
func (w *roundState) whyNot(g *group, class int) (rule, why string) {
	if g.Template.Unknown == "" {
		empty, shape := w.template(g)
		if rule, words := fit.Refused(&w.s.Classes[class], shape); words != "" {
			return rule, words
		}
		if rule, words := w.space.Insufficient(empty, w.space.Class(class)); words != "" {
			return rule, words
		}
		if rule, words := w.topology.refused(class, g); words != "" {
			return rule, words
		}
	}
	if g.rule != "" {
		return g.rule, g.why
	}
	if n, why := w.allowed(g, 1); n == 0 {
		if g.size+g.grow >= g.Max {
			return decision.RuleMax, why
		}
		return decision.RuleTotals, why
	}
	return "", ""
}
