package agent

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

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
		machines, names := map[string]bool{}, map[string]bool{}
		nodes, _ := a.factory.Core().V1().Nodes().Lister().List(labels.Everything()) // a lister over a cache has no errors
		for _, n := range nodes {
			if n.Spec.ProviderID == "" {
				names[n.Name] = true
			} else {
				machines[machineOf(n.Spec.ProviderID)] = true
			}
		}
		joined := func(in *cluster.Instance) bool {
			return machines[machineOf(string(in.ID))] || slices.ContainsFunc(in.NodeNames, func(name string) bool { return names[name] })
		}
		return growths.Coming(groups, joined, time.Now(), a.cfg.CSR.JoinWindow)
	}
}

// machineOf is the part of a provider ID that is the machine's own, however the rest is
// written.
func machineOf(providerID string) string {
	return strings.ToLower(providerID[strings.LastIndexByte(providerID, '/')+1:])
}
