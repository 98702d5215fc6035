package agent

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
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
		out = append(out, ssm.New(cfg.SSMParameter, cfg.SSMKey, a.cfg.AWS.Region, a.leadership.Permit))
	}
	for _, id := range cfg.LaunchTemplates {
		out = append(out, launchtemplate.New(id, a.cfg.AWS.Region, cfg.LaunchTemplateKeep, a.leadership.Permit, a.entry("bootstrap")).Follow(a.cfg.Upgrades, a.upgraded))
	}
	if cfg.Secret {
		out = append(out, secret.New(a.client))
	}
	return out
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
