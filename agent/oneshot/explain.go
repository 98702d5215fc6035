package oneshot

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// Explain looks at the cluster and the cloud once, as Plan does, and explains
// one thing. Kind is "pod", "node" or "group".
func Explain(ctx context.Context, cfg config.Config, log *logrus.Logger, kind, name string) (localapi.Explanation, error) {
	seen, err := lookOnce(ctx, cfg, log)
	if err != nil {
		return localapi.Explanation{}, err
	}
	x := localapi.Explain(seen.snapshot, seen.memory, seen.policy, seen.corrections, kind, name)
	if kind == "node" && cfg.Nodecleaner.Enabled {
		x.Reaper = reaperVerdict(cfg, seen, name, log)
	}
	return x, nil
}

// reaperVerdict is the nodecleaner's verdict on one look at the world: by what the running
// agent wrote down last, without its view of Leases and volumes.
func reaperVerdict(cfg config.Config, seen look, name string, log *logrus.Logger) *reaper.Verdict {
	memory, err := nodecleaner.Peek(cfg.StateDir)
	if err != nil {
		log.WithField("why", err.Error()).Warn("the nodecleaner's ledger was not read: it looks as if nothing had been seen")
	}
	in := reaper.Input{Now: seen.snapshot.Now, Groups: seen.snapshot.Groups}
	for _, n := range seen.snapshot.Nodes {
		in.Nodes = append(in.Nodes, *n)
	}
	memory.LastRound = time.Time{} // the agent may be stopped: that is no reason to freeze an explanation
	return localapi.Verdict(reaper.Explain(in, memory, cfg.Nodecleaner.Policy(), cluster.NodeName(name)))
}
