package round

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

const (
	// lagFor is how long a read may be behind a resize that was accepted (EC2 reads
	// are eventually consistent).
	lagFor = time.Minute
	// lagSeen is how long reads may fall back behind one that showed the resize, as
	// when another replica answers.
	lagSeen = 10 * time.Second
	// deletedFor is how long a read may go on showing an instance that was told to go.
	deletedFor = 15 * time.Minute
	// unshownFor is how long such an instance is remembered though a read does not show it: the next read may be older.
	unshownFor = 5 * time.Minute
	// refusedFor is the first pause after a call that was refused (denied, or no such
	// group), and refusedMost the longest: such a call costs nothing, a list that came
	// back empty may be right again in the next read, and who has renewed the
	// credentials or mended the policy waits for what follows.
	refusedFor  = 10 * time.Second
	refusedMost = time.Minute
)

// LearnOutcomes takes in what became of the last Plan. Reading an outcome twice changes
// nothing.
func (w *State) LearnOutcomes() {
	outcomes := slices.Clone(w.Snapshot.Outcomes)
	slices.SortFunc(outcomes, func(a, b cluster.Outcome) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Error, b.Error), cmp.Compare(a.To, b.To))
	})
	for _, o := range outcomes {
		switch {
		case o.Action == "grow" && o.Error == "":
			if w.Next.Resized[o.Group].At.Before(o.At) {
				Set(&w.Next.Resized, o.Group, decision.Resized{To: o.To, At: o.At})
			}
		case o.Action == "grow":
			if cause, ok := causeOf(o.Kind); ok {
				w.backOff(o.Group, cluster.Failure{Cause: cause, Text: o.Error, At: o.At})
			}
		case o.Action == "terminate" && o.Error == "":
			if _, known := w.Next.Deleted[o.Instance]; known || w.Reached(o.At.Add(deletedFor+1)) {
				continue
			}
			Set(&w.Next.Deleted, o.Instance, o.At)
			if r, ok := w.Next.Resized[o.Group]; ok && r.At.Before(o.At) {
				r.To--
				w.Next.Resized[o.Group] = r
			}
		case o.Action == "terminate" && o.Kind != kindBusy:
			w.Postpone(o.At.Add(w.Policy.DelayAfterFailure))
		}
	}
}

func (w *State) Postpone(until time.Time) {
	if until.After(w.Next.ScaleDownAfter) {
		w.Next.ScaleDownAfter = until
	}
}

// Account counts what every group has and what is upcoming, from the cloud's facts and
// not from memory, so that a restart does not buy twice (kubernetes/autoscaler#9813).
func (w *State) Account() {
	for i := range w.Groups {
		g := &w.Groups[i]
		g.CorrectedTarget = g.Target
		g.failed = append(g.failed, g.Failures...)
		w.accountInstances(g)
		w.accountLag(g)
		slices.SortFunc(g.failed, func(a, b cluster.Failure) int { // oldest first: history is replayed as it was
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Text, b.Text))
		})
		for _, f := range g.failed {
			w.backOff(g.ID, f)
		}
		g.Size = max(g.CorrectedTarget, g.Members)
		w.accountShort(g)
	}
}

// accountLag counts a target that was asked for and that reads do not show yet. One
// that they have shown, and no longer show, was lowered by somebody else.
func (w *State) accountLag(g *Group) {
	r := w.Next.Resized[g.ID]
	if w.Reached(r.At.Add(lagFor)) {
		return
	}
	switch {
	case g.CorrectedTarget >= r.To && r.Seen.IsZero() && g.ReadAt.After(r.At):
		r.Seen = g.ReadAt
		w.Next.Resized[g.ID] = r
	case g.CorrectedTarget < r.To && !r.Seen.IsZero() && g.ReadAt.Sub(r.Seen) >= lagSeen:
		delete(w.Next.Resized, g.ID)
		return
	}
	if g.CorrectedTarget < r.To {
		w.WakeAt(r.Seen.Add(lagSeen))
	}
	g.CorrectedTarget = max(g.CorrectedTarget, r.To)
	w.WakeAt(r.At.Add(lagFor))
}

