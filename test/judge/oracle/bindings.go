package oracle

import (
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/plantest"
)

// Bindings lets kube-scheduler bind the waiting pods of a world, and the model of
// agent/plan after it, step by step: before each binding the two must name the same nodes
// as the best. It returns how many bindings agreed, and the first difference.
func Bindings(j *Judge, w *World, seed uint64) (agreed int, difference string, err error) {
	real, err := j.Bind(w, seed)
	if err != nil {
		return 0, "", err
	}
	b, err := seat(w)
	if err != nil {
		return 0, "", err
	}
	sim, err := b.sim(w)
	if err != nil {
		return 0, "", err
	}
	for i, p := range w.Waiting {
		class := b.classOf[keyOf(p)]
		if len(b.snapshot.Classes[class].NotUnderstood) > 0 {
			return agreed, "", nil
		}
		var want []int
		for _, n := range real[i].Best {
			want = append(want, int(n))
		}
		slices.Sort(want)
		if got := sim.Best(class); !slices.Equal(got, want) {
			return agreed, fmt.Sprintf("pod %s (number %d): kube-scheduler's best nodes are %v, the model's %v", p.Name, i, want, got), nil
		}
		if real[i].Node > 0 {
			sim.BindTo(class, int(real[i].Node)-1)
			agreed++
		}
	}
	return agreed, "", nil
}

// sim is the world as the model sees it.
func (b *bench) sim(w *World) (*plantest.Sim, error) {
	s := &b.snapshot
	config := plantest.SimConfig{Classes: s.Classes, Namespaces: s.Namespaces, Dimensions: b.space, State: b.state, Replicated: make([]bool, len(s.Classes))}
	for _, p := range w.Waiting {
		class, ok := b.classOf[keyOf(p)]
		if !ok {
			return nil, fmt.Errorf("pod %s was lost in the conversion", keyOf(p))
		}
		config.Binds = append(config.Binds, class)
		if len(p.OwnerReferences) > 0 {
			config.Replicated[class] = true
		}
	}
	slices.Sort(config.Binds)
	config.Binds = slices.Compact(config.Binds)
	sim := plantest.NewSim(config)
	for i := range w.Nodes {
		n := s.Nodes[slices.IndexFunc(s.Nodes, func(n *cluster.Node) bool { return n.Name == b.shapes[i].Name })]
		sim.AddNode(plantest.SimNode{Info: &b.shapes[i], Allocatable: n.Allocatable, Room: b.rooms[i], Known: true, InState: i})
	}
	for p := range s.AllPods() {
		if n, here := b.nodeOf[p.Node]; here && !p.Finished {
			sim.Put(p.Class, n, 1, !p.Deleting.IsZero())
		}
	}
	return sim, nil
}
