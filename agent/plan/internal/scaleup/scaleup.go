package scaleup

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/purchase"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Planner is one round of scale-up.
type Planner struct {
	*round.State
	buyer            *purchase.Buyer
	keysByAllocation [][]cluster.PodKey // room for named and merge
	patient          []heldPods         // by demand: the pods whose machine is held; nil: there are none
	closed           []int              // by demand: see applyConstrained
	coming, rest     [][]cluster.PodKey // by demand: the pods that count on upcoming machines, and on none
	refusals         refusalLists
	zones            zoneBlame
}

// New begins scale-up.
func New(w *round.State) *Planner {
	return &Planner{State: w, buyer: purchase.New(w)}
}

// CheckExpanders says what is wrong with the choice of expanders.
func (w *Planner) CheckExpanders() {
	if bad := purchase.UnknownExpanders(w.Policy.Expander); len(bad) > 0 {
		w.Held("cluster", "cluster", decision.RuleExpander, "unknown expander %s; this build knows %s", strings.Join(bad, ", "), strings.Join(purchase.Expanders(), ", "))
	}
	if !purchase.UsesPriorities(w.Policy.Expander) {
		return
	}
	switch {
	case w.Policy.PrioritiesFault != "" && len(w.Policy.Priorities) > 0:
		w.Held("cluster", "cluster", decision.RulePriorities, "%s; the last good priorities hold", w.Policy.PrioritiesFault)
	case w.Policy.PrioritiesFault != "":
		w.Held("cluster", "cluster", decision.RulePriorities, "%s; the next expander decides", w.Policy.PrioritiesFault)
	}
}

// Decide finds room for the pending pods and buys what is missing. It returns every node
// with what is on it then; nil: no pod was constrained, and nothing was worked out.
// It costs what package purchase may spend.
func (w *Planner) Decide() *fit.State {
	if len(w.Demands) == 0 {
		w.buy(nil)
		return nil
	}
	best := w.solution()
	w.patient = holdMachines(w.buyer, best)
	w.applySolution(best)
	w.explain(best)
	w.buy(best)
	return w.buyer.Constraints
}

// solution is where the pods go and what is bought; once more without the demands that have to wait, where it buys.
func (w *Planner) solution() *purchase.Solution {
	w.buyer.Constrain()
	best := w.buyer.Solve()
	if w.buyer.Constraints != nil && best.Bought() > 0 && w.deferDemands() {
		best = w.buyer.Solve()
	}
	return best
}

