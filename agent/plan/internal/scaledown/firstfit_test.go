package scaledown

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// firstFit is relocation without a board: each class goes to the first nodes that have room for it, pods that keep apart first.
type firstFit struct {
	w     *world
	rooms [][]int64
	apart []int // pods of the class that keeps apart, by domain
	class int   // that class
	zones bool  // its domains are the zones, three, and not the hosts
}

func (f *firstFit) domain(node int) int {
	if f.zones {
		return node % 3
	}
	return node
}

func newFirstFit(w *world, class int, zones bool) *firstFit {
	f := &firstFit{w: w, apart: make([]int, len(w.Nodes)), class: class, zones: zones}
	for i := range w.Nodes {
		f.rooms = append(f.rooms, slices.Clone(w.Nodes[i].Room))
		for k := range w.Nodes[i].Pods {
			if w.Nodes[i].Pods[k].Class == class {
				f.apart[f.domain(i)]++
			}
		}
	}
	return f
}

// move takes room for all pods of a node, or none.
func (f *firstFit) move(from int) bool {
	rooms, apart := make([][]int64, len(f.rooms)), slices.Clone(f.apart)
	for i := range rooms {
		rooms[i] = slices.Clone(f.rooms[i])
	}
	loads := f.w.DrainPlanOf(&f.w.Nodes[from]).Classes
	for _, l := range loads {
		if int(l.Class) == f.class {
			apart[f.domain(from)] -= int(l.N)
		}
	}
	for _, first := range []bool{true, false} {
		for _, l := range loads {
			if (int(l.Class) == f.class) == first && !f.place(from, int(l.Class), int(l.N), rooms, apart) {
				return false
			}
		}
	}
	f.rooms, f.apart = rooms, apart
	return true
}

func (f *firstFit) place(from, class, n int, rooms [][]int64, apart []int) bool {
	size := f.w.Dimensions.Class(class)
	for i := range rooms {
		for n > 0 && i != from && !f.w.Nodes[i].Removing && f.w.Passes(class, i) && !(class == f.class && apart[f.domain(i)] > 0) {
			for d := range size {
				if rooms[i][d] < size[d] {
					goto full
				}
			}
			for d := range size {
				rooms[i][d] -= size[d]
			}
			if n--; class == f.class {
				apart[f.domain(i)]++
			}
		}
	full:
	}
	return n == 0
}

// TestAgainstFirstFit: the board takes the first nodes, whatever moves are tried, taken or given back, and in whichever order.
func TestAgainstFirstFit(t *testing.T) {
	first := drawn.Seed(t)
	for seed := first; seed < first+uint64(1000*drawn.Times(t)); seed++ {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld()
		var names []string
		for i := range 4 + r.IntN(5) {
			names = append(names, fmt.Sprintf("n%d", i))
		}
		w.group("pool", names...)
		w.class(cluster.PodClass{Requests: size(2)})
		w.class(cluster.PodClass{Requests: size(0.5), NodeSelector: map[string]string{"disk": "ssd"}})
		zones := seed%2 == 1
		class := w.alone(map[bool]string{false: hostname, true: zone}[zones])
		for i, n := range names {
			w.node(n).Labels[zone] = fmt.Sprint(i % 3)
			if r.IntN(2) == 0 {
				w.node(n).Labels["disk"] = "ssd"
			}
			for range r.IntN(4) {
				k := r.IntN(4)
				if k != class || !slices.ContainsFunc(w.node(n).Pods, func(p cluster.Pod) bool { return p.Class == class }) {
					w.pods(n, k, 1)
				}
			}
		}
		w.begin()
		model := newFirstFit(w, class, zones)
		for step := range 12 {
			i := r.IntN(len(w.Nodes))
			if w.Nodes[i].Removing {
				continue
			}
			name, before := names[i], *model
			if r.IntN(3) == 0 {
				if got, want := w.moves(name), model.move(i); got != want {
					t.Fatalf("seed %d, step %d: %s has room elsewhere: %v, want %v", seed, step, name, got, want)
				}
				*model = before
			} else if got, want := w.move(name), model.move(i); got != want {
				t.Fatalf("seed %d, step %d: %s goes: %v, want %v", seed, step, name, got, want)
			}
			for k := range w.Nodes {
				if !slices.Equal(w.board.Room(k), model.rooms[k]) {
					t.Fatalf("seed %d, step %d: after %s node %s has room %v, want %v", seed, step, name, names[k], w.board.Room(k), model.rooms[k])
				}
			}
		}
	}
}

// TestLooksOfARound: all moves of a round together look at each node about once, and at the nodes that they changed.
func TestLooksOfARound(t *testing.T) {
	const full, movers = 100, 50
	w := newWorld()
	var names []string
	for i := range full + movers + 20 {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	w.group("pool", names...)
	for i, n := range names[:full+movers] {
		if w.pods(n, 0, 1); i < full {
			w.pods(n, w.class(cluster.PodClass{Requests: size(3)}), 1)
		}
	}
	w.begin()
	for i := range movers { // from the last on, so that the others stay places
		name := names[full+movers-1-i]
		if w.at(name).InUse = false; !w.move(name) {
			t.Fatalf("%s stays", name)
		}
	}
	if spent := round.RelocationPart.Budget() - w.looks; spent > len(names)+4*movers {
		t.Errorf("%d looks", spent)
	}
}
