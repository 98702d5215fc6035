package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/capacity"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
)

// TestEndedMachinesAreKnown: a machine that the agent ended says so by either form of its ID, also when its cloud
// lists it no longer; another machine that got its ID since does not.
func TestEndedMachinesAreKnown(t *testing.T) {
	const id = "openstack:///8c8c6c3c-0000-4000-8000-000000000001"
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	a := &app{settings: &groups.Live{}, buffers: capacity.NewBuffers(capacity.Deps{}), requested: capacity.NewRequests(capacity.Deps{}), scaler: &scaler{history: &history.History{}}}
	a.scaler.history.Acted(decision.Plan{Actions: []decision.Action{decision.Terminate{Group: "g", Node: "n", Instance: id, Rule: "D17", Why: "it is idle"}}},
		[]cluster.Outcome{{Action: "terminate", Group: "g", Node: "n", Instance: id, At: now}})
	for name, c := range map[string]struct {
		id, want string
		launched time.Time
	}{
		"gone":              {id, "this agent has ended it, at 2026-11-28T12:00:00Z by rule D17: it is idle", time.Time{}},
		"by its own ID":     {id[len("openstack:///"):], "this agent has ended it", time.Time{}},
		"still listed":      {id, "this agent has ended it", now.Add(-time.Hour)},
		"another one since": {id, "there is no sign of it yet", now.Add(time.Minute)},
		"never seen":        {"i-7", "no node group has an instance of that ID", time.Time{}},
	} {
		s := &cluster.Snapshot{Now: now.Add(2 * time.Minute)}
		if !c.launched.IsZero() {
			s.Groups = []cluster.NodeGroup{{ID: "g", Instances: []cluster.Instance{{ID: id, Phase: cluster.PhaseRunning, Created: c.launched}}}}
		}
		if got := nojoin.Conclude(nojoin.Facts{Known: a.known(s, c.id)}); !strings.Contains(got.Summary, c.want) {
			t.Errorf("%s: %q, want %q", name, got.Summary, c.want)
		}
	}
}
