package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func events(r *record.FakeRecorder) (out []string) {
	for len(r.Events) > 0 {
		out = append(out, <-r.Events)
	}
	return out
}

func wants(t *testing.T, got []string, words ...string) {
	t.Helper()
	if len(got) != len(words) {
		t.Errorf("%d events %q, want %d", len(got), got, len(words))
		return
	}
	for i, w := range words {
		if !strings.Contains(got[i], w) {
			t.Errorf("event %q, want %q", got[i], w)
		}
	}
}

func TestPodsHearWhyNothingIsBought(t *testing.T) {
	r := record.NewFakeRecorder(1000)
	e := Events{Recorder: r}
	now := time.Unix(1_700_000_000, 0)
	s := cluster.Snapshot{Now: now}
	for i := range 3 {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprint("ns/p", i)), UID: cluster.UID(fmt.Sprint(i)), Class: 7, Unschedulable: cluster.At(now)})
	}
	s.Pods = append(s.Pods, cluster.Pod{Key: "ns/other", Class: 8, Unschedulable: cluster.At(now)})
	p := decision.Plan{Held: []decision.Held{{Kind: "pod", Name: "ns/p0", Count: 2, Rule: decision.RuleNoGroup, Why: "group a: x; group b: x", Groups: []decision.Refusal{
		{Name: "a", Rule: "F6", Why: "Insufficient cpu"}, {Name: "b", Rule: decision.RuleTotals, Why: "the cluster's limit of 3 nodes is reached"}}}}}
	memory := decision.Memory{Reservations: decision.Reservations{{Group: "a", Pods: []cluster.PodKey{"ns/p1"}}}}
	e.Held(&s, p, memory)
	const text = "Normal NotTriggerScaleUp pod didn't trigger scale-up: 1 Insufficient cpu (group a), 1 the cluster's limit of 3 nodes is reached (group b)"
	wants(t, events(r), "Warning MaxNodesTotalReached", text, text)
	e.Held(&s, p, memory)
	wants(t, events(r))
	s.Now = now.Add(6 * time.Minute)
	e.Held(&s, p, memory)
	wants(t, events(r), "MaxNodesTotalReached", text, text)
}

func TestUnknownValuesAreWarnedOf(t *testing.T) {
	r := record.NewFakeRecorder(10)
	e := Events{Recorder: r}
	node := &cluster.Node{Name: "n", Pods: []cluster.Pod{{Key: "ns/a", UID: "a", SafeToEvict: "yes"}, {Key: "ns/b", UID: "b", SafeToEvict: "false"}, {Key: "ns/c", UID: "c", SafeToEvict: "on-completion"}}}
	s := cluster.Snapshot{Now: time.Unix(1_700_000_000, 0), Nodes: []*cluster.Node{node, {Name: "other", Pods: node.Pods}}}
	p := decision.Plan{Held: []decision.Held{{Kind: "node", Name: "n", Rule: decision.RuleBlocked}}}
	e.Held(&s, p, decision.Memory{})
	e.Held(&s, p, decision.Memory{})
	wants(t, events(r), `Warning UnknownSafeToEvict the annotation cluster-autoscaler.kubernetes.io/safe-to-evict has the value "yes", which is none of true, false and on-completion: the pod is not evicted, and keeps node n`)
}

