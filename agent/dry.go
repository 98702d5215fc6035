package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/informers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/priorities"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// DryRound looks at the cluster and the cloud once, with clients of its own, and
// returns what a round would do now. It changes nothing and takes no Lease. The
// memory of the running agent is used where its state file can be read.
func DryRound(ctx context.Context, cfg Config, log *logrus.Logger) (cluster.Snapshot, decision.Plan, error) {
	look, err := dryLook(ctx, cfg, log)
	if err != nil {
		return cluster.Snapshot{}, decision.Plan{}, err
	}
	p, _ := plan.Decide(look.snapshot, look.memory, look.policy)
	return look.snapshot, p, nil
}

// look is one sight of the world by a command, and what the running agent wrote down.
type look struct {
	snapshot    cluster.Snapshot
	memory      decision.Memory
	policy      decision.Policy
	corrections map[string]template.Correction
}

func dryLook(ctx context.Context, cfg Config, log *logrus.Logger) (look, error) {
	config, err := restConfig(cfg, true)
	if err != nil {
		return look{}, err
	}
	client, _, err := newClients(cfg, config)
	if err != nil {
		return look{}, err
	}
	settings, err := groups.Open(cfg.GroupsFile, sections(), log.WithField("service", "groups"))
	if err != nil {
		return look{}, err
	}
	cloud, err := cfg.Parts.provider(ctx, cfg, settings.Section)
	if err != nil {
		return look{}, fmt.Errorf("provider %s: %w", cfg.Provider, err)
	}
	cloud = settings.Overlay(cloud, cfg.Kubelet.Reservation())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(convert.Strip))
	reads := inventory.New(cloud, cfg.Observe.Fast, cfg.Observe.Slow, cfg.Observe.Timeout, log.WithField("service", "inventory"))
	observer, err := observe.New(cfg.Observe, client, factory, reads, log.WithField("service", "observe"))
	if err != nil {
		return look{}, err
	}
	observer.Start(ctx.Done())
	synced, stop := context.WithTimeout(ctx, checkLimit)
	defer stop()
	if err := observer.WaitForSync(synced); err != nil {
		return look{}, fmt.Errorf("read the cluster: %w", err)
	}
	observer.APIServerAnswered()
	list, err := reads.Groups(ctx, 0)
	if list == nil && err != nil {
		return look{}, err
	}
	if err != nil {
		log.WithField("why", err.Error()).Warn("the cloud was not read whole")
	}
	kept := newStateFile(cfg.StateDir).peek()
	reads.RestoreSpecs(kept.Specs)
	observer.RestoreCorrections(kept.Corrections)
	snapshot := observer.Snapshot()
	snapshot.Now = time.Now()
	policy := cfg.Scaling
	policy.Headroom = settings.Headroom(snapshot.Now)
	if plan.UsesPriorities(policy.Expander) {
		policy.Priorities, policy.PrioritiesFault = priorities.Read(ctx, client, cfg.Lease.Namespace)
	}
	return look{snapshot: snapshot, memory: kept.Memory, policy: policy, corrections: observer.Corrections()}, nil
}
