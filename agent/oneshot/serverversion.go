package oneshot

import (
	"context"
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// ServerVersion asks the API server of a kubeconfig file for its version, "v1.36.3".
func ServerVersion(ctx context.Context, kubeconfig string) (string, error) {
	_, client, err := clients.Typed(ctx, config.Config{Kubeconfig: kubeconfig})
	if err != nil {
		return "", fmt.Errorf("read the API server's version: %w", err)
	}
	v, err := client.ServerVersion(ctx)
	if err != nil {
		return "", fmt.Errorf("read the API server's version: %w", err)
	}
	return v.GitVersion, nil
}
