package cluster

import "time"

// RolloutOrder is what operators ordered for the rollout of one node group, with the commands rollout pause, resume and
// start. The zero value orders nothing.
type RolloutOrder struct {
	// Paused: no node is replaced because it is drifted or expired, since when, and why.
	Paused bool      `json:"paused,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Resumed is the source (Spec.Digest) whose rollout goes on although its first machine failed.
	Resumed string `json:"resumed,omitempty"`
	// Started is the source that drifted nodes are replaced by, although drift is off.
	Started string `json:"started,omitempty"`
}

// AllGroups is the name under which RolloutOrders have what is ordered for all groups.
const AllGroups GroupID = ""

// RolloutOrders are the orders by group.
type RolloutOrders map[GroupID]RolloutOrder

// Pause is the order that pauses the rollout of a group, that of all groups first, and what resumes it.
func (o RolloutOrders) Pause(g GroupID) (order RolloutOrder, command string, paused bool) {
	if x := o[AllGroups]; x.Paused {
		return x, "autoscaler-agent rollout resume --all", true
	}
	x := o[g]
	return x, "autoscaler-agent rollout resume " + string(g), x.Paused
}
