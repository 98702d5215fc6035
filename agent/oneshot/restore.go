package oneshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// RestoreNode brings back what an operator had put on a deleted Node; see
// nodecleaner.Restore. It uses the credentials of the person at the command line.
func RestoreNode(ctx context.Context, cfg config.Config, log *logrus.Logger, k nodecleaner.Kept, force, dryRun bool) (nodecleaner.Restored, error) {
	_, client, err := clients.Typed(ctx, cfg)
	if err != nil {
		return nodecleaner.Restored{}, err
	}
	r := nodecleaner.Restoring{Client: client, Force: force, DryRun: dryRun, Lives: func(ctx context.Context, providerID, node string) (bool, string) {
		return lives(ctx, cfg, log, cluster.InstanceID(providerID), node)
	}}
	return nodecleaner.Restore(ctx, r, k)
}

// lives asks the cloud once whether an instance exists, and under the Node's name.
func lives(ctx context.Context, cfg config.Config, log *logrus.Logger, id cluster.InstanceID, node string) (bool, string) {
	if id == "" {
		return false, "its Node had no provider ID: it is not known which machine it was"
	}
	settings, cloud, err := openCloud(ctx, cfg, log)
	if err != nil {
		return false, err.Error()
	}
	cloud = wrap.Timeout(settings.Overlay(cloud, cfg.Kubelet.Reservation()), cfg.Observe.Timeout)
	list, err := cloud.Groups(ctx)
	for _, g := range list {
		for _, in := range g.Instances {
			switch {
			case in.ID != id:
			case in.Phase == cluster.PhaseGone:
				return false, fmt.Sprintf("the cloud says that instance %s is terminated", id)
			case len(in.NodeNames) > 0 && !slices.Contains(in.NodeNames, node):
				return false, fmt.Sprintf("the cloud calls instance %s %s, and not %s", id, strings.Join(in.NodeNames, " or "), node)
			default:
				return true, ""
			}
		}
	}
	if err != nil {
		return false, fmt.Sprintf("the cloud cannot be read, so that it is not known whether instance %s lives: %v", id, err)
	}
	return false, fmt.Sprintf("the cloud does not list instance %s", id)
}
