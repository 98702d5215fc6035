package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// candidate is a node that may not be needed.
type candidate struct {
	node      int
	nonEmpty  int // 1: pods have to be moved
	util      float64
	unready   bool
	requested bool      // somebody asked for it to go
	below     int       // how far its group would be below the largest of its balance set
	since     time.Time // since when it is not needed
	waits     int       // 0: its timer runs already, 1: it would begin now
}

// decide finds the nodes whose pods could live elsewhere, keeps their timers and
// marks those whose time is over.
func (w *downPlanner) decide() {
	if !w.p.ScaleDown {
		return
	}
	if w.s.Stale != "" {
		w.out.Unneeded = maps.Clone(w.in.Unneeded)
		return
	}
	rule, why := w.cooldown()
	empties, drains := w.emptying, w.draining
	all := w.candidates()
	for i := range all {
		c := &all[i]
		cargo, unneeded := w.unneeded(c)
		if !unneeded {
			continue
		}
		n := &w.nodes[c.node]
		g := &w.groups[n.group]
		name := string(n.Name)
		due, because := w.dueOf(c, g)
		if !w.reached(due) {
			w.wakeAt(due)
			w.heldWhy("node", name, decision.RuleUnneededFor, n.f.dueWords(due))
			continue
		}
		if rule != "" && (rule != decision.RuleCooldown || !c.requested) {
			w.held("node", name, rule, "not needed, and stays: %s", why)
			continue
		}
		if r, y := w.deletionsFrozen(g); r != "" {
			w.held("node", name, r, "not needed, and stays: %s", y)
			continue
		}
		busy, limit := &drains, w.p.MaxDrainAtOnce
		if cargo.movable+cargo.terminating == 0 {
			busy, limit = &empties, w.p.MaxEmptyAtOnce
		}
		if *busy >= limit {
			w.held("node", name, decision.RuleBatch, "not needed, and waits: %d nodes go at once", limit)
			continue
		}
		*busy++
		g.shrinks = true
		w.wakeAt(w.now.Add(w.p.DelayAfterTaint))
		w.act(decision.Cordon{Node: n.Name, UID: n.UID, Rule: because, Why: fmt.Sprintf("utilisation %.0f%%, %s to move", c.util*100, pods(cargo.movable))})
	}
}

// dueOf returns when a candidate may go, and by which rule.
func (w *downPlanner) dueOf(c *candidate, g *group) (time.Time, string) {
	n := &w.nodes[c.node]
	switch {
	case requested(n.Node):
		return w.now, decision.RuleRequested
	case c.requested:
		return w.now, decision.RuleConsolidate
	}
	if c.unready {
		return w.out.Unready[n.Name].Add(orElse(g.Options.ScaleDownUnreadyTime, w.p.UnreadyFor)), decision.RuleUnready
	}
	return w.out.Unneeded[n.Name].Add(orElse(g.Options.ScaleDownUnneededTime, w.p.UnneededFor)), decision.RuleUnneeded
}

// cooldown says why no node is marked in this round.
func (w *downPlanner) cooldown() (rule, why string) {
	var added time.Time
	for i := range w.nodes {
		if n := &w.nodes[i]; n.group >= 0 {
			added = later(added, n.Created)
		}
	}
	for _, r := range w.out.Resized {
		added = later(added, r.At)
	}
	switch until := added.Add(w.p.DelayAfterAdd); {
	case w.grew:
		return decision.RuleGrowing, "this round grows"
	case w.unjudged:
		return decision.RuleGrowing, "a pod that cannot be judged here waits for the scheduler"
	case !w.reached(w.out.ScaleDownAfter):
		w.wakeAt(w.out.ScaleDownAfter)
		return decision.RuleFailed, "scale-down failed shortly ago; next try at " + stamp(w.out.ScaleDownAfter)
	case !w.reached(until):
		w.wakeAt(until)
		return decision.RuleCooldown, "the cluster grew shortly ago; next try at " + stamp(until)
	}
	return "", ""
}

