package scaleup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// Decide finds room for the pending pods and buys what is missing. It returns every node
// with what is on it then; nil: no pod was constrained, and nothing was worked out.
// It costs what judging costs; where nothing is judged, what packing costs.
func (w *Planner) Decide() *fit.State {
	if len(w.Demands) == 0 {
		w.buy(nil)
		return nil
	}
	w.topology = topology.Compile(w.State)
	w.measure()
	best := w.judged()
	if best != nil && w.topology != nil && best.bought() > 0 && w.deferDemands() {
		best = w.judged()
	}
	if best == nil {
		best = w.packedSolution()
	}
	w.applySolution(best)
	w.explain(best)
	w.buy(best)
	w.tellBudget(best)
	if w.topology == nil {
		return nil
	}
	return w.topology.State
}

// packedSolution is the answer of packing, judged where that can be done. Where it buys, the contents that earlier
// rounds chose come first.
func (w *Planner) packedSolution() *solution {
	best := w.bestSolution()
	if best.bought() > 0 && w.judgeable() {
		if a := w.asReserved(w.machineCosts(), false); a != nil {
			return a
		}
	}
	if w.topology != nil && best.bought() > 0 && w.deferDemands() {
		best = w.bestSolution()
	}
	return w.judgePacked(best)
}

// bestSolution tries a few ways and takes the one that buys least: as if nothing had
// been reserved; with all upcoming machines filled together; with what was reserved; and with
// the nodes that carry our mark, which pods may need back. An answer with marked nodes may not help fewer pods than
// the same without.
func (w *Planner) bestSolution() *solution {
	best := w.solveOnce(false, false)
	if best.bought()+best.unplaced() == 0 {
		return best
	}
	promised := w.HasReservations()
	marked := w.anyMarked()
	plain := best
	best = w.fillsUpcoming(best)
	var kept *solution
	if promised && best.bought() > 0 {
		if kept = w.solveOnce(true, false); kept != nil && kept.bought() < best.bought() {
			best = kept
		}
	}
	if !marked {
		return best
	}
	if a := w.solveOnce(false, true); a.needsLess(best, plain) {
		best = a
	}
	if kept != nil && best.bought() > 0 {
		if a := w.solveOnce(true, true); a != nil && a.unplaced() <= kept.unplaced() && a.bought() < best.bought() {
			best = a
		}
	}
	return best
}

// needsLess tells whether an answer buys less than another and helps no fewer pods than a plain
// one, or helps more pods and buys no more.
func (a *solution) needsLess(than, plain *solution) bool {
	return a.unplaced() <= plain.unplaced() && a.bought() < than.bought() || a.unplaced() < than.unplaced() && a.bought() <= than.bought()
}

// fillsUpcoming looks for an answer that buys nothing at all after a restart, where nothing says for whom the machines
// that are upcoming were bought: machines of several sizes may have been bought for one purpose, so that all are filled
// together, the large ones first or the small ones. An answer that would buy, even if less, is not taken.
func (w *Planner) fillsUpcoming(best *solution) *solution {
	if best.bought() == 0 || len(w.Next.OrphanedUpcoming) == 0 {
		return best
	}
	var groups []int
	for g := range w.Groups {
		if w.Groups[g].Upcoming+w.Groups[g].Grow > 0 && w.Groups[g].Template.Unknown == "" {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b int) int { return cmp.Compare(w.Groups[a].SizeCost(), w.Groups[b].SizeCost()) })
	for range 2 {
		slices.Reverse(groups)
		v := w.solveVerified(false, func(v *solver) bool { v.openUpcoming(groups); return true })
		if v.a.bought() == 0 && v.a.unplaced() <= best.unplaced() {
			return &v.a
		}
	}
	return best
}

// openUpcoming turns the machines of groups that are upcoming into places, so that all of them are filled together.
func (v *solver) openUpcoming(groups []int) {
	for _, g := range groups {
		empty, _ := v.w.Template(&v.w.Groups[g])
		for range v.upcoming[g] {
			v.a.bins = append(v.a.bins, bin{node: -1, group: g, room: slices.Clone(empty)})
		}
		v.upcoming[g] = 0
	}
}

// solveOnce solves one way; nil when reservations were to be kept and there are none.
func (w *Planner) solveOnce(keep, withMarked bool) *solution {
	v := w.solveVerified(withMarked, func(v *solver) bool { return !keep || v.keepReservations() })
	if v == nil {
		return nil
	}
	return &v.a
}

// maxAttempts is how often one question is asked when the packer is wrong about a class.
const maxAttempts = 3

