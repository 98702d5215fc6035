package disruption

import (
	"cmp"
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
	if why.Rule == decision.RuleSick {
		if words := r.breaker(n.Group); words != "" {
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

// Full says why the budgets let no further node go for a reason; empty: they do. A node that counts as disrupted already is no further one.
func (r *Round) Full(i int, reason string) string {
	less := 0
	if r.count(); r.down[i] == going || r.down[i] == away && reason != cluster.ReasonSick {
		less = 1
	}
	words, _ := r.full(r.Nodes[i].Group, reason, less)
	return words
}

// full asks the budgets of a group and of the cluster whether a node may go for a reason when so many less are gone; empty: it may. opens
// is when lists that let none go are others.
func (r *Round) full(g int, reason string, less int) (words string, opens time.Time) {
	own, whole := round.OrElse(r.Groups[g].Options.Budgets, standard), r.all()
	if !concerned(own, reason) {
		own = standard
	}
	for _, of := range []struct {
		list  cluster.DisruptionBudgets
		whose string
		*nodeCounts
	}{{own, "group " + string(r.Groups[g].ID), &r.groups[g].nodeCounts}, {r.Policy.DisruptionBudgets, "the cluster", &whole}} {
		gone := of.gone - less
		if reason == cluster.ReasonSick { // a node that is away is no less there while another one is repaired
			gone -= of.away
		}
		if why, next := r.fullOf(of.list, reason, of.whose, max(gone, 0), of.size); why != "" {
			words, opens = cmp.Or(words, why), round.Later(opens, next)
		}
	}
	return words, opens
}

func concerned(list cluster.DisruptionBudgets, reason string) bool {
	return slices.ContainsFunc(list, func(b cluster.DisruptionBudget) bool { return b.Concerns(reason) })
}

// fullOf asks one list of budgets. Of those that hold now the smallest counts; where none holds, no node goes. opens is when the smallest no
// longer holds or, where none does, when the next one holds.
func (r *Round) fullOf(list cluster.DisruptionBudgets, reason, whose string, gone, nodes int) (words string, opens time.Time) {
	var smallest *cluster.DisruptionBudget
	var closes time.Time
	for i := range list {
		b := &list[i]
		if !b.Concerns(reason) {
			continue
		}
		switch w := r.open(b); {
		case w.fault != "":
			return fmt.Sprintf("a disruption budget of %s cannot be read: %s", whose, w.fault), time.Time{}
		case w.open && (smallest == nil || b.Of(nodes) < smallest.Of(nodes)):
			smallest, closes = b, w.next
		case !w.next.IsZero() && (opens.IsZero() || w.next.Before(opens)):
			opens = w.next
		}
	}
	switch {
	case !concerned(list, reason):
		return "", time.Time{}
	case smallest == nil && opens.IsZero():
		return fmt.Sprintf("no disruption budget of %s for %s nodes holds now, and none ever will", whose, reason), opens
	case smallest == nil:
		return fmt.Sprintf("no disruption budget of %s for %s nodes holds now; the next one does at %s", whose, reason, round.Stamp(opens)), opens
	case gone >= smallest.Of(nodes):
		return fmt.Sprintf("%d of %d nodes of %s are disrupted (on their way out, not Ready, or about to be replaced), and its budget is %s", gone, nodes, whose, smallest), closes
	}
	return "", closes
}

// openness tells whether a budget holds now, and when that changes.
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
	out, known := r.windows[b]
	if known {
		return out
	}
	if s, err := schedule.New(b); err != nil {
		out.fault = err.Error()
	} else {
		out.open, out.next = s.At(r.Now)
		r.WakeAt(out.next)
	}
	round.Set(&r.windows, b, out)
	return out
}

// disruption says whether a node counts as disrupted.
type disruption uint8

const (
	away  disruption = iota + 1 // it is not Ready, and nobody removes it
	going                       // it is on its way out, or goes in this round, or waits for a spare machine
)

// nodeCounts counts nodes of a group, or of all groups.
type nodeCounts struct {
	nodes int
	size  int // without those that are there for a replacement alone; see sizeOf
	gone  int // disrupted
	away  int // of these, those that are not Ready, and that nobody removes
	sick  int // now, for however short a time
}

// all are the nodes of all groups. It costs G.
func (r *Round) all() (sum nodeCounts) {
	for k := range r.groups {
		t := &r.groups[k].nodeCounts
		sum.nodes, sum.size, sum.gone, sum.away, sum.sick = sum.nodes+t.nodes, sum.size+t.size, sum.gone+t.gone, sum.away+t.away, sum.sick+t.sick
	}
	return sum
}

// count counts the nodes of the groups that are disrupted or sick, once a round. It costs N.
func (r *Round) count() {
	if r.down != nil {
		return
	}
	r.down = make([]disruption, len(r.Nodes))
	for k := range r.groups {
		g := &r.groups[k]
		g.nodes = len(g.members)
		for _, i := range g.members {
			n := &r.Nodes[i]
			if r.sickNow(n) {
				g.sick++
			}
			switch {
			case n.State == round.StateOut && unready(n) && !n.Deleting && !n.Facts.ToBeDeleted && n.Instance.Phase == cluster.PhaseRunning && !r.toldToGo(n):
				r.down[i] = away
				g.gone, g.away = g.gone+1, g.away+1
			case n.State == round.StateOut || n.State == round.StateMarked:
				r.disrupt(i)
			}
		}
		g.size = r.sizeOf(k)
	}
}

func (r *Round) toldToGo(n *round.Node) bool { _, told := r.Next.Deleted[n.Instance.ID]; return told }

// sizeOf is the number of nodes of a group as it was before nodes of it were replaced: machines that are there in their place do not
// make a budget in percent larger, and nodes that have gone do not make it smaller. It is remembered while the replacement lasts, and
// grows by machines that are more than its budgets let come in place of others. A machine of the group's present source counts when it is
// no longer young and has pods: before, it may hold the pods of a node that goes next, and an empty one is a spare.
func (r *Round) sizeOf(k int) int {
	g := &r.groups[k]
	if !g.replaces() {
		return len(g.members)
	}
	used, settled, going := 0, 0, g.gone-g.away
	for _, i := range g.members {
		n := &r.Nodes[i]
		young, empty := r.young(n), r.empty(i)
		if n.State != round.StateUpcoming && !(young && empty) {
			used++
		}
		if !r.fresh(n) || !young && !empty {
			settled++
		}
	}
	size, known := r.Memory.Sizes[r.Groups[k].ID]
	if !known {
		size = used - going
	}
	for size+max(going, r.mostGone(k, size)) < settled {
		size++
	}
	if going > 0 || slices.ContainsFunc(g.members, func(i int) bool { return r.Reason(i).Rule != "" }) {
		round.Set(&r.Next.Sizes, r.Groups[k].ID, size)
	}
	return min(size, used)
}

// mostGone is how many nodes of a group of a size its budgets ever let go at once.
func (r *Round) mostGone(k, size int) int {
	most := 0
	for _, b := range slices.Concat(standard, round.OrElse(r.Groups[k].Options.Budgets, nil)) {
		most = max(most, b.Of(size))
	}
	return most
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
		g.gone++
	case away:
		g.away--
	}
	r.down[i] = going
}
