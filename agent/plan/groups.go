package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const (
	// lagFor is how long a read may be behind a resize that was accepted (EC2 reads
	// are eventually consistent).
	lagFor = time.Minute
	// lagSeen is how long reads may fall back behind one that showed the resize, as
	// when another replica answers.
	lagSeen = 10 * time.Second
	// nodeLag is how long a young Node may be ahead of the reads that list its instance.
	nodeLag = 20 * time.Second
	// deletedFor is how long a read may go on showing an instance that was told to go.
	deletedFor = 15 * time.Minute
	// refusedFor is the first pause after a call that was refused (denied, or no such
	// group), and refusedMost the longest: such a call costs nothing, a list that came
	// back empty may be right again in the next read, and who has renewed the
	// credentials or mended the policy waits for what follows.
	refusedFor  = 10 * time.Second
	refusedMost = time.Minute
)

// learn takes in what became of the last Plan. Reading an outcome twice changes
// nothing.
func (w *world) learn() {
	outcomes := w.s.Outcomes
	if len(outcomes) > 1 {
		outcomes = slices.Clone(outcomes)
		slices.SortFunc(outcomes, func(a, b cluster.Outcome) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Error, b.Error), cmp.Compare(a.To, b.To))
		})
	}
	for _, o := range outcomes {
		switch {
		case o.Action == "grow" && o.Error == "":
			if old, ok := w.out.Resized[o.Group]; !ok || old.At.Before(o.At) {
				set(&w.out.Resized, o.Group, Resized{To: o.To, At: o.At})
			}
		case o.Action == "grow":
			if cause, ok := causeOf(o.Kind); ok {
				w.backOff(o.Group, cluster.Failure{Cause: cause, Text: o.Error, At: o.At})
			}
		case o.Action == "terminate" && o.Error == "":
			if _, known := w.out.Deleted[o.Instance]; known || w.passed(o.At.Add(deletedFor+1)) {
				continue
			}
			set(&w.out.Deleted, o.Instance, o.At)
			w.out.ShrunkAt = later(w.out.ShrunkAt, o.At)
			if r, ok := w.out.Resized[o.Group]; ok && r.At.Before(o.At) {
				r.To--
				w.out.Resized[o.Group] = r
			}
		case o.Action == "terminate" && o.Kind == kindBusy:
		case o.Action == "terminate":
			w.postpone(o.At.Add(w.p.DelayAfterFailure))
		}
	}
}

// kindBusy is provider.Kind's word for a cloud that finishes something else first. It is
// no failure: what was asked for is asked for again as soon as that is over.
const kindBusy = "busy"

// causeOf translates provider.Kind's words. Conflicts, transient errors and a busy cloud
// are no failures of the group: the next round is the retry.
func causeOf(kind string) (cluster.Cause, bool) {
	switch kind {
	case "exhausted":
		return cluster.CauseCapacity, true
	case "denied", "not found":
		return cluster.CauseRefused, true
	case "invalid":
		return cluster.CauseInvalid, true
	}
	return "", false
}

func (w *world) postpone(until time.Time) {
	if until.After(w.out.ScaleDownAfter) {
		w.out.ScaleDownAfter = until
	}
}

// backOff counts one failure. Failures within a pause belong to the trial that led
// to it: they lengthen the pause and do not double it.
func (w *world) backOff(g cluster.GroupID, f cluster.Failure) {
	if f.At.After(w.now) {
		f.At, w.unsteady = w.now, true
	}
	i := slices.IndexFunc(w.out.Backoff, func(b Backoff) bool { return b.Group == g && b.Cause == f.Cause })
	step, most := w.p.BackoffInitial, w.p.BackoffMax
	switch f.Cause {
	case cluster.CauseInvalid:
		step = most
	case cluster.CauseRefused:
		step, most = min(step, refusedFor), min(most, refusedMost)
	}
	if i < 0 {
		w.out.Backoff = append(w.out.Backoff, Backoff{Group: g, Cause: f.Cause, Step: step, Last: f.At, Until: f.At.Add(step), Text: f.Text})
		return
	}
	b := &w.out.Backoff[i]
	switch {
	case !f.At.After(b.Last):
		return
	case f.At.Sub(b.Last) > w.p.BackoffReset:
		b.Step = step
	case f.At.After(b.Until):
		b.Step = min(2*b.Step, most)
	}
	b.Last, b.Text = f.At, f.Text
	if until := f.At.Add(b.Step); until.After(b.Until) {
		b.Until = until
	}
}

// pause returns the pause that a group is in, the longest first: its own, or that of a
// group that was refused for a quota which both draw on.
func (w *world) pause(g *group) *Backoff {
	var found *Backoff
	for i := range w.out.Backoff {
		b := &w.out.Backoff[i]
		if w.passed(b.Until) || b.Group != g.ID && !w.sharesQuota(g, b) {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(own(found, g), own(b, g)), b.Until.Compare(found.Until), cmp.Compare(found.Cause, b.Cause), cmp.Compare(found.Group, b.Group)) > 0 {
			found = b
		}
	}
	return found
}

