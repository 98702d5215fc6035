package provider

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Starter is a provider whose groups can be told to start their next machines from what an earlier one was started from. The agent
// never asks for that of its own accord: a person does, with rollout back.
type Starter interface {
	// StartFrom makes an origin what the group starts, unless dry, and returns the command that does the same with other
	// credentials, also where the provider may not (Denied). changed tells that it was not so before.
	StartFrom(ctx context.Context, id cluster.GroupID, o cluster.Origin, dry bool) (command string, changed bool, err error)
}
