package packing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// three has three groups alike, a, b and c, in a zone each, and pods that wait.
func three(change func(*world)) *Packer {
	w := newWorld("least-waste")
	w.p.BalanceSimilarNodeGroups = true
	for _, id := range []string{"a", "b", "c"} {
		w.group(id, 4, zone, id)
	}
	change(w)
	return w.packer()
}

// TestPartners: which groups get machines evenly with a group, for the pods that are left.
func TestPartners(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*world)
		solved func(*Solver)
		want   string
	}{
		{"all alike", func(w *world) { w.pods(3, "web", 500) }, nil, "[0 1 2]"},
		{"one has no room", func(w *world) { w.pods(3, "web", 500); w.g("b").Max = 0 }, nil, "[0 2]"},
		{"one has no room, and a machine is coming", func(w *world) { w.pods(3, "web", 500); w.coming("b"); w.g("b").Max = 1 }, nil, "[0 1 2]"},
		{"it has no room itself", func(w *world) { w.pods(3, "web", 500); w.g("a").Max = 0 }, nil, "[0 1 2]"},
		{"one is done", func(w *world) { w.pods(3, "web", 500) }, func(v *Solver) { v.done[1] = true }, "[0 2]"},
		{"a pod goes to one of them alone", func(w *world) { w.pods(3, "web", 500); w.pods(1, "db", 500, on(zone, "b")) }, nil, "[0 2]"},
		{"such a pod is placed", func(w *world) { w.pods(3, "web", 500); w.pods(1, "db", 500, on(zone, "b")) }, func(v *Solver) { place(v, "db") }, "[0 1 2]"},
		{"such a pod waits for room", func(w *world) { w.pods(3, "web", 500); w.waiting(w.pods(1, "db", 500, on(zone, "b"))) }, nil, "[0 1 2]"},
		{"pods are spread over zones", func(w *world) { w.pods(3, "web", 500, spread(zone)) }, nil, "[0]"},
		{"such pods are placed", func(w *world) { w.pods(3, "web", 500, spread(zone)) }, func(v *Solver) { place(v, "web") }, "[0 1 2]"},
		{"such pods wait for room", func(w *world) { w.coming("a"); w.waiting(w.pods(3, "web", 500, spread(zone))) }, nil, "[0 1 2]"},
		{"such pods are too large", func(w *world) { w.pods(3, "web", 5000, spread(zone)) }, nil, "[0 1 2]"},
		{"pods are spread over zones, and the groups are of one", func(w *world) {
			w.g("b").Template.Labels[zone] = "a"
			w.pods(3, "web", 500, spread(zone))
		}, nil, "[0 1]"},
		{"nothing is balanced", func(w *world) { w.p.BalanceSimilarNodeGroups = false }, nil, "[0]"},
	} {
		v := three(c.change).NewSolver(false)
		if c.solved != nil {
			c.solved(v)
		}
		if got := fmt.Sprint(v.Partners(0)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// place says that the pods of an app have a place.
func place(v *Solver, app string) {
	for i := range v.w.Demands {
		if strings.HasPrefix(v.w.Demands[i].Name(), app) {
			v.Solution.Left[i] = 0
		}
	}
}

// TestNext: which group of a set gets the next machine.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*world)
		grow   []int
		set    []int
		want   int
	}{
		{"the first of equals", func(*world) {}, []int{0, 0, 0}, []int{0, 1, 2}, 0},
		{"the smallest", func(w *world) { w.node("n", "a"); w.node("m", "b") }, []int{0, 0, 0}, []int{0, 1, 2}, 2},
		{"the smallest with what is bought", func(w *world) { w.node("n", "c") }, []int{2, 1, 1}, []int{0, 1, 2}, 1},
		{"where a machine is coming", func(w *world) { w.coming("b") }, []int{0, 0, 0}, []int{0, 1, 2}, 1},
		{"that which may grow", func(w *world) { w.g("a").Max = 0 }, []int{0, 0, 0}, []int{0, 1, 2}, 1},
		{"none may grow", func(w *world) { w.g("a").Max, w.g("b").Max = 0, 0 }, []int{0, 0, 0}, []int{0, 1}, 1},
		{"one alone", func(*world) {}, []int{0, 0, 0}, []int{1}, 1},
	} {
		v := three(c.change).NewSolver(false)
		v.Solution.Grow = c.grow
		if got := v.next(c.set, 1); got != c.want {
			t.Errorf("%s: group %d, want %d", c.name, got, c.want)
		}
	}
}

// TestTogether: how many machines a set may fill, and the room that each of them has.
func TestTogether(t *testing.T) {
	p := three(func(w *world) {
		w.coming("b")
		w.g("a").Template.Allocatable = cluster.Resources{MilliCPU: 3900, Memory: 8 << 30, Pods: 110}
		w.g("b").Template.Allocatable = cluster.Resources{MilliCPU: 4000, Memory: 7 << 30, Pods: 110}
	})
	v := p.NewSolver(false)
	v.Solution.Grow[0] = 2
	if got := v.together([]int{0, 1}); got != 8+1+9 {
		t.Errorf("%d machines, want 18: a may add 8 more, b has one coming and may add 9", got)
	}
	room := v.Smallest([]int{0, 1})
	if room[0] != 3900 || room[1] != 7<<30 {
		t.Errorf("room %v, want the least of each", room[:2])
	}
	if own, _ := p.Template(&p.Groups[1]); own[0] != 4000 {
		t.Errorf("the group's own room is %v now", own[:2])
	}
}

// TestSize: pods that keep apart on hosts have a dimension more where the round has constraints.
func TestSize(t *testing.T) {
	w := newWorld("least-waste")
	w.group("a", 4)
	class := w.pods(3, "web", 500, func(c *cluster.PodClass) {
		c.PodAntiAffinity = []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"default"}, Selector: &cluster.Selector{}}}
	})
	p := w.packer()
	if got, want := len(p.Size(class)), p.Dimensions.Len()+1; got != want {
		t.Errorf("%d dimensions, want %d", got, want)
	}
	p.Topology = nil
	if got, want := len(p.Size(class)), p.Dimensions.Len(); got != want {
		t.Errorf("without constraints %d dimensions, want %d", got, want)
	}
}

// TestNodesWithRoom: which nodes could take a pod of some demand.
func TestNodesWithRoom(t *testing.T) {
	w := newWorld("least-waste")
	w.group("a", 4)
	w.node("empty", "a")
	w.node("full", "a")
	w.node("half", "a")
	w.node("tainted", "a").Taints = []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}
	w.run("full", w.pods(4, "old", 1000))
	w.run("half", w.pods(3, "older", 1000))
	w.pods(3, "large", 2000)
	w.pods(3, "small", 500)
	w.pods(3, "same", 500)
	p := w.packer()
	if got := fmt.Sprint(p.nodesWithRoom(), p.nodesWithRoom()); got != "[0 2] [0 2]" {
		t.Errorf("nodes %s, want the empty one and the half full one", got)
	}
}
