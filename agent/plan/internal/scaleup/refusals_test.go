package scaleup

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

const zoneLabel = "topology.kubernetes.io/zone"

// refusing is a cluster with a group that spans the zones a and b, one of zone a, and a node that shows a label of its own for the zone.
func refusing() *cluster.Snapshot {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	machine := cluster.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 110}
	group := func(id cluster.GroupID) cluster.NodeGroup {
		return cluster.NodeGroup{ID: id, Max: 10, ReadAt: now, Template: cluster.Template{Spec: "m", Capacity: machine, Allocatable: machine, Labels: map[string]string{"pool": string(id)}}}
	}
	s := &cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{group("multi"), group("one")},
		Classes: []cluster.PodClass{{Namespace: "d", Labels: map[string]string{"app": "x"}, Requests: cluster.Resources{MilliCPU: 1000, Pods: 1}}},
		Pods:    []cluster.Pod{{Key: "d/p", Created: cluster.At(now), Unschedulable: cluster.At(now)}},
		Nodes:   []*cluster.Node{{Name: "n", Labels: map[string]string{"rack": "b"}}},
	}
	s.Groups[0].Template.Zones, s.Groups[0].Template.ZoneLabels = []string{"a", "b"}, []string{"csi/zone"}
	s.Groups[1].Template.Labels[zoneLabel] = "a"
	return s
}

func refusalsOf(s *cluster.Snapshot, change func(*Planner)) []decision.Refusal {
	r := round.New(new(round.Cache), s, &decision.Memory{}, &decision.Policy{FreshFor: time.Minute, MaxNodeProvisionTime: 15 * time.Minute, OKTotalUnready: 3})
	r.Remember()
	r.Index()
	r.Account()
	growth.Judge(r)
	r.Gather()
	w := New(r)
	w.buyer.Constrain()
	change(w)
	return w.Refusals(0, []int{2, 1})
}

