package agent

import (
	"context"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
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
		Log: a.entry("attest"), Metrics: a.metrics, StateDir: a.cfg.StateDir, STS: stsEndpoint(),
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

// stsEndpoint is where the SDK's own variables say that STS is; empty: at its own host.
func stsEndpoint() string {
	if at := os.Getenv("AWS_ENDPOINT_URL_STS"); at != "" {
		return at
	}
	return os.Getenv("AWS_ENDPOINT_URL")
}

// nodeOf names the Node of an instance; empty: it has none.
func (a *app) nodeOf(providerID string) string {
	nodes, _ := a.informers.NodeLister().List(labels.Everything()) // a lister over a cache has no errors
	for _, n := range nodes {
		if rules.SameMachine(n.Spec.ProviderID, providerID) {
			return n.Name
		}
	}
	return ""
}

// joined tells what the Nodes and the issued certificates say of an instance.
func (a *app) joined(in cluster.Instance) (attest.Joined, error) {
	var out attest.Joined
	if a.signer != nil {
		out.Key = a.signer.KeyOf(in.ID)
	}
	if !a.informers.Nodes().HasSynced() {
		return out, fmt.Errorf("the Nodes are not read yet")
	}
	nodes, err := a.informers.NodeLister().List(labels.Everything())
	if err != nil {
		return out, err
	}
	for _, n := range nodes {
		if rules.SameMachine(n.Spec.ProviderID, string(in.ID)) || n.Spec.ProviderID == "" && slices.Contains(in.NodeNames, n.Name) {
			out.Node = n.Name
			break
		}
	}
	return out, nil
}
