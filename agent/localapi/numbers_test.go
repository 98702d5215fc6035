package localapi

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestNumbersInReasons: a reason says by how much a machine is too small.
func TestNumbersInReasons(t *testing.T) {
	s := cluster.Snapshot{
		Classes: []cluster.PodClass{{}, {Requests: cluster.Resources{MilliCPU: 64000, Memory: 3 << 30, Extended: map[string]int64{"nvidia.com/gpu": 2}}}},
		Pods:    []cluster.Pod{{Key: "default/web"}, {Key: "default/huge", Class: 1}},
		Groups: []cluster.NodeGroup{
			{ID: "small", Template: cluster.Template{Allocatable: cluster.Resources{MilliCPU: 3800, Memory: 14 << 30, Extended: map[string]int64{"nvidia.com/gpu": 1}}}},
			{ID: "other"},
		},
	}
	x := decision.Explanation{Name: "default/huge", Pod: &decision.PodFacts{Groups: &decision.Judgement{Refusals: []decision.Refusal{
		{Name: "small", Rule: "F6", Why: "Insufficient cpu, Insufficient nvidia.com/gpu"}, {Name: "other", Rule: "F3", Why: "node(s) didn't match Pod's node affinity/selector"}, {Name: "gone", Rule: "F6", Why: "Insufficient cpu"},
	}}}}
	withNumbers(&x, &s)
	for i, want := range []string{
		"Insufficient cpu, Insufficient nvidia.com/gpu: needs 64 cpu, the machine offers 3.8; needs 2 nvidia.com/gpu, the machine offers 1",
		"node(s) didn't match Pod's node affinity/selector", "Insufficient cpu",
	} {
		if got := x.Pod.Groups.Refusals[i].Why; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
