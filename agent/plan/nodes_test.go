package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestNodes: each state of a machine, in what it differs, what holds it, and the order.
func TestNodes(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	today := cluster.Spec{"image": "ami-2", "user data": "sha256:2"}
	g := cluster.NodeGroup{ID: "workers", Max: 20, ReadAt: now, Template: cluster.Template{Spec: "lt", Source: today,
		Capacity: cluster.Resources{MilliCPU: 4000, Memory: 8 << 30, Pods: 110}, Allocatable: cluster.Resources{MilliCPU: 4000, Memory: 8 << 30, Pods: 110}}}
	s := cluster.Snapshot{Now: now, ControlPlaneVersion: "v1.36.3"}
	machine := func(name string, source cluster.Spec, phase cluster.Phase, edit func(*cluster.Node)) {
		id := cluster.InstanceID("aws:///a/i-" + name)
		g.Instances = append(g.Instances, cluster.Instance{ID: id, Phase: phase, Member: phase != cluster.PhaseGone, Created: now.Add(-48 * time.Hour), Source: source})
		if edit != nil {
			n := &cluster.Node{Name: cluster.NodeName(name), ProviderID: string(id), Created: now.Add(-47 * time.Hour), Ready: cluster.StatusTrue, ReadySince: now.Add(-46 * time.Hour),
				KubeletVersion: "v1.36.3", Capacity: g.Template.Capacity, Allocatable: g.Template.Allocatable}
			edit(n)
			s.Nodes = append(s.Nodes, n)
		}
	}
	old := cluster.Spec{"image": "ami-1", "user data": "sha256:1"}
	machine("old", old, cluster.PhaseRunning, func(n *cluster.Node) { n.KubeletVersion = "v1.34.1" })
	machine("kept", today, cluster.PhaseRunning, func(n *cluster.Node) { n.Annotations = map[string]string{cluster.AnnotationNoScaleDown: "true"} })
	machine("cordoned", today, cluster.PhaseRunning, func(n *cluster.Node) { n.Unschedulable = true })
	machine("silent", today, cluster.PhaseRunning, func(n *cluster.Node) { n.Ready = cluster.StatusUnknown })
	machine("marked", today, cluster.PhaseRunning, func(n *cluster.Node) {
		n.Unschedulable, n.Annotations = true, map[string]string{cluster.AnnotationCordoned: now.Format(time.RFC3339) + " D11"}
		n.Taints = []cluster.Taint{{Key: cluster.TaintToBeDeleted, Value: fmt.Sprint(now.Unix()), Effect: "NoSchedule"}}
	})
	machine("going", today, cluster.PhaseDeleting, func(*cluster.Node) {})
	machine("young", today, cluster.PhaseRunning, func(n *cluster.Node) {
		n.Ready, n.Created, n.ReadySince = cluster.StatusFalse, now.Add(-time.Minute), now.Add(-time.Minute)
	})
	machine("coming", today, cluster.PhasePending, nil)
	machine("broken", old, cluster.PhaseFailed, nil)
	machine("gone", old, cluster.PhaseGone, nil)
	g.Target = 9
	s.Groups = []cluster.NodeGroup{g}
	s.Nodes = append(s.Nodes, &cluster.Node{Name: "leader", ControlPlane: true, Created: now, Ready: cluster.StatusTrue, ReadySince: now, KubeletVersion: "v1.36.3", Allocatable: g.Template.Allocatable})
	policy := decision.Policy{ScaleDown: true, UtilizationThreshold: 0.5, UnneededFor: 10 * time.Minute, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute}

	out := Nodes(s, decision.Memory{}, policy)
	var order []string
	states, rows := map[string]string{}, map[string]decision.NodeRow{}
	for _, r := range out.Nodes {
		name := string(r.Node)
		if name == "" {
			name = strings.TrimPrefix(r.Instance.Last(), "i-")
		}
		order, states[name], rows[name] = append(order, name), r.State, r
	}
	for name, want := range map[string]string{"leader": decision.NodeReady, "old": decision.NodeReady, "kept": decision.NodeReady, "cordoned": decision.NodeCordoned, "silent": decision.NodeNotReady,
		"marked": decision.NodeDraining, "going": decision.NodeEnding, "young": decision.NodeStarting, "coming": decision.NodeUpcoming, "broken": decision.NodeFailed} {
		if states[name] != want {
			t.Errorf("%s is %q, want %q", name, states[name], want)
		}
	}
	if want := []string{"leader", "cordoned", "going", "kept", "marked", "old", "silent", "young", "broken", "coming"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if r := rows["old"]; len(r.Drift) != 3 || r.Drift[0].Is != "ami-1" || r.Drift[2].Property != cluster.PropertyKubelet || r.MinorsBehind != 2 || !r.Created.Equal(now.Add(-48*time.Hour)) {
		t.Errorf("%+v", r)
	}
	if r := rows["kept"]; r.Rule != decision.RuleOptOut || r.Held == "" || len(r.Drift) > 0 {
		t.Errorf("%+v", r)
	}
	if r := rows["leader"]; r.Group != "" || r.Instance != "" || !r.Created.Equal(now) {
		t.Errorf("%+v", r)
	}
	full, _ := Decide(s, decision.Memory{}, policy)
	looked := Machines(s, decision.Memory{}, policy, full)
	for i := range looked.Nodes { // the same rows; the reasons are those that the last plan held
		if r, want := looked.Nodes[i], out.Nodes[i]; !reflect.DeepEqual(r, want) {
			t.Errorf("a look alone says %+v, want %+v", r, want)
		}
	}
	if bare := Machines(s, decision.Memory{}, policy, decision.Plan{}); slices.ContainsFunc(bare.Nodes, func(r decision.NodeRow) bool { return r.Held != "" }) {
		t.Errorf("without a plan there is a reason: %+v", bare.Nodes)
	}
	x := Explain(s, decision.Memory{}, policy, decision.Query{Kind: "node", Name: "old"})
	if !slices.Equal(x.Node.Drift, rows["old"].Drift) {
		t.Errorf("explain node tells %v, nodes %v", x.Node.Drift, rows["old"].Drift)
	}
}

// BenchmarkMachines is what the map of 5,000 nodes with 50,000 pods, of which 1,000 wait, asks of the engine.
func BenchmarkMachines(b *testing.B) {
	s := busy(5000, 50000, 50)
	for i := range 1000 {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/new-%05d", i)), UID: cluster.UID(fmt.Sprint("n", i)), Class: i % 50, Created: cluster.At(t0), Unschedulable: cluster.At(t0)})
	}
	s = s.Seated()
	last, m := Decide(s, decision.Memory{}, policy())
	b.ReportAllocs()
	for b.Loop() {
		Machines(s, m, policy(), last)
	}
}
