package localapi

import (
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/doctor"
)

// TestAGroupThatTheCloudHoldsUp: check and status both give the cloud's reason, whichever
// of its three forms it has.
func TestAGroupThatTheCloudHoldsUp(t *testing.T) {
	for why, g := range map[string]cluster.NodeGroup{
		"Launch is suspended":    {ID: "g", Max: 3, Paused: "Launch is suspended"},
		"cluster k8s is updated": {ID: "g", Max: 3, Busy: "cluster k8s is updated"},
		"a rollout is under way": {ID: "g", Max: 3, Keeps: "a rollout is under way"},
	} {
		if f := doctor.Group(g); len(f) != 1 || f[0].Level != doctor.LevelWarning || f[0].Text != why {
			t.Errorf("check says %+v, want %q", f, why)
		}
		if s := groupStatus(g); !slices.Contains([]string{s.Paused, s.Busy, s.Keeps}, why) {
			t.Errorf("status says %+v, want %q", s, why)
		}
	}
}
