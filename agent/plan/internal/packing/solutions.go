package packing

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// BestSolution is the solution that the expanders find, or the one that the first of them finds alone where they like that
// better, or where it helps more pods: groups are taken one after the other, so that a group that is taken first may leave a worse
// choice for the rest. It costs leastBought, twice where there are several expanders.
func (w *Packer) BestSolution() *Solution {
	perPod := make([]bool, len(w.Demands))
	for i := range w.Demands {
		perPod[i] = w.Demands[i].PerPod
	}
	best := w.leastBought()
	if best.Bought() == 0 || w.OneExpander() {
		return best
	}
	for i := range w.Demands { // what was found out for other machines
		w.Demands[i].PerPod = perPod[i]
	}
	var first *Solution
	w.ByFirstAlone(func() { first = w.leastBought() })
	if c := cmp.Or(cmp.Compare(first.Unplaced(), best.Unplaced()), w.compareSolutions(first, best)); c < 0 {
		return first
	}
	return best
}

// compareSolutions is Compare for solutions that help as many pods. It costs G and the demands.
func (w *Packer) compareSolutions(a, b *Solution) int {
	rooms, used := make([][]int64, len(w.Groups)), [2]float64{}
	for g := range rooms {
		rooms[g], _ = w.Template(&w.Groups[g])
	}
	for i := range w.Demands {
		for k, n := range w.Dimensions.Class(w.Demands[i].Class)[:len(used)] {
			used[k] += float64(n) * float64(w.Demands[i].Count())
		}
	}
	x, y := w.purchaseOf(a.Grow, rooms, used), w.purchaseOf(b.Grow, rooms, used)
	return w.Compare(&x, &y)
}

// leastBought is leastOf, with the pods first that are left there, where that helps more.
func (w *Packer) leastBought() *Solution { return w.servesLeftFirst(w.leastOf()) }

// leastOf tries a few ways and takes the one that buys least: as if nothing had
// been reserved; with all upcoming machines filled together; with what was reserved; and with
// the nodes that carry our mark, which pods may need back. A solution with marked nodes may not help fewer pods than
// the same without. Where the same machines are bought either way, what was reserved stays reserved: pods that wait for a fuller
// machine (patience) do not take the machines of others.
func (w *Packer) leastOf() *Solution {
	best := w.SolveOnce(false, false)
	if best.Bought()+best.Unplaced() == 0 {
		return best
	}
	promised := w.HasReservations()
	marked := w.AnyMarked()
	plain := best
	best = w.fillsUpcoming(best, false)
	var kept *Solution
	if promised && best.Bought() > 0 {
		kept = w.SolveOnce(true, false)
		if kept != nil && (kept.Bought() < best.Bought() || slices.Equal(kept.Grow, best.Grow) && kept.Unplaced() <= best.Unplaced()) {
			best = kept
		}
	}
	if !marked {
		return best
	}
	if a := w.SolveOnce(false, true); a.NeedsLess(best, plain) {
		best = a
	}
	best = w.fillsUpcoming(best, true)
	if kept != nil && best.Bought() > 0 {
		if a := w.SolveOnce(true, true); a != nil && a.Unplaced() <= kept.Unplaced() && a.Bought() < best.Bought() {
			best = a
		}
	}
	return best
}

// servesLeftFirst solves again where pods are left although machines are bought that could take them: a group reached a limit
// on its growth, full of pods that another group may help too. The pods that are left then choose first, and those that
// are left in their place. Such a solution is taken where it leaves fewer pods, and of no demand more: without it a later round that
// does not know these reservations, as after a restart, buys for pods whose machines are coming. It costs at most maxAttempts solves.
func (w *Packer) servesLeftFirst(best *Solution) *Solution {
	first := make([]bool, len(w.Demands))
	for a, try := best, 0; try < maxAttempts && w.addLeft(first, a); try++ {
		a = &w.solveVerified(false, func(v *Solver) bool { v.takeFirst(first); return true }).Solution
		more := slices.ContainsFunc(w.allDemands(), func(i int) bool { return a.Left[i] > best.Left[i] })
		if !more && a.Unplaced() < best.Unplaced() {
			return a
		}
	}
	return best
}

// addLeft adds the demands of which a solution leaves pods that machines could take which it buys, and tells whether it found one.
// It costs the demands by the groups.
func (w *Packer) addLeft(first []bool, a *Solution) (any bool) {
	for g, n := range a.Grow {
		if n == 0 {
			continue
		}
		for _, i := range w.TakenBy(g) {
			if a.Left[i] > 0 && w.Demands[i].Buys && !first[i] {
				first[i], any = true, true
			}
		}
	}
	return any
}

// NeedsLess tells whether a solution buys less than another and helps no fewer pods than a plain
// one, or helps more pods and buys no more.
func (a *Solution) NeedsLess(than, plain *Solution) bool {
	return a.Unplaced() <= plain.Unplaced() && a.Bought() < than.Bought() || a.Unplaced() < than.Unplaced() && a.Bought() <= than.Bought()
}

// fillsUpcoming looks for a solution that buys nothing at all after a restart, where the agent does not know for which pods the
// upcoming machines were bought: machines of several sizes may have been bought for one purpose, so that all are filled
// together, the large ones first or the small ones. A solution that would buy, even if less, is not taken: after another restart
// it is not found again.
func (w *Packer) fillsUpcoming(best *Solution, withMarked bool) *Solution {
	if best.Bought() == 0 || len(w.Next.OrphanedUpcoming) == 0 {
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
		v := w.solveVerified(withMarked, func(v *Solver) bool { v.openUpcoming(groups); return true })
		if v.Solution.Bought() == 0 && v.Solution.Unplaced() <= best.Unplaced() {
			return &v.Solution
		}
	}
	return best
}

// openUpcoming turns the machines of groups that are upcoming into places, so that all of them are filled together.
func (v *Solver) openUpcoming(groups []int) {
	for _, g := range groups {
		empty, _ := v.w.Template(&v.w.Groups[g])
		for range v.upcoming[g] {
			v.Solution.Bins = append(v.Solution.Bins, Bin{Node: -1, Group: g, Room: slices.Clone(empty)})
		}
		v.upcoming[g] = 0
	}
}

// SolveOnce solves one way; nil when reservations were to be kept and there are none.
func (w *Packer) SolveOnce(keep, withMarked bool) *Solution {
	v := w.solveVerified(withMarked, func(v *Solver) bool { return !keep || v.keepReservations() })
	if v == nil {
		return nil
	}
	return &v.Solution
}

// maxAttempts is how often one question is asked when the packer is wrong about a class.
const maxAttempts = 3

// solveVerified solves and verifies; nil when first says that there is no point.
func (w *Packer) solveVerified(withMarked bool, first func(*Solver) bool) *Solver {
	for try := 0; ; try++ {
		v := w.NewSolver(withMarked)
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

// AnyMarked tells whether a node is being emptied.
func (w *Packer) AnyMarked() bool {
	return slices.ContainsFunc(w.Nodes, func(n round.Node) bool { return n.State == round.StateMarked })
}
