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
	if why.Rule == decision.RuleSick {
		if words := r.breaker(&r.groups[n.Group]); words != "" {
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
	r.count()
	for _, l := range r.limits(r.Nodes[i].Group, reason) {
		gone := l.of.gone
		if r.down[i] == going || r.down[i] == away && reason != cluster.ReasonSick {
			gone--
		}
		if reason == cluster.ReasonSick { // a node that is away is no less there while another one is repaired
			gone -= l.of.away
		}
		switch {
		case l.fault != "":
			return fmt.Sprintf("a disruption budget of %s cannot be read: %s", l.of.name, l.fault)
		case !l.any:
		case l.smallest == nil && l.next.IsZero():
			return fmt.Sprintf("no disruption budget of %s for %s nodes holds now, and none ever will", l.of.name, reason)
		case l.smallest == nil:
			return fmt.Sprintf("no disruption budget of %s for %s nodes holds now; the next one does at %s", l.of.name, reason, round.Stamp(l.next))
		case gone >= l.smallest.Of(l.of.size):
			return fmt.Sprintf("%d of %d nodes of %s are disrupted (on their way out, not Ready, or about to be replaced), and its budget is %s", gone, l.of.size, l.of.name, l.smallest)
		}
	}
	return ""
}

// limit is the budget that counts now of a group's list or of the cluster's: of those that hold, the smallest.
type limit struct {
	of       *nodeCounts
	any      bool                      // one concerns the reason
	smallest *cluster.DisruptionBudget // nil: none holds, and no node goes
	next     time.Time                 // when it no longer holds or, where none does, when the next one does
	fault    string
}

// limits are those of a group and of the cluster for a reason.
func (r *Round) limits(g int, reason string) [2]limit {
	concerns := func(b cluster.DisruptionBudget) bool { return b.Concerns(reason) }
	list := standard
	if own := r.Groups[g].Options.Budgets; own != nil && slices.ContainsFunc(*own, concerns) {
		list = *own
	}
	return [2]limit{r.limit(list, reason, &r.groups[g].nodeCounts), r.limit(r.Policy.DisruptionBudgets, reason, &r.all)}
}

func (r *Round) limit(list cluster.DisruptionBudgets, reason string, of *nodeCounts) limit {
	l := limit{of: of}
	var opens time.Time
	for i := range list {
		b := &list[i]
		if !b.Concerns(reason) {
			continue
		}
		l.any = true
		switch w := r.open(b); {
		case w.fault != "":
			return limit{of: of, any: true, fault: w.fault}
		case w.open && (l.smallest == nil || b.Of(of.size) < l.smallest.Of(of.size)):
			l.smallest, l.next = b, w.next
		case !w.next.IsZero() && (opens.IsZero() || w.next.Before(opens)):
			opens = w.next
		}
	}
	if l.smallest == nil {
		l.next = opens
	}
	return l
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

// nodeCounts counts the nodes of a group, or of all groups.
type nodeCounts struct {
	name  string
	nodes int
	size  int // without those that are there for a replacement alone; see sizeOf
	gone  int // how many of them are disrupted
	away  int // how many of these are not Ready, and nobody removes them
	sick  int // how many of them are sick now
}

// count counts the nodes of the groups that are disrupted or sick, once a round. It costs N.
func (r *Round) count() {
	if r.down != nil {
		return
	}
	r.down, r.all.name = make([]disruption, len(r.Nodes)), "the cluster"
	for k := range r.groups {
		g := &r.groups[k]
		g.name, g.nodes = "group "+string(r.Groups[k].ID), len(g.members)
		for _, i := range g.members {
			n := &r.Nodes[i]
			if r.sickNow(n) {
				g.sick++
				r.all.sick++
			}
			_, told := r.Next.Deleted[n.Instance.ID]
			switch {
			case n.State == round.StateOut && unready(n) && !n.Deleting && !n.Facts.ToBeDeleted && n.Instance.Phase == cluster.PhaseRunning && !told:
				r.down[i] = away
				g.gone, r.all.gone, g.away, r.all.away = g.gone+1, r.all.gone+1, g.away+1, r.all.away+1
			case n.State == round.StateOut || n.State == round.StateMarked:
				r.disrupt(i)
			}
		}
		g.size = r.sizeOf(k)
		r.all.nodes, r.all.size = r.all.nodes+g.nodes, r.all.size+g.size
	}
}

// sizeOf is the number of nodes of a group as it was before nodes of it were replaced: machines that are there in their place do not
// make a budget in percent larger, and nodes that have gone do not make it smaller. It is remembered while the replacement lasts.
func (r *Round) sizeOf(k int) int {
	g := &r.groups[k]
	if !g.replaces() {
		return len(g.members)
	}
	most := len(g.members)
	for _, i := range g.members {
		if r.Nodes[i].State == round.StateUpcoming || r.empty(i) && r.young(&r.Nodes[i]) {
			most--
		}
	}
	size, known := r.Memory.Sizes[r.Groups[k].ID]
	switch going := g.gone - g.away; {
	case going == 0 && most == len(g.members): // nothing goes and nothing has come
		size = most
	case !known:
		size = max(most-going, 0)
	default: // the pods of nodes that go may lie on twice as many machines for a time
		size = max(size, most-2*going)
	}
	size = min(size, most)
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
		g.gone, r.all.gone = g.gone+1, r.all.gone+1
	case away:
		g.away, r.all.away = g.away-1, r.all.away-1
	}
	r.down[i] = going
}
