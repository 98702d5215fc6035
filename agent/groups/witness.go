package groups

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Instances asks the cloud: no setting changes what exists.
func (o overlay) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	return provider.Ask(ctx, o.Provider, ids...)
}
