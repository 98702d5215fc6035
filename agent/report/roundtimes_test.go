package report

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// TestRoundTimes: every phase of a round that was decided has its time, and an answer from
// memory has none.
func TestRoundTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var engine plan.Engine
		var took RoundTimes
		took.Begin()
		time.Sleep(time.Second)
		engine.Entered = func(p plan.Phase) {
			took.Phase(p)
			time.Sleep(time.Duration(p+1) * time.Second) // what the phase costs
		}
		s := cluster.Snapshot{Now: time.Now()}
		_, memory := engine.Decide(s, decision.Memory{}, decision.Policy{})
		took.Decided()
		start := time.Now()
		took.Acted(start, []cluster.Outcome{{Action: "grow", At: start.Add(4 * time.Second)}, {Action: "terminate", At: start.Add(9 * time.Second)}})
		for step, want := range map[string]time.Duration{stepState: 2 * time.Second, stepScaleUp: 6 * time.Second,
			stepFindUnneeded: 3 * time.Second, stepScaleDown: 5 * time.Second} {
			if took.took[step] != want {
				t.Errorf("%s took %s, want %s", step, took.took[step], want)
			}
		}
		engine.Entered = func(p plan.Phase) { t.Errorf("an answer from memory entered phase %d", p) }
		if engine.Decide(s, memory, decision.Policy{}); !engine.Cached() {
			t.Error("the second answer is not from memory")
		}
	})
}
