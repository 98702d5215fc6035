package reaper

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds E7: whether a Node's machine was the instance of its provider ID. A kubelet from a baked image writes the
// ID of another machine, and a new machine that has a dead one's name works under the dead one's Node. The end of
// that other machine says nothing about the one that uses the Node.

// ghostFor is how long a Node may stay Ready after its instance has ended until its
// provider ID is doubted; Kubernetes notices a silent kubelet after 40 to 50 seconds.
const ghostFor = 5 * time.Minute

// witness is one fact that tells another machine under a Node than the instance of its provider ID. says is empty where it
// does not speak.
type witness struct {
	of   string // the fact, for the manual
	says func(x *evaluation, n cluster.Node, r Record) string
	// lasting evidence is stored, and holds the Node as long as there is one.
	lasting bool
	// yields tells that the cloud's own word outweighs it, where the instance had this Node's name and address.
	yields bool
}

// witnesses is the table of E7: before a deletion each is asked, in this order, and one suffices.
var witnesses = []witness{
	{of: "another Node with the same provider ID", says: sharesID},
	{of: "a witness that spoke earlier of this Node", says: func(x *evaluation, n cluster.Node, _ Record) string { return x.memory.Doubts[n.UID] }},
	{of: "the system UUID", says: otherSystem, lasting: true},
	{of: "the Node's creation, after the end of the instance", says: madeAfterEnd, lasting: true},
	{of: "another Node that had the same provider ID", says: sharedID, lasting: true, yields: true},
	{of: "its name and addresses", says: stranger, lasting: true, yields: true},
	{of: "Ready, long after the end of the instance", says: readyAfterEnd, lasting: true, yields: true},
	{of: "the boot ID", says: otherBoot},
	{of: "the machine ID", says: otherMachineID},
	{of: "a heartbeat long after the end", says: beatsAfterEnd},
	{of: "a client certificate that was requested long after the end", says: certifiedAfterEnd},
	{of: "the Node's creation, before the launch of the instance", says: olderThanInstance, yields: true},
	{of: "the Node's creation, after the cloud had stopped listing the instance", says: madeAfterAbsence},
	{of: "an instance without a Node that was there when the Node was made, and that has the Node's name or no name", says: hasHeir},
}

// doubt returns why n's provider ID may be another machine's; empty: there is no evidence
// against it.
func (x *evaluation) doubt(n cluster.Node) string { return x.testify(n, false) }

// contradiction returns the lasting evidence against one Node's provider ID.
func (x *evaluation) contradiction(n cluster.Node) string { return x.testify(n, true) }

// testify asks the witnesses of one kind.
func (x *evaluation) testify(n cluster.Node, lasting bool) string {
	r := x.memory.Seen[machine(n.ProviderID)]
	for _, w := range witnesses {
		if w.lasting != lasting || w.yields && known(n, r) {
			continue
		}
		if why := w.says(x, n, r); why != "" {
			return why
		}
	}
	return ""
}

func sharesID(x *evaluation, n cluster.Node, _ Record) string {
	if names := x.sharing[machine(n.ProviderID)]; len(names) > 1 {
		return "Nodes " + strings.Join(names, " and ") + " carry the same provider ID " + n.ProviderID + " (a baked image?): which of them is the instance is not known"
	}
	return ""
}

func sharedID(x *evaluation, n cluster.Node, r Record) string {
	return strings.NewReplacer(" carry ", " carried ", "them is", "them was").Replace(sharesID(x, n, r))
}

func otherSystem(_ *evaluation, n cluster.Node, r Record) string {
	if r.SystemUUID == "" || n.SystemUUID == "" || strings.EqualFold(r.SystemUUID, n.SystemUUID) {
		return ""
	}
	return fmt.Sprintf("the Node's system UUID is %s, and the machine that was instance %s had %s: its provider ID is another machine's", n.SystemUUID, n.ProviderID, r.SystemUUID)
}

func madeAfterEnd(_ *evaluation, n cluster.Node, r Record) string {
	if r.Gone.IsZero() || !n.Created.After(r.Gone) || restored(n, r) {
		return ""
	}
	return "the Node was made after instance " + n.ProviderID + " had ended: its provider ID is another machine's"
}

func readyAfterEnd(x *evaluation, n cluster.Node, r Record) string {
	if n.Ready != cluster.StatusTrue || r.Gone.IsZero() || x.in.Outage != "" || x.frozen != "" || x.in.Now.Sub(r.Gone) <= ghostFor {
		return ""
	}
	return "the Node was Ready long after instance " + n.ProviderID + " had ended: its provider ID is another machine's"
}