// own orders a group's own pauses before those that it shares.
func own(b *Backoff, g *group) int {
	if b.Group == g.ID {
		return 0
	}
	return 1
}

// sharesQuota tells whether a pause for quota concerns a group too. A group that the
// cloud no longer lists says nothing about its quota's name, so it concerns all.
func (w *world) sharesQuota(g *group, b *Backoff) bool {
	if b.Cause != cluster.CauseQuota {
		return false
	}
	i, ok := w.byID[b.Group]
	if !ok {
		return true
	}
	refused := &w.groups[i]
	return refused.Provider == g.Provider && (refused.Quota == "" || g.Quota == "" || refused.Quota == g.Quota)
}

// sick tells a group of which too many nodes are not Ready while the cluster is well:
// a machine more would likely be no better (by the cluster's own thresholds, as in
// Cluster Autoscaler). When the whole cluster is not well, the network is the likelier
// culprit: deletions are frozen, and pods that wait are helped.
func (w *world) sick(g *group) string {
	if w.unhealthy == "" && g.unready > w.p.OKTotalUnready && g.unready*100 > w.p.MaxTotalUnreadyPercent*g.nodes {
		return fmt.Sprintf("%s of its nodes are not Ready", count(g.unready, g.nodes))
	}
	return ""
}

// account counts what every group has and what is coming, from the cloud's facts and
// not from memory, so that a restart does not buy twice (kubernetes/autoscaler#9813).
func (w *world) account() {
	for i := range w.groups {
		g := &w.groups[i]
		g.target = g.Target
		g.failed = append(g.failed, g.Failures...)
		w.accountInstances(g)
		w.accountLag(g)
		slices.SortFunc(g.failed, func(a, b cluster.Failure) int { // oldest first: history is replayed as it was
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Text, b.Text))
		})
		for _, f := range g.failed {
			w.backOff(g.ID, f)
		}
		g.size = max(g.target, g.members)
		w.accountShort(g)
	}
}

// accountLag counts a target that was asked for and that reads do not show yet. One
// that they have shown, and no longer show, was lowered by somebody else.
func (w *world) accountLag(g *group) {
	r, ok := w.out.Resized[g.ID]
	if !ok || w.passed(r.At.Add(lagFor)) {
		return
	}
	switch {
	case g.target >= r.To && r.Seen.IsZero() && g.ReadAt.After(r.At):
		r.Seen = g.ReadAt
		w.out.Resized[g.ID] = r
	case g.target < r.To && !r.Seen.IsZero() && g.ReadAt.Sub(r.Seen) >= lagSeen:
		delete(w.out.Resized, g.ID)
		return
	}
	if g.target < r.To && !r.Seen.IsZero() {
		w.wake(r.Seen.Add(lagSeen))
	}
	g.target = max(g.target, r.To)
	w.wake(r.At.Add(lagFor))
}

func (w *world) accountInstances(g *group) {
	patience := orElse(g.Options.MaxNodeProvisionTime, w.p.MaxNodeProvisionTime)
	for k := range g.Instances {
		in := &g.Instances[k]
		if _, told := w.out.Deleted[in.ID]; in.Member && in.Interruption != nil && !told {
			g.replaced++
		}
		if !in.Member || in.Phase == cluster.PhaseGone || in.Phase == cluster.PhaseDeleting || in.Phase == cluster.PhaseStopped {
			continue
		}
		if _, told := w.out.Deleted[in.ID]; told {
			g.target--
			continue
		}
		g.members++
		if _, ok := w.id.Node[in.ID]; ok {
			g.nodes++
			continue
		}
		if in.Phase == cluster.PhaseFailed {
			w.instanceFailed(g, in)
			continue
		}
		since := in.Created
		if since.IsZero() {
			since = w.now
			if seen, ok := w.in.Unregistered[in.ID]; ok {
				since = seen
			}
		}
		set(&w.out.Unregistered, in.ID, since)
		if due := since.Add(patience); !w.passed(due) {
			g.coming++
			w.wake(due)
		} else {
			w.instanceLate(g, in, due)
		}
	}
}

