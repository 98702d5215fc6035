package packing

import (
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

const zone = "topology.kubernetes.io/zone"

// world is a cluster whose pods wait. Groups are in the order of their IDs.
type world struct {
	s cluster.Snapshot
	p decision.Policy
}

func newWorld(expander string) *world {
	w := &world{p: decision.Policy{Expander: expander, FreshFor: time.Minute, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute, OKTotalUnready: 1, MaxTotalUnreadyPercent: 45}}
	w.s.Now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	return w
}

// group adds a group of machines with so many cores and twice as many GiB, and labels.
func (w *world) group(id string, cores int64, labels ...string) *cluster.NodeGroup {
	machine := cluster.Resources{MilliCPU: 1000 * cores, Memory: cores << 31, Pods: 110}
	t := cluster.Template{Spec: "m", Capacity: machine, Allocatable: machine, Labels: map[string]string{}}
	for i := 0; i+1 < len(labels); i += 2 {
		t.Labels[labels[i]] = labels[i+1]
	}
	w.s.Groups = append(w.s.Groups, cluster.NodeGroup{ID: cluster.GroupID(id), Max: 10, ReadAt: w.s.Now, Template: t})
	return w.g(id)
}

func (w *world) g(id string) *cluster.NodeGroup {
	return &w.s.Groups[slices.IndexFunc(w.s.Groups, func(g cluster.NodeGroup) bool { return g.ID == cluster.GroupID(id) })]
}

// coming adds a machine that has not joined.
func (w *world) coming(group string) {
	g := w.g(group)
	g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(fmt.Sprint("i-", group, g.Target)), Member: true, Phase: cluster.PhaseRunning, Created: w.s.Now.Add(-time.Minute)})
	g.Target++
}

// node adds a machine that joined a day ago.
func (w *world) node(name, group string) *cluster.Node {
	w.coming(group)
	g := w.g(group)
	x := &g.Instances[len(g.Instances)-1]
	x.Created = w.s.Now.Add(-24 * time.Hour)
	n := &cluster.Node{Name: cluster.NodeName(name), ProviderID: string(x.ID), Ready: cluster.StatusTrue, Created: x.Created, Labels: map[string]string{topology.KeyHostname: name}, Capacity: g.Template.Capacity, Allocatable: g.Template.Allocatable}
	for k, v := range g.Template.Labels {
		n.Labels[k] = v
	}
	w.s.Nodes = append(w.s.Nodes, n)
	return n
}

// term changes what a class asks for.
type term func(*cluster.PodClass)

func on(key, value string) term {
	return func(c *cluster.PodClass) { c.NodeSelector = map[string]string{key: value} }
}

func spread(key string) term {
	return func(c *cluster.PodClass) {
		c.Spread = append(c.Spread, cluster.Spread{TopologyKey: key, MaxSkew: 1, Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{c.Labels["app"]}}}}})
	}
}

// pods adds n pods of so many milli cores that the scheduler could not place, as a class of their own.
func (w *world) pods(n int, app string, milli int64, terms ...term) int {
	c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": app}, Requests: cluster.Resources{MilliCPU: milli, Memory: 1 << 28, Pods: 1}}
	for _, change := range terms {
		change(&c)
	}
	w.s.Classes = append(w.s.Classes, c)
	for i := range n {
		w.s.Pods = append(w.s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("%s-%d", app, i)), Class: len(w.s.Classes) - 1, Created: cluster.At(w.s.Now), Unschedulable: cluster.At(w.s.Now)})
	}
	return len(w.s.Classes) - 1
}

// run lets the pods of a class run on a node.
func (w *world) run(node string, class int) {
	for i := range w.s.Pods {
		if w.s.Pods[i].Class == class {
			w.s.Pods[i].Node, w.s.Pods[i].Unschedulable = cluster.NodeName(node), 0
		}
	}
}

// waiting lets the pods of a class wait for room that is there: no machine is bought for them.
func (w *world) waiting(class int) {
	for i := range w.s.Pods {
		if w.s.Pods[i].Class == class {
			w.s.Pods[i].Unschedulable = 0
		}
	}
}

// packer plays the round as far as its packing.
func (w *world) packer() *Packer {
	r := round.New(new(round.Cache), &w.s, &decision.Memory{}, &w.p)
	r.Index()
	r.Account()
	growth.Judge(r)
	r.Gather()
	p := New(r)
	p.Topology = topology.Compile(r)
	return p
}
