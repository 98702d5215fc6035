package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/deadline"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/launchtemplate"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/secret"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/ssm"
)

// sinks are where join information is published beside the file.
func (a *app) sinks() []bootstrap.Sink {
	var out []bootstrap.Sink
	cfg := a.cfg.Bootstrap
	if cfg.SSMParameter != "" {
		out = append(out, gated{ssm.New(cfg.SSMParameter, cfg.SSMKey, a.cfg.AWS.Region), a.gate})
	}
	for _, id := range cfg.LaunchTemplates {
		out = append(out, launchtemplate.New(id, a.cfg.AWS.Region, cfg.LaunchTemplateKeep, a.gate, a.entry("bootstrap")))
	}
	if cfg.Secret {
		out = append(out, secret.New(a.client))
	}
	return out
}

// gate proves by a renewal of the Lease that this agent leads, and ends what is written when
// the Lease does: a write of an old leader would undo one of the next.
func (a *app) gate(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := a.leadership.Announce(ctx); err != nil {
		return nil, nil, fmt.Errorf("the cloud was not asked: %w", err)
	}
	bounded, cancel := deadline.Within(ctx, a.leadership.ActUntil)
	return bounded, cancel, nil
}

// gated is a sink whose whole publication is one write.
type gated struct {
	bootstrap.Sink
	gate func(context.Context) (context.Context, context.CancelFunc, error)
}

// Publish implements bootstrap.Sink.
func (g gated) Publish(ctx context.Context, join bootstrap.Join) error {
	ctx, cancel, err := g.gate(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return g.Sink.Publish(ctx, join)
}

// coming tells bootstrap which machines have not joined.
func (a *app) coming() func() bootstrap.Coming {
	var growths bootstrap.Growths
	return func() bootstrap.Coming {
		groups, _, _ := a.inventory.Last() // what could not be read is as it was
		joined := func(in *cluster.Instance) bool { return a.nodes.Of(in) != "" }
		return growths.Coming(groups, joined, time.Now(), a.cfg.CSR.JoinWindow)
	}
}