// candidates are the nodes that could go as far as they themselves are concerned:
// empty ones first, then those that have been waiting longest, then the least used.
func (w *downPlanner) candidates() []candidate {
	out := w.cache.candidates[:0]
	defer func() { w.cache.candidates = out }()
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.ControlPlane || n.group < 0 || n.Deleting || n.removing || n.f.toBeDeleted || n.state == stateUpcoming {
			if n.state == stateUpcoming {
				w.wakeAt(n.Created.Add(w.startup(n)))
			}
			continue
		}
		c := candidate{node: i, unready: n.Ready != cluster.StatusTrue, requested: requested(n.Node) || w.replacementReady(n)}
		if rule, why := w.notRemovable(n, &c); rule != "" {
			w.heldWhy("node", string(n.Name), rule, why)
			if since, runs := w.in.Unneeded[n.Name]; runs && rule == decision.RuleInUse && n.onlyRelocated {
				// The scheduler may put the moved pods elsewhere; if it does not, the
				// node's use will show.
				set(&w.out.Unneeded, n.Name, since)
			}
			continue
		}
		c.nonEmpty = min(w.podsToDrain(n).movable, 1)
		c.since = w.in.Unneeded[n.Name]
		if c.since.IsZero() { // after the others, also those whose timer began in this moment: time alone changes no order
			c.since, c.waits = w.now, 1
		}
		out = append(out, c)
	}
	slices.SortFunc(out, compareCandidates)
	if w.imbalance(out) {
		slices.SortFunc(out, compareCandidates)
	}
	return out
}

// compareCandidates puts who is to go first first.
func compareCandidates(a, b candidate) int {
	if a.requested != b.requested {
		return boolInt(b.requested) - boolInt(a.requested)
	}
	if a.nonEmpty != b.nonEmpty || a.below != b.below || a.waits != b.waits {
		return cmp.Or(cmp.Compare(a.nonEmpty, b.nonEmpty), cmp.Compare(a.below, b.below), cmp.Compare(a.waits, b.waits))
	}
	if c := a.since.Compare(b.since); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.util, b.util), cmp.Compare(a.node, b.node))
}

// notRemovable says why a node is no candidate.
func (w *downPlanner) notRemovable(n *node, c *candidate) (rule, why string) {
	if n.inst.Phase != cluster.PhaseRunning || !n.inst.Member {
		return decision.RuleInstance, fmt.Sprintf("its instance %s is %q or no member of its group", n.inst.ID, n.inst.Phase)
	}
	if _, told := w.out.Deleted[n.inst.ID]; told {
		return decision.RuleInstance, "its instance was told to go"
	}
	if n.f.optOut != "" {
		return decision.RuleOptOut, n.f.optOut
	}
	if why := w.optOutNow(n.Node); why != "" {
		return decision.RuleOptOut, why
	}
	if n.Unschedulable && !n.f.cordonedByUs {
		return decision.RuleNotOurs, "cordoned by somebody else"
	}
	if n.inUse {
		return decision.RuleInUse, "pods that are to come count on it"
	}
	c.util = w.utilisation(n)
	limit := w.threshold(n)
	if !c.unready && c.util > limit && !c.requested {
		return decision.RuleBusy, w.cache.busyWords(c.util, limit)
	}
	return "", ""
}

