package reaper

import (
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file is the list of the rules, in the order in which they are asked. The first
// rule with an objection holds the Node, and its words are what the journal, the Event and
// explain say.

// check is one rule: holds returns why it holds the Node, "" when it has no objection.
type check struct {
	id    string
	says  string // the condition that the rule checks
	tells Telling
	// remedy is what an operator does, for the journal catalog; empty: nothing.
	remedy string
	holds  func(*candidate, *evaluation) string
}

// eligibleChecks choose the Nodes that the proof is tried for.
var eligibleChecks = []check{
	{"L0", "a Ready Node is never deleted",
		Holds, "", isReady},
	{"E1", "no Node of the control plane",
		Holds, "", isControlPlane},
	{"E2", "not the agent's own machine, by name, by provider ID, or by machine ID together with address, boot ID or system UUID",
		Holds, "", isOwn},
	{"E3", "no annotation " + cluster.AnnotationKeep,
		Holds, "Remove the annotation autoscaler-agent/keep, if the Node may go.", isKept},
	{"E4", "it has a provider ID",
		Holds, "Delete the Node by hand when its machine is gone.", hasNoProviderID},
	{"E5", "its instance was seen alive in a managed node group, by this agent or by one that wrote the group on the Node",
		Holds, "Delete the Node by hand when its machine is gone.", wasNeverSeen},
	{"E7", "its machine was the instance of its provider ID: no other Node carries the ID, and no witness tells of another machine",
		Holds, "Two Nodes carry one provider ID: look for a baked image, and correct the kubelet's provider ID.", hasFalseID},
	{"N5", "it is not being deleted already: finalizers are other people's",
		Holds, "Look which finalizer keeps the Node.", isLeaving},
}

// proofChecks judge one Node alone. A Node that passes them is proven gone (G3, G4).
var proofChecks = []check{
	{"G0", "the cloud was read whole, its group too, and says something about the instance",
		Holds, "Look at the cloud's answer in the field WHY, and give the group back to the configuration.", isUnknown},
	{"B1", "the cloud that does not find the instance finds the instances of Ready Nodes",
		Breaks, "Look at the cloud credentials, the account, the project and the region.", failsCanary},
	{"G1", "the instance does not exist: stopped, stopping, shutting down and waiting are alive",
		Holds, "", isAlive},
	{"G2", "two reads of its group say so, at least the sight interval apart",
		Holds, "", lacksSecondSight},
	{"G5", "asked for the instance by its ID, the cloud says twice, at least the sight interval apart, that it is terminated or not found",
		Holds, "", lacksAnswer},
	{"E6", "a Node whose instance is only absent, and that no scale-down removed, is as old as the grace",
		Holds, "", isYoung},
	{"L1", "it has not been Ready for the grace",
		Holds, "", lacksGrace},
	{"L2", "its kubelet's Lease has not moved for the grace, on this agent's own clock",
		Holds, "", renewsLease},
	{"L3", "it carries the taint node.kubernetes.io/unreachable, if its instance is only absent",
		Holds, "", isReachable},
}

// breakerChecks judge all Nodes that are proven gone together, and the agent's own state.
var breakerChecks = []check{
	{"B3", "our own view was not interrupted lately (API server, Lease, clock, this process)",
		Breaks, "", wasBlind},
	{"B6", "the cloud has not failed several times lately",
		Breaks, "Look at the cloud's errors (autoscaler-agent status).", cloudFails},
	{"B2", "only few Nodes are gone at once without a scale-down",
		Breaks, "Look what took so many Nodes at once. Those that are truly gone go one after the other.", tooMany},
	{"B4", "most Nodes of its zone are Ready",
		Breaks, "Look whether the zone's network is up.", zoneIsDown},
	{"C1", "no cloud controller manager is at work that deletes Nodes itself",
		Observes, "Switch off the node lifecycle controller of the cloud controller manager, or say with AUTOSCALER_NODECLEANER_CLOUD_CONTROLLER that it does not delete Nodes.", isCoveredElsewhere},
	{"M1", "mode delete",
		Observes, "Set AUTOSCALER_NODECLEANER_MODE to delete, when its plans are right.", isObserved},
	{"M2", "the time of observing after the installation is over",
		Observes, "", isNew},
	{"N4", "no volume is attached to it, or detaching took too long",
		Holds, "Detach the volume in the cloud, when the machine is surely off.", hasVolumes},
	{"B5", "the last deletion of a Node that no scale-down removed is a while ago",
		Holds, "", isTooSoon},
}

// Telling is how the journal and the metrics tell what a rule holds.
type Telling int

const (
	// Holds is a line at info, nodecleaner_held_total and nodecleaner_held_nodes.
	Holds Telling = iota + 1
	// Observes is a Warning that the Node would be deleted, and the same metrics.
	Observes
	// Breaks is a Warning and an Event on each Node, nodecleaner_breakers_total and nodecleaner_breaker_open.
	Breaks
	// Acts is of a rule that proves a deletion or gives one up; the action's own line tells it.
	Acts
)

// Rule is one rule of the list, for the manual, the journal catalog and the metrics.
type Rule struct {
	ID, Says string
	Tells    Telling
	Remedy   string
}

// Rules lists every rule of this package.
func Rules() []Rule {
	var out []Rule
	for _, c := range slices.Concat(eligibleChecks, proofChecks, breakerChecks) {
		out = append(out, Rule{c.id, c.says, c.tells, c.remedy})
	}
	for _, c := range liveChecks {
		out = append(out, Rule{c.id, c.says, Acts, ""})
	}
	return append(out, Rule{"G3", "proof: two reads list the instance as terminated", Acts, ""},
		Rule{"G4", "proof: two whole reads do not list the instance", Acts, ""},
		Rule{"S1", "proof of G3 or G4, and a new instance has the Node's name: the old Node makes room before the new one joins", Acts, ""})
}

// RuleByID is a row of Rules; the zero Rule: there is none.
func RuleByID(id string) Rule {
	list := Rules()
	if i := slices.IndexFunc(list, func(r Rule) bool { return r.ID == id }); i >= 0 {
		return list[i]
	}
	return Rule{}
}

// liveCheck is one rule of N, checked on the Node as read right before its deletion.
type liveCheck struct {
	id    string
	says  string
	fails func(live cluster.Node, d Deletion) bool
}

var liveChecks = []liveCheck{
	{"N1", "the live Node is the one that was decided on (UID)", func(n cluster.Node, d Deletion) bool { return n.UID != d.UID }},
	{"N2", "its provider ID and the boot ID of its machine have not changed", func(n cluster.Node, d Deletion) bool {
		return n.ProviderID != d.ProviderID || n.BootID != d.BootID
	}},
	{"N3", "it is not Ready again, not kept and not of the control plane meanwhile", func(n cluster.Node, _ Deletion) bool {
		return n.Ready == cluster.StatusTrue || n.ControlPlane || n.Annotations[cluster.AnnotationKeep] != ""
	}},
}

// Recheck returns the rule of N that objects to the deletion of the live Node; empty: the
// live Node is still the one that was decided on.
func Recheck(live cluster.Node, d Deletion) (rule, why string) {
	for _, c := range liveChecks {
		if c.fails(live, d) {
			return c.id, "not so any more: " + c.says
		}
	}
	return "", ""
}

func isReady(c *candidate, _ *evaluation) string {
	if c.node.Ready == cluster.StatusTrue {
		return "Node is Ready"
	}
	return ""
}

func isControlPlane(c *candidate, _ *evaluation) string {
	if c.node.ControlPlane {
		return "Node is of the control plane"
	}
	return ""
}

func isOwn(c *candidate, x *evaluation) string {
	if x.own[c.node.Name] || x.ownInstance[c.id] {
		return "Node is the agent's own machine"
	}
	return ""
}

func isKept(c *candidate, _ *evaluation) string {
	if c.node.Annotations[cluster.AnnotationKeep] != "" {
		return "annotation " + cluster.AnnotationKeep + " keeps it"
	}
	return ""
}

func hasNoProviderID(c *candidate, _ *evaluation) string {
	if c.node.ProviderID == "" {
		return "Node has no provider ID: nothing can be proven about its instance"
	}
	return ""
}

// wasNeverSeen holds a Node whose instance was never a member of a managed group. A taint
// alone proves no membership, and neither does an instance that had ended at its first sight.
func wasNeverSeen(c *candidate, x *evaluation) string {
	r := x.memory.Seen[c.id]
	switch group := c.node.Annotations[cluster.AnnotationGroup]; {
	case r.Group != "" && !r.Late, !c.known && x.view.instances[c.id].group != nil: // a stale group lists it
		return ""
	case r.Late:
		return "instance " + c.node.ProviderID + " of group " + string(r.Group) + " had ended when this agent first saw it" + byHand
	case group != "":
		return "its group " + group + " (annotation " + cluster.AnnotationGroup + ") is not among those that the cloud lists" + byHand
	}
	return "instance " + c.node.ProviderID + " was never seen in a managed node group" + byHand
}

func isLeaving(c *candidate, _ *evaluation) string {
	if c.node.Deleting {
		return "Node is being deleted already and waits for its finalizers"
	}
	return ""
}

// isUnknown is G0: it holds a Node about whose instance the newest read says nothing, also
// after two sights: a proof that cannot be repeated now is not acted on now.
func isUnknown(c *candidate, x *evaluation) string {
	if c.sight.state == unknown {
		return "it is not known whether the instance is gone: " + c.sight.why
	}
	r := x.memory.Seen[c.id]
	young := x.in.Now.Sub(r.launched()) < x.policy.KnownFor
	if c.sight.state == gone && !c.sight.positive && c.watch.Asked.Said != cluster.InstanceTerminated && listsTerminated(c.id) && !r.Sent && young {
		return "it is not known whether the instance is gone: instance " + c.node.ProviderID + " is not listed, and was launched less than " + x.policy.KnownFor.String() +
			" ago: this cloud goes on listing a terminated instance for about an hour"
	}
	return ""
}

func failsCanary(c *candidate, _ *evaluation) string {
	if c.sight.state == gone && c.watch.Asked.Rule == "B1" {
		return c.watch.Asked.Why
	}
	return ""
}

func isAlive(c *candidate, _ *evaluation) string {
	if c.sight.state == alive {
		return c.sight.why
	}
	if c.watch.Asked.Said == cluster.InstanceExists {
		return "its group does not list instance " + c.node.ProviderID + ", and asked for it by ID the cloud says that it exists (" + c.watch.Asked.Why + ")"
	}
	return ""
}

func lacksSecondSight(c *candidate, x *evaluation) string {
	if c.watch.First.IsZero() {
		return "the cloud has not been read since the Node is not Ready"
	}
	if c.watch.Last.Sub(c.watch.First) < x.policy.SightInterval {
		return fmt.Sprintf("seen gone once (%s); a second sight is wanted %s after %s", c.sight.why, x.policy.SightInterval, stamp(c.watch.First))
	}
	return ""
}

func isYoung(c *candidate, x *evaluation) string {
	if due := c.node.Created.Add(x.policy.Grace); !c.sent && !c.watch.Positive && x.in.Now.Before(due) {
		c.due = due
		return fmt.Sprintf("Node is younger than %s", x.policy.Grace)
	}
	return ""
}

func lacksGrace(c *candidate, x *evaluation) string {
	grace := c.grace(x)
	if due := c.watch.Since.Add(grace); x.in.Now.Before(due) {
		c.due = due
		return fmt.Sprintf("not Ready since %s, for less than %s", stamp(c.watch.Since), grace)
	}
	return ""
}

func isReachable(c *candidate, _ *evaluation) string {
	if !c.watch.Positive && !unreachable(c.node) {
		return "it carries no taint node.kubernetes.io/unreachable"
	}
	return ""
}

// wasBlind is B3. A freeze doubts our view of the Nodes. It does not hold a Node that
// a scale-down removed and whose instance the cloud has listed as terminated twice since the outage:
// that proof is independent of our view (during an outage it begins anew in every round).
func wasBlind(c *candidate, x *evaluation) string {
	if x.frozen == "" || c.certain() {
		return ""
	}
	c.due = x.frozenUntil
	return fmt.Sprintf("nothing is deleted until %s: %s", stamp(x.frozenUntil), x.frozen)
}

func cloudFails(c *candidate, x *evaluation) string {
	if x.cloudFrozen == "" || c.certain() {
		return ""
	}
	c.due = x.cloudUntil
	return fmt.Sprintf("nothing is deleted until %s: %s", stamp(x.cloudUntil), x.cloudFrozen)
}

// tooMany is B2. It holds a Node whose instance is only absent even if a scale-down removed it: a
// read that lacks several other instances may be cut short, and lack this one for the same
// reason.
func tooMany(c *candidate, x *evaluation) string {
	if c.sent && c.watch.Positive || c.released(x) {
		return ""
	}
	return x.mass
}

func zoneIsDown(c *candidate, x *evaluation) string {
	if c.sent || c.released(x) {
		return ""
	}
	return x.zones[c.zone]
}

func isCoveredElsewhere(c *candidate, x *evaluation) string {
	if x.in.Coexist == "" {
		return ""
	}
	c.would = true
	return "it would be deleted by " + c.proof() + ", but " + x.in.Coexist
}

func isObserved(c *candidate, x *evaluation) string {
	if !x.policy.Observe {
		return ""
	}
	c.would = true
	return "it would be deleted by " + c.proof() + " in mode delete: " + c.because()
}

// isNew is M2: in its first hours an agent deletes nothing and reports what it would delete.
func isNew(c *candidate, x *evaluation) string {
	until := x.memory.Installed.Add(x.policy.ObserveFirst)
	if !x.in.Now.Before(until) {
		return ""
	}
	c.due, c.would = until, true
	return fmt.Sprintf("it would be deleted by %s; this agent only observes until %s, for %s after its first start (or the loss of its state file); AUTOSCALER_NODECLEANER_OBSERVE_FIRST=0 ends that: %s",
		c.proof(), stamp(until), x.policy.ObserveFirst, c.because())
}

// hasVolumes is N4. Only a machine that the cloud calls terminated is certain to write no
// more, so that the out-of-service taint may detach its volumes. If the instance is only
// absent, the Node is deleted without the taint, and Kubernetes detaches the volumes after
// its own six minutes.
func hasVolumes(c *candidate, x *evaluation) string {
	n := x.in.Attached[c.node.Name]
	if n == 0 || !c.watch.Positive {
		return ""
	}
	if !outOfService(c.node) {
		c.fence = true
		return fmt.Sprintf("%d volumes are attached to it: they are detached first (taint %s)", n, TaintOutOfService)
	}
	if c.watch.Fenced.IsZero() {
		c.watch.Fenced = x.in.Now
	}
	if due := c.watch.Fenced.Add(x.policy.DetachFor); x.in.Now.Before(due) {
		c.due = due
		return fmt.Sprintf("%d volumes are still attached to it; it goes without waiting from %s on", n, stamp(due))
	}
	return ""
}

func isTooSoon(c *candidate, x *evaluation) string {
	if next := x.memory.LastUnledgered.Add(x.policy.UnledgeredEvery); !c.sent && x.in.Now.Before(next) {
		c.due = next
		return fmt.Sprintf("one such Node every %s", x.policy.UnledgeredEvery)
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