// accountShort counts the places in the target that have no instance yet. They are
// coming as long as the cloud has not said that they are not and has not taken
// longer than an instance may take to join.
func (w *world) accountShort(g *group) {
	short := g.target - g.members
	if short <= 0 {
		return
	}
	since, ok := w.in.Short[g.ID]
	if !ok {
		since = w.now
	}
	set(&w.out.Short, g.ID, since)
	patience := orElse(g.Options.MaxNodeProvisionTime, w.p.MaxNodeProvisionTime)
	if due := since.Add(patience); w.passed(due) {
		text := fmt.Sprintf("the cloud has not delivered %d of %d instances since %s", short, g.target, stamp(since))
		w.backOff(g.ID, cluster.Failure{Cause: cluster.CauseOther, Text: text, At: due})
		w.hold("group", string(g.ID), RuleShort, "%s; look at the group's activities", text)
		if w.undelivered(g.ID) {
			return
		}
		since = w.now // the pause is over: the cloud gets another chance
		set(&w.out.Short, g.ID, since)
	}
	w.wake(since.Add(patience))
	if g.Paused == "" && !w.undelivered(g.ID) {
		g.coming += short
	}
}

// undelivered tells whether a group is paused for a cause that keeps the cloud from
// starting instances. That some instance did not join says nothing about the next.
func (w *world) undelivered(g cluster.GroupID) bool {
	return slices.ContainsFunc(w.out.Backoff, func(b Backoff) bool {
		return b.Group == g && b.Cause != cluster.CauseNoJoin && !w.passed(b.Until)
	})
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// judge says for every group whether it can be grown. The first reason counts.
func (w *world) judge() {
	ahead := w.ahead()
	var schemes map[string]map[string]bool
	if len(ahead) > 0 {
		schemes = w.schemes()
	}
	w.judgeBalance()
	for i := range w.groups {
		g := &w.groups[i]
		g.rule, g.why = w.refusal(g)
		if g.rule == "" {
			own := schemes[g.Provider]
			at := slices.IndexFunc(ahead, func(n *cluster.Node) bool { return len(own) == 0 || own[scheme(n.ProviderID)] })
			if at >= 0 {
				g.rule, g.why = RuleAhead, fmt.Sprintf("node %s has registered and no group lists its instance yet: growth waits for the cloud's reads to catch up", ahead[at].Name)
			}
		}
		if g.rule != "" && g.rule != RuleMax {
			w.hold("group", string(g.ID), g.rule, "%s", g.why)
		}
	}
}

// paused says that an operator wants the group left alone; empty: nobody does.
func (w *world) paused(g *group) string {
	if g.Pause == nil {
		return ""
	}
	why := "paused"
	if !g.Pause.Until.IsZero() {
		if w.passed(g.Pause.Until) {
			return ""
		}
		w.wake(g.Pause.Until)
		why += " until " + stamp(g.Pause.Until)
	}
	if g.Pause.Why != "" {
		why += ": " + g.Pause.Why
	}
	return why
}

func (w *world) refusal(g *group) (rule, why string) {
	if g.Min < 0 || g.Max < g.Min {
		return RuleBounds, fmt.Sprintf("invalid bounds: minimum %d, maximum %d; set a maximum that is not below the minimum", g.Min, g.Max)
	}
	if why := w.paused(g); why != "" {
		return RuleOperator, why
	}
	if g.Stale != "" {
		return RuleGroupStale, "the group's facts are old: " + g.Stale
	}
	if g.Paused != "" {
		return RulePaused, g.Paused
	}
	if g.Busy != "" {
		return RuleCloudBusy, g.Busy
	}
	if g.TemplateStale != "" {
		return RuleTemplate, "what its next machine would be is old: " + g.TemplateStale
	}
	if g.Template.Unknown != "" {
		return RuleTemplate, "template unknown: " + g.Template.Unknown
	}
	if b := w.pause(g); b != nil {
		w.wake(b.Until)
		if b.Group != g.ID {
			return RuleQuota, fmt.Sprintf("shares the quota of group %s, which is backed off until %s: %s", b.Group, stamp(b.Until), b.Text)
		}
		return RuleBackoff, fmt.Sprintf("backed off until %s (%s): %s", stamp(b.Until), b.Cause, b.Text)
	}
	if why := w.sick(g); why != "" {
		return RuleGroupHealth, why
	}
	if g.shrinks {
		return RuleOneWay, "the group shrinks in this round"
	}
	if g.size >= g.Max && g.target >= g.Min {
		return RuleMax, fmt.Sprintf("at its maximum of %d", g.Max)
	}
	return "", ""
}

// enforceMin plans the machines that a group lacks to its minimum. Pods may use them.
func (w *world) enforceMin() {
	if !w.p.EnforceMin {
		return
	}
	for i := range w.groups {
		g := &w.groups[i]
		if g.rule != "" || g.target >= g.Min {
			continue
		}
		g.raise = true
		want := max(g.Min-g.size, 0)
		n, why := w.allowed(g, want)
		if n < want {
			w.hold("group", string(g.ID), RuleTotals, "below its minimum of %d: %s", g.Min, why)
		}
		g.grow += n
	}
}

func sortBackoff(b []Backoff) {
	slices.SortFunc(b, func(x, y Backoff) int { return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Cause, y.Cause)) })
}
