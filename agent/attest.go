package agent

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
)

// newAttester makes the listener at which machines attest; nil: there is none.
func (a *app) newAttester() (*attest.Server, error) {
	cfg := a.cfg.AttestConfig()
	if cfg.Listen == "" || !a.cfg.Bootstrap.Enabled {
		return nil, nil
	}
	tokens := a.cfg.Bootstrap
	tokens.TokenGroups = a.cfg.JoinGroups()
	mint := bootstrap.TokenForAttested(a.tokens, tokens)
	return attest.New(cfg, attest.Deps{
		Groups: a.inventory.Groups, Joined: a.joined, Clusters: bootstrap.ClusterHashes(a.client), MayAct: a.leadership.MayAct,
		Log: a.entry("attest"), Metrics: a.metrics, StateDir: a.cfg.StateDir, STS: clients.STSEndpoint(),
		Attested: func(ctx context.Context, id cluster.InstanceID) (string, error) {
			return a.tokens.KeyOf(ctx, string(id))
		},
		Mint: func(ctx context.Context, m attest.Machine) (attest.Token, error) {
			who := bootstrap.Attested{Instance: string(m.Instance), Key: m.Key}
			if len(m.Names) == 1 { // of several the machine chooses one
				who.Machine = m.Names[0]
			}
			token, expires, err := mint(ctx, who)
			return attest.Token{Value: token, Expires: expires}, err
		},
	})
}

// joined tells what the Nodes and the issued certificates say of an instance.
func (a *app) joined(in cluster.Instance) (out attest.Joined, err error) {
	if a.signer != nil {
		out.Key = a.signer.KeyOf(in.ID)
	}
	out.Node, err = a.nodes.Known(&in)
	return out, err
}
