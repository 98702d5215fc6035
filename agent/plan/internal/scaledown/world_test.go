package scaledown

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// world is a cluster, and one round of scale-down in it.
type world struct {
	s cluster.Snapshot
	p decision.Policy
	m decision.Memory
	*Planner
}

// owner is the controller of the pods of a world, and daemonSet that of the others.
var (
	owner     = &cluster.Owner{Kind: "ReplicaSet", Name: "web", UID: "rs-web"}
	daemonSet = &cluster.Owner{Kind: "DaemonSet", Name: "log", UID: "ds-log"}
)

// newWorld is a cluster without nodes. It is 08:00. Class 0 is a pod of one core and 1 GiB.
func newWorld() *world {
	w := &world{}
	w.p = decision.Policy{ScaleDown: true, ScaleDownUnready: true, UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5, UnneededFor: 10 * time.Minute, UnreadyFor: 20 * time.Minute,
		DelayAfterAdd: 10 * time.Minute, DelayAfterFailure: 3 * time.Minute, DelayAfterTaint: 5 * time.Second, MaxEmptyAtOnce: 10, MaxDrainAtOnce: 10, MaxPodEvictionTime: 2 * time.Minute,
		MaxGracefulTermination: 10 * time.Minute, NodeDeletionDelayTimeout: 2 * time.Minute, ExpendablePodsCutoff: -10, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute,
		SkipNodesWithSystemPods: true, SkipNodesWithLocalStorage: true, SkipNodesWithCustomPods: true, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45, FreshFor: time.Minute, RepairMaxSick: 100, ReplaceDrainTime: 15 * time.Minute, ReplaceSettleTime: 2 * time.Minute}
	w.s.Now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	w.s.Classes = []cluster.PodClass{{Namespace: "default", Requests: size(1)}}
	return w
}

// size is so many cores with 1 GiB each.
func size(cores float64) cluster.Resources {
	return cluster.Resources{MilliCPU: int64(cores * 1000), Memory: int64(cores * (1 << 30)), Pods: 1}
}

// group adds a group of machines of four cores and 8 GiB, with nodes that joined a day ago. Groups and nodes are to be added in the order of their names.
func (w *world) group(id string, nodes ...string) *cluster.NodeGroup {
	machine := cluster.Resources{MilliCPU: 4000, Memory: 8 << 30, Pods: 110}
	w.s.Groups = append(w.s.Groups, cluster.NodeGroup{ID: cluster.GroupID(id), Max: 20, Target: len(nodes), ReadAt: w.s.Now, Template: cluster.Template{Spec: "m", Capacity: machine, Allocatable: machine}})
	g := &w.s.Groups[len(w.s.Groups)-1]
	born := w.s.Now.Add(-24 * time.Hour)
	for _, name := range nodes {
		g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID("i-" + name), Member: true, Phase: cluster.PhaseRunning, Created: born})
		w.s.Nodes = append(w.s.Nodes, &cluster.Node{Name: cluster.NodeName(name), UID: cluster.UID("uid-" + name), ProviderID: "i-" + name, Ready: cluster.StatusTrue, Created: born, ReadySince: born,
			Labels: map[string]string{"kubernetes.io/hostname": name}, Annotations: map[string]string{}, Capacity: machine, Allocatable: machine})
	}
	return g
}

// node is a Node by name.
func (w *world) node(name string) *cluster.Node {
	return w.s.Nodes[slices.IndexFunc(w.s.Nodes, func(n *cluster.Node) bool { return string(n.Name) == name })]
}

// instance is the machine of a node.
func (w *world) instance(node string) *cluster.Instance {
	for i := range w.s.Groups {
		for k := range w.s.Groups[i].Instances {
			if in := &w.s.Groups[i].Instances[k]; string(in.ID) == "i-"+node {
				return in
			}
		}
	}
	panic("no machine of node " + node)
}

// pods adds pods of a class to a node, named after the node and counted from 0 on.
func (w *world) pods(node string, class, n int) []cluster.Pod {
	x := w.node(node)
	for range n {
		key := cluster.PodKey(fmt.Sprintf("default/%s-%d", node, len(x.Pods)))
		x.Pods = append(x.Pods, cluster.Pod{Key: key, UID: cluster.UID(key), Node: x.Name, Class: class, Owner: owner, GracePeriod: 30, Created: cluster.At(w.s.Now.Add(-time.Hour))})
	}
	return x.Pods
}

// daemon adds a DaemonSet's pod of class 0 to a node.
func (w *world) daemon(node string) *cluster.Pod {
	all := w.pods(node, 0, 1)
	p := &all[len(all)-1]
	p.Owner = daemonSet
	return p
}

