package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/informers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// DryRound looks at the cluster and the cloud once, with clients of its own, and
// returns what a round would do now. It changes nothing and takes no Lease. The
// memory of the running agent is used where its state file can be read.
func DryRound(ctx context.Context, cfg Config, log *logrus.Logger) (cluster.Snapshot, plan.Plan, error) {
	look, err := dryLook(ctx, cfg, log)
	if err != nil {
		return cluster.Snapshot{}, plan.Plan{}, err
	}
	p, _ := plan.Decide(look.snapshot, look.memory, cfg.Scaling)
	return look.snapshot, p, nil
}

// look is one sight of the world by a command, and what the running agent wrote down.
type look struct {
	snapshot cluster.Snapshot
	memory   plan.Memory
	lessons  map[string]observe.Lesson
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
	cloud, err := cfg.Parts.provider(ctx, cfg)
	if err != nil {
		return look{}, fmt.Errorf("provider %s: %w", cfg.Provider, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(observe.Strip))
	inventory := observe.NewInventory(cloud, cfg.Observe.Fast, cfg.Observe.Slow, cfg.Observe.Timeout, log.WithField("service", "inventory"))
	observer, err := observe.New(cfg.Observe, client, factory, inventory, log.WithField("service", "observe"))
	if err != nil {
		return look{}, err
	}
	observer.Start(ctx.Done())
	synced, stop := context.WithTimeout(ctx, checkLimit)
	defer stop()
	if err := observer.WaitForSync(synced); err != nil {
		return look{}, fmt.Errorf("read the cluster: %w", err)
	}
	observer.Heard()
	groups, err := inventory.Groups(ctx, 0)
	if groups == nil && err != nil {
		return look{}, err
	}
	if err != nil {
		log.WithField("why", err.Error()).Warn("the cloud was not read whole")
	}
	kept := newStateFile(cfg.StateDir).peek()
	inventory.Remember(kept.Specs)
	observer.Remember(kept.Lessons)
	snapshot := observer.Snapshot()
	snapshot.Now = time.Now()
	return look{snapshot: snapshot, memory: kept.Memory, lessons: observer.Lessons()}, nil
}
