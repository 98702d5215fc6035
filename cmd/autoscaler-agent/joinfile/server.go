package joinfile

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
)

// Server are the flags that tell which version the cluster's API server has.
type Server struct {
	version    flagvalue.Version
	kubeconfig string
}

// Declare adds the flags to a command.
func (s *Server) Declare(c *cobra.Command) {
	c.Flags().Var(&s.version, "api-server-version", "`version` of the cluster's API server, for example v1.36.3: a kubelet that may not join it is refused (default JOIN_KUBERNETES_VERSION of the join file)")
	c.Flags().StringVar(&s.kubeconfig, "kubeconfig", "", "ask the API server of this kubeconfig `file` for its version")
	c.MarkFlagsMutuallyExclusive("api-server-version", "kubeconfig")
}

// Version returns the API server's version, "" where it is not known. Published is what the
// agent has written into the join file.
func (s *Server) Version(ctx context.Context, published string) (string, error) {
	if s.kubeconfig == "" {
		return cmp.Or(string(s.version), published), nil
	}
	v, err := oneshot.ServerVersion(ctx, s.kubeconfig)
	if err != nil {
		return "", fmt.Errorf("%w: or give it with --api-server-version", err)
	}
	return v, nil
}

// VersionBeside is Version beside a join file that may be missing or not for the caller to read.
func (s *Server) VersionBeside(ctx context.Context, file string) (string, error) {
	published, err := apiServerVersion(file)
	if err != nil {
		return "", err
	}
	return s.Version(ctx, published)
}
