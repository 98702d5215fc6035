package yardstick

import (
	"testing"

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
	ours, _ := m.Ours(policy("price"))
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
