package judge

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// grown is the shared lister while pods are being bound: the lists of nodes with pods that
// have terms are made anew each time, since every binding may change them.
type grown struct {
	fwk.SharedLister
	nodes  []fwk.NodeInfo
	byName map[string]fwk.NodeInfo
}

func (g *grown) NodeInfos() fwk.NodeInfoLister { return g }

func (g *grown) List() ([]fwk.NodeInfo, error) { return g.nodes, nil }

func (g *grown) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return g.with(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithAffinity()) > 0 }), nil
}

func (g *grown) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return g.with(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithRequiredAntiAffinity()) > 0 }), nil
}

func (g *grown) with(has func(fwk.NodeInfo) bool) (out []fwk.NodeInfo) {
	for _, n := range g.nodes {
		if has(n) {
			out = append(out, n)
		}
	}
	return out
}

func (g *grown) Get(name string) (fwk.NodeInfo, error) {
	if n, ok := g.byName[name]; ok {
		return n, nil
	}
	return nil, fmt.Errorf("no node %s", name)
}

// bind binds the waiting pods in their order, each as schedulePod of kube-scheduler would,
// with all nodes looked at. A pod that no node passes is left out.
func (c *court) bind(ctx context.Context, w *World, waiting []*corev1.Pod, byName map[string]fwk.NodeInfo) ([]Binding, error) {
	g := &grown{SharedLister: c.snapshot.SharedLister, byName: byName}
	index := make(map[string]int32)
	for i, name := range c.order(w) {
		index[name] = int32(i)
		g.nodes = append(g.nodes, byName[name])
	}
	c.snapshot.SharedLister = g
	draw := rand.New(rand.NewPCG(w.Seed, 0xb19d))
	out := make([]Binding, 0, len(waiting))
	for _, p := range waiting {
		best, err := c.best(ctx, p, g)
		if err != nil {
			return nil, fmt.Errorf("schedule pod %s: %w", p.Name, err)
		}
		var b Binding
		for _, n := range best {
			b.Best = append(b.Best, index[n])
		}
		if len(best) > 0 {
			name := best[draw.IntN(len(best))]
			b.Node = index[name] + 1
			bound := p.DeepCopy()
			bound.Spec.NodeName = name
			info, err := framework.NewPodInfo(bound)
			if err != nil {
				return nil, err
			}
			byName[name].AddPodInfo(info)
		}
		out = append(out, b)
	}
	return out, nil
}

// best are the nodes with the highest total score for a pod.
func (c *court) best(ctx context.Context, p *corev1.Pod, g *grown) ([]string, error) {
	state := framework.NewCycleState()
	result, status, _ := c.framework.RunPreFilterPlugins(ctx, state, p)
	if !status.IsSuccess() {
		if status.IsRejected() {
			return nil, nil
		}
		return nil, status.AsError()
	}
	var feasible []fwk.NodeInfo
	for _, n := range g.nodes {
		if !result.AllNodes() && !result.NodeNames.Has(n.Node().Name) {
			continue
		}
		if c.framework.RunFilterPluginsWithNominatedPods(ctx, state, p, n).IsSuccess() {
			feasible = append(feasible, n)
		}
	}
	if len(feasible) == 0 {
		return nil, nil
	}
	if len(feasible) == 1 {
		return []string{feasible[0].Node().Name}, nil
	}
	if status := c.framework.RunPreScorePlugins(ctx, state, p, feasible); !status.IsSuccess() {
		return nil, status.AsError()
	}
	scores, status := c.framework.RunScorePlugins(ctx, state, p, feasible)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	var best []string
	top := int64(-1 << 62)
	for _, s := range scores {
		if s.TotalScore > top {
			top, best = s.TotalScore, nil
		}
		if s.TotalScore == top {
			best = append(best, s.Name)
		}
	}
	return best, nil
}
