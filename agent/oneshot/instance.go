package oneshot

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/console"
)

// InstanceExplanation says how far a machine came on its way to the cluster.
type InstanceExplanation struct {
	Instance string `json:"instance"`
	console.Diagnosis
}

// ExplainInstance reads the console of a machine, by its provider ID or the cloud's own ID.
func ExplainInstance(ctx context.Context, cfg config.Config, id string) (InstanceExplanation, error) {
	text, err := clients.Console(ctx, cfg, id)
	if err != nil {
		return InstanceExplanation{}, err
	}
	return InstanceExplanation{Instance: id, Diagnosis: console.Diagnose(text, false)}, nil
}
