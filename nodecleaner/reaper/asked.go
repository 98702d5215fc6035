package reaper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds what the cloud says of an instance that it is asked for by its ID (G5),
// and by which Nodes it proves that it is the right cloud (B1).

// Asked is what the cloud said of a Node's instance by its ID.
type Asked struct {
	// At is the newest answer; First and Last are the two that said "gone".
	At    time.Time `json:"at,omitzero"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Said and Why are of the newest answer; Rule is B1 where the canary spoils it.
	Said cluster.Existence `json:"said,omitempty"`
	Why  string            `json:"why,omitempty"`
	Rule string            `json:"rule,omitempty"`
	// Vain counts answers in a row that proved nothing: they are asked for more rarely.
	Vain int `json:"vain,omitempty"`
}

// Times of the asking.
const (
	// askAgainMax is the longest wait between two questions for one instance, in sight
	// intervals.
	askAgainMax = 2
	// canaries is how many Ready Nodes are asked for beside the candidates of a cloud.
	canaries = 5
	// diesWithin is how long after its instance was last listed a dead Node may still be
	// Ready: reads are a minute apart, and Kubernetes notices a silent kubelet after 40 to
	// 50 seconds.
	diesWithin = 3 * time.Minute
)

// due is when the cloud is to be asked for the instance again.
func (a Asked) due(p Policy) time.Time {
	switch {
	case a.At.IsZero():
		return time.Time{}
	case a.Said == cluster.InstanceTerminated || a.Said == cluster.InstanceNotFound || a.Said == cluster.InstanceUnclaimed:
		return a.At.Add(p.SightInterval)
	}
	return a.At.Add(min(p.UnknownLook()<<min(a.Vain, 8), askAgainMax*p.SightInterval))
}

// hear files the answer of this moment, if there is a new one.
func (c *candidate) hear(x *moment) {
	a, at := &c.watch.Asked, x.in.AskedAt
	said, ok := x.in.Answers[cluster.InstanceID(c.node.ProviderID)]
	if !ok || at.Before(c.watch.Since) || !at.After(a.At) {
		return
	}
	a.At, a.Said, a.Why, a.Rule = at, said.Existence, said.Why, ""
	switch said.Existence {
	case cluster.InstanceNotFound:
		// What the list itself shows as terminated needs no canary.
		if why := x.canary(c); why != "" && !c.sight.positive {
			a.Said, a.Why, a.Rule = cluster.ExistenceUnknown, why, "B1"
		}
	case cluster.InstanceUnclaimed:
		if why := cmp.Or(x.missing(c), x.canary(c)); why != "" {
			a.Said, a.Why, a.Rule = cluster.ExistenceUnknown, why, "B1"
		} else if why := x.unclaimed(c); why != "" {
			a.Said, a.Why = cluster.ExistenceUnknown, why
		}
	}
	switch a.Said {
	case cluster.InstanceExists:
		a.First, a.Last = time.Time{}, time.Time{}
		a.Vain++
	case cluster.ExistenceUnknown:
		a.Vain++
	default:
		if a.Last, a.Vain = at, 0; a.First.IsZero() {
			a.First = at
		}
	}
}

// unclaimed says why it proves nothing that no group has the instance, where the cloud has
// no read by ID: a machine that was taken out of its group may live. One that the scaler
// ended, or that the cloud listed on its way out, does not; nor one whose Node fell silent
// when it left the list: those that somebody takes out of a group are Ready.
func (x *moment) unclaimed(c *candidate) string {
	r := x.memory.Seen[c.id]
	silent := !r.Last.IsZero() && c.node.ReadySince.Before(r.Last.Add(diesWithin))
	if r.Ended || r.Leaving || silent {
		return ""
	}
	return "no node group has instance " + c.node.ProviderID + ", whose Node was Ready when it left its group, and this cloud cannot be asked for an instance by its ID: it may live" + byHand
}

// detachedAfter is how long a Ready Node may be missing from the lists of a cloud that
// cannot be asked by ID before it is thought to have been taken out of its group.
const detachedAfter = 24 * time.Hour

// missing is B1 of clouds that cannot be asked by ID: their lists are all there is, and
// one that lacks what backs any Ready Node may lack others.
func (x *moment) missing(c *candidate) string {
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		r, known := x.memory.Seen[id]
		_, here := x.view.instances[id]
		if known && !here && !r.Sent && n.Ready == cluster.StatusTrue && cloudOf(id) == cloudOf(c.id) && x.in.Now.Sub(r.Last) <= detachedAfter && x.doubt(n) == "" {
			return "the cloud does not list the instance of Ready Node " + string(n.Name) + " either: this list is not whole, or of the wrong account or region"
		}
	}
	return ""
}

// byHand is what an operator does about a Node that nothing can be proven of.
const byHand = "; where the machine is known to be gone, kubectl delete node does it"

// canary is B1: why it proves nothing that the cloud does not find an instance by its ID.
// The same question has to find what is known to live: most of the Ready Nodes of the same
// cloud that were asked for with it, so that one with a false provider ID neither proves
// nor spoils anything. Where no Node is Ready, only what was sent away, with every other
// Node of its cloud, goes, and only if its own group is listed complete.
func (x *moment) canary(c *candidate) string {
	r := x.memory.Seen[c.id]
	list := x.canariesOf(c.id, r)
	finds, misses, lost := 0, 0, ""
	for _, n := range list {
		switch x.in.Answers[cluster.InstanceID(n.ProviderID)].Existence {
		case cluster.InstanceExists:
			finds++
		case cluster.InstanceNotFound, cluster.InstanceTerminated, cluster.InstanceUnclaimed:
			if misses++; lost == "" {
				lost = string(n.Name)
			}
		}
	}
	switch {
	case finds > misses:
		return ""
	case misses > 0:
		return "the cloud does not find the instance of Ready Node " + lost + " either: these credentials may be of the wrong account or region"
	case len(list) > 0:
		return "the cloud was not heard to find the instance of any Ready Node: these credentials may be of the wrong account or region"
	}
	return x.alone(c, r)
}

// alone is the canary where no Node of the cloud is Ready.
func (x *moment) alone(c *candidate, r Record) string {
	const nothing = "the cloud finds nothing that is known to live"
	home := x.view.groups[r.Group]
	switch {
	case !r.Sent || r.Last.IsZero(): // a ledger that was begun anew may have been so in the wrong account
		return nothing + ": this may be the wrong account or region"
	case r.Declared && !r.Ended:
		return nothing + ", and group " + string(r.Group) + " stands in a file, not in the cloud: this may be the wrong project or region"
	case home == nil || !complete(home):
		return nothing + ", and group " + string(r.Group) + " not complete: this may be the wrong account or region"
	}
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		other, known := x.memory.Seen[id]
		if _, here := x.view.instances[id]; !here && id != "" && !(known && other.Sent) && (!known || other.Account == r.Account) && cloudOf(id) == cloudOf(c.id) {
			return nothing + ", and nobody sent Node " + string(n.Name) + " away: this may be the wrong account or region"
		}
	}
	return ""
}

// canariesOf are Ready Nodes that are known to live in the cloud of an instance: managed
// ones, and those of the control plane. Of groups that stand in a file the account and
// region has to be the same.
func (x *moment) canariesOf(of cluster.InstanceID, r Record) []cluster.Node {
	if list, ok := x.chosen[place{cloudOf(of), r.Account}]; ok {
		return list
	}
	var own, managed []cluster.Node
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		if n.Ready != cluster.StatusTrue || id == "" || cloudOf(id) != cloudOf(of) || x.doubt(n) != "" {
			continue
		}
		other, known := x.memory.Seen[id]
		switch {
		case (x.own[n.Name] || n.ControlPlane) && (r.Account == "" || x.view.accounts == 1):
			own = append(own, n)
		case known && !other.Sent && !other.Late && other.Account == r.Account:
			managed = append(managed, n)
		}
	}
	list := append(managed[:min(len(managed), canaries-min(len(own), 2))], own...)
	list = slices.Clone(list[:min(len(list), canaries)])
	x.chosen[place{cloudOf(of), r.Account}] = list
	return list
}

// place is one cloud, and of groups that stand in a file the account and region.
type place struct{ cloud, account string }

// ask adds to the plan what the cloud is to be asked for by ID: the instances of Nodes
// that its list gives up, when that is due, each with its canaries.
func (x *moment) ask(list []*candidate, plan *Plan) {
	wanted := map[cluster.InstanceID]bool{}
	for _, c := range list {
		if c.sight.state != gone || x.in.Outage != "" {
			continue
		}
		if due := c.watch.Asked.due(x.policy); x.in.Now.Before(due) {
			if plan.AskAt.IsZero() || due.Before(plan.AskAt) {
				plan.AskAt = due
			}
			continue
		}
		wanted[cluster.InstanceID(c.node.ProviderID)] = true
		for _, n := range x.canariesOf(c.id, x.memory.Seen[c.id]) {
			wanted[cluster.InstanceID(n.ProviderID)] = true
		}
	}
	x.askStrays(wanted)
	for id := range wanted {
		plan.Ask = append(plan.Ask, id)
	}
	slices.SortFunc(plan.Ask, func(a, b cluster.InstanceID) int { return cmp.Compare(a, b) })
}

// lacksAnswer is G5.
func lacksAnswer(c *candidate, x *moment) string {
	a := c.watch.Asked
	switch {
	case a.At.IsZero():
		return "the cloud has not been asked for instance " + c.node.ProviderID + " by its ID yet"
	case a.Said == cluster.ExistenceUnknown:
		return "it is not known whether instance " + c.node.ProviderID + " exists: " + a.Why
	case a.Last.Sub(a.First) < x.policy.SightInterval:
		return fmt.Sprintf("the cloud said once, by its ID, that instance %s is gone (%s); a second answer is wanted %s after %s",
			c.node.ProviderID, a.Why, x.policy.SightInterval, stamp(a.First))
	case x.in.Now.Sub(a.At) > 2*x.policy.SightInterval:
		return "what the cloud said of instance " + c.node.ProviderID + " by its ID is of " + stamp(a.At)
	}
	return ""
}