// applySolution takes the room that pending pods count on, and remembers reservations.
func (w *Planner) applySolution(a *purchase.Solution) {
	w.applyConstrained(a)
	for _, p := range a.Bins {
		if p.Node < 0 || !p.Taken() {
			continue
		}
		n := &w.Nodes[p.Node]
		n.Room = p.Room
		n.InUse = n.InUse || p.Used || n.State == round.StateMarked
		for _, s := range p.Headroom {
			n.KeepHeadroom(s.Class, s.Count)
		}
	}
	counts, runs := 0, make([]int, len(w.Groups))
	for i := range w.Demands {
		if w.Demands[i].Buys {
			counts += len(a.Allocations[i])
			for _, s := range a.Allocations[i] {
				runs[s.Group]++
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
	w.coming, w.rest = make([][]cluster.PodKey, len(w.Demands)), make([][]cluster.PodKey, len(w.Demands))
	for i := range w.Demands {
		switch k := &w.Demands[i]; {
		case k.Buys:
			w.reserve(i, a.Allocations[i], machines[i])
		case k.Deferral != "":
			w.keepDeferredReservations(k)
		}
	}
	w.sortMissing()
	for g, n := range a.Grow {
		w.Groups[g].Grow += n
	}
}

// applyConstrained puts the constrained pods of the solution that was taken where they are to go, so that
// what is asked from then on is asked of the world as planned. Where pods count on machines, it finds by demand how many of those on nodes
// a term about other pods keeps off until these run.
func (w *Planner) applyConstrained(a *purchase.Solution) {
	state := w.buyer.Constraints
	w.closed = make([]int, len(w.Demands))
	if state == nil {
		return
	}
	later := make([]purchase.Bin, 0, len(a.Bins)) // as bins, with what they still get
	machines := false
	for _, pl := range a.Bins {
		if pl.Node < 0 || w.Nodes[pl.Node].State == round.StateUpcoming {
			machines = machines || len(pl.Portions) > 0
			later = append(later, pl)
			continue
		}
		rest := purchase.Bin{Node: pl.Node}
		for _, t := range pl.Portions {
			if class := w.Demands[t.Demand].Class; state.Constrained(class) {
				n := min(t.N, state.MaxFit(class, pl.Node))
				state.Put(class, pl.Node, n)
				w.closed[t.Demand] += t.N - n
				rest.Portions = append(rest.Portions, purchase.Portion{Demand: t.Demand, N: t.N - n})
			}
		}
		later = append(later, rest)
	}
	for i := range later {
		pl := &later[i]
		node := pl.Node
		if node < 0 {
			gr := &w.Groups[pl.Group]
			_, shape := w.Template(gr)
			node = state.AddNode(shape, gr.Template.VolumeLimits)
		}
		for _, t := range pl.Portions {
			if class := w.Demands[t.Demand].Class; state.Constrained(class) {
				state.Put(class, node, t.N)
			}
		}
	}
	if !machines {
		clear(w.closed)
	}
}

// buy writes one Grow for every group that gets machines.
func (w *Planner) buy(a *purchase.Solution) {
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
		if a != nil && a.Grow[i] > 0 && len(g.Pods)+g.Expected > 0 {
			act.Rule = decision.RuleGrow
			why = append(why, fmt.Sprintf("no room for %s of %d classes", round.Pods(len(g.Pods)+g.Expected), g.Classes))
			if a.Reasons != nil && a.Reasons[i] != "" {
				why = append(why, a.Reasons[i])
			}
		} else if g.Headroom == 0 {
			act.Rule = decision.RuleMin
		}
		act.Why = strings.Join(why, "; ")
		w.Act(act)
	}
}

// explain holds every pending pod that this round buys nothing for.
func (w *Planner) explain(a *purchase.Solution) {
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
		for _, s := range a.Allocations[i] {
			n := s.Upcoming
			if k.Deferral != "" {
				n += s.New // others' machine has room for it
			}
			if n > 0 {
				coming += n
				groups = append(groups, string(w.Groups[s.Group].ID))
			}
		}
		if n := a.On[i] - w.closed[i]; n > 0 {
			w.HeldPods(w.next(i, n), n, decision.RuleRoomOnNode, w.roomWords(k.Class))
		}
		if n := w.closed[i]; n > 0 {
			w.HeldPods(w.next(i, n), n, decision.RuleRoomOnNode, "a node takes it once the pods bound for new machines run")
		}
		if coming > 0 {
			w.HeldPods(w.namedBy(k, w.coming[i]), coming, decision.RuleRoomUpcoming, "counts on a machine that is coming in group "+strings.Join(groups, ", "))
		}
		left := a.Left[i]
		if w.patient != nil && w.patient[i].Pods > 0 {
			w.HeldPods(k, w.patient[i].Pods, decision.RulePatience, w.patient[i].Why)
			left -= w.patient[i].Pods
		}
		switch {
		case left == 0:
		case k.Deferral != "":
			w.HeldPods(k, left, cmp.Or(k.DeferralRule, decision.RuleDeferred), k.Deferral)
		default:
			refusals, words := w.sharedRefusals(k.Class, a.Grow)
			w.HeldPods(w.next(i, left), left, decision.RuleNoGroup, words)
			w.Plan.Held[len(w.Plan.Held)-1].Groups = refusals
		}
	}
}

// next is a demand with the names of those of its pods that count on no machine, and takes n of them off the list.
func (w *Planner) next(i, n int) *round.Demand {
	list := w.rest[i]
	w.rest[i] = list[min(n, len(list)):]
	return w.namedBy(&w.Demands[i], list)
}

// namedBy is a demand with some of its pods; with all where there are none.
func (w *Planner) namedBy(k *round.Demand, keys []cluster.PodKey) *round.Demand {
	if len(keys) == 0 {
		return k
	}
	return &round.Demand{Class: k.Class, Keys: keys}
}

// roomWords say when kube-scheduler places a pod that has room on a node.
func (w *Planner) roomWords(class int) string {
	const words = "there is room on a node: the scheduler will place it"
	if n := w.WaitsFor(class); n != nil {
		return words + ", at the latest when node " + string(n.Name) + " is gone, which is being removed and which its topology spread counts until then (nodeTaintsPolicy: Ignore)"
	}
	return words
}

// explainHeadroom says what of a headroom cannot be kept free. What has room, or will
// have it on an upcoming machine, is not worth a word.
func (w *Planner) explainHeadroom(k *round.Demand, i int, a *purchase.Solution) {
	if n := a.Left[i]; n > 0 {
		_, words := w.sharedRefusals(k.Class, a.Grow)
		w.Held("headroom", k.Headroom, decision.RuleHeadroom, "%d of %d pieces have no room: %s", n, k.Count(), words)
	}
}

// headroomWords tells what machines are bought for beside pods.
func headroomWords(n int) string {
	if n == 1 {
		return "keeps 1 piece of headroom free"
	}
	return fmt.Sprintf("keeps %d pieces of headroom free", n)
}
