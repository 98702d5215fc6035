package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// pinned is a cluster whose nodes carry one pod each, of a class of its own that no other
// node takes. No look at a node for one of them saves a look for another.
func pinned(nodes int) cluster.Snapshot {
	a := cluster.Resources{MilliCPU: 16000, Memory: 64 << 30, Pods: 110}
	s := cluster.Snapshot{Now: t0, Groups: []cluster.NodeGroup{{ID: "g", Max: nodes, Target: nodes, ReadAt: t0, Template: cluster.Template{Spec: "lt", Capacity: a, Allocatable: a}}}}
	for i := range nodes {
		name := cluster.NodeName(fmt.Sprintf("n%06d", i))
		id := cluster.InstanceID("aws:///z/i-" + string(name))
		s.Groups[0].Instances = append(s.Groups[0].Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: t0.Add(-time.Hour)})
		s.Classes = append(s.Classes, cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": string(name)}, Requests: cluster.Resources{MilliCPU: 1000, Memory: 1 << 30, Pods: 1}, NodeSelector: map[string]string{"own": string(name)}})
		n := &cluster.Node{Name: name, UID: cluster.UID(id), ProviderID: string(id), Created: t0.Add(-time.Hour), Capacity: a, Allocatable: a, Ready: cluster.StatusTrue, Labels: map[string]string{"own": string(name)}}
		n.Pods = []cluster.Pod{{Key: cluster.PodKey("default/p-" + name), UID: cluster.UID("p" + name), Class: i, Node: name, Created: cluster.At(t0.Add(-time.Hour)), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: string(name), UID: cluster.UID(name)}}}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// free lets the pod of a node go anywhere.
func free(s *cluster.Snapshot, node int) { s.Classes[s.Nodes[node].Pods[0].Class].NodeSelector = nil }

// TestRelocationGoesOn: a round that has no looks left for some nodes says so and keeps these;
// the next one begins with them, and finds the node that may go.
func TestRelocationGoesOn(t *testing.T) {
	const nodes, last = 2200, 2199
	s := pinned(nodes)
	free(&s, last) // equally used nodes are looked at in the order of their names
	var m decision.Memory
	looked := make(map[string]bool)
	for n := range 2 {
		var plan decision.Plan
		plan, m = Decide(s, m, policy())
		text := plan.String()
		told := strings.Contains(text, fmt.Sprintf("[H6] the budget of scale-down's relocation is spent: %d nodes were not looked at and stay; the next round begins with them", len(m.Unlooked)))
		skipped := make(map[string]bool)
		for _, name := range m.Unlooked {
			skipped[string(name)] = true
		}
		for _, x := range s.Nodes {
			looked[string(x.Name)] = looked[string(x.Name)] || !skipped[string(x.Name)]
		}
		timer := !m.Unneeded[s.Nodes[last].Name].IsZero()
		if !told || timer != (n == 1) || plan.Wake.Sub(s.Now) > 10*time.Second || len(plan.Actions) > 0 {
			t.Errorf("round %d: told %t, %d nodes left out, timer of the last node %t, wake in %s, %d actions", n, told, len(m.Unlooked), timer, plan.Wake.Sub(s.Now), len(plan.Actions))
		}
		s.Now = s.Now.Add(10 * time.Second)
		s.Groups[0].ReadAt = s.Now
	}
	if len(looked) != nodes {
		t.Fatal(len(looked))
	}
	for name, ok := range looked {
		if !ok {
			t.Fatalf("%s was looked at in neither round", name)
		}
	}
}

// TestSmallRoundsAreSilent: a round within its budget counts its steps and tells of none.
func TestSmallRoundsAreSilent(t *testing.T) {
	s := pinned(300)
	r := runRound(&s, policy())
	if steps := r.Spent.Of(round.RelocationPart); steps < 300*299 || steps > 2*300*300 {
		t.Errorf("%d looks for 300 pods on 299 nodes", steps)
	}
	if text := r.Plan.String(); strings.Contains(text, "[H6]") {
		t.Errorf("told of a budget: %.300s", text)
	}
}

// TestLongTrialIsByCounts: where one binding of all pods takes more than the steps of a round, they are placed by counts, and
// the plan says so. Each pod sees fifty zones full of machines that are coming, each of which differs to it.
func TestLongTrialIsByCounts(t *testing.T) {
	s, m, p := dear{Seed: 1, Nodes: 50, PodsPerNode: 3, Classes: 30, Use: 40, Pending: 100, PendingClasses: 27, Large: 20, Groups: 50, Sizes: 4, Zones: 50,
		Priced: 100, Hosts: 100, Terms: 1, Late: 5000, Owners: 1}.last()
	e := new(Engine)
	r := newRun(&e.round, &e.down, &s, &m, &p)
	for _, step := range steps {
		step.do(r)
	}
	if n := r.Spent.Of(round.SearchPart); n > 3*round.SearchPart.Budget() {
		t.Errorf("%d steps", n)
	}
	text := r.Plan.String()
	if told := "pods of 27 classes on 50 nodes), and is packed by size"; !strings.Contains(text, told) {
		t.Errorf("not told: %.300s", text)
	}
	if !strings.Contains(text, "grow ") {
		t.Errorf("nothing is bought: %.300s", text)
	}
}

// TestConsolidationKeepsItsBudget: many cheaper groups, each of which might replace each node.
func TestConsolidationKeepsItsBudget(t *testing.T) {
	s := pinned(1000)
	s.Groups[0].Price = 1
	for g := range 300 {
		x := s.Groups[0]
		x.ID, x.Price, x.Target, x.Instances = cluster.GroupID(fmt.Sprintf("h%03d", g)), 0.2, 0, nil
		s.Groups = append(s.Groups, x)
	}
	p := policy()
	p.Consolidate, p.ConsolidateSaving, p.ConsolidateAfter = "priced", 0.1, time.Hour
	r := runRound(&s, p)
	if text := r.Plan.String(); !strings.Contains(text, "[H6] the budget of consolidation is spent: the largest saving that was found by then counts") {
		t.Errorf("not told after %d looks: %.300s", r.Spent.Of(round.ConsolidationPart), text)
	}
}

// runRound is a round as Decide has it, with what it worked out.
func runRound(s *cluster.Snapshot, p decision.Policy) *run {
	e := new(Engine)
	r := newRun(&e.round, &e.down, s, &decision.Memory{}, &p)
	for _, step := range steps {
		step.do(r)
	}
	return r
}