// otherBoot asks for proof: the boot ID on the Node has to be the one that it had while its instance existed. A machine that
// boots and ends between two reads of the cloud is held, too, unless its system UUID tells that it is the same.
func otherBoot(_ *evaluation, n cluster.Node, r Record) string {
	switch {
	case r.over().IsZero() || n.BootID == "" || n.BootID == r.BootID:
		return ""
	case r.BootID == "":
		return "no agent has seen on which machine the Node was while instance " + n.ProviderID + " existed: it may be another one"
	}
	return fmt.Sprintf("the Node's boot ID is %s, and the machine that was instance %s had %s while it existed: another machine may use the Node", n.BootID, n.ProviderID, r.BootID)
}

func otherMachineID(_ *evaluation, n cluster.Node, r Record) string {
	if r.over().IsZero() || n.MachineID == "" || r.MachineID == "" || n.MachineID == r.MachineID {
		return ""
	}
	return fmt.Sprintf("the Node's machine ID is %s, and the machine that was instance %s had %s while it existed: another machine uses the Node", n.MachineID, n.ProviderID, r.MachineID)
}

func beatsAfterEnd(_ *evaluation, n cluster.Node, r Record) string {
	if r.Beat.IsZero() || !n.Heartbeat.After(r.Beat) {
		return ""
	}
	return "a kubelet reported at " + stamp(n.Heartbeat) + " by its own clock, long after instance " + n.ProviderID + " had ended: another machine uses the Node"
}

func certifiedAfterEnd(x *evaluation, n cluster.Node, r Record) string {
	at, end := x.in.Certified[n.Name], r.over()
	if end.IsZero() || !at.After(end.Add(ghostFor)) {
		return ""
	}
	return "a kubelet got a client certificate for this Node at " + stamp(at) + ", long after instance " + n.ProviderID + " had ended: another machine uses the Node"
}

func olderThanInstance(_ *evaluation, n cluster.Node, r Record) string {
	if r.Launched.IsZero() || !n.Created.Before(r.Launched.Add(-ghostFor)) {
		return ""
	}
	return "the Node was made before instance " + n.ProviderID + " was launched (" + stamp(r.Launched) + "): its provider ID may be another machine's"
}

func madeAfterAbsence(_ *evaluation, n cluster.Node, r Record) string {
	if r.Absent.IsZero() || !n.Created.After(r.Absent) {
		return ""
	}
	return "the Node was made after the cloud had stopped listing instance " + n.ProviderID + ": its provider ID may be another machine's"
}

func hasHeir(x *evaluation, n cluster.Node, _ Record) string {
	id, why := x.heir(n)
	if id == "" {
		return ""
	}
	return fmt.Sprintf("the provider ID %s may be false: instance %s was there when the Node was made, %s", n.ProviderID, id, why)
}

// heir is an instance without a Node that the Node may be of, instead of the one in its provider ID: it was there when the Node
// was made, and it has the Node's name, or the cloud tells no names. A Node that is older than every such instance
// makes room (S1). Empty: there is none.
func (x *evaluation) heir(n cluster.Node) (id cluster.InstanceID, why string) {
	own := machine(n.ProviderID)
	for _, id := range x.view.names[string(n.Name)] {
		if launched := x.memory.Seen[id].launched(); !x.view.backed[id] && id != own && !n.Created.Before(launched) {
			return id, "has the Node's name, and has no Node of its own"
		}
	}
	if other, ok := x.view.nameless[cloudOf(own)]; ok && other.id != own && !n.Created.Before(other.launched) {
		return other.id, "has no Node of its own, and the cloud does not tell its name"
	}
	return "", ""
}

// hasFalseID is E7.
func hasFalseID(c *candidate, x *evaluation) string {
	if why := x.doubt(c.node); why != "" {
		return why + byHand
	}
	return ""
}

// suspect stores the evidence against provider IDs at this moment. A doubt lasts as long as
// its Node and keeps its first reason.
func (x *evaluation) suspect() {
	there := map[cluster.UID]bool{}
	for _, n := range x.nodes {
		there[n.UID] = true
		if x.memory.Doubts[n.UID] == "" {
			if why := x.contradiction(n); why != "" {
				x.memory.Doubts[n.UID] = why
			}
		}
	}
	for uid := range x.memory.Doubts {
		if !there[uid] {
			delete(x.memory.Doubts, uid)
		}
	}
}

// known reports whether the cloud, while the instance existed, gave it this Node's name and
// one of the Node's addresses.
func known(n cluster.Node, r Record) bool {
	words := strings.Fields(r.Known)
	return named(n, r) && slices.ContainsFunc(n.Addresses, func(a string) bool { return slices.Contains(words, a) })
}

