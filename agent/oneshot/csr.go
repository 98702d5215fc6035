package oneshot

import (
	"context"
	"errors"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// ExplainCSR judges a certificate request once with clients of its own, as the running
// agent would, and decides nothing.
func ExplainCSR(ctx context.Context, cfg config.Config, log *logrus.Logger, name string) (csrsigner.Explanation, error) {
	signer, shared, err := signerOnce(ctx, cfg, log)
	if err != nil {
		return csrsigner.Explanation{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	shared.Start(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), signer.Start(ctx)...) {
		return csrsigner.Explanation{}, errors.New("read the cluster: the lists of Nodes and certificate requests did not come in time")
	}
	return signer.Explain(ctx, name)
}

// signerOnce makes a signer that may not act, and the informers that it reads.
func signerOnce(ctx context.Context, cfg config.Config, log *logrus.Logger) (*csrsigner.Service, *kube.Informers, error) {
	kubeconfig, client, err := clients.Typed(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	settings, cloud, err := openCloud(ctx, cfg, log)
	if err != nil {
		return nil, nil, err
	}
	deps, err := clients.Signer(cfg, kubeconfig, settings)
	if err != nil {
		return nil, nil, err
	}
	deps.Informers = kube.NewInformers(client, convert.Strip)
	deps.Inventory = inventory.New(cloud, cfg.Observe.Fast, cfg.Observe.Slow, cfg.Observe.Timeout, log.WithField("service", "inventory"))
	deps.Log = log.WithField("service", "csrsigner")
	leadership := election.New(cfg.Lease, election.Deps{}) // never campaigns: nothing may be written
	deps.MayAct, deps.ActUntil = leadership.MayAct, leadership.ActUntil
	return csrsigner.New(cfg.CSR, deps), deps.Informers, nil
}
