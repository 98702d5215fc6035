package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// TestRoundTimes: every phase of a round that was decided has its time, and an answer from
// memory has none.
func TestRoundTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var engine plan.Engine
		var took roundTimes
		took.enter(report.StepState)
		time.Sleep(time.Second)
		engine.Entered = func(p plan.Phase) {
			took.phase(p)
			time.Sleep(time.Duration(p+1) * time.Second) // what the phase costs
		}
		s := cluster.Snapshot{Now: time.Now()}
		_, memory := engine.Decide(s, decision.Memory{}, decision.Policy{})
		took.enter("")
		start := time.Now()
		took.acted(start, []cluster.Outcome{{Action: "grow", At: start.Add(4 * time.Second)}, {Action: "terminate", At: start.Add(9 * time.Second)}})
		for step, want := range map[string]time.Duration{report.StepState: 2 * time.Second, report.StepScaleUp: 6 * time.Second,
			report.StepFindUnneeded: 3 * time.Second, report.StepScaleDown: 5 * time.Second} {
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
