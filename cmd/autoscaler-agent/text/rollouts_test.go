package text

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestRolloutsTellLongWaits: a node that has been to be replaced for more than a day is told of, with the time.
func TestRolloutsTellLongWaits(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for age, told := range map[time.Duration]bool{0: false, 23 * time.Hour: false, 25 * time.Hour: true, 90 * 24 * time.Hour: true} {
		r := decision.Rollout{Group: "workers", State: decision.RolloutRolling, Machines: 3}
		if age > 0 {
			r.Oldest = now.Add(-age)
		}
		var b bytes.Buffer
		Rollouts(&b, decision.Rollouts{At: now, Rollouts: []decision.Rollout{r}})
		if want := "has been to be replaced since " + now.Add(-age).Format(time.RFC3339); strings.Contains(b.String(), want) != told || strings.Contains(b.String(), "since") != told {
			t.Errorf("%s:\n%s", age, b.String())
		}
	}
}