// TestRefusals: why the groups multi and one take no pod of a class, and whether the zones of multi are to blame.
func TestRefusals(t *testing.T) {
	const blame = ", because the group spans zones a and b and promises none of them: make one group for each zone"
	wants := func(r cluster.Requirement) func(*cluster.Snapshot) {
		return func(s *cluster.Snapshot) {
			s.Classes[0].Affinity = []cluster.NodeTerm{{Labels: []cluster.Requirement{r}}}
		}
	}
	exists := func(key string) func(*cluster.Snapshot) {
		return wants(cluster.Requirement{Key: key, Operator: "Exists"})
	}
	spread := func(key string) func(*cluster.Snapshot) {
		return func(s *cluster.Snapshot) {
			s.Classes[0].Spread = []cluster.Spread{{TopologyKey: key, MaxSkew: 1, Selector: &cluster.Selector{}}}
		}
	}
	none := func(*Planner) {}
	const affinity, topologies = "[F4] node(s) didn't match Pod's node affinity/selector", "[F11] node(s) didn't match pod topology spread constraints (missing required label)"
	const grows2, grows1 = "grows by 2 in this round", "grows by 1 in this round"
	for name, c := range map[string]struct {
		change func(*cluster.Snapshot)
		tried  func(*Planner)
		want   string // multi | one
	}{
		"both help":              {func(*cluster.Snapshot) {}, none, "[] " + grows2 + " | [] " + grows1},
		"too large":              {func(s *cluster.Snapshot) { s.Classes[0].Requests.MilliCPU = 3000 }, none, "[F6] Insufficient cpu | [F6] Insufficient cpu"},
		"multi is not known":     {func(s *cluster.Snapshot) { s.Groups[0].Template = cluster.Template{Unknown: "no image"} }, none, "[U11] template unknown: no image | [] " + grows1},
		"one is at its maximum":  {func(s *cluster.Snapshot) { s.Groups[1].Max = 0 }, none, "[] " + grows2 + " | [U7] at its maximum of 0"},
		"a zone by selector":     {func(s *cluster.Snapshot) { s.Classes[0].NodeSelector = map[string]string{zoneLabel: "b"} }, none, affinity + blame + " | " + affinity},
		"by a label of its own":  {func(s *cluster.Snapshot) { s.Classes[0].NodeSelector = map[string]string{"my/zone": "b"} }, none, affinity + blame + " | " + affinity},
		"of a zone of nobody":    {func(s *cluster.Snapshot) { s.Classes[0].NodeSelector = map[string]string{zoneLabel: "z"} }, none, affinity + " | " + affinity},
		"any zone":               {exists(zoneLabel), none, affinity + blame + " | [] " + grows1},
		"as the provider's":      {spread("csi/zone"), none, topologies + blame + " | " + topologies},
		"zones by values":        {wants(cluster.Requirement{Key: "my/zone", Operator: "In", Values: []string{"z", "a"}}), none, affinity + blame + " | " + affinity},
		"something else":         {exists("gpu"), none, affinity + " | " + affinity},
		"another pool":           {func(s *cluster.Snapshot) { s.Classes[0].NodeSelector = map[string]string{"pool": "a"} }, none, affinity + " | " + affinity},
		"spread over zones":      {spread(zoneLabel), none, topologies + blame + " | [] " + grows1},
		"over what a node shows": {spread("rack"), none, topologies + blame + " | " + topologies},
		"over something else":    {spread("row"), none, topologies + " | " + topologies},
		"enough were tried":      {exists(zoneLabel), func(w *Planner) { w.zones.tried = mostTried }, affinity + " | [] " + grows1},
		"nearly enough":          {exists(zoneLabel), func(w *Planner) { w.zones.tried = mostTried - 1 }, affinity + blame + " | [] " + grows1},
		"machines are in two zones": {func(s *cluster.Snapshot) {
			exists(zoneLabel)(s)
			g := &s.Groups[0]
			g.Template.Zones = nil
			g.Instances = []cluster.Instance{{ID: "i-0", Member: true}, {ID: "i-1", Member: true, Zone: "a"}, {ID: "i-2", Member: true}}
			s.Nodes = append(s.Nodes, &cluster.Node{Name: "m", ProviderID: "i-2", Labels: map[string]string{zoneLabel: "b"}})
		}, none, affinity + blame + " | [] " + grows1},
		"machines are in one zone": {func(s *cluster.Snapshot) {
			exists(zoneLabel)(s)
			g := &s.Groups[0]
			g.Template.Zones = nil
			g.Instances = []cluster.Instance{{ID: "i-0", Member: true}, {ID: "i-1", Member: true, Zone: "a"}}
			s.Nodes = []*cluster.Node{{Name: "a", Labels: map[string]string{zoneLabel: "b"}}} // of another machine
		}, none, affinity + " | [] " + grows1},
	} {
		s := refusing()
		c.change(s)
		var got []string
		for _, r := range refusalsOf(s, c.tried) {
			got = append(got, "["+r.Rule+"] "+r.Why)
		}
		if is := strings.Join(got, " | "); is != c.want {
			t.Errorf("%s: %s", name, is)
		}
	}
}

// TestSharedRefusals: classes that are refused in the same words share the list, and each list is told in full.
func TestSharedRefusals(t *testing.T) {
	s := refusing()
	s.Classes[0].Requests.MilliCPU = 3000
	s.Classes = append(s.Classes, s.Classes[0], cluster.PodClass{NodeSelector: map[string]string{"gpu": "yes"}})
	refusalsOf(s, func(w *Planner) {
		list, words := w.sharedRefusals(0, []int{0, 0})
		same, sameWords := w.sharedRefusals(1, []int{0, 0})
		other, otherWords := w.sharedRefusals(2, []int{0, 0})
		if words != "group multi: Insufficient cpu; group one: Insufficient cpu" || sameWords != words || &same[0] != &list[0] || len(list) != 2 {
			t.Errorf("%v %s, and of an equal class %s", list, words, sameWords)
		}
		if again, _ := w.sharedRefusals(0, []int{0, 0}); &again[0] != &list[0] || other[0].Rule != "F4" || otherWords == words || list[0].Rule != "F6" {
			t.Errorf("%v %s, beside %v", other, otherWords, list)
		}
	})
	if got := string(appendWords(nil, nil)); got != "there is no node group" {
		t.Error(got)
	}
}
