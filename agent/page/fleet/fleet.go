// Package fleet makes one picture's worth of all machines: of each its group, zone and state, how
// much of it pods request, what it costs, how old it is, and why it stays or goes. The page and
// `status --watch` draw it.
//
// It refuses to decide: states and reasons are the engine's (plan.Machines). It reads no clock and
// does no I/O. Its work grows with the machines and their pods, its answer is bounded (Boxes).
package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// State is a state of a machine as the map tells it apart, with a letter for where there is no colour.
type State struct{ Name, Letter, Says string }

// The states of the map.
const (
	Ready    = "ready"
	Drifted  = "drifted"
	Starting = "starting"
	Upcoming = "upcoming"
	Cordoned = "cordoned"
	Draining = "draining"
	Sick     = "sick"
)

// States are all states, the one that an operator looks for first in front.
var States = []State{
	{Sick, "!", "not Ready, a repair condition is True, or the cloud could not start it"},
	{Draining, "D", "drained by the agent, or its machine ends"},
	{Cordoned, "C", "Ready, and somebody has cordoned it"},
	{Upcoming, "U", "asked for, and no Node yet"},
	{Starting, "S", "a Node that is not yet what its group's nodes are"},
	{Drifted, "~", "Ready, and not what its group would start today"},
	{Ready, "R", "Ready"},
}

// Unknown is a share of a machine of which nothing is known: it does not offer the resource.
const Unknown = -1

// shownPods is how many pods of a machine are named.
const shownPods = 3

// Machine is one machine.
type Machine struct {
	Name  string `json:"name"` // of its Node; of the instance while it has none
	Group string `json:"group,omitempty"`
	Zone  string `json:"zone,omitempty"`
	Type  string `json:"type,omitempty"`
	State string `json:"state"` // one of States
	// Exactly is the state in the words of `autoscaler-agent nodes`.
	Exactly string   `json:"exactly"`
	Drift   []string `json:"drift,omitempty"` // the properties in which it differs
	// CPU, Memory and GPU are the percents of what the machine offers that its pods request.
	CPU       int       `json:"cpu"`
	Memory    int       `json:"memory"`
	GPU       int       `json:"gpu"`
	Pods      int       `json:"pods"`       // without those of DaemonSets
	Daemons   int       `json:"daemonPods"` // those of DaemonSets
	FirstPods []string  `json:"firstPods,omitempty"`
	Price     float64   `json:"price,omitempty"`     // of an hour; 0: not known
	Estimated bool      `json:"estimated,omitempty"` // the price is computed from the size, and no bill
	Created   time.Time `json:"created,omitzero"`
	Rule      string    `json:"rule,omitempty"` // of the first reason for which it stays or goes
	Why       string    `json:"why,omitempty"`
}

// Machines describes the machines of a list of nodes: by group, those of no group last, by zone, by state and by name.
// repair are the conditions that make a node sick.
func Machines(s *cluster.Snapshot, list decision.Nodes, repair cluster.RepairConditions) []Machine {
	nodes := make(map[cluster.NodeName]*cluster.Node, len(s.Nodes))
	for _, n := range s.Nodes {
		nodes[n.Name] = n
	}
	type place struct {
		group    *cluster.NodeGroup
		instance *cluster.Instance
	}
	places := map[cluster.InstanceID]place{}
	for i := range s.Groups {
		g := &s.Groups[i]
		for k := range g.Instances {
			places[g.Instances[k].ID] = place{g, &g.Instances[k]}
		}
	}
	out := make([]Machine, 0, len(list.Nodes))
	for i := range list.Nodes {
		r := &list.Nodes[i]
		m := Machine{Name: cmp.Or(string(r.Node), r.Instance.Last()), Group: string(r.Group), Exactly: r.State, CPU: Unknown, Memory: Unknown, GPU: Unknown,
			Created: r.Created, Rule: r.Rule, Why: r.Held}
		for _, d := range r.Drift {
			m.Drift = append(m.Drift, d.Property)
		}
		if at := places[r.Instance]; at.group != nil {
			m.Zone, m.Type, m.Price, m.Estimated = at.instance.Zone, at.instance.Type, at.group.Price, at.group.PriceComputed
		}
		n := nodes[r.Node]
		m.State = stateOf(r, n, repair)
		if n != nil {
			m.fill(s, n)
		}
		out = append(out, m)
	}
	slices.SortFunc(out, compare)
	return out
}

// compare orders machines as the map draws them.
func compare(a, b Machine) int {
	none := func(m Machine) int { // those of no group stand last
		if m.Group == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(none(a)-none(b), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Zone, b.Zone), rank(a.State)-rank(b.State), cmp.Compare(a.Name, b.Name))
}

func rank(state string) int {
	return slices.IndexFunc(States, func(s State) bool { return s.Name == state })
}

// stateOf is the state of the map that a row of the list stands for.
func stateOf(r *decision.NodeRow, n *cluster.Node, repair cluster.RepairConditions) string {
	switch r.State {
	case decision.NodeUpcoming:
		return Upcoming
	case decision.NodeStarting:
		return Starting
	case decision.NodeDraining, decision.NodeEnding:
		return Draining
	case decision.NodeNotReady, decision.NodeFailed:
		return Sick
	}
	if n != nil && slices.ContainsFunc(repair, func(c cluster.RepairCondition) bool { return !c.Since(n).IsZero() }) {
		return Sick
	}
	switch {
	case r.State == decision.NodeCordoned:
		return Cordoned
	case len(r.Drift) > 0:
		return Drifted
	}
	return Ready
}

// fill sums up the pods of a node.
func (m *Machine) fill(s *cluster.Snapshot, n *cluster.Node) {
	var cpu, memory, gpus int64
	for i := range n.Pods {
		p := &n.Pods[i]
		if o := p.Owner; o != nil && o.Kind == "DaemonSet" {
			m.Daemons++
		} else {
			if m.Pods++; m.Pods <= shownPods {
				m.FirstPods = append(m.FirstPods, string(p.Key))
			}
		}
		if p.Class < len(s.Classes) {
			r := &s.Classes[p.OnNode()].Requests
			cpu, memory, gpus = cpu+r.MilliCPU, memory+r.Memory, gpus+accelerators(r)
		}
	}
	m.CPU, m.Memory, m.GPU = share(cpu, n.Allocatable.MilliCPU), share(memory, n.Allocatable.Memory), share(gpus, accelerators(&n.Allocatable))
	if m.Zone == "" {
		for _, key := range cluster.LabelsOfZone {
			m.Zone = cmp.Or(m.Zone, n.Labels[key])
		}
	}
}

func accelerators(r *cluster.Resources) (sum int64) {
	for name, n := range r.Extended {
		if cluster.Accelerator(name) {
			sum += n
		}
	}
	return sum
}

// share is a percent of what is offered, at most 999.
func share(of, all int64) int {
	if all <= 0 {
		return Unknown
	}
	return int(min(float64(of)*100/float64(all), 999))
}
