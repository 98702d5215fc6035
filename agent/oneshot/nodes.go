package oneshot

import (
	"context"
	"errors"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
)

// Nodes looks at the cluster and the cloud once, as Plan does, and lists the machines of one
// group; an empty name: of all.
func Nodes(ctx context.Context, cfg config.Config, log *logrus.Logger, group string) (decision.Nodes, error) {
	seen, err := lookOnce(ctx, cfg, log)
	if err != nil {
		return decision.Nodes{}, err
	}
	out, found := localapi.Nodes(seen.snapshot, seen.memory, seen.policy, group)
	if !found {
		return out, errors.New(localapi.NoGroup(group))
	}
	return out, nil
}
