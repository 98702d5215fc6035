package round

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// backOff counts one failure. Failures within a pause belong to the trial that led
// to it: they lengthen the pause and do not double it.
func (w *State) backOff(g cluster.GroupID, f cluster.Failure) {
	if f.At.After(w.Now) {
		f.At, w.Uncacheable = w.Now, true
	}
	i := slices.IndexFunc(w.Next.Backoff, func(b decision.Backoff) bool { return b.Group == g && b.Cause == f.Cause })
	step, most := w.Policy.BackoffInitial, w.Policy.BackoffMax
	switch f.Cause {
	case cluster.CauseInvalid:
		step = most
	case cluster.CauseRefused:
		step, most = min(step, refusedFor), min(most, refusedMost)
	}
	if i < 0 {
		w.Next.Backoff = append(w.Next.Backoff, decision.Backoff{Group: g, Cause: f.Cause, Step: step, Last: f.At, Until: f.At.Add(step), Text: f.Text})
		return
	}
	b := &w.Next.Backoff[i]
	switch {
	case !f.At.After(b.Last):
		return
	case f.At.Sub(b.Last) > w.Policy.BackoffReset:
		b.Step = step
	case f.At.After(b.Until):
		b.Step = min(2*b.Step, most)
	}
	b.Last, b.Text = f.At, f.Text
	if until := f.At.Add(b.Step); until.After(b.Until) {
		b.Until = until
	}
}

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

// kindBusy is provider.Kind's word for a cloud that finishes something else first. It is
// no failure: the same change is asked for again as soon as the cloud is free.
const kindBusy = "busy"
