package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Consolidation is a replacement that would cost less: these nodes by so many new machines of
// a group; none where the pods have room on other nodes. Without nodes, the last look found nothing.
type Consolidation struct {
	Nodes    []cluster.NodeName `json:"nodes"` // sorted
	Group    cluster.GroupID    `json:"group,omitempty"`
	Machines int                `json:"machines,omitempty"`
	// Since is since when it has been real at every look; Looked is the last one.
	Since  time.Time `json:"since"`
	Looked time.Time `json:"looked"`
	// Wait is how long it has to be real before its machines are asked for.
	Wait time.Duration `json:"wait,omitempty"`
	// Ordered is since when its machines are asked for; zero: it is only thought of. Came tells that they have come, or that there are none.
	Ordered time.Time `json:"ordered,omitzero"`
	Came    bool      `json:"came,omitempty"`
}

// Due is when its machines are asked for, if it is real until then.
func (s *Consolidation) Due() time.Time { return s.Since.Add(s.Wait) }

// UnderWay tells that the machines were asked for.
func (s *Consolidation) UnderWay() bool { return s != nil && !s.Ordered.IsZero() }

// Has tells that a node is one of those that are replaced.
func (s *Consolidation) Has(n cluster.NodeName) bool {
	return s != nil && slices.Contains(s.Nodes, n)
}

// Words say what replaces what.
func (s *Consolidation) Words() string {
	names := make([]string, len(s.Nodes))
	for i, n := range s.Nodes {
		names[i] = string(n)
	}
	if s.Machines == 0 {
		return "the pods of " + strings.Join(names, ", ") + " have room elsewhere"
	}
	unit := "machines"
	if s.Machines == 1 {
		unit = "machine"
	}
	return fmt.Sprintf("%d %s of group %s can replace %s", s.Machines, unit, s.Group, strings.Join(names, ", "))
}

// Halt is the end of the rollout of one source of a group, until the group has another source, an operator resumes it, or its
// evidence is gone.
type Halt struct {
	Group  cluster.GroupID `json:"group"`
	Source string          `json:"source"` // the digest of the source
	Why    string          `json:"why"`
	At     time.Time       `json:"at"`
	// Node is the machine that shows the evidence; empty: it did not join.
	Node cluster.NodeName `json:"node,omitempty"`
}

// SourceFacts are what was seen of the source that a rollout of a group brings. They change by what happened alone.
type SourceFacts struct {
	Group  cluster.GroupID `json:"group"`
	Source string          `json:"source"`          // its digest
	Proven time.Time       `json:"proven,omitzero"` // when a machine of it had proven it
	Ended  time.Time       `json:"ended,omitzero"`  // since when no machine of another source is left
	// Former is what most machines of other sources were started from.
	Former cluster.Origin `json:"former,omitzero"`
	// Missed are the last machines of it that did not join or did not become Ready, with none that did after them; MissedAt is
	// when the last of them was late.
	Missed   []cluster.InstanceID `json:"missed,omitempty"`
	MissedAt time.Time            `json:"missedAt,omitzero"`
	// Worked are the controllers (UID and revision) whose pods were well on machines that were drained for the source. Sorted.
	Worked []string `json:"worked,omitempty"`
}

// Avoided are the nodes that new pods should keep away from, and since when, as of one look.
type Avoided struct {
	Looked time.Time                      `json:"looked"`
	Since  map[cluster.NodeName]time.Time `json:"since,omitempty"`
}

