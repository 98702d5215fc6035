package reaper

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds E7: whether a Node's provider ID is its own. A kubelet writes it, and
// one from a baked image writes another machine's: that this one is gone says nothing
// about the Node.

// ghostFor is how long a Node may stay Ready after its instance has ended before its
// provider ID is thought to be another machine's; Kubernetes notices a silent kubelet
// after 40 to 50 seconds.
const ghostFor = 5 * time.Minute

// doubt says why n's provider ID may be another machine's; empty: nothing speaks against it.
func (x *moment) doubt(n cluster.Node) string {
	if names := x.sharing[machine(n.ProviderID)]; len(names) > 1 {
		return "Nodes " + strings.Join(names, " and ") + " carry the same provider ID " + n.ProviderID + " (a baked image?): which of them is the instance is not known"
	}
	return x.memory.Doubts[n.UID]
}

// hasFalseID is E7.
func hasFalseID(c *candidate, x *moment) string {
	if why := x.doubt(c.node); why != "" {
		return why + byHand
	}
	return ""
}

// suspect notes what speaks against provider IDs at this moment. A doubt lasts as long as
// its Node.
func (x *moment) suspect() {
	there := map[cluster.UID]bool{}
	for _, n := range x.nodes {
		there[n.UID] = true
		if id := machine(n.ProviderID); id != "" && x.memory.Doubts[n.UID] == "" {
			if why := x.contradiction(n, id); why != "" {
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

// contradiction is what the facts say against one Node's provider ID.
func (x *moment) contradiction(n cluster.Node, id cluster.InstanceID) string {
	r, known := x.memory.Seen[id]
	if x.known(n, r) {
		return "" // the cloud itself gives the instance this Node's name and address
	}
	if names := x.sharing[id]; len(names) > 1 {
		return "Nodes " + strings.Join(names, " and ") + " carried the same provider ID " + n.ProviderID + " (a baked image?): which of them was the instance is not known"
	}
	switch {
	case !known:
		return ""
	case r.Known != "" && stranger(n, r):
		return fmt.Sprintf("neither the name nor any address of the Node is one of instance %s (%s): its provider ID may be another machine's", n.ProviderID, r.Known)
	case n.Ready != cluster.StatusTrue || r.Gone.IsZero():
		return ""
	case n.Created.After(r.Gone):
		return "the Node was made and became Ready after instance " + n.ProviderID + " had ended: its provider ID is another machine's"
	case x.in.Outage == "" && x.frozen == "" && x.in.Now.Sub(r.Gone) > ghostFor:
		return "the Node was Ready long after instance " + n.ProviderID + " had ended: its provider ID is another machine's"
	}
	return ""
}

// known tells that the cloud, while the instance existed, called it by this Node's name
// and gave it one of its addresses.
func (x *moment) known(n cluster.Node, r Record) bool {
	words := strings.Fields(r.Known)
	return slices.Contains(words, label(string(n.Name))) && slices.ContainsFunc(n.Addresses, func(a string) bool { return slices.Contains(words, a) })
}

// stranger tells that the cloud told both names and addresses of the instance, the Node
// has both, and they have nothing in common.
func stranger(n cluster.Node, r Record) bool {
	words := strings.Fields(r.Known)
	isAddress := func(s string) bool { return strings.ContainsAny(s, ":.") }
	if !slices.ContainsFunc(words, isAddress) || slices.IndexFunc(words, func(s string) bool { return !isAddress(s) }) < 0 || len(n.Addresses) == 0 {
		return false
	}
	return !slices.Contains(words, label(string(n.Name))) && !slices.ContainsFunc(n.Addresses, func(a string) bool { return slices.Contains(words, a) })
}

// label is a name without its domain.
func label(name string) string {
	first, _, _ := strings.Cut(strings.ToLower(name), ".")
	return first
}

// knownAs is what the cloud calls an instance: names without their domains, and
// addresses.
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

// askStrays has the cloud asked for the instances of Ready Nodes that no group lists any
// more: most were taken out of their group, and one with a false provider ID shows.
func (x *moment) askStrays(wanted map[cluster.InstanceID]bool) {
	if x.in.Outage != "" || x.frozen != "" {
		return
	}
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		r := x.memory.Seen[id]
		if n.Ready != cluster.StatusTrue || r.Absent.IsZero() || x.doubt(n) != "" || x.in.Now.Sub(r.Absent) < ghostFor || x.in.Now.Sub(r.Strayed) < ghostFor {
			continue
		}
		wanted[cluster.InstanceID(n.ProviderID)] = true
		for _, other := range x.canariesOf(id, r) {
			wanted[cluster.InstanceID(other.ProviderID)] = true
		}
	}
}

// hearStrays files what the cloud said of them. A Node may be Ready for a moment after its
// machine's end: only a second answer, long after the first, speaks against it.
func (x *moment) hearStrays() {
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		r, known := x.memory.Seen[id]
		said, asked := x.in.Answers[cluster.InstanceID(n.ProviderID)]
		switch {
		case known && n.Ready != cluster.StatusTrue:
			r.Lost = time.Time{}
		case !known || !asked || r.Absent.IsZero() || !x.in.AskedAt.After(r.Strayed):
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

// lost is since when the cloud, which finds others, has not found the instance of a Ready
// Node; zero: it does, or says nothing.
func (x *moment) lost(n cluster.Node, r Record, said cluster.Existence) time.Time {
	ended := said == cluster.InstanceTerminated || said == cluster.InstanceNotFound
	if !ended || x.in.Outage != "" || x.frozen != "" || !x.othersLive(n, r) {
		return time.Time{}
	}
	if r.Lost.IsZero() {
		return x.in.AskedAt
	}
	return r.Lost
}

// othersLive tells that the question which did not find n's instance found others.
func (x *moment) othersLive(n cluster.Node, r Record) bool {
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
