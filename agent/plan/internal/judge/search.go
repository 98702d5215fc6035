package judge

import (
	"cmp"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/contents"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/exchange"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Judged is the solution of a round whose purchases can be judged; nil: this one's cannot, and
// packing decides alone.
func (w *Judge) Judged() *packing.Solution {
	cost, margin := w.packer.Costs()
	if cost == nil || margin > 0 || !w.Judgeable() {
		return nil
	}
	best, without := w.judgedWith(cost, false)
	if best == nil {
		w.tooLarge = w.size()
		return nil
	}
	if best.Bought()+best.Unplaced() == 0 || !w.packer.AnyMarked() {
		return best
	}
	if a, _ := w.judgedWith(cost, true); a != nil && (a.NeedsLess(best, best) || a.Bought() < best.Bought() && a.HelpsAsMany(best, without)) {
		best = a
	}
	return best
}

// judgedWith is the solution with or without the nodes that are being emptied, and where it buys, beside it the one that
// buys nothing; nil: no purchase could be judged within the steps of the round. Where pods may wait for a fuller machine now (patience), the
// pods that earlier rounds ordered machines for are put on these first: else those that wait would take their places, and the
// next order would be for them.
func (w *Judge) judgedWith(cost []float64, withMarked bool) (s, without *packing.Solution) {
	var placed []contents.Content
	if w.Policy.Patience > 0 && !w.Reached(w.PatienceEnds()) {
		placed = contents.Of(w.State)
	}
	j := w.newModel(cost, withMarked, placed)
	t, ok := j.choose()
	if ok {
		s = j.solution(t)
	}
	w.Steps, w.cut = w.Steps+j.sim.Steps, w.cut || j.cut
	if !ok {
		j.rollback(j.begin)
		return nil, nil
	}
	return j.unlessReserved(s)
}

// unlessReserved returns a solution that buys nothing, where the reservations of earlier rounds
// leave room for all pods that a purchase would help: what the scheduler leaves on machines
// that are still upcoming is known when they are there. It ends the judge.
func (j *model) unlessReserved(s *packing.Solution) (best, without *packing.Solution) {
	w := j.w
	if s.Bought() == 0 || !w.HasReservations() && !w.packer.AnyMarked() {
		j.rollback(j.begin)
		return s, nil
	}
	nothing := make([]int, len(j.cost))
	without = j.solution(trial{machines: nothing, all: nothing})
	j.rollback(j.begin) // what follows asks the constraints of the cluster as it is
	if !w.HasReservations() {
		return s, without
	}
	if a := w.AsReserved(j.cost, j.withMarked); a != nil {
		return a, without
	}
	if a := w.packer.SolveOnce(true, j.withMarked); a != nil && a.Bought() == 0 && a.HelpsAsMany(s, without) {
		return a, without
	}
	return s, without
}

// JudgePacked returns a packing where kube-scheduler can bind all pods on it, else the packing
// with the machines that are missing bought at once, if that is cheaper than a second purchase. The groups stay those of
// the expander as far as they go. Where only the size of machines tells and it differs, or pods
// are spread over zones, the search looks for a purchase in as many zones that saves more than wasteMargin; it costs choose then.
func (w *Judge) JudgePacked(best *packing.Solution) *packing.Solution {
	cost, margin := w.packer.Costs()
	if best.Bought() == 0 || cost == nil || !w.Judgeable() {
		return best
	}
	j := w.newModel(cost, slices.ContainsFunc(best.Bins, func(b packing.Bin) bool {
		return b.Node >= 0 && b.Taken() && w.Nodes[b.Node].State == round.StateMarked
	}), nil)
	j.limit = j.sim.Steps + judgeSteps/2
	packed := j.gathered(best.Grow)
	t, ok := j.try(packed, 0, math.Inf(1))
	if ok {
		t = j.confirm(j.repaired(t, &trial{lost: math.MaxInt}), nil)
	}
	if ok && margin > 0 && (j.zonesInUse != nil || !j.sameSize()) {
		if c, ok := j.choose(); ok && c.better(&t) && j.keepsZones(c.machines, packed) && (c.lost < t.lost || c.score < t.score*(1-margin)) {
			t = c
		}
	}
	stands := !ok || t.left == 0 && slices.Equal(t.machines, packed)
	if !stands {
		best = j.solution(j.refined(t, judgeSteps*exchangeShare/allShares))
	}
	w.Steps, w.cut = w.Steps+j.sim.Steps, w.cut || j.cut
	if !ok {
		w.tooLarge = w.size()
	}
	if stands {
		j.rollback(j.begin)
		return best
	}
	best, _ = j.unlessReserved(best)
	return best
}

// zonesWith is how many zones have a node or get a machine of a purchase; 0 where no pods are spread over zones. It costs G.
func (j *model) zonesWith(x []int) (n int) {
	if j.zonesInUse == nil {
		return 0
	}
	used := j.usedZones(x)
	for _, is := range used {
		if is {
			n++
		}
	}
	return n
}

// usedZones are the zones that have a node or get a machine of a purchase. It costs G.
func (j *model) usedZones(x []int) []bool {
	used, domains := slices.Clone(j.zonesInUse), j.w.packer.Topology.GroupDomain
	for g, n := range x {
		used[domains[g]] = used[domains[g]] || n > 0
	}
	return used
}

// keepsZones tells whether a purchase has machines in each zone without a node in which another has some, where pods are spread over
// zones: without prices a spread is worth machines. It costs G.
func (j *model) keepsZones(x, other []int) bool {
	if j.zonesInUse == nil {
		return true
	}
	used, domains := j.usedZones(x), j.w.packer.Topology.GroupDomain
	for g, n := range other {
		if n > 0 && !used[domains[g]] {
			return false
		}
	}
	return true
}

// sameSize tells whether all groups that may be bought cost the same and have the same room. It costs G.
func (j *model) sameSize() bool {
	return !slices.ContainsFunc(j.groups, func(g int) bool {
		return j.cost[g] != j.cost[j.groups[0]] || !slices.Equal(j.rooms[g], j.rooms[j.groups[0]])
	})
}

// choose finds the purchase of the round. Candidates are tried in one draw; the cheapest with what they leave are
// repaired, and the search sets out from the best of these, in few draws and then in all. It ends when it has taken judgeTimes what the first trial
// takes, since more saves less than it costs, or when the budget of the round but for refined is spent
// (judge.cut); the best that was found by then is taken. The first candidates are tried
// beyond judgeTimes too, and the first one until sim.Limit; false: it takes more.
// It costs judgeTimes bindings of all pods (schedsim.Sim.Bind), and sorting P for each of six draws.
func (j *model) choose() (trial, bool) {
	if j.nothing() {
		nothing := make([]int, len(j.cost))
		return trial{machines: nothing, all: nothing}, true
	}
	j.limit = j.sim.Steps + max(judgeSteps, (j.most-j.sim.Steps)*candidateShare/allShares)
	best := trial{lost: math.MaxInt} // that nothing is bought first is no candidate: its second purchase is filled the largest first
	var starts []trial
	candidates := j.candidates()
	before, most := j.sim.Steps, 0
	enough := j.most - (j.most-before)/allShares // steps of the search; refined takes the rest
	for k, c := range candidates {
		if k >= judgeAlways && j.sim.Steps > j.limit || k > 0 && j.sim.Steps > enough {
			j.cut = j.cut || most == enough || j.sim.Steps > enough
			break
		}
		if t, ok := j.try(c.machines, 0, j.rivalOf(&best)); ok {
			starts = append(starts, t)
			if t.better(&best) {
				best = t
			}
		}
		if k == 0 {
			most = min(before+judgeSteps+judgeTimes*(j.sim.Steps-before), enough)
			j.limit = before + (most-before)*candidateShare/allShares
		}
	}
	if len(starts) == 0 {
		return trial{}, false
	}
	slices.SortStableFunc(starts, func(a, b trial) int {
		return cmp.Or(cmp.Compare(a.lost, b.lost), cmp.Compare(j.price(a.all), j.price(b.all)), cmp.Compare(b.zones, a.zones))
	})
	starts = starts[:min(len(starts), judgeRepaired)]
	j.limit = before + (most-before)*searchedShare/allShares
	best = trial{lost: math.MaxInt}
	for k := range starts {
		starts[k] = j.repaired(starts[k], &best)
		if starts[k].better(&best) {
			best = starts[k]
		}
	}
	slices.SortStableFunc(starts, func(a, b trial) int { return a.compare(&b) })
	starts = slices.CompactFunc(starts, func(a, b trial) bool { return slices.Equal(a.machines, b.machines) })
	found := len(starts) // what the searches find follows
	for k := range min(found, judgeSearches) {
		j.limit = j.sim.Steps + (before+(most-before)*searchedShare/allShares-j.sim.Steps)/(judgeSearches-k)
		t := j.search(starts[k], starts[found:], judgeDraws)
		j.cut = j.cut || most == enough && j.sim.Steps >= j.limit
		if t.better(&best) {
			best = t
		}
		starts = append(starts, t)
	}
	j.limit = most
	// In few draws a purchase may be the best by chance: what is best in all of them is searched on from.
	best = j.search(j.confirm(best, starts), nil, judgeConfirms)
	return j.refined(best, (most-before)*exchangeShare/allShares), true
}

const (
	judgeAlways   = 3 // how many candidates are tried whatever it takes
	judgeSearches = 2 // from how many of them the search sets out
	judgeRepaired = 4 // how many of the candidates are repaired
	judgeRepairs  = 3 // how often what is left over is bought at once instead of later
	judgeRivals   = 3 // how many purchases that were found beside the best stand all draws too

	// rivalMargin is by how much a purchase may cost more than the best and still be a rival: one that is a little cheaper in
	// two draws may leave pods in others.
	rivalMargin = 1.03

	// The steps in shares: those after which no more candidates are tried, those after which none is repaired and the
	// searches end, and the rest for confirm. Where a trial takes many steps and repairs or confirm have too few, pods are
	// left that machines more would have helped.
	candidateShare, searchedShare, allShares = 2, 6, 8

	// exchangeShare is the share that each part of refined may take beside all these shares, as long as the round has so many steps.
	exchangeShare = 2
)

// nothing tells whether no pod is left that a machine would help.
func (j *model) nothing() bool {
	m := j.mark()
	defer j.rollback(m)
	left, _ := j.run(make([]int, len(j.cost)), 0, math.Inf(1))
	for c, n := range left {
		if n > 0 && j.units[c] > 0 {
			return false
		}
	}
	return true
}

// confirm lets the best purchases stand all draws, each with what it lacks. A rival that no steps are left for is not
// compared: few draws are no proof against many. It costs up to 4 times settled.
func (j *model) confirm(best trial, others []trial) trial {
	slices.SortStableFunc(others, func(a, b trial) int { return a.compare(&b) })
	stood := [][]int{best.machines}
	best = j.settled(best, math.Inf(1))
	for _, o := range others {
		if len(stood) > judgeRivals || !o.better(&best) {
			break
		}
		if slices.ContainsFunc(stood, func(x []int) bool { return slices.Equal(x, o.machines) }) {
			continue
		}
		stood = append(stood, o.machines)
		if o = j.settled(o, j.mustCost(&best)); o.draws >= best.draws && o.better(&best) {
			best = o
		}
	}
	return best
}

// settled lets a purchase stand all draws, and buys at once what it lacks in one of them where that is cheaper than the
// risk, and costs less than below. It costs up to 3 times 6 trials for each of 6 draws.
func (j *model) settled(t trial, below float64) trial {
	t = j.drawn(t, judgeConfirms, math.Inf(1))
	for range judgeRepairs {
		best := t
		lacked := slices.Clone(t.lacked)
		slices.SortStableFunc(lacked, func(a, b []int) int { return cmp.Compare(j.price(a), j.price(b)) })
		for _, x := range slices.CompactFunc(lacked, slices.Equal[[]int]) {
			if j.sim.Steps > j.limit || j.price(x) >= min(below, j.mustCost(&best)) {
				break
			}
			if r, ok := j.try(x, 0, math.Inf(1)); ok {
				if r = j.drawn(r, judgeConfirms, min(below, j.mustCost(&best))); r.better(&best) {
					best = r
				}
			}
		}
		if !best.better(&t) {
			break
		}
		t = best
	}
	return t
}

// rivalOf is the price below which a purchase is a rival of another: less than rivalMargin above it, or anything where
// the other leaves pods that some purchase helps.
func (j *model) rivalOf(than *trial) float64 {
	return j.mustCost(than) * rivalMargin
}

// mustCost is the price below which a purchase is better than another; infinite where the other leaves pods that some
// purchase helps.
func (j *model) mustCost(than *trial) float64 {
	if than.lost > j.lost || than.open > 0 {
		return math.Inf(1)
	}
	return than.score
}

// repaired is a purchase that was tried in one draw, or one with what it lacks bought at once. It is tried in all draws of a
// search where it leaves no pod, or where it is better than another. A purchase that still has to be repaired is tried in
// one draw: more draws would take the steps that the repairs need.
func (j *model) repaired(t trial, than *trial) trial {
	below, best := j.rivalOf(than), trial{lost: math.MaxInt}
	for k := 0; ; k++ {
		if t.left == 0 {
			t = j.drawn(t, judgeDraws, below)
		}
		if t.better(&best) {
			best = t
		}
		if k == judgeRepairs || t.left == 0 || j.sim.Steps > j.limit || j.price(t.all) >= below {
			break
		}
		var ok bool
		if t, ok = j.try(t.all, 0, below); !ok {
			break
		}
	}
	if best.better(than) {
		best = j.drawn(best, judgeDraws, below)
	}
	return best
}

// search drops machines and exchanges them for cheaper ones as long as that is better in the mean of some draws, what
// saves most first, within its steps. It ends where an earlier search has ended: there it found no exchange that is better.
// There are 15 exchanges for a pair of groups, so that it costs the square of G, and its share of the steps.
func (j *model) search(from trial, ended []trial, draws int) trial {
	best := from
	moves := exchange.Saving(j.cost, j.groups, best.machines)
	need := j.needs()
	for i, failed := 0, 0; failed < len(moves) && j.sim.Steps < j.limit; {
		if t, ok := j.exchanged(&best, &moves[i], need, draws); ok {
			best, failed = t, 0
			if slices.ContainsFunc(ended, func(o trial) bool { return slices.Equal(o.machines, t.machines) }) {
				break
			}
			continue // the same once more
		}
		i, failed = (i+1)%len(moves), failed+1
	}
	return best
}

// exchanged is a purchase after an exchange; false: it is not better, or not possible. Where machines help all pods, one
// with too little room for them is not tried: of 7,000 none was better. It costs C + G to be ruled out, and up to a trial
// for each draw otherwise.
func (j *model) exchanged(best *trial, m *exchange.Exchange, need []int64, draws int) (trial, bool) {
	y, possible := m.Of(best.machines)
	if !possible {
		return trial{}, false
	}
	lacks := j.missing(y, need)
	if lacks > 0 && best.lost == 0 || j.price(y)+lacks >= best.score || !j.within(y) {
		return trial{}, false
	}
	return j.assess(y, best, draws)
}
