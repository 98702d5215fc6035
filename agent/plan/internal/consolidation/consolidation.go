package consolidation

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Mover knows of the pods of nodes what scale-down knows.
type Mover interface {
	// Removable tells whether a node may go at all, as far as it and its pods are concerned.
	Removable(node int) bool
	// Moved is how many pods of a node would be evicted.
	Moved(node int) int
	// Fit tells whether the pods of some nodes have room on the others and on so many machines of a group, and which nodes
	// get some of them that would go otherwise, because nothing needs them. It costs looks.
	Fit(from []int, to *round.Group, machines int) (idle []int, ok bool)
	// Drawn tells whether they also have it where kube-scheduler's scores put each of them. It costs looks.
	Drawn(from []int, to *round.Group, machines int) bool
	// Look counts looks, and tells whether any are left. Else nothing is asked any more.
	Look(n int) bool
	// Settled tells that no node goes now, and that scale-down did not fail a short time ago.
	Settled() bool
}

// farAhead is in how many hours a saving has to be worth its moves.
const farAhead = 4

// lookEvery is how long one look for savings is good for.
const lookEvery = time.Minute

// Search is one round's search for savings.
type Search struct {
	*round.State
	Disruption *disruption.Round
	mover      Mover

	list           []int   // see replaceable
	perPod, perRun float64 // see meanPod
}

// New begins a search.
func New(w *round.State, d *disruption.Round, m Mover) *Search {
	return &Search{State: w, Disruption: d, mover: m}
}

// Decide orders the machines of a saving that has been real for long enough, and remembers one that is not yet.
func (w *Search) Decide() {
	if !w.Policy.Consolidates() {
		return
	}
	w.avoid()
	s := w.Memory.Consolidation
	if s.UnderWay() { // it has come to its end, or goes on
		s = nil
	}
	switch {
	case w.Next.Consolidation.UnderWay():
		return
	case w.Snapshot.Stale != "" || w.Unhealthy != "" || !w.quiet():
		w.Next.Consolidation = s
		return
	case s != nil && !w.Reached(s.Looked.Add(lookEvery)):
		w.Next.Consolidation = s
		if len(s.Nodes) > 0 {
			w.WakeAt(s.Looked.Add(lookEvery))
			w.heldUntilDue(s)
		}
		return
	}
	if w.list = w.replaceable(); len(w.list) == 0 {
		return
	}
	w.perPod, w.perRun = w.meanPod()
	next := *w.look(s)
	if next.Looked = w.Now; len(next.Nodes) == 0 {
		w.Next.Consolidation = &next // so that the next rounds do not look again at once
		return
	}
	if w.Reached(next.Due()) && w.youngJob(&next) == "" {
		w.Disruption.Consolidate(&next)
		return
	}
	w.Next.Consolidation = &next
	w.WakeAt(w.Now.Add(lookEvery))
	w.heldUntilDue(&next)
}

// look is the saving that is best: one that was real before and is so still, unless another one is worth its moves within the hour and this one
// is not. It is ordered when it has been real for as long as it takes to be worth its moves (ski rental: whatever demand does
// then, that costs at most twice what the best decision would have).
func (w *Search) look(s *decision.Consolidation) *decision.Consolidation {
	rank := never
	var r replacement
	if s != nil {
		if known, is := w.known(s); is {
			r, rank = known, w.worth(&known, never)
		}
	}
	since := w.Now
	if rank > never {
		since = s.Since
	}
	if rank <= 0 {
		if best, most := w.best(); most > 0 || rank == never {
			r, since = best, w.Now
		}
	}
	next := w.thought(&r)
	next.Since = since
	return next
}

// quiet tells that nothing comes, goes or is decided in this round, and that no node with pods waits for its time to go: then demand
// has just fallen. An empty node may be a machine that came to save money, of which the agent has forgotten that in a restart: see
// Mover.Fit.
func (w *Search) quiet() bool {
	if len(w.Plan.Actions) > 0 || w.Unjudged || !w.mover.Settled() {
		return false
	}
	for i := range w.Groups {
		if g := &w.Groups[i]; g.Upcoming > 0 || g.Grow > 0 {
			return false
		}
	}
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.State == round.StateMarked || n.Removing && w.mover.Moved(i) > 0 {
			return false
		}
	}
	return true
}

func (w *Search) heldUntilDue(s *decision.Consolidation) {
	when := "if that is so until " + round.Stamp(s.Due())
	if w.Reached(s.Due()) {
		if job := w.youngJob(s); job != "" {
			when = "once pod " + string(job) + " of a Job has ended or has run for an hour"
		}
	}
	w.Held("cluster", "cluster", decision.RuleConsolidate, "%s, %s", s.Words(), when)
}

// youngJob is a Job's pod that has run for less than an hour on one of the nodes that are to be replaced; empty: there is none. On a node with a cron
// job there nearly always is one: it leaves the saving known, and only the order waits until it has ended.
func (w *Search) youngJob(s *decision.Consolidation) cluster.PodKey {
	for _, name := range s.Nodes {
		if i, is := w.ByName[name]; is {
			if pod, _ := w.Disruption.YoungPod(&w.Nodes[i], true); pod != "" {
				return pod
			}
		}
	}
	return ""
}