// class adds a class of pods.
func (w *world) class(c cluster.PodClass) int {
	if c.Namespace == "" {
		c.Namespace = "default"
	}
	w.s.Classes = append(w.s.Classes, c)
	return len(w.s.Classes) - 1
}

// waits adds pods of a class that kube-scheduler found no place for.
func (w *world) waits(class, n int) {
	for range n {
		key := cluster.PodKey(fmt.Sprintf("default/waits-%d", len(w.s.Pods)))
		w.s.Pods = append(w.s.Pods, cluster.Pod{Key: key, UID: cluster.UID(key), Class: class, Owner: owner, Created: cluster.At(w.s.Now.Add(-time.Minute)), Unschedulable: cluster.At(w.s.Now.Add(-time.Minute))})
	}
}

// idle lets nodes have been unneeded for so long.
func (w *world) idle(since time.Duration, nodes ...string) {
	for _, name := range nodes {
		round.Set(&w.m.Unneeded, cluster.NodeName(name), w.s.Now.Add(-since))
	}
}

// mark lets a node carry the agent's mark by a rule, for so long.
func (w *world) mark(node, rule string, since time.Duration) *cluster.Node {
	n, at := w.node(node), w.s.Now.Add(-since)
	n.Unschedulable = true
	n.Taints = append(n.Taints, cluster.Taint{Key: cluster.TaintToBeDeleted, Value: fmt.Sprint(at.Unix()), Effect: "NoSchedule"})
	n.Annotations[cluster.AnnotationCordoned] = at.Format(time.RFC3339) + " " + rule
	round.Set(&w.m.Draining, n.Name, at)
	return n
}

// begin does what comes before scale-down in a round.
func (w *world) begin() *world {
	r := round.New(new(round.Cache), &w.s, &w.m, &w.p)
	r.OpenHeadroom()
	r.Remember()
	r.Index()
	r.Account()
	r.Health()
	growth.Judge(r)
	r.Gather()
	w.Planner = New(r, new(Cache))
	w.Disruption.Judge()
	w.Plan.Held, w.Plan.Wake = nil, time.Time{}
	return w
}

// decide is scale-down as a round has it, consolidation aside.
func (w *world) decide() *world {
	if w.Planner == nil {
		w.begin()
	}
	w.DrainInterrupted()
	w.Resume()
	w.Decide()
	return w
}

// at is a node of the round.
func (w *world) at(name string) *round.Node { return &w.Nodes[w.ByName[cluster.NodeName(name)]] }

// fate is what the Plan says of a node: the actions on it and on its pods, and why it stays.
func (w *world) fate(name string) string {
	var out []string
	for _, a := range w.Plan.Actions {
		var of cluster.NodeName
		switch a := a.(type) {
		case decision.Cordon:
			of = a.Node
		case decision.Uncordon:
			of = a.Node
		case decision.Evict:
			of = a.Node
		case decision.Terminate:
			of = a.Node
		}
		if string(of) == name {
			out = append(out, fmt.Sprint(a))
		}
	}
	for _, h := range w.Plan.Held {
		if h.Kind == "node" && h.Name == name {
			out = append(out, h.Rule+" "+h.Why)
		}
	}
	return strings.Join(out, "; ")
}

// wantFate fails where the Plan says something else of a node.
func (w *world) wantFate(t *testing.T, row, node, want string) {
	t.Helper()
	if got := w.fate(node); got != want {
		t.Errorf("%s: %s: %q, want %q", row, node, got, want)
	}
}

// wantTimers fails where the time of other nodes runs.
func (w *world) wantTimers(t *testing.T, row, want string) {
	t.Helper()
	if got := w.timers(); got != want {
		t.Errorf("%s: the time runs of %q, want %q", row, got, want)
	}
}

// wantWake fails where the round does not ask for the next one after so long; 0: it asks for none.
func (w *world) wantWake(t *testing.T, row string, after time.Duration) {
	t.Helper()
	if got := w.Plan.Wake; after == 0 && !got.IsZero() || after > 0 && !got.Equal(w.Now.Add(after)) {
		t.Errorf("%s: wakes at %s, want after %s", row, round.Stamp(got), after)
	}
}

// timers are the nodes whose time runs in the next round, and since when.
func (w *world) timers() string {
	var out []string
	for name, since := range w.Next.Unneeded {
		out = append(out, string(name)+" "+w.Now.Sub(since).String())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// hosts is a cluster of nodes, each with a pod of a class.
func hosts(class func(w *world) int, nodes ...string) *world {
	w := newWorld()
	w.group("pool", nodes...)
	k := class(w)
	for _, n := range nodes {
		w.pods(n, k, 1)
	}
	return w
}
