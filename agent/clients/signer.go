package clients

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Signer is what csrsigner works with by the configuration alone: its own client, the
// operator's inventory, the join tokens and the ledger's place. The caller adds the cloud,
// the informers and the right to act.
func Signer(c config.Config, cfg *rest.Config, settings *groups.Live) (csrsigner.Deps, error) {
	own, err := approvals(cfg)
	if err != nil {
		return csrsigner.Deps{}, err
	}
	node, err := c.Identity()
	if err != nil {
		return csrsigner.Deps{}, err
	}
	return csrsigner.Deps{
		Client: own, Rest: cfg, OwnNode: node, Machines: config.Machines(settings), ControlPlane: config.ControlPlane(settings),
		TokenGroup: c.JoinGroups()[0], Token: tokenLookup(own), StateDir: c.StateDir,
	}, nil
}

func tokenLookup(client *kube.Client) func(context.Context, string) (rules.Token, error) {
	return func(ctx context.Context, id string) (rules.Token, error) {
		m, err := bootstrap.Lookup(ctx, client, id)
		return rules.Token{Problem: m.Problem, Instance: cluster.InstanceID(m.Instance), Machine: m.Machine, Key: m.Key, Made: m.Made}, err
	}
}
