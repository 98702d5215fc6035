package lifecycle

import (
	"testing"

	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestPhases goes through every lifecycle state that the SDK knows and every state
// of EC2: none may end as "gone" but terminated, and none may be left to chance.
func TestPhases(t *testing.T) {
	for _, life := range append(asgtypes.LifecycleState("").Values(), "") {
		for _, state := range ec2types.InstanceStateName("").Values() {
			got := Phase(life, state, true)
			if (got == cluster.PhaseGone) != (state == ec2types.InstanceStateNameTerminated) {
				t.Errorf("%s %s: %q", life, state, got)
			}
			if got == cluster.PhaseUnknown {
				t.Errorf("%s %s is not judged", life, state)
			}
		}
	}
	for _, c := range []struct {
		life   asgtypes.LifecycleState
		state  ec2types.InstanceStateName
		listed bool
		want   cluster.Phase
	}{
		{"Pending", "", false, cluster.PhasePending},
		{"InService", "", false, cluster.PhasePending},
		{"Pending", "pending", true, cluster.PhasePending},
		{"Pending:Wait", "running", true, cluster.PhaseRunning},
		{"InService", "running", true, cluster.PhaseRunning},
		{"InService", "stopped", true, cluster.PhaseStopped},
		{"InService", "shutting-down", true, cluster.PhaseDeleting},
		{"InService", "terminated", true, cluster.PhaseGone},
		{"Terminating:Wait", "running", true, cluster.PhaseDeleting},
		{"Terminating:Retained", "running", true, cluster.PhaseDeleting},
		{"Terminating", "", false, cluster.PhaseDeleting},
		{"Terminated", "running", true, cluster.PhaseDeleting},
		{"Standby", "running", true, cluster.PhaseStopped},
		{"InService", "invented", true, cluster.PhaseUnknown},
	} {
		if got := Phase(c.life, c.state, c.listed); got != c.want {
			t.Errorf("%s %s listed %t: %q, want %q", c.life, c.state, c.listed, got, c.want)
		}
	}
}