// Memory is what one round tells the next. The zero value is a restart: every rule
// is safe with it.
type Memory struct {
	// Unneeded is since when a node's pods could live elsewhere.
	Unneeded map[cluster.NodeName]time.Time `json:"unneeded,omitempty"`
	// Unready is since when a node has been seen not Ready by this agent.
	Unready map[cluster.NodeName]time.Time `json:"unready,omitempty"`
	// Reservations is which group's upcoming machines a pending pod was counted on.
	Reservations Reservations `json:"promised,omitempty"`
	// ReservedMissing is the same for pods that their controller has still to make, by
	// "group owner-UID".
	ReservedMissing map[string]int `json:"promisedMissing,omitempty"`
	// MissingByMachine says on which upcoming machines these pods were counted, where that is known. It is sorted by
	// group, machine and owner.
	MissingByMachine []MissingReservation `json:"missingByMachine,omitempty"`
	// Resized is the last target that was successfully asked for, which a lagging
	// read must not undo (EC2 reads are eventually consistent).
	Resized map[cluster.GroupID]Resized `json:"resized,omitempty"`
	// Backoff is kept by group and cause.
	Backoff []Backoff `json:"backoff,omitempty"`
	// Unregistered is since when an instance has been seen without a Node.
	Unregistered map[cluster.InstanceID]time.Time `json:"unregistered,omitempty"`
	// Joined are the instances that have been Nodes: the young ones, those whose age is not known, and those whose Node was deleted while
	// they were.
	Joined map[cluster.InstanceID]bool `json:"joined,omitempty"`
	// Starting is what young nodes have to lose or to get before pods that wait for it can use them.
	Starting map[cluster.NodeName]Start `json:"starting,omitempty"`
	// Draining is since when a node has carried our mark.
	Draining map[cluster.NodeName]time.Time `json:"draining,omitempty"`
	// Emptied is since when a marked node that somebody delays has had nothing to move.
	Emptied map[cluster.NodeName]time.Time `json:"emptied,omitempty"`
	// Deleted is when an instance was successfully told to go: a lagging read that
	// still shows it neither counts it nor its place in the target.
	Deleted map[cluster.InstanceID]time.Time `json:"deleted,omitempty"`
	// OrphanedUpcoming is how many of a group's upcoming machines the memory does not connect with
	// pods, as after a restart.
	OrphanedUpcoming map[cluster.GroupID]int `json:"unremembered,omitempty"`
	// Short is since when a group has had fewer instances than its target.
	Short map[cluster.GroupID]time.Time `json:"short,omitempty"`
	// BurstOrdered is when machines were last ordered for a burst of pods, while that counts.
	BurstOrdered time.Time `json:"burstOrdered,omitzero"`
	// LittleFilled is when a machine was last bought that would have been worth a wait for more pods (rule U30).
	LittleFilled time.Time `json:"littleFilled,omitzero"`
	// Unlooked are the nodes that the last round had no steps left for: this one begins with
	// them. Sorted.
	Unlooked []cluster.NodeName `json:"unlooked,omitempty"`
	// Consolidation is the replacement of nodes that is thought of, or is under way.
	Consolidation *Consolidation `json:"saving,omitempty"`
	// Avoided are the nodes whose pods all have room on the others: new pods keep away from them.
	Avoided *Avoided `json:"avoided,omitempty"`
	// Sources are the facts of the sources that rollouts bring. Sorted by group.
	Sources []SourceFacts `json:"sources,omitempty"`
	// Sizes is how many nodes a group had before nodes of it were replaced, for budgets in percent.
	Sizes map[cluster.GroupID]int `json:"sizes,omitempty"`
	// GivenUp is when the drain of a node that is to be replaced was given up; it is left alone for a while.
	GivenUp map[cluster.NodeName]time.Time `json:"givenUp,omitempty"`
	// ToReplace is since when a node has been to be replaced.
	ToReplace map[cluster.NodeName]time.Time `json:"toReplace,omitempty"`
	// Halts are the rollouts that ended because of what machines of the source showed. Sorted by group.
	Halts []Halt `json:"halts,omitempty"`
	// DaemonPods is what the pods of DaemonSets requested on the nodes of groups, for when the
	// last of them has gone. Sorted by group and DaemonSet.
	DaemonPods []DaemonPods `json:"daemonPods,omitempty"`
	// ScaleDownAfter is when scale-down may be thought of again, by reason.
	ScaleDownAfter time.Time `json:"scaleDownAfter,omitzero"`
}

// MissingReservation is how many pods that one controller has still to make were counted on one upcoming machine.
// Pieces of headroom are such pods too.
type MissingReservation struct {
	Group   cluster.GroupID `json:"group"`
	Machine int             `json:"machine"` // as in Reservation
	Owner   cluster.UID     `json:"owner"`
	Pods    int             `json:"pods"`
}

// Resized is one accepted resize.
type Resized struct {
	To int       `json:"to"`
	At time.Time `json:"at"`
	// Seen is when a read first showed the target that was asked for. A lower one that
	// is read well after it is somebody else's wish, and no lag.
	Seen time.Time `json:"seen,omitzero"`
}

// Backoff is one group's pause after failures of one cause.
type Backoff struct {
	Group cluster.GroupID `json:"group"`
	Cause cluster.Cause   `json:"cause"`
	Until time.Time       `json:"until"`
	Step  time.Duration   `json:"step"` // the length of this pause; the next is twice as long
	Last  time.Time       `json:"last"` // when the newest failure that counted happened
	Text  string          `json:"text"` // the cloud's own words
}

// Active tells whether the pause is still on.
func (b *Backoff) Active(now time.Time) bool { return b.Until.After(now) }

// Unacted is the memory of a round that was not carried out, because the agent stands by or only looks: what the round would have ordered
// is as it was before. What it saw is kept, so that a standby knows it when it leads.
func (m Memory) Unacted(before *Memory, p *Plan) Memory {
	m.BurstOrdered, m.LittleFilled = before.BurstOrdered, before.LittleFilled
	if m.Consolidation.UnderWay() && !before.Consolidation.UnderWay() {
		m.Consolidation = before.Consolidation
	}
	if slices.ContainsFunc(p.Actions, func(a Action) bool { _, grows := a.(Grow); return grows }) {
		m.Reservations, m.ReservedMissing, m.MissingByMachine = before.Reservations, before.ReservedMissing, before.MissingByMachine
	}
	return m
}