// named reports whether the cloud gave the instance this Node's name.
func named(n cluster.Node, r Record) bool {
	return slices.Contains(strings.Fields(r.Known), label(string(n.Name)))
}

// restored reports whether the Node was made from a manifest of the instance's Node: it has the name that the cloud gave
// the instance, and no kubelet has written its status, so that no machine runs under it.
func restored(n cluster.Node, r Record) bool {
	return len(n.Addresses) == 0 && n.SystemUUID == "" && n.Ready != cluster.StatusTrue && named(n, r)
}

// stranger: the Node has neither a name nor an address of the instance. The cloud must have told both, and the Node must have
// both.
func stranger(_ *evaluation, n cluster.Node, r Record) string {
	words := strings.Fields(r.Known)
	isAddress := func(s string) bool { return strings.ContainsAny(s, ":.") }
	isName := func(s string) bool { return !isAddress(s) }
	if !slices.ContainsFunc(words, isAddress) || !slices.ContainsFunc(words, isName) || len(n.Addresses) == 0 ||
		named(n, r) || slices.ContainsFunc(n.Addresses, func(a string) bool { return slices.Contains(words, a) }) {
		return ""
	}
	return fmt.Sprintf("neither the name nor any address of the Node is one of instance %s (%s): its provider ID may be another machine's", n.ProviderID, r.Known)
}

// label is a name without its domain.
func label(name string) string {
	first, _, _ := strings.Cut(strings.ToLower(name), ".")
	return first
}

// knownAs lists the names of an instance, without their domains, and its addresses.
func knownAs(i cluster.Instance) string {
	var words []string
	for _, name := range i.NodeNames {
		words = append(words, label(name))
	}
	for _, a := range i.Addresses {
		words = append(words, a.String())
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

// askStrays adds questions for strays: instances of Ready Nodes that no group lists any
// more. Most of them were taken out of their group and exist; an instance that does not
// exist shows a false provider ID.
func (x *evaluation) askStrays(wanted map[cluster.InstanceID]bool) {
	if x.in.Outage != "" || x.frozen != "" {
		return
	}
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		r := x.memory.Seen[id]
		if n.Ready != cluster.StatusTrue || r.Absent.IsZero() || x.memory.Doubts[n.UID] != "" || x.in.Now.Sub(r.Absent) < ghostFor || x.in.Now.Sub(r.Strayed) < ghostFor {
			continue
		}
		wanted[cluster.InstanceID(n.ProviderID)] = true
		for _, other := range x.canariesOf(id, r) {
			wanted[cluster.InstanceID(other.ProviderID)] = true
		}
	}
}

// hearStrays stores the cloud's answers about strays. A Node may be Ready for a moment after
// its machine's end: only a second answer, long after the first, is evidence against it.
func (x *evaluation) hearStrays() {
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		r, known := x.memory.Seen[id]
		if !known {
			continue
		}
		said, asked := x.in.Answers[cluster.InstanceID(n.ProviderID)]
		switch {
		case n.Ready != cluster.StatusTrue:
			r.Lost = time.Time{}
		case !asked || r.Absent.IsZero() || !x.in.AskedAt.After(r.Strayed):
			continue
		default:
			r.Strayed = x.in.AskedAt
			r.Lost = x.lost(n, r, said.Existence)
		}
		x.memory.Seen[id] = r
		if !r.Lost.IsZero() && r.Strayed.Sub(r.Lost) >= ghostFor && x.memory.Doubts[n.UID] == "" {
			x.memory.Doubts[n.UID] = "the Node was Ready while the cloud knew no instance " + n.ProviderID + ": its provider ID is not its own"
		}
	}
}

// lost returns since when the cloud has not found the instance of a Ready Node while it
// found the canaries; zero: the cloud finds the instance, or its answer proves nothing.
func (x *evaluation) lost(n cluster.Node, r Record, said cluster.Existence) time.Time {
	ended := said == cluster.InstanceTerminated || said == cluster.InstanceNotFound
	if !ended || x.in.Outage != "" || x.frozen != "" || !x.othersLive(n, r) {
		return time.Time{}
	}
	if r.Lost.IsZero() {
		return x.in.AskedAt
	}
	return r.Lost
}

// othersLive reports whether the question that did not find n's instance found most of its
// canaries.
func (x *evaluation) othersLive(n cluster.Node, r Record) bool {
	balance := 0
	for _, other := range x.canariesOf(machine(n.ProviderID), r) {
		switch x.in.Answers[cluster.InstanceID(other.ProviderID)].Existence {
		case cluster.InstanceExists:
			balance++
		case cluster.InstanceTerminated, cluster.InstanceNotFound:
			if other.UID != n.UID {
				balance--
			}
		}
	}
	return balance > 0
}
