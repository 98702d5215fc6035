package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

var t0 = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func policy() decision.Policy {
	return decision.Policy{Expander: "least-waste", ExpendablePodsCutoff: -10, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute,
		BackoffInitial: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour, ScaleDown: true, ScaleDownUnready: true, UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5,
		UnneededFor: 10 * time.Minute, UnreadyFor: 20 * time.Minute, DelayAfterAdd: 10 * time.Minute, DelayAfterFailure: 3 * time.Minute,
		DelayAfterTaint: 5 * time.Second, MaxEmptyAtOnce: 10, MaxDrainAtOnce: 10, MaxPodEvictionTime: 2 * time.Minute, MaxGracefulTermination: 10 * time.Minute,
		SkipNodesWithSystemPods: true, SkipNodesWithLocalStorage: true, SkipNodesWithCustomPods: true, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45, EnforceMin: true, FreshFor: time.Minute, BurstHold: 15 * time.Second, RepairMaxSick: 20, ReplaceDrainTime: 15 * time.Minute, ReplaceSettleTime: 2 * time.Minute}
}

func TestBurstSmoke(t *testing.T) {
	s := cluster.Snapshot{Now: t0, Groups: []cluster.NodeGroup{{ID: "workers", Max: 50, ReadAt: t0, Template: cluster.Template{Spec: "x",
		Allocatable: cluster.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 110}}}},
		Classes: []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{MilliCPU: 100, Memory: 64 << 20, Pods: 1}}}}
	for i := range 300 {
		p := cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/web-%03d", i)), UID: cluster.UID(fmt.Sprint(i)), Created: cluster.At(t0)}
		if i == 7 {
			p.Unschedulable = cluster.At(t0)
		}
		s.Pods = append(s.Pods, p)
	}
	plan, m := Decide(s, decision.Memory{}, policy())
	t.Log(plan, len(m.Reservations))
	g, ok := plan.Actions[0].(decision.Grow)
	if !ok || g.To != 15 || len(g.Pods) != 300 {
		t.Fatal(plan)
	}
	s.Groups[0].Target = 15
	plan, m = Decide(s, m, policy())
	t.Log(plan)
	plan, _ = Decide(s, decision.Memory{}, policy())
	if len(plan.Actions) != 0 {
		t.Fatal(plan)
	}
}
