package clients

import (
	"context"
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// WithUpgrades lets the clouds of a command judge user data as the running agent does: by the API server's version and
// the leaders' kubelets, read once.
func WithUpgrades(ctx context.Context, c config.Config, client *kube.Client) (config.Config, error) {
	seen := upgrade.Cluster{Mode: c.Bootstrap.Upgrade}
	version, err := client.ServerVersion(ctx)
	if err != nil {
		return c, fmt.Errorf("read the API server's version: %w", err)
	}
	leaders, err := Leaders(ctx, client)
	if err != nil {
		return c, err
	}
	seen.Server = version.GitVersion
	for i := range leaders {
		n := &leaders[i]
		seen.Leaders = append(seen.Leaders, upgrade.Leader{Name: n.Name, Kubelet: n.Status.NodeInfo.KubeletVersion})
	}
	c.Services.Upgrades = upgrade.NewFollower(func() upgrade.Cluster { return seen })
	return c, nil
}
