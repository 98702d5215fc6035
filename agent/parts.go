package agent

import (
	"context"
	"errors"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
)

// Parts are the configurations of the packages that this one wires, under their own
// names.
type Parts struct {
	all.Config // AUTOSCALER_AWS_* and those of every other cloud
	CSR        csrsigner.Config
}

func (p Parts) validate(provider string) error {
	return errors.Join(p.Config.AWS.Validate(), p.CSR.Validate())
}

// provider makes the configured cloud.
func (p Parts) provider(ctx context.Context, c Config) (provider.Provider, error) {
	return all.New(ctx, c.Provider, p.Config, c.Kubelet.Reservation())
}

// services makes the services beside the scaler that are switched on.
func (p Parts) services(a *running) []Service {
	var list []Service
	if p.CSR.Enabled {
		signer := csrsigner.New(p.CSR, csrsigner.Deps{
			Client: a.client, Rest: a.rest, Informers: a.factory, Inventory: a.inventory, Log: a.entry("csrsigner"),
			Events: a.recorder, Metrics: a.metrics, MayAct: a.gate.MayAct,
		})
		list = append(list, Service{Name: "csrsigner", Budget: 2 * time.Minute, Run: signer.Run})
	}
	return list
}

// check looks at what the parts need on this machine.
func (p Parts) check() []Finding { return nil }

// rights lists what the services beside the scaler need.
func (p Parts) rights() []right {
	var list []right
	if p.CSR.Enabled {
		list = append(list,
			right{"list", "certificates.k8s.io", "certificatesigningrequests", "", ""},
			right{"watch", "certificates.k8s.io", "certificatesigningrequests", "", ""},
			right{"update", "certificates.k8s.io", "certificatesigningrequests", "approval", ""},
			right{"approve", "certificates.k8s.io", "signers", "", ""})
	}
	return list
}
