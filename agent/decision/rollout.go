package decision

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// The states of a rollout.
const (
	RolloutOff     = "off"     // no node is replaced: neither a setting nor an order says so
	RolloutDone    = "done"    // no node is to be replaced
	RolloutWaiting = "waiting" // no disruption budget lets a node go now
	RolloutTrial   = "trial"   // the first machine of the source has not proven itself yet
	RolloutRolling = "rolling" // nodes go, one after the other
	RolloutPaused  = "paused"  // an operator has paused it
	RolloutHalted  = "halted"  // machines of the source failed
	RolloutUnknown = "unknown" // the facts are old: nothing is judged
)

// The evidence by which a rollout gets into a state.
const (
	EvidenceFails     = "a machine of the source did not come or does not stay Ready, or pods on it do not run, and machines of other sources and the pods there are well"
	EvidencePaused    = "an operator has paused it"
	EvidenceNothing   = "no node is to be replaced"
	EvidenceElsewhere = "somebody else replaces the machines of the group, or may"
	EvidenceClosed    = "no disruption budget lets a node go now"
	EvidenceUnproven  = "no machine of the source has proven it"
	EvidenceTrouble   = "a pod on a machine of the source is not Ready or was started again a short time ago, and pods of its controller are well elsewhere; or the machine lacks the health condition"
	EvidenceNone      = "none of these"
)

// RolloutRow is how a rollout gets into a state, and what it does there.
type RolloutRow struct {
	Evidence, State, Rule string
	Does                  string // what becomes of the machines
	Until                 string // what ends it
}

// RolloutStates are the states of a rollout: the first row whose evidence holds is that of a group. Rounds, the command rollout status, the
// metrics and the manual have them from here.
var RolloutStates = []RolloutRow{
	{EvidenceFails, RolloutHalted, RuleHalted, "no node goes for the rollout, and what has begun is taken back; machines of the source are drained where their pods have room, others stay; the group grows only where no other helps", "another source (`rollout back`), `rollout resume`, or the machine that failed is well again"},
	{EvidencePaused, RolloutPaused, RuleRolloutHeld, "no node goes because it is drifted or expired, and what has begun is taken back", "`rollout resume`"},
	{EvidenceNothing, RolloutDone, "", "machines of the source are looked at for an hour more", "another source"},
	{EvidenceElsewhere, RolloutWaiting, RuleElsewhere, "no node goes because it is drifted or expired", "the other one has ended"},
	{EvidenceClosed, RolloutWaiting, RuleDisruption, "no further node goes", "the next window"},
	{EvidenceUnproven, RolloutTrial, RuleCanary, "one node goes, and its machine is kept, until a machine of the source has had Ready pods for AUTOSCALER_SCALING_REPLACE_SETTLE_TIME", "proof, or a failure"},
	{EvidenceTrouble, RolloutWaiting, RuleCanary, "no further node goes", "the pod has run on for AUTOSCALER_SCALING_REPLACE_SETTLE_TIME, or it is a failure; or somebody sets AUTOSCALER_SCALING_REPLACE_HEALTH_CONDITION"},
	{EvidenceNone, RolloutRolling, "", "nodes go as the budgets and the checkpoints let them, at once half as many as machines of the source have pods", "nothing is left to be replaced"},
}

// Rollout is how one node group stands whose nodes are replaced.
type Rollout struct {
	Group cluster.GroupID `json:"group"`
	State string          `json:"state"`
	// Source is what the group starts now (cluster.Spec.Digest); empty: its provider does not tell it.
	Source string `json:"source,omitempty"`
	// Why says why it is paused, halted or waiting, what the first machine has still to show, or why no node goes now; Rule is the rule of that.
	Rule string `json:"rule,omitempty"`
	Why  string `json:"why,omitempty"`
	// Since is when it was halted or paused.
	Since time.Time `json:"since,omitzero"`
	// Next is when a disruption budget lets nodes go again; zero: one does now.
	Next time.Time `json:"next,omitzero"`
	// Machines are the members of the group; Replaced those that were started from Source and differ in nothing.
	Machines int `json:"machines"`
	Replaced int `json:"replaced"`
	// Trial is the first machine of the source, while it has not proven itself.
	Trial cluster.NodeName `json:"trial,omitempty"`
	// By counts the nodes that are to be replaced by reason (cluster.Reasons); Going those of them that are drained now, or
	// in whose place a machine was ordered.
	By    map[string]int `json:"by,omitempty"`
	Going int            `json:"going,omitempty"`
	// Oldest is since when the node has been to be replaced that has waited longest; zero: none is.
	Oldest time.Time `json:"oldest,omitzero"`
	// Sources are what the machines were started from, the present source first. They are filled in where somebody asks.
	Sources []RolloutSource `json:"sources,omitempty"`
	// Former is what most machines of other sources were started from when there were some last, within the last hour.
	Former cluster.Origin `json:"former,omitzero"`
}

// RolloutSource counts the machines of a group that were started from one source.
type RolloutSource struct {
	Source   string `json:"source"` // cluster.Spec.Digest; empty: it is not told
	Machines int    `json:"machines"`
	Present  bool   `json:"present,omitempty"` // it is what the group starts now
	// Origin names it to the cloud, where the cloud has a name for it. Differences are what the group starts now otherwise.
	Origin      cluster.Origin       `json:"origin,omitzero"`
	Differences []cluster.Difference `json:"differences,omitempty"`
}

// Rollouts is a list of rollouts at a moment.
type Rollouts struct {
	At       time.Time `json:"at"`
	Rollouts []Rollout `json:"rollouts"`
}

// Remark says why a rollout does not go on, and how it does; empty: it goes on, or there is nothing to do.
func (r *Rollout) Remark() string {
	switch {
	case r.State == RolloutHalted:
		return fmt.Sprintf("halted since %s: %s [%s]; another source goes on by itself, `autoscaler-agent rollout resume %s` with this one", r.Since.UTC().Format(time.RFC3339), r.Why, r.Rule, r.Group)
	case r.State == RolloutOff && r.Source != "" && r.Replaced < r.Machines:
		return fmt.Sprintf("no setting replaces its machines; `autoscaler-agent rollout start %s` does for this source", r.Group)
	case r.Why != "" && r.Rule != "":
		return r.Why + " [" + r.Rule + "]"
	}
	return r.Why
}
