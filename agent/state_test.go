package agent

import (
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// TestZeroRules: each rule of the nodecleaner is counted from 0: deletions by their proofs,
// what is held by the others.
func TestZeroRules(t *testing.T) {
	m := report.NewMetrics()
	zeroRules(m)
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, f := range families {
		for _, series := range f.GetMetric() {
			for _, l := range series.GetLabel() {
				got[f.GetName()] = append(got[f.GetName()], l.GetValue())
			}
		}
	}
	if proofs := got["autoscaler_nodecleaner_deleted_total"]; !slices.Equal(proofs, []string{"G3", "G4", "S1"}) {
		t.Errorf("deletions are counted by %v", proofs)
	}
	if held := got["autoscaler_nodecleaner_held_total"]; len(held) != len(reaper.Rules())-3 || slices.Contains(held, "G3") {
		t.Errorf("held Nodes are counted by %v", held)
	}
	if breakers := got["autoscaler_nodecleaner_breakers_total"]; len(breakers) != len(reaper.Breakers()) {
		t.Errorf("breakers are counted by %v", breakers)
	}
}
