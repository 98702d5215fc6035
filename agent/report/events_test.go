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
