package oneshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election/rollouts"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Rollouts looks at the cluster and the cloud once, as Plan does, and tells how the rollout of one group stands; an empty
// name: of all.
func Rollouts(ctx context.Context, cfg config.Config, log *logrus.Logger, group string) (decision.Rollouts, error) {
	seen, err := lookOnce(ctx, cfg, log)
	if err != nil {
		return decision.Rollouts{}, err
	}
	p, _ := plan.Decide(seen.snapshot, seen.memory, seen.policy)
	out, found := localapi.Rollouts(seen.snapshot, p, group)
	if !found {
		return out, errors.New(localapi.NoGroup(group))
	}
	return out, nil
}

// OrderRollout changes what operators have ordered for the rollouts, for whichever agent leads.
func OrderRollout(ctx context.Context, cfg config.Config, change func(cluster.RolloutOrders)) error {
	client, err := ownClient(ctx, cfg)
	if err != nil {
		return err
	}
	return rollouts.Order(ctx, client, cfg.Lease, change)
}

// Started is what became of StartFrom.
type Started struct {
	Command string // does the same with other credentials
	Changed bool
	Refused error // the agent may not; nil: it may
}

// StartFrom makes a group start its next machines from an origin, unless dry.
func StartFrom(ctx context.Context, cfg config.Config, group cluster.GroupID, o cluster.Origin, dry bool) (out Started, err error) {
	s, err := clients.Starter(ctx, cfg)
	if err != nil {
		return out, err
	}
	out.Command, out.Changed, err = s.StartFrom(ctx, group, o, dry)
	if provider.KindOf(err) == provider.Denied && out.Command != "" {
		out.Refused, err = err, nil
	}
	return out, err
}

// ReplaceNode asks for the replacement of a node, or takes the wish back; changed tells that it was not so before.
func ReplaceNode(ctx context.Context, cfg config.Config, name string, back bool) (changed bool, err error) {
	client, err := ownClient(ctx, cfg)
	if err != nil {
		return false, err
	}
	nodes := client.CoreV1().Nodes()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cluster.IsControlPlane(n.Labels) {
			return fmt.Errorf("node %s is of the control plane: the agent replaces workers only", n.Name)
		}
		if changed = (n.Annotations[cluster.AnnotationReplace] == "true") == back; !changed {
			return nil
		}
		if delete(n.Annotations, cluster.AnnotationReplace); !back {
			if n.Annotations == nil {
				n.Annotations = map[string]string{}
			}
			n.Annotations[cluster.AnnotationReplace] = "true"
		}
		_, err = nodes.Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
	return changed, err
}
