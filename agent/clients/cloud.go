package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

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

// Starter is the one cloud of the configuration whose groups can be told what they start.
func Starter(ctx context.Context, c config.Config) (provider.Starter, error) {
	names, err := all.Split(c.Provider)
	if err != nil {
		return nil, err
	}
	for _, c.Provider = range names {
		cloud, err := Cloud(ctx, c, func(string) json.RawMessage { return nil })
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", c.Provider, err)
		}
		if s, can := cloud.(provider.Starter); can {
			return s, nil
		}
	}
	return nil, fmt.Errorf("provider %s starts no machine from what an earlier one was started from", strings.Join(names, ", "))
}
