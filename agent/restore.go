package agent

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// What the nodecleaner keeps of deleted Nodes, and what became of bringing one back.
type (
	KeptNode     = nodecleaner.Kept
	RestoredNode = nodecleaner.Restored
)

// KeptNodes lists the manifests of deleted Nodes in a state directory, newest first.
func KeptNodes(stateDir string) ([]KeptNode, error) { return nodecleaner.Manifests(stateDir) }

// RestoreNode brings back what an operator had put on a deleted Node; see
// nodecleaner.Restore. It uses clients of its own: those of the person who asks.
func RestoreNode(ctx context.Context, cfg Config, log *logrus.Logger, k KeptNode, force, dryRun bool) (RestoredNode, error) {
	config, err := restConfig(cfg, true)
	if err != nil {
		return RestoredNode{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return RestoredNode{}, fmt.Errorf("make client: %w", err)
	}
	r := nodecleaner.Restoring{Client: client, Force: force, DryRun: dryRun, Lives: func(ctx context.Context, providerID string) (bool, string) {
		return lives(ctx, cfg, log, cluster.InstanceID(providerID))
	}}
	return nodecleaner.Restore(ctx, r, k)
}

// lives asks the cloud once whether an instance exists.
func lives(ctx context.Context, cfg Config, log *logrus.Logger, id cluster.InstanceID) (bool, string) {
	if id == "" {
		return false, "its Node had no provider ID: it is not known which machine it was"
	}
	settings, err := groups.Open(cfg.GroupsFile, all.Sections(), log.WithField("service", "groups"))
	if err != nil {
		return false, err.Error()
	}
	cloud, err := cfg.Parts.provider(ctx, cfg, settings.Section)
	if err != nil {
		return false, fmt.Sprintf("provider %s: %v", cfg.Provider, err)
	}
	cloud = provider.Timeout(settings.Overlay(cloud, cfg.Kubelet.Reservation()), cfg.Observe.Timeout)
	list, err := cloud.Groups(ctx)
	for _, g := range list {
		for _, in := range g.Instances {
			if in.ID == id && in.Phase != cluster.PhaseGone {
				return true, ""
			} else if in.ID == id {
				return false, fmt.Sprintf("the cloud says that instance %s is terminated", id)
			}
		}
	}
	if err != nil {
		return false, fmt.Sprintf("the cloud cannot be read, so that it is not known whether instance %s lives: %v", id, err)
	}
	return false, fmt.Sprintf("the cloud does not list instance %s", id)
}
