package agent

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/ssm"
)

// sinks are where join information is published beside the file.
func (a *app) sinks() []bootstrap.Sink {
	if a.cfg.Bootstrap.SSMParameter == "" {
		return nil
	}
	return []bootstrap.Sink{ssm.New(a.cfg.Bootstrap.SSMParameter, a.cfg.Bootstrap.SSMKey, a.cfg.AWS.Region)}
}

// coming tells bootstrap which machines have not joined.
func (a *app) coming() func() bootstrap.Coming {
	var growths bootstrap.Growths
	return func() bootstrap.Coming {
		groups, _, _ := a.inventory.Last() // what could not be read is as it was
		joined := func(in *cluster.Instance) bool { return nodeOf(a.informers, in) != "" }
		return growths.Coming(groups, joined, time.Now(), a.cfg.CSR.JoinWindow)
	}
}
