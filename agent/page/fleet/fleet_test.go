package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// TestStates: every state of `autoscaler-agent nodes` is one of the map, drift shows on Ready machines alone, and a
// repair condition makes a node sick whatever else it is.
func TestStates(t *testing.T) {
	drift := []cluster.Difference{{Property: "image"}}
	sick := &cluster.Node{Conditions: map[string]time.Time{"KernelDeadlock": noon}}
	for _, c := range []struct {
		is    string
		drift []cluster.Difference
		node  *cluster.Node
		want  string
	}{
		{decision.NodeUpcoming, drift, nil, Upcoming}, {decision.NodeStarting, nil, &cluster.Node{}, Starting}, {decision.NodeReady, nil, &cluster.Node{}, Ready},
		{decision.NodeReady, drift, &cluster.Node{}, Drifted}, {decision.NodeReady, drift, sick, Sick}, {decision.NodeCordoned, drift, &cluster.Node{}, Cordoned},
		{decision.NodeCordoned, nil, sick, Sick}, {decision.NodeDraining, drift, sick, Draining}, {decision.NodeEnding, nil, nil, Draining},
		{decision.NodeNotReady, drift, &cluster.Node{}, Sick}, {decision.NodeFailed, nil, nil, Sick},
	} {
		row := decision.NodeRow{State: c.is, Drift: c.drift}
		if got := stateOf(&row, c.node, cluster.RepairConditions{{Type: "KernelDeadlock"}}); got != c.want {
			t.Errorf("%s with %d differences is %s, want %s", c.is, len(c.drift), got, c.want)
		}
	}
	letters := map[string]bool{}
	for _, s := range States {
		letters[s.Letter] = true
	}
	if len(letters) != len(States) {
		t.Error("two states have one letter")
	}
}

// TestOf: shares are of what the node offers, GPUs of any maker are one resource, pods of DaemonSets are counted apart,
// and place, price and reason are those of the instance and of its row.
func TestOf(t *testing.T) {
	owner := &cluster.Owner{Kind: "DaemonSet"}
	s := &cluster.Snapshot{Classes: []cluster.PodClass{{Requests: cluster.Resources{MilliCPU: 1000, Memory: 1 << 30, Extended: map[string]int64{"amd.com/gpu": 1, "example.com/licence": 5}}}, {Requests: cluster.Resources{MilliCPU: 500}}},
		Groups: []cluster.NodeGroup{{ID: "g", Price: 0.5, PriceComputed: true, Instances: []cluster.Instance{{ID: "i-1", Zone: "z2", Type: "big"}, {ID: "aws:///z1/i-2", Zone: "z1"}}}},
		Nodes: []*cluster.Node{{Name: "n", Allocatable: cluster.Resources{MilliCPU: 4000, Memory: 2 << 30, Extended: map[string]int64{"amd.com/gpu": 4}},
			Pods: []cluster.Pod{{Key: "a/1"}, {Key: "a/2", Class: 1}, {Key: "a/3", Class: 1}, {Key: "a/4", Class: 1}, {Key: "kube/p", Class: 1, Owner: owner}, {Key: "a/5", Class: 99}}},
			{Name: "leader", Labels: map[string]string{"topology.kubernetes.io/zone": "z9"}}}}
	list := decision.Nodes{Nodes: []decision.NodeRow{{Node: "leader", State: decision.NodeReady}, {Group: "g", Node: "n", Instance: "i-1", State: decision.NodeReady, Created: noon, Rule: "D4", Held: "busy", Drift: []cluster.Difference{{Property: "image"}}},
		{Group: "g", Instance: "aws:///z1/i-2", State: decision.NodeUpcoming}}}
	got := Machines(s, list, nil)
	want := []Machine{
		{Name: "i-2", Group: "g", Zone: "z1", State: Upcoming, Exactly: "upcoming", CPU: Unknown, Memory: Unknown, GPU: Unknown, Price: 0.5, Estimated: true},
		{Name: "n", Group: "g", Zone: "z2", Type: "big", State: Drifted, Exactly: "ready", Drift: []string{"image"}, CPU: 75, Memory: 50, GPU: 25, Pods: 5, Daemons: 1, FirstPods: []string{"a/1", "a/2", "a/3"}, Price: 0.5, Estimated: true, Created: noon, Rule: "D4", Why: "busy"},
		{Name: "leader", Zone: "z9", State: Ready, Exactly: "ready", CPU: Unknown, Memory: Unknown, GPU: Unknown},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
}

// TestBoxes: whatever the fleet, each machine is in one box of its own group, zone and state, and the boxes are as few
// as is promised.
func TestBoxes(t *testing.T) {
	seed := drawn.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 200 {
		groups, n, most, states := 1+r.IntN(8), r.IntN(3000), r.IntN(600), 1+r.IntN(len(States))
		list := make([]Machine, n)
		for i := range list {
			list[i] = Machine{Name: fmt.Sprint(i), Group: fmt.Sprint(r.IntN(groups)), Zone: fmt.Sprint(r.IntN(3)), State: States[r.IntN(states)].Name, CPU: r.IntN(102) - 1, Memory: 7, GPU: Unknown, Pods: 2, Daemons: 1}
		}
		slices.SortFunc(list, compare)
		boxes := Boxes(list, most)
		at, pods := 0, 0
		for i := range boxes {
			b := &boxes[i]
			for k := at; k < at+b.Count; k++ {
				if m := &list[k]; m.Group != b.Group || m.Zone != b.Zone || m.State != b.State {
					t.Fatalf("seed %d: machine %+v is in the box of %+v", seed, list[k], b)
				}
			}
			if b.Name != list[at].Name || b.Memory != 7 || b.GPU != Unknown || b.CPU > 100 {
				t.Fatalf("seed %d: %+v", seed, b)
			}
			at, pods = at+b.Count, pods+b.Pods
		}
		bound := n
		if most > 0 {
			bound = min(n, most+groups*3*len(States))
		}
		if at != n || pods != 2*n || len(boxes) > bound {
			t.Fatalf("seed %d: %d machines with %d pods in %d boxes, of %d machines and at most %d boxes", seed, at, pods, len(boxes), n, bound)
		}
	}
}

// BenchmarkOf looks at 5,000 nodes with 150,000 pods.
func BenchmarkOf(b *testing.B) {
	s := &cluster.Snapshot{Classes: []cluster.PodClass{{Requests: cluster.Resources{MilliCPU: 100}}}, Groups: []cluster.NodeGroup{{ID: "g"}}}
	var list decision.Nodes
	for i := range 5000 {
		id := cluster.InstanceID(fmt.Sprintf("i-%d", i))
		s.Groups[0].Instances = append(s.Groups[0].Instances, cluster.Instance{ID: id})
		n := &cluster.Node{Name: cluster.NodeName(id), Allocatable: cluster.Resources{MilliCPU: 4000}, Pods: make([]cluster.Pod, 30)}
		s.Nodes = append(s.Nodes, n)
		list.Nodes = append(list.Nodes, decision.NodeRow{Group: "g", Node: n.Name, Instance: id, State: decision.NodeReady})
	}
	for b.Loop() {
		Machines(s, list, nil)
	}
}
