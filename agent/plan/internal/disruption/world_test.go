package disruption_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
)

// world is what a round is about.
type world struct {
	s cluster.Snapshot
	m decision.Memory
	p decision.Policy
}

// g is the group of fleet.
func (w *world) g() *cluster.NodeGroup { return &w.s.Groups[0] }

// old is a fleet whose machines are too old, of a group whose source is not told, so that no first machine has to prove itself.
func old(n int) *world {
	w := &world{}
	w.s, w.p = fleet(n)
	w.s.Classes = []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{Pods: 1}}}
	w.p.MaxNodeAge, w.p.OKTotalUnready = time.Hour, 1000
	w.g().Template.Source = nil
	w.g().Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 100, Percent: true}}
	return w
}

// drifted is a fleet whose machines are to be replaced by those of another source.
func drifted(n int) *world {
	w := old(n)
	w.p.MaxNodeAge, w.p.Drift = 0, true
	w.g().Template.Source = cluster.Spec{"image": "new"}
	return w
}

// other adds a group without machines.
func (w *world) other(name cluster.GroupID) *cluster.NodeGroup {
	g := *w.g()
	g.ID, g.Instances, g.Target = name, nil, 0
	w.s.Groups = append(w.s.Groups, g)
	return &w.s.Groups[len(w.s.Groups)-1]
}

// join adds a Ready node of a group.
func (w *world) join(g *cluster.NodeGroup, name cluster.NodeName, age time.Duration, source string) *cluster.Node {
	n := &cluster.Node{Name: name, ProviderID: "i-" + string(name), Ready: cluster.StatusTrue, Created: w.s.Now.Add(-age), Capacity: g.Template.Capacity, Allocatable: g.Template.Allocatable}
	w.s.Nodes = append(w.s.Nodes, n)
	g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(n.ProviderID), Member: true, Phase: cluster.PhaseRunning, Created: n.Created, Source: cluster.Spec{"image": source}})
	g.Target++
	return n
}

// mark cordons a node as the agent does.
func mark(n *cluster.Node) {
	n.Unschedulable = true
	n.Taints = append(n.Taints, cluster.Taint{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"})
	n.Annotations = map[string]string{cluster.AnnotationCordoned: "true"}
}

// dear notes that one machine was ordered in place of some nodes, to save money.
func (w *world) dear(ago time.Duration, nodes ...cluster.NodeName) *decision.Consolidation {
	if len(nodes) == 0 {
		nodes = []cluster.NodeName{"w-000", "w-001"}
	}
	w.p.ScaleDown, w.p.Consolidate = true, decision.ConsolidateAlways
	w.m.Consolidation = &decision.Consolidation{Nodes: nodes, Group: w.g().ID, Machines: 1, Ordered: w.s.Now.Add(-ago)}
	return w.m.Consolidation
}

// refused notes that the cloud had no machine for a group.
func (w *world) refused(group cluster.GroupID, ago time.Duration) {
	w.m.Backoff = append(w.m.Backoff, decision.Backoff{Group: group, Cause: cluster.CauseCapacity, Last: w.s.Now.Add(-ago), Until: w.s.Now.Add(time.Hour), Text: "full"})
}

func (w *world) begin() *disruption.Round { return begun(&w.s, &w.m, &w.p) }

// held are the words about a node or a group.
func held(d *disruption.Round, name string) string {
	var out []string
	for _, h := range d.Plan.Held {
		if h.Name == name {
			out = append(out, "["+h.Rule+"] "+h.Why)
		}
	}
	return strings.Join(out, "; ")
}

// put puts a pod on a node.
func put(n *cluster.Node, made time.Time) *cluster.Pod {
	n.Pods = append(n.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/%s-%d", n.Name, len(n.Pods))), Node: n.Name, Created: cluster.At(made), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}})
	return &n.Pods[len(n.Pods)-1]
}
