package oneshot

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election/rollouts"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/priorities"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/statefile"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Plan looks at the cluster and the cloud once, with clients of its own, and
// returns what a round would do now. It changes nothing and takes no Lease. The
// memory of the running agent is used where its state file can be read.
func Plan(ctx context.Context, cfg config.Config, log *logrus.Logger) (cluster.Snapshot, decision.Plan, error) {
	seen, err := lookOnce(ctx, cfg, log)
	if err != nil {
		return cluster.Snapshot{}, decision.Plan{}, err
	}
	p, _ := plan.Decide(seen.snapshot, seen.memory, seen.policy)
	return seen.snapshot, p, nil
}

// limit bounds what is read of the cluster.
const limit = 30 * time.Second

// look is one sight of the world by a command, and what the running agent wrote down.
type look struct {
	snapshot    cluster.Snapshot
	memory      decision.Memory
	policy      decision.Policy
	corrections map[string]template.Correction
}

func lookOnce(ctx context.Context, cfg config.Config, log *logrus.Logger) (look, error) {
	_, client, err := clients.Typed(ctx, cfg)
	if err != nil {
		return look{}, err
	}
	if cfg, err = clients.WithUpgrades(ctx, cfg, client); err != nil {
		return look{}, err
	}
	settings, cloud, err := openCloud(ctx, cfg, log)
	if err != nil {
		return look{}, err
	}
	cloud = settings.Overlay(cloud, cfg.Kubelet.Reservation())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shared := kube.NewInformers(client, convert.Strip)
	reads := inventory.New(cloud, cfg.Observe.Fast, cfg.Observe.Slow, cfg.Observe.Timeout, log.WithField("service", "inventory"))
	observer, err := observe.New(cfg.Observe, client, shared, reads, log.WithField("service", "observe"))
	if err != nil {
		return look{}, err
	}
	observer.ProvisionTime = cfg.Scaling.MaxNodeProvisionTime
	observer.CompleteHeadroom(settings.Headroom(time.Now())) // what a DeviceClass may back is waited for
	observer.Start(ctx)
	synced, stop := context.WithTimeout(ctx, limit)
	defer stop()
	if err := observer.WaitForSync(synced); err != nil {
		return look{}, fmt.Errorf("read the cluster: %w", err)
	}
	observer.APIServerAnswered()
	if v, err := client.ServerVersion(synced); err == nil {
		observer.SetControlPlaneVersion(v.GitVersion)
	}
	list, err := reads.Groups(ctx, 0)
	if list == nil && err != nil {
		return look{}, err
	}
	if err != nil {
		log.WithField("why", err.Error()).Warn("the cloud was not read whole")
	}
	kept := statefile.In(cfg.StateDir).Peek()
	reads.RestoreSpecs(kept.Specs)
	observer.RestoreCorrections(kept.Corrections)
	policy := cfg.Scaling
	policy.Headroom, _ = observer.CompleteHeadroom(settings.Headroom(time.Now())) // before the Snapshot, whose nodes say what their devices are to it
	snapshot := observer.Snapshot()
	if plan.UsesPriorities(policy.Expander) {
		policy.Priorities, policy.PrioritiesFault = priorities.Read(ctx, client, cfg.Lease.Namespace)
	}
	if policy.Rollouts, policy.Halts, err = rollouts.Read(ctx, client, cfg.Lease); err != nil {
		return look{}, err
	}
	return look{snapshot: snapshot, memory: kept.Memory, policy: policy, corrections: observer.Corrections()}, nil
}

// openCloud reads groups.yaml and makes the clouds of the configuration.
func openCloud(ctx context.Context, cfg config.Config, log *logrus.Logger) (*groups.Live, provider.Provider, error) {
	settings, err := cfg.OpenGroupsFile(log.WithField("service", "groups"))
	if err != nil {
		return nil, nil, err
	}
	cloud, err := clients.Cloud(ctx, cfg, settings.Section)
	if err != nil {
		return nil, nil, fmt.Errorf("provider %s: %w", cfg.Provider, err)
	}
	return settings, cloud, nil
}
