package nodecleaner

import (
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// tellings say of each rule of the reaper how tell.go tells what it holds, and which metric shows
// it.
var tellings = map[string]string{
	// A line at info, nodecleaner_held_total and nodecleaner_held_nodes.
	"holds": "L0 E1 E2 E3 E4 E5 E6 E7 N5 G0 G1 G2 G5 L1 L2 L3 N4 B5",
	// A Warning that the Node would be deleted, and the same metrics.
	"observes": "C1 M1 M2",
	// A Warning and an Event on each Node, nodecleaner_breakers_total and nodecleaner_breaker_open.
	"breaks": "B1 B2 B3 B4 B6",
	// deleteOne tells that the deletion was given up: the live Node is another one than was judged.
	"rechecks": "N1 N2 N3",
	// deleteOne tells the deletion, nodecleaner_deleted_total.
	"proves": "G3 G4 S1",
}

// TestEveryRuleIsClassified: each rule of the reaper is told in one way, and the breakers are
// those that the reaper itself calls so.
func TestEveryRuleIsClassified(t *testing.T) {
	of := map[string]string{}
	for how, ids := range tellings {
		for _, id := range strings.Fields(ids) {
			if of[id] != "" {
				t.Errorf("%s is told in two ways: %s, %s", id, how, of[id])
			}
			of[id] = how
		}
	}
	breakers := reaper.Breakers()
	for _, rule := range reaper.Rules() {
		if of[rule.ID] == "" {
			t.Errorf("%s (%s) is not in tellings: how do the journal and the metrics tell it?", rule.ID, rule.Says)
		}
		if breaks := slices.Contains(breakers, rule.ID); breaks != (of[rule.ID] == "breaks") {
			t.Errorf("%s: tellings says %q, and it is a breaker: %t", rule.ID, of[rule.ID], breaks)
		}
		delete(of, rule.ID)
	}
	for id := range of {
		t.Errorf("tellings has %s, which is no rule of the reaper", id)
	}
}