// solveVerified solves and verifies; nil when first says that there is no point.
func (w *Planner) solveVerified(withMarked bool, first func(*solver) bool) *solver {
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
func (w *Planner) applySolution(a *solution) {
	w.applyToTopology(a)
	for _, p := range a.bins {
		if p.node < 0 || !p.taken() {
			continue
		}
		n := &w.Nodes[p.node]
		n.Room = p.room
		n.InUse = n.InUse || p.used || n.State == round.StateMarked
		for _, s := range p.headroom {
			n.KeepHeadroom(s.Class, s.Count)
		}
	}
	counts, runs := 0, make([]int, len(w.Groups))
	for i := range w.Demands {
		if w.Demands[i].Buys {
			counts += len(a.allocations[i])
			for _, s := range a.allocations[i] {
				runs[s.group]++
			}
		}
	}
	if counts > 0 {
		w.Next.Reservations = make(decision.Reservations, 0, counts)
	}
	for g, n := range runs {
		if n > 0 {
			w.Groups[g].Runs = make([]round.PodRun, 0, n)
		}
	}
	machines := w.machinesOf(a)
	for i := range w.Demands {
		switch k := &w.Demands[i]; {
		case k.Buys:
			w.reserve(i, a.allocations[i], machines[i])
		case k.Deferral != "":
			w.keepDeferredReservations(k)
		}
	}
	w.sortMissing()
	for g, n := range a.grow {
		w.Groups[g].Grow += n
	}
}

// buy writes one Grow for every group that gets machines.
func (w *Planner) buy(a *solution) {
	for i := range w.Groups {
		g := &w.Groups[i]
		if g.Grow <= 0 && !(g.Raise && g.Size > g.CorrectedTarget) {
			continue
		}
		w.Grew, g.Bought = true, true
		w.sortPods(g)
		act := decision.Grow{Group: g.ID, From: g.CorrectedTarget, To: g.Size + g.Grow, Pods: g.Pods, Expected: g.Expected, Rule: decision.RuleGrow}
		var why []string
		if g.CorrectedTarget < g.Min {
			why = append(why, fmt.Sprintf("the target is below the minimum of %d", g.Min))
		}
		if g.Headroom > 0 {
			why = append(why, headroomWords(g.Headroom))
			act.Rule = decision.RuleHeadroom
		}
		if a != nil && a.grow[i] > 0 && len(g.Pods)+g.Expected > 0 {
			act.Rule = decision.RuleGrow
			why = append(why, fmt.Sprintf("no room for %s of %d classes", round.Pods(len(g.Pods)+g.Expected), g.Classes))
			if a.reasons != nil && a.reasons[i] != "" {
				why = append(why, a.reasons[i])
			}
		} else if g.Headroom == 0 {
			act.Rule = decision.RuleMin
		}
		act.Why = strings.Join(why, "; ")
		w.Act(act)
	}
}

// explain holds every pending pod that this round buys nothing for.
func (w *Planner) explain(a *solution) {
	defer w.joinHeld(len(w.Plan.Held))
	for i := range w.Demands {
		k := &w.Demands[i]
		if !k.Buys && k.Deferral == "" {
			continue
		}
		if k.Headroom != "" {
			w.explainHeadroom(k, i, a)
			continue
		}
		coming := 0
		var groups []string
		for _, s := range a.allocations[i] {
			n := s.upcoming
			if k.Deferral != "" {
				n += s.new // others' machine has room for it
			}
			if n > 0 {
				coming += n
				groups = append(groups, string(w.Groups[s.group].ID))
			}
		}
		if a.on[i] > 0 {
			w.HeldPods(k, a.on[i], decision.RuleRoomOnNode, "there is room on a node: the scheduler will place it")
		}
		if coming > 0 {
			w.HeldPods(k, coming, decision.RuleRoomUpcoming, "counts on a machine that is coming in group "+strings.Join(groups, ", "))
		}
		if a.left[i] > 0 && k.Deferral != "" {
			w.HeldPods(k, a.left[i], cmp.Or(k.DeferralRule, decision.RuleDeferred), k.Deferral)
		} else if a.left[i] > 0 {
			refusals := w.Refusals(k.Class, a.grow)
			w.HeldPods(k, a.left[i], decision.RuleNoGroup, everyGroup(refusals))
			w.Plan.Held[len(w.Plan.Held)-1].Groups = refusals
		}
	}
}

// joinHeld makes one of the reasons from a position on that pods of one class have in
// several zones. Wants of one class follow each other.
func (w *Planner) joinHeld(from int) {
	if w.topology == nil {
		return
	}
	held := w.Plan.Held[from:]
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
	w.Plan.Held = w.Plan.Held[:from+len(out)]
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

// Refusals says for every group why it does not help a class; grown is how much each
// grows in this round.
func (w *Planner) Refusals(class int, grown []int) []decision.Refusal {
	out := make([]decision.Refusal, len(w.Groups))
	for i := range w.Groups {
		g := &w.Groups[i]
		rule, why := w.whyNot(g, class)
		if rule == "" {
			why = fmt.Sprintf("grows by %d in this round, and the rest waits for the next", grown[i])
		}
		out[i] = decision.Refusal{Name: string(g.ID), Rule: rule, Why: why}
	}
	return out
}

// whyNot says why a group cannot be grown for a class; an empty rule means that it can.
func (w *Planner) whyNot(g *round.Group, class int) (rule, why string) {
	if g.Template.Unknown == "" {
		empty, shape := w.Template(g)
		if rule, words := fit.Refused(&w.Snapshot.Classes[class], shape); words != "" {
			return rule, words
		}
		if rule, words := w.Dimensions.Insufficient(empty, w.Dimensions.Class(class)); words != "" {
			return rule, words
		}
		if rule, words := w.topology.Refused(class, g); words != "" {
			return rule, words
		}
	}
	limit := growth.Of(w.State, g, 1)
	return limit.Rule, limit.Why
}

// explainHeadroom says what of a headroom cannot be kept free. What has room, or will
// have it on an upcoming machine, is not worth a word.
func (w *Planner) explainHeadroom(k *round.Demand, i int, a *solution) {
	if n := a.left[i]; n > 0 {
		w.Held("headroom", k.Headroom, decision.RuleHeadroom, "%d of %d pieces have no room: %s", n, k.Count(), everyGroup(w.Refusals(k.Class, a.grow)))
	}
}

// headroomWords tells what machines are bought for beside pods.
func headroomWords(n int) string {
	if n == 1 {
		return "keeps 1 piece of headroom free"
	}
	return fmt.Sprintf("keeps %d pieces of headroom free", n)
}
