package disruption

import (
	"cmp"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Paused says that an operator has paused the rollout of a group, and what resumes it; empty: nobody has.
func (r *Round) Paused(g int) string {
	order, command, paused := r.Policy.Rollouts.Pause(r.Groups[g].ID)
	if !paused {
		return ""
	}
	words := "the rollout of its group is paused"
	if !order.Since.IsZero() {
		words += " since " + round.Stamp(order.Since)
	}
	if order.Reason != "" {
		words += " (" + order.Reason + ")"
	}
	return fmt.Sprintf("%s; `%s` lets it go on", words, command)
}

// suspended says by which rule no node of a group is replaced because it is drifted or expired, and why; an empty rule: none is
// in force.
func (r *Round) suspended(g int) (rule, words string) {
	if words := r.Paused(g); words != "" {
		return decision.RuleRolloutHeld, words
	}
	if words := cmp.Or(r.Groups[g].Replacing, r.Groups[g].ReplacingStale); words != "" {
		return decision.RuleElsewhere, words
	}
	return "", ""
}

// TakenBack says why the drain of a node ends that was cordoned by a rule because it is drifted or expired; empty: it goes on.
func (r *Round) TakenBack(g int, rule string) string {
	switch {
	case rule == decision.RuleDrifted && r.Halted(g) != "":
		return "the rollout of its group is halted: " + r.Halted(g)
	case rule == decision.RuleDrifted || rule == decision.RuleExpired:
		return cmp.Or(r.Paused(g), r.Groups[g].Replacing)
	}
	return ""
}

// Tell tells how the groups stand whose nodes are replaced. It costs their instances and, where budgets have windows, each of these.
func (r *Round) Tell() {
	if r.Snapshot.Stale != "" { // nothing is judged
		r.Next.ToReplace = r.Memory.ToReplace
		return
	}
	r.keepToReplace()
	for i := range r.groups {
		if r.judges(i) {
			if r.cordons == nil {
				r.lookAtPlan()
			}
			r.count() // also where no node was asked for: it remembers sizes
			r.Plan.Rollouts = append(r.Plan.Rollouts, r.tell(i))
		}
	}
}

func (r *Round) tell(i int) decision.Rollout {
	g, own := &r.Groups[i], &r.groups[i]
	x := &own.rollout
	out := decision.Rollout{Group: g.ID, Source: x.digest}
	if x.under {
		out.Former = x.facts.Former
	}
	for k := range g.Instances {
		if g.Instances[k].Member {
			out.Machines++
		}
	}
	for _, k := range own.members {
		n := &r.Nodes[k]
		why := r.Reason(k)
		if why.Rule == "" {
			continue
		}
		round.Set(&out.By, why.Name, out.By[why.Name]+1)
		if since := r.toReplaceSince(n, why); why.Name != cluster.ReasonDear && (out.Oldest.IsZero() || since.Before(out.Oldest)) {
			out.Oldest = since
		}
		if n.State == round.StateMarked || r.Waits(k) || r.dear(n.Name) || r.cordons[n.Name] {
			out.Going++
		}
	}
	if own.drift {
		out.Replaced = out.Machines - len(own.differences)
	}
	r.tellState(i, &out)
	return out
}

// keepToReplace keeps since when nodes have been to be replaced of which this round cannot tell it: the cloud does not tell their
// instance now, or not what their group starts.
func (r *Round) keepToReplace() {
	for name, since := range r.Memory.ToReplace {
		i, is := r.ByName[name]
		if !is {
			continue
		}
		if g := r.Nodes[i].Group; g < 0 || r.Groups[g].TemplateStale != "" || r.Groups[g].Template.Unknown != "" || r.Groups[g].Template.Source == nil {
			round.Set(&r.Next.ToReplace, name, since)
		}
	}
}

// toReplaceSince is since when a node has been to be replaced, whatever the reason was at first. It is remembered.
func (r *Round) toReplaceSince(n *round.Node, why Reason) time.Time {
	since, known := r.Memory.ToReplace[n.Name]
	if !known {
		since = r.Now
	}
	if due := expiry(n, r.groups[n.Group].age); why.Name == cluster.ReasonExpired && due.Before(since) {
		since = due
	}
	round.Set(&r.Next.ToReplace, n.Name, since)
	return since
}

// tellState fills in the state, and why it is that one: the first row of decision.RolloutStates that holds.
func (r *Round) tellState(i int, out *decision.Rollout) {
	closed := r.closed(i, out) // it tells the next window of each state
	for k := range decision.RolloutStates {
		row := &decision.RolloutStates[k]
		if words, since, holds := r.holds(row, i, out, closed); holds {
			out.State, out.Rule, out.Why, out.Since = row.State, row.Rule, words, since
			return
		}
	}
}

// holds tells whether a row holds for a group, in words.
func (r *Round) holds(row *decision.RolloutRow, i int, out *decision.Rollout, closed string) (words string, since time.Time, holds bool) {
	x := &r.groups[i].rollout
	rule, suspended := r.suspended(i)
	switch row.Evidence {
	case decision.EvidenceFails:
		return x.halt.Why, x.halt.At, x.halt.Why != ""
	case decision.EvidencePaused:
		order, _, _ := r.Policy.Rollouts.Pause(out.Group)
		return suspended, order.Since, rule == decision.RuleRolloutHeld
	case decision.EvidenceNothing:
		return "", since, len(out.By) == 0
	case decision.EvidenceElsewhere:
		return suspended, since, rule != ""
	case decision.EvidenceClosed:
		return closed, since, closed != ""
	case decision.EvidenceUnproven:
		out.Trial = x.trial.node
		return cmp.Or(x.trial.words, r.stuck(i, out), r.unprovenWords(x)), since, !x.proven()
	case decision.EvidenceTrouble:
		return x.wait.words, since, x.wait.words != ""
	}
	return r.stuck(i, out), since, true
}

// lookAtPlan takes from the plan which nodes go, and what holds the first node of each group that is to be replaced and whose turn it is.
// It costs what the plan does and holds.
func (r *Round) lookAtPlan() {
	r.cordons = map[cluster.NodeName]bool{}
	for _, a := range r.Plan.Actions {
		if c, is := a.(decision.Cordon); is {
			r.cordons[c.Node] = true
		}
	}
	told := map[string]bool{} // the first reason of a node counts
	for k := range r.Plan.Held {
		h := &r.Plan.Held[k]
		if h.Kind != "node" || told[h.Name] {
			continue
		}
		if told[h.Name] = true; h.Rule == decision.RuleCanary || h.Rule == decision.RuleDisruption {
			continue
		}
		if i, is := r.ByName[cluster.NodeName(h.Name)]; is && r.Nodes[i].Group >= 0 && r.judges(r.Nodes[i].Group) && r.Reason(i).Rule != "" {
			if g := &r.groups[r.Nodes[i].Group]; g.stuck == "" {
				g.stuck = fmt.Sprintf("no node goes now: %s [%s] %s", h.Name, h.Rule, h.Why)
			}
		}
	}
}

// stuck says what holds the first node of a group while none goes; empty: one does.
func (r *Round) stuck(g int, out *decision.Rollout) string {
	if out.Going > 0 {
		return ""
	}
	return r.groups[g].stuck
}

// unprovenWords say of a source that nothing has proven yet, and of which no machine has still to show something, what there is of it.
func (r *Round) unprovenWords(x *rollout) string {
	if x.came != "" {
		return fmt.Sprintf("node %s, a machine of source %s, is Ready, and no pod on it has proven the source yet", x.came, x.digest)
	}
	return fmt.Sprintf("no node of source %s is there to prove it", x.digest)
}

// closed says which disruption budget lets no node of the group go now, for none of the reasons for which nodes are to be
// replaced, or, where there is none, because it is drifted; empty: they do. It fills in when one does again.
func (r *Round) closed(i int, out *decision.Rollout) (words string) {
	for _, reason := range cluster.Reasons {
		if out.By[reason] == 0 && (len(out.By) > 0 || reason != cluster.ReasonDrifted) {
			continue
		}
		why, next := r.full(i, reason, len(r.Nodes))
		if why == "" {
			out.Next = time.Time{}
			return ""
		}
		if words = why; !next.IsZero() && (out.Next.IsZero() || next.Before(out.Next)) {
			out.Next = next
		}
	}
	return words
}
