package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/internal/schedule"
)

// standard is the budget of a group for nodes that are replaced, where nobody has set one for the reason.
var standard = cluster.DisruptionBudgets{{Nodes: 10, Percent: true, Reasons: []string{cluster.ReasonSick, cluster.ReasonDrifted, cluster.ReasonExpired}}}

// Hold says what keeps a node for now that is to be replaced; an empty rule: nothing.
func (r *Round) Hold(i int, why Reason) (rule, words string) {
	n := &r.Nodes[i]
	g := &r.groups[n.Group]
	if why.Rule == decision.RuleSick {
		if words := r.breaker(&r.Groups[n.Group], g); words != "" {
			return decision.RuleBreaker, why.Why + "; it stays: " + words
		}
	}
	if words := r.waitsForMachines(n.Name); words != "" {
		return decision.RuleConsolidate, why.Why + "; " + words
	}
	if at, was := r.Next.GivenUp[n.Name]; was {
		return decision.RuleTookBack, fmt.Sprintf("%s; its drain was given up at %s, and is tried again at %s", why.Why, round.Stamp(at), round.Stamp(at.Add(givenUpFor)))
	}
	if rule, words := r.suspended(n.Group); rule != "" && (why.Rule == decision.RuleDrifted || why.Rule == decision.RuleExpired) {
		return rule, why.Why + "; it stays: " + words
	}
	if words := r.waitsForSource(i, why); words != "" {
		return decision.RuleCanary, why.Why + "; it waits: " + words
	}
	if words := r.Full(i, why.Name); words != "" {
		return decision.RuleDisruption, why.Why + "; it waits: " + words
	}
	return "", ""
}

// Full says why the budgets let no further node go for a reason; empty: they do. A node that counts as disrupted already is
// no further one.
func (r *Round) Full(i int, reason string) string {
	n := &r.Nodes[i]
	list, all := r.budgets(n.Group, reason)
	r.count()
	g := &r.groups[n.Group]
	gone, allGone := g.gone, r.gone
	if r.down[i] == going || r.down[i] == away && reason != cluster.ReasonSick {
		gone, allGone = gone-1, allGone-1
	}
	if reason == cluster.ReasonSick { // a node that is away is no less there while another one is repaired
		gone, allGone = gone-g.away, allGone-r.away
	}
	if words := r.full(list, reason, "group "+string(r.Groups[n.Group].ID), gone, g.size); words != "" {
		return words
	}
	return r.full(all, reason, "the cluster", allGone, r.size)
}

// budgets are the list of a group and that of the cluster, as far as a reason is concerned.
func (r *Round) budgets(g int, reason string) (group, all cluster.DisruptionBudgets) {
	if own := r.Groups[g].Options.Budgets; own != nil && concerned(*own, reason) {
		return *own, r.Policy.DisruptionBudgets
	}
	return standard, r.Policy.DisruptionBudgets
}

func concerned(list cluster.DisruptionBudgets, reason string) bool {
	for i := range list {
		if list[i].Concerns(reason) {
			return true
		}
	}
	return false
}

// smallest is the budget of a list that counts now: of those that hold, the smallest. opens is when it
// no longer holds or, where none does, when the next one holds; any tells that one concerns the reason.
func (r *Round) smallest(list cluster.DisruptionBudgets, reason string, nodes int) (smallest *cluster.DisruptionBudget, opens time.Time, any bool, fault string) {
	var closes time.Time
	for i := range list {
		b := &list[i]
		if !b.Concerns(reason) {
			continue
		}
		any = true
		switch w := r.open(b); {
		case w.fault != "":
			return nil, time.Time{}, true, w.fault
		case w.open && (smallest == nil || b.Of(nodes) < smallest.Of(nodes)):
			smallest, closes = b, w.next
		case !w.next.IsZero() && (opens.IsZero() || w.next.Before(opens)):
			opens = w.next
		}
	}
	if smallest != nil {
		opens = closes
	}
	return smallest, opens, any, ""
}

