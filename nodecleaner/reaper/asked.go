package reaper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds the cloud's answers about instances that it is asked for by ID (G5), and
// the canaries: Nodes whose instances prove that the right cloud answered (B1).

// Asked is the cloud's answer about a Node's instance, asked for by its ID.
type Asked struct {
	// At is the time of the newest answer; First and Last are the times of the first and
	// of the newest answer that said "gone".
	At    time.Time `json:"at,omitzero"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Said and Why are the newest answer; Rule is B1 if the canaries contradict it.
	Said cluster.Existence `json:"said,omitempty"`
	Why  string            `json:"why,omitempty"`
	Rule string            `json:"rule,omitempty"`
	// Vain counts answers in a row that proved nothing; each doubles the wait for the next
	// question.
	Vain int `json:"vain,omitempty"`
}

// Times of the asking.
const (
	// askAgainMax is the longest wait between two questions for one instance, in sight
	// intervals.
	askAgainMax = 2
	// canaries is how many Ready Nodes' instances are asked for together with the
	// candidates of a cloud.
	canaries = 5
	// diesWithin is how long a dead Node may stay Ready after its instance was last listed:
	// reads are a minute apart, and Kubernetes notices a silent kubelet after 40 to 50
	// seconds.
	diesWithin = 3 * time.Minute
)

// due returns the time of the next question for the instance.
func (a Asked) due(p Policy) time.Time {
	switch {
	case a.At.IsZero():
		return time.Time{}
	case a.Said == cluster.InstanceTerminated || a.Said == cluster.InstanceNotFound || a.Said == cluster.InstanceUnclaimed:
		return a.At.Add(p.SightInterval)
	}
	return a.At.Add(min(p.UnknownLook()<<min(a.Vain, 8), askAgainMax*p.SightInterval))
}

// hear stores the cloud's answer about the instance, if this moment has a new one.
func (c *candidate) hear(x *evaluation) {
	a, at := &c.watch.Asked, x.in.AskedAt
	said, ok := x.in.Answers[cluster.InstanceID(c.node.ProviderID)]
	if !ok || at.Before(c.watch.Since) || !at.After(a.At) {
		return
	}
	a.At, a.Said, a.Why, a.Rule = at, said.Existence, said.Why, ""
	switch said.Existence {
	case cluster.InstanceNotFound:
		// An instance that the list itself shows as terminated needs no canary.
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

// unclaimed returns why the answer "no group has the instance" proves nothing, for clouds
// that cannot be asked by ID. A machine that an operator took out of its group may live,
// and its Node is Ready at that time. The answer is proof if the scaler ended the instance,
// if the cloud last listed it on its way out, or if its Node stopped being Ready when the
// instance left the list.
func (x *evaluation) unclaimed(c *candidate) string {
	r := x.memory.Seen[c.id]
	silent := !r.Last.IsZero() && c.node.ReadySince.Before(r.Last.Add(diesWithin))
	if r.Ended || r.Leaving || silent {
		return ""
	}
	return "no node group has instance " + c.node.ProviderID + ", whose Node was Ready when it left its group, and this cloud cannot be asked for an instance by its ID: it may live" + byHand
}

// detachedAfter is how long the lists of a cloud that cannot be asked by ID may lack a
// Ready Node's instance until it counts as taken out of its group.
const detachedAfter = 24 * time.Hour

// missing is B1 for clouds that cannot be asked by ID: their lists are the only evidence,
// and a list that lacks the instance of one Ready Node may lack others. An instance that
// was never listed has no time Last and is not missed.
func (x *evaluation) missing(c *candidate) string {
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		r := x.memory.Seen[id]
		_, here := x.view.instances[id]
		if !here && !r.Sent && n.Ready == cluster.StatusTrue && cloudOf(id) == cloudOf(c.id) && x.in.Now.Sub(r.Last) <= detachedAfter && x.doubt(n) == "" {
			return "the cloud does not list the instance of Ready Node " + string(n.Name) + " either: this list is not whole, or of the wrong account or region"
		}
	}
	return ""
}

// byHand is the advice about a Node of which nothing can be proven.
const byHand = "; where the machine is known to be gone, kubectl delete node does it"

// canary is B1: it returns why the answer "not found" about c's instance proves nothing.
// The same question has to find most of the canaries, the instances of Ready Nodes of the
// same cloud. The majority decides, so that one Node with a false provider ID neither
// proves nor refutes anything. Without canaries see alone.
func (x *evaluation) canary(c *candidate) string {
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
		return "the cloud has not confirmed the instance of any Ready Node: these credentials may be of the wrong account or region"
	}
	return x.alone(c, r)
}

// alone is B1 for a cloud without a Ready Node. The Node goes only if a scale-down removed it,
// its own group is listed complete, and no other Node of its cloud is missing from the list
// without having been removed by a scale-down.
func (x *evaluation) alone(c *candidate, r Record) string {
	const nothing = "the cloud lists no instance of a Ready Node"
	home := x.view.groups[r.Group]
	switch {
	case !r.Sent || r.Last.IsZero(): // a new ledger may have been begun in the wrong account
		return nothing + ": this may be the wrong account or region"
	case r.Declared && !r.Ended:
		return nothing + ", and group " + string(r.Group) + " stands in a file, not in the cloud: this may be the wrong project or region"
	case home == nil || !complete(home):
		return nothing + ", and group " + string(r.Group) + " not complete: this may be the wrong account or region"
	}
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		other, known := x.memory.Seen[id]
		if _, here := x.view.instances[id]; !here && !other.Sent && (!known || other.Account == r.Account) && cloudOf(id) == cloudOf(c.id) {
			return nothing + ", and no scale-down removed Node " + string(n.Name) + ": this may be the wrong account or region"
		}
	}
	return ""
}

// canariesOf returns the canaries for an instance: Ready Nodes of the same cloud, managed
// ones and Nodes of the control plane. For a group that is declared in a file, account and
// region have to be the same. One moment has one list of canaries for each place, so that a
// question and the judgement of its answer rest on the same Nodes.
func (x *evaluation) canariesOf(of cluster.InstanceID, r Record) []cluster.Node {
	if list, ok := x.chosen[place{cloudOf(of), r.Account}]; ok {
		return list
	}
	var own, managed []cluster.Node
	for _, n := range x.nodes {
		id := machine(n.ProviderID)
		if n.Ready != cluster.StatusTrue || cloudOf(id) != cloudOf(of) || x.doubt(n) != "" {
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

// place is one cloud, and for groups that are declared in a file the account and region.
type place struct{ cloud, account string }

// ask adds the due questions by ID to the plan: for each Node whose instance the list shows
// as gone, the instance and its canaries.
func (x *evaluation) ask(list []*candidate, plan *Plan) {
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

// lacksAnswer is G5: it returns why the cloud's answers by ID do not prove yet that the
// instance is gone.
func lacksAnswer(c *candidate, x *evaluation) string {
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
