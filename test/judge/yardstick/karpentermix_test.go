package yardstick

import (
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/plantest"
)

// TestKarpentersMix holds what is bought for Karpenter's own benchmark against Karpenter's
// rule, of which all spread and affinity is dropped: it buys for less demanding pods.
func TestKarpentersMix(t *testing.T) {
	m := &Mix{Snapshot: plantest.KarpenterMix(start, 1000, 400)}
	n, first := len(m.Snapshot.Classes), -1
	m.Count, m.Tie, m.Skew, m.Like = make([]int, n), make([]Tie, n), make([]int, n), make([]int, n)
	for c := range n {
		if m.Like[c] = c; len(m.Snapshot.Classes[c].PodAntiAffinity) == 0 {
			continue
		}
		if first < 0 {
			first = c
		}
		m.Tie[c], m.Like[c] = AntiHost, first // all of them keep away from each other
	}
	for i := range m.Snapshot.Pods {
		m.Count[m.Snapshot.Pods[i].Class]++
	}
	for i := range m.Snapshot.Groups {
		m.Pool, m.Zone = append(m.Pool, "main"), append(m.Zone, m.Snapshot.Groups[i].Template.Labels[zoneLabel])
	}
	m.index()
	theirs := m.Karpenter()
	ours := m.ours()
	sum := func(p Purchase) (n int) {
		for _, x := range p.Machines {
			n += x
		}
		return n
	}
	t.Logf("Karpenter's rule: %d machines for %.2f; ours: %d for %.2f", sum(theirs), m.Price(theirs), sum(ours), m.Price(ours))
	if theirs.Left+ours.Left > 0 || sum(theirs) != 200 {
		t.Fatalf("%d and %d pods are left; Karpenter itself buys 200 machines", theirs.Left, ours.Left)
	}
	if m.Price(ours) > m.Price(theirs) || sum(ours) > sum(theirs) {
		t.Errorf("ours is dearer: %+v", ours)
	}
}

// ours is what plan.Decide buys by price.
func (m *Mix) ours() Purchase {
	out := Purchase{Machines: make([]int, len(m.empty))}
	got, _ := plan.Decide(m.Snapshot, decision.Memory{}, decision.Policy{Expander: "price", ExpendablePodsCutoff: -10, MaxNodeProvisionTime: 15 * time.Minute,
		MaxNodeStartupTime: 15 * time.Minute, BackoffInitial: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour, FreshFor: time.Minute, EnforceMin: true})
	for _, a := range got.Actions {
		if a, ok := a.(decision.Grow); ok {
			out.Machines[slices.IndexFunc(m.Snapshot.Groups, func(g cluster.NodeGroup) bool { return g.ID == a.Group })] += a.To - a.From
		}
	}
	for _, h := range got.Held {
		if h.Kind == "pod" {
			out.Left += h.Count
		}
	}
	return out
}