// full asks one list of budgets. Of those that hold now the smallest counts; where none holds, no node goes.
func (r *Round) full(list cluster.DisruptionBudgets, reason, whose string, gone, nodes int) string {
	smallest, opens, any, fault := r.smallest(list, reason, nodes)
	switch {
	case fault != "":
		return fmt.Sprintf("a disruption budget of %s cannot be read: %s", whose, fault)
	case !any:
		return ""
	case smallest == nil && opens.IsZero():
		return fmt.Sprintf("no disruption budget of %s for %s nodes holds now, and none ever will", whose, reason)
	case smallest == nil:
		return fmt.Sprintf("no disruption budget of %s for %s nodes holds now; the next one does at %s", whose, reason, round.Stamp(opens))
	case gone >= smallest.Of(nodes):
		return fmt.Sprintf("%d of %d nodes of %s are disrupted (on their way out, not Ready, or about to be replaced), and its budget is %s", gone, nodes, whose, smallest)
	}
	return ""
}

// window is a time at which budgets hold, openness whether it is now and when that changes.
type window struct {
	cron, zone string
	length     time.Duration
}

type openness struct {
	open  bool
	next  time.Time
	fault string
}

// open tells whether a budget holds now, and when that changes. A schedule is read once a round.
func (r *Round) open(b *cluster.DisruptionBudget) openness {
	if b.Cron == "" {
		return openness{open: true}
	}
	key := window{b.Cron, b.Zone, b.For}
	out, known := r.windows[key]
	if known {
		return out
	}
	if s, err := schedule.New(b); err != nil {
		out.fault = err.Error()
	} else {
		out.open, out.next = s.At(r.Now)
		r.WakeAt(out.next)
	}
	round.Set(&r.windows, key, out)
	return out
}

// disruption says whether a node counts as disrupted.
type disruption uint8

const (
	away  disruption = iota + 1 // it is not Ready, and nobody removes it
	going                       // it is on its way out, or goes in this round, or waits for a spare machine
)

// count counts the nodes of the groups that are disrupted or sick, once a round. It costs N.
func (r *Round) count() {
	if r.counted {
		return
	}
	r.counted, r.down = true, make([]disruption, len(r.Nodes))
	for k := range r.groups {
		g := &r.groups[k]
		r.nodes += len(g.members)
		for _, i := range g.members {
			n := &r.Nodes[i]
			if r.sickNow(n) {
				g.sick++
				r.sick++
			}
			switch {
			case n.State == round.StateOut && unready(n) && !n.Deleting && !n.Facts.ToBeDeleted && n.Instance.Phase == cluster.PhaseRunning && !r.toldToGo(n):
				r.down[i] = away
				g.gone, r.gone, g.away, r.away = g.gone+1, r.gone+1, g.away+1, r.away+1
			case n.State == round.StateOut || n.State == round.StateMarked:
				r.disrupt(i)
			}
		}
		g.size = r.sizeOf(k)
		r.size += g.size
	}
}

func (r *Round) toldToGo(n *round.Node) bool { _, told := r.Next.Deleted[n.Instance.ID]; return told }

// sizeOf is the number of nodes of a group as it was before nodes of it were replaced: machines that are there in their place do not
// make a budget in percent larger, and nodes that have gone do not make it smaller. It is remembered while the replacement lasts. A
// machine of the group's present source counts when it is no longer young and has pods: before, it may hold the pods of a node that goes
// next, and an empty one is a spare, however long the agent had to stand by.
func (r *Round) sizeOf(k int) int {
	g := &r.groups[k]
	if !g.replaces() {
		return len(g.members)
	}
	most, settled := 0, 0
	for _, i := range g.members {
		n := &r.Nodes[i]
		young := r.young(n)
		if n.State != round.StateUpcoming && !(young && r.empty(i)) {
			most++
		}
		if !r.fresh(n) || !young && !r.empty(i) {
			settled++
		}
	}
	size, known := r.Memory.Sizes[r.Groups[k].ID]
	if !known {
		settled = most
	}
	size = min(max(size, settled-(g.gone-g.away)), most)
	if g.gone > g.away || slices.ContainsFunc(g.members, func(i int) bool { return r.Reason(i).Rule != "" }) {
		round.Set(&r.Next.Sizes, r.Groups[k].ID, size)
	}
	return size
}

// Add counts a node that goes, or in whose place a machine is wanted, in this round.
func (r *Round) Add(i int) {
	r.count()
	if r.Reason(i).Rule != "" {
		r.groups[r.Nodes[i].Group].taken = true
	}
	r.disrupt(i)
}

func (r *Round) disrupt(i int) {
	g := &r.groups[r.Nodes[i].Group]
	switch r.down[i] {
	case 0:
		g.gone, r.gone = g.gone+1, r.gone+1
	case away:
		g.away, r.away = g.away-1, r.away-1
	}
	r.down[i] = going
}