func TestGroupsAndNodesAreTold(t *testing.T) {
	r := record.NewFakeRecorder(1000)
	e := Events{Recorder: r}
	now := time.Unix(1_700_000_000, 0)
	s := cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{{ID: "a", Max: 9}}}
	grow := decision.Grow{Group: "a", From: 1, To: 3}
	for i := range 300 {
		key := cluster.PodKey(fmt.Sprint("ns/p", i))
		s.Pods = append(s.Pods, cluster.Pod{Key: key, UID: cluster.UID(key)})
		grow.Pods = append(grow.Pods, key)
	}
	p := decision.Plan{Actions: []decision.Action{grow, decision.Terminate{Group: "a", Instance: "i-9", Rule: decision.RuleNoJoin, Why: "i-9 has not become a Node"}}}
	e.Outcomes(&s, p, []cluster.Outcome{{Action: "grow", Group: "a", From: 1, To: 3}})
	got := events(r)
	if len(got) != 1+eventBurst+1 {
		t.Fatalf("%d events", len(got))
	}
	wants(t, []string{got[0], got[1], got[len(got)-1]}, "Normal ScaledUpGroup Scale-up: setting group a size to 3 instead of 1 (max: 9)", "Normal TriggeredScaleUp pod triggered scale-up: [{a 1->3 (max: 9)}]", "Warning ScaleUpTimedOut")
	e.Outcomes(&s, decision.Plan{}, []cluster.Outcome{
		{Action: "grow", Group: "a", Error: "quota", Kind: "exhausted"}, {Action: "evict", Pod: "ns/p", Node: "n1"}, {Action: "terminate", Group: "a", Node: "n1"},
		{Action: "terminate", Group: "a", Node: "n2"}, {Action: "terminate", Group: "a", Node: "n3", Error: "no"}})
	wants(t, events(r), "Warning FailedToScaleUpGroup", "ScaleDown Scale-down: node n1", "ScaleDownEmpty Scale-down: empty node n2")
	e.Held(&s, decision.Plan{Held: []decision.Held{{Kind: "cluster", Rule: decision.RuleUnhealthy, Why: "5 of 6 nodes are not Ready"}, {Kind: "group", Name: "a", Rule: decision.RuleShort, Why: "not delivered"}}}, decision.Memory{})
	wants(t, events(r), "Warning ClusterUnhealthy", "Warning ScaleUpTimedOut")
}

// A node whose time to start is over is told by name, in an Event on it and in a metric; one that is
// still starting is not, and counts as not started.
func TestANodeThatDoesNotStartIsTold(t *testing.T) {
	r, m := record.NewFakeRecorder(10), NewMetrics()
	e := Events{Recorder: r}
	s := cluster.Snapshot{Now: time.Unix(1_700_000_000, 0)}
	for _, name := range []cluster.NodeName{"late", "young", "well"} {
		s.Nodes = append(s.Nodes, &cluster.Node{Name: name, Ready: cluster.StatusTrue})
	}
	p := decision.Plan{Held: []decision.Held{{Kind: "node", Name: "late", Count: 1, Rule: decision.RuleNeverStarted, Why: "the taint x has not passed"}, {Kind: "node", Name: "young", Count: 1, Rule: decision.RuleStarting, Why: "starting"}}}
	memory := decision.Memory{Starting: map[cluster.NodeName]decision.Start{"late": {Labels: []string{"x"}, Overdue: true}, "young": {Labels: []string{"x"}}}}
	e.Held(&s, p, memory)
	wants(t, events(r), "Warning NodeNotStarted the node is not what its group's template says: the taint x has not passed")
	m.Round(s, p, memory, decision.Policy{}, true, true)
	text := scrape(t, m)
	for _, want := range []string{`autoscaler_node_not_started{node="late"} 1`, `cluster_autoscaler_nodes_count{state="notStarted"} 1`, `cluster_autoscaler_nodes_count{state="ready"} 2`} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %s", want)
		}
	}
	if strings.Contains(text, `node_not_started{node="young"}`) || strings.Contains(text, `unremovable_nodes_count{reason="I`) {
		t.Error("a node that is still starting is counted as one that has not started, or as one that stays")
	}
	m.Round(s, decision.Plan{}, decision.Memory{}, decision.Policy{}, true, true)
	if strings.Contains(scrape(t, m), "node_not_started{") {
		t.Error("the metric outlives what it tells")
	}
}

// scrape is every metric with labels, as name{label="value"} value.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range families {
		for _, x := range f.GetMetric() {
			var labels []string
			for _, l := range x.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			fmt.Fprintf(&out, "%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), x.GetGauge().GetValue())
		}
	}
	return out.String()
}