func (w *State) accountInstances(g *Group) {
	patience := w.Patience(g)
	for k := range g.Instances {
		in := &g.Instances[k]
		if _, told := w.Next.Deleted[in.ID]; in.Member && in.Interruption != nil && !told {
			g.replaced++
		}
		if !in.Member || in.Phase == cluster.PhaseGone || in.Phase == cluster.PhaseDeleting || in.Phase == cluster.PhaseStopped {
			continue
		}
		if _, told := w.Next.Deleted[in.ID]; told {
			g.CorrectedTarget--
			continue
		}
		g.Members++
		if _, ok := w.Identity.Node[in.ID]; ok {
			g.Nodes++
			w.noteJoined(in, patience)
			continue
		}
		if in.Phase == cluster.PhaseFailed {
			w.instanceFailed(g, in)
			continue
		}
		since, seen := w.Memory.Unregistered[in.ID]
		if !seen { // also one that has been a Node: its time to become one again begins when the Node went
			since = w.Now
		}
		Set(&w.Next.Unregistered, in.ID, since)
		due, gone := since.Add(patience), w.nodeGone(in.ID)
		coming, lost := due, gone || lostNode(in, since)
		if lost {
			w.instanceLost(g, in, since, due)
		}
		switch {
		case gone:
			coming = since.Add(min(registersWithin, patience))
		case lost: // nothing restarts its kubelet by itself: pods wait for it only as long as it may still be on its first way
			coming = in.Created.Add(patience)
		}
		if !w.Reached(coming) {
			g.Upcoming++
			w.WakeAt(coming)
		} else if lost {
			g.Lost++
		} else {
			w.instanceLate(g, in, due)
		}
	}
}

// accountShort counts the places in the target that have no instance yet. They are
// coming as long as the cloud has not said that they are not and has not taken
// longer than an instance may take to join.
func (w *State) accountShort(g *Group) {
	short := g.CorrectedTarget - g.Members
	if short <= 0 {
		return
	}
	since, ok := w.Memory.Short[g.ID]
	if !ok {
		since = w.Now
	}
	Set(&w.Next.Short, g.ID, since)
	patience := w.Patience(g)
	if due := since.Add(patience); w.Reached(due) {
		text := fmt.Sprintf("the cloud has not delivered %d of %d instances since %s", short, g.CorrectedTarget, Stamp(since))
		w.backOff(g.ID, cluster.Failure{Cause: cluster.CauseOther, Text: text, At: due})
		w.Held("group", string(g.ID), decision.RuleShort, "%s; look at the group's activities", text)
		if w.undelivered(g.ID) {
			return
		}
		since = w.Now // the pause is over: the cloud gets another chance
		Set(&w.Next.Short, g.ID, since)
	}
	w.WakeAt(since.Add(patience))
	if g.Paused == "" && !w.undelivered(g.ID) {
		g.Upcoming += short
	}
}

// undelivered tells whether a group is paused for a cause that keeps the cloud from
// starting instances. That some instance did not join says nothing about the next.
func (w *State) undelivered(g cluster.GroupID) bool {
	return slices.ContainsFunc(w.Next.Backoff, func(b decision.Backoff) bool {
		return b.Group == g && b.Cause != cluster.CauseNoJoin && !w.Reached(b.Until)
	})
}

func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Paused says why an operator wants the group left alone; empty: it is not paused.
func (w *State) Paused(g *Group) string {
	if g.Pause == nil {
		return ""
	}
	why := "paused"
	if !g.Pause.Until.IsZero() {
		if w.Reached(g.Pause.Until) {
			return ""
		}
		w.WakeAt(g.Pause.Until)
		why += " until " + Stamp(g.Pause.Until)
	}
	if g.Pause.Why != "" {
		why += ": " + g.Pause.Why
	}
	return why
}

func sortBackoff(b []decision.Backoff) {
	slices.SortFunc(b, func(x, y decision.Backoff) int {
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Cause, y.Cause))
	})
}
