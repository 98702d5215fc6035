package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/supervise"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// otherServices makes the services beside the scaler that are switched on.
func (a *app) otherServices() []supervise.Service {
	var list []supervise.Service
	p := a.cfg.Services
	if p.Nodecleaner.Enabled {
		zeroRules(a.metrics)
		deps := nodecleaner.Deps{
			Client: a.client, Informers: a.informers, Inventory: a.inventory, Witness: a.witness, Log: a.entry("nodecleaner"),
			Events: a.recorder, Metrics: a.metrics, MayAct: a.leadership.MayAct, ActUntil: a.leadership.ActUntil, Blind: a.observer.Stale,
			Sent: a.scaler.sent, OwnNode: a.identity, Host: nodecleaner.ThisHost(), StateDir: a.cfg.StateDir,
		}
		if a.signer != nil {
			deps.Certified = a.signer.Certified
		}
		a.cleaner = nodecleaner.New(p.Nodecleaner, deps)
	}
	if a.signer != nil {
		list = append(list, supervise.Service{Name: "csrsigner", Budget: 2 * time.Minute, Run: a.signer.Run})
	}
	if a.cleaner != nil {
		list = append(list, supervise.Service{Name: "nodecleaner", Budget: 3 * time.Minute, Run: a.cleaner.Run})
	}
	if p.Bootstrap.Enabled {
		cfg := p.Bootstrap
		cfg.TokenGroups = p.JoinGroups()
		rehearse := bootstrap.Rehearse
		if p := a.cfg.Dial; p != nil {
			rehearse = bootstrap.RehearseBy(p)
		}
		publisher := bootstrap.New(cfg, bootstrap.Deps{
			Client: a.client, Rest: a.rest, Log: a.entry("bootstrap"), Metrics: a.metrics, MayAct: a.leadership.MayAct, Pool: a.tokens,
			Coming: a.coming(), NodeOf: func(id string) string { return a.nodes.Of(&cluster.Instance{ID: cluster.InstanceID(id)}) }, Sinks: a.sinks(), Rehearse: rehearse,
		})
		list = append(list, supervise.Service{Name: "bootstrap", Budget: 3 * time.Minute, Run: publisher.Run})
	}
	if a.attest != nil {
		list = append(list, supervise.Service{Name: "attest", Budget: time.Minute, Run: a.attest.Run})
	}
	return list
}

// reapStale asks the nodecleaner to delete the Node called name, if it is proven gone, so
// that a new machine of the same name may join (rule S1; see
// nodecleaner.Service.ReapStale). Without the nodecleaner nobody does.
func (a *app) reapStale(ctx context.Context, name string) error {
	if a.cleaner == nil {
		return fmt.Errorf("make room for node %s: the nodecleaner is switched off (%s_NODECLEANER_ENABLED)", name, config.Prefix)
	}
	return a.cleaner.ReapStale(ctx, name)
}

// newSigner makes the service that approves certificates.
func (a *app) newSigner() (*csrsigner.Service, error) {
	deps, err := clients.Signer(a.cfg, a.rest, a.settings)
	if err != nil {
		return nil, err
	}
	deps.Informers, deps.Inventory, deps.Log = a.informers, a.inventory, a.entry("csrsigner")
	deps.Events, deps.Metrics, deps.ReapStale = a.recorder, a.metrics, a.reapStale
	deps.MayAct, deps.ActUntil = a.leadership.MayAct, a.leadership.ActUntil
	return csrsigner.New(a.cfg.CSR, deps), nil
}
