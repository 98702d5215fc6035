package clients

import (
	"context"
	"encoding/json"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
)

// Cloud makes the configured clouds, as one; section is groups.yaml's, for those that
// have one.
func Cloud(ctx context.Context, c config.Config, section func(provider string) json.RawMessage) (provider.Provider, error) {
	own := c.Services.Config
	own.Section, own.Published = section, c.Bootstrap.LaunchTemplates
	// Without a file the agent stands in a pod, and so does the provider.
	own.Kubeconfig, _ = c.KubeconfigPath(false)
	s := c.Scaling
	own.Defaults = cluster.Options{
		ScaleDownUtilization: &s.UtilizationThreshold, ScaleDownGPUUtilization: &s.GPUUtilizationThreshold, ScaleDownUnneededTime: &s.UnneededFor,
		ScaleDownUnreadyTime: &s.UnreadyFor, MaxNodeProvisionTime: &s.MaxNodeProvisionTime, IgnoreDaemonSetsUtilization: &s.IgnoreDaemonSetsUtilization,
	}
	return all.New(ctx, c.Provider, own, c.Kubelet.Reservation())
}