// unneeded tells whether a candidate's pods have room elsewhere, beside those of the
// candidates before it, and then keeps its timer. It returns what there is to drain.
func (w *downPlanner) unneeded(c *candidate) (found drainPlan, ok bool) {
	n := &w.nodes[c.node]
	g := &w.groups[n.group]
	name := string(n.Name)
	found = w.drainPlanOf(n) // budgets may have been used up by the candidates before it
	switch {
	case len(found.blocked) > 0:
		w.held("node", name, decision.RuleBlocked, "%s", strings.Join(found.blocked, "; "))
		w.keepTimer(c, &found)
		return found, false
	case n.inUse:
		w.held("node", name, decision.RuleInUse, "pods of another node that goes count on it")
		if _, runs := w.in.Unneeded[n.Name]; runs && n.onlyRelocated {
			set(&w.out.Unneeded, n.Name, c.since)
		}
		return found, false
	case g.target-g.removing <= g.Min:
		w.held("node", name, decision.RuleAtMin, "the group is at its minimum of %d", g.Min)
		return found, false
	case w.keepsTotals(n) != "":
		w.held("node", name, decision.RuleTotalsMin, "%s", w.keepsTotals(n))
		return found, false
	}
	pod, moved := w.relocate(c.node, found.classes)
	if !moved && w.relocation.spent() {
		w.heldWhy("node", name, decision.RuleNoRoom, "not looked at: its pods have ties to others, and this round has looked for room for enough of their kind")
		if _, runs := w.in.Unneeded[n.Name]; runs {
			set(&w.out.Unneeded, n.Name, c.since)
		}
		return found, false
	}
	if !moved {
		w.heldWhy("node", name, decision.RuleNoRoom, n.f.unplaceableWords(pod))
		return found, false
	}
	n.removing = true
	g.removing++
	w.countRemoval(n)
	for _, pod := range found.budgeted {
		for _, b := range pod.Budgets {
			w.budget[b] = max(w.budget[b]-1, 0)
		}
	}
	set(&w.out.Unneeded, n.Name, c.since)
	return found, true
}

// keepTimer lets the time of a node run on that only a budget keeps: one that the
// candidates before it have used up in this round, or that is used up for now. Else
// twenty nodes under a budget of one would go one unneeded time after the other. A
// budget that never allowed anything starts no timer.
func (w *downPlanner) keepTimer(c *candidate, found *drainPlan) {
	n := &w.nodes[c.node]
	if len(found.hard) > 0 || n.inUse && !n.onlyRelocated {
		return
	}
	_, runs := w.in.Unneeded[n.Name]
	for _, pod := range found.budgeted {
		for _, b := range pod.Budgets {
			runs = runs || w.budget[b] < 1 && w.allowedAtFirst(b)
		}
	}
	if runs && w.canRelocate(c.node, found.classes) {
		set(&w.out.Unneeded, n.Name, c.since)
	}
}

// allowedAtFirst tells whether a budget allowed anything when the round began.
func (w *downPlanner) allowedAtFirst(key string) bool {
	return slices.ContainsFunc(w.s.Budgets, func(b cluster.Budget) bool { return b.Key == key && b.Allowed > 0 })
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// drainCache is what one round worked out for the next.
type drainCache struct {
	candidates []candidate
	relocated  []relocated
	undoSteps  []undoStep
	busy       map[utilisationKey]string // see busyWords
}

// downPlanner is one round of scale-down.
type downPlanner struct {
	*roundState
	cache *drainCache
	// applied is every node with what is on it and with the pending pods of this round's
	// scale-up; nil: scale-up has not worked it out.
	applied *fit.State

	relocation    *relocationConstraints
	unconstrained bool               // no class asks for anything of other pods
	cursors       *relocationCursors // where pods that are moved find room
}

// utilisationKey is a utilisation in whole per cent and the limit that it is above.
type utilisationKey struct {
	percent int
	limit   float64
}

// maxBusyWords bounds how many are remembered in words: a utilisation beyond that is made
// of what nobody reports.
const maxBusyWords = 1000

// busyWords say that a node is used too much to go. Few of them differ.
func (e *drainCache) busyWords(util, limit float64) string {
	if !(util < maxBusyWords/100) || len(e.busy) > maxBusyWords {
		return "utilisation " + percent(util) + " is above " + percent(limit)
	}
	key := utilisationKey{int(math.RoundToEven(util * 100)), limit}
	words, ok := e.busy[key]
	if !ok {
		words = "utilisation " + percent(util) + " is above " + percent(limit)
		set(&e.busy, key, words)
	}
	return words
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 0, 64) + "%" }

// newDownPlanner begins scale-down.
func newDownPlanner(w *roundState, c *drainCache) *downPlanner {
	return &downPlanner{roundState: w, cache: c}
}

// setApplied hands over what scale-up returned.
func (w *downPlanner) setApplied(st *fit.State) { w.applied = st }

// forget lets go of what belongs to the round.
func (c *drainCache) forget() { clear(c.candidates) }
