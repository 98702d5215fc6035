// Package lifecycle reads the states that Auto Scaling and EC2 give a machine.
//
// Small and apart: it is pure, and its tables are tested without a cloud. It refuses to call either of them, and to guess at a state that it does not know.
package lifecycle

import (
	"strings"

	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Warm reports whether a machine is in a warm pool: it is no part of the group yet.
func Warm(life asgtypes.LifecycleState) bool { return strings.HasPrefix(string(life), "Warmed:") }

// Leaving reports whether a machine is on its way out of its group.
func Leaving(life asgtypes.LifecycleState) bool {
	return strings.HasPrefix(string(life), "Terminat")
}

// Counted reports whether the desired capacity counts a machine.
// Standby and detaching machines are not: AWS lowers the desired capacity for them
// or replaces them.
func Counted(life asgtypes.LifecycleState) bool {
	switch life {
	case asgtypes.LifecycleStateStandby, asgtypes.LifecycleStateEnteringStandby,
		asgtypes.LifecycleStateDetaching, asgtypes.LifecycleStateDetached:
		return false
	}
	return !Warm(life) && !Leaving(life)
}

// Phase joins the two views of a machine. EC2 decides whether a machine exists; Auto
// Scaling decides after it whether the machine leaves the group.
func Phase(life asgtypes.LifecycleState, state ec2types.InstanceStateName, listed bool) cluster.Phase {
	switch {
	case state == ec2types.InstanceStateNameTerminated:
		return cluster.PhaseGone
	case Leaving(life), state == ec2types.InstanceStateNameShuttingDown:
		return cluster.PhaseDeleting
	case life == asgtypes.LifecycleStateStandby, life == asgtypes.LifecycleStateEnteringStandby,
		state == ec2types.InstanceStateNameStopping, state == ec2types.InstanceStateNameStopped:
		return cluster.PhaseStopped
	case !listed, state == ec2types.InstanceStateNamePending:
		return cluster.PhasePending
	case state == ec2types.InstanceStateNameRunning:
		return cluster.PhaseRunning
	}
	return cluster.PhaseUnknown
}
