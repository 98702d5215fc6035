package agent

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/kube"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// byMachine is the index of Nodes by the machine of their provider IDs.
const byMachine = "machine"

// indexMachines adds the index before the informer starts.
func indexMachines(shared *kube.Informers) error {
	return shared.Nodes().AddIndexers(cache.Indexers{byMachine: func(o any) ([]string, error) {
		n, ok := o.(*corev1.Node)
		if !ok || n.Spec.ProviderID == "" {
			return nil, nil
		}
		return []string{rules.MachineKey(n.Spec.ProviderID)}, nil
	}})
}

// nodeOf is the Node by which an instance has joined: the one with its provider ID, or one
// of its names that has no provider ID; empty: none.
func nodeOf(shared *kube.Informers, in *cluster.Instance) string {
	nodes := shared.Nodes().GetIndexer()
	same, _ := nodes.ByIndex(byMachine, rules.MachineKey(string(in.ID))) // fails without the index only
	for _, o := range same {
		if n, ok := o.(*corev1.Node); ok && rules.SameMachine(n.Spec.ProviderID, string(in.ID)) {
			return n.Name
		}
	}
	for _, name := range in.NodeNames {
		o, _, _ := nodes.GetByKey(name) // a store in memory has no errors
		if n, ok := o.(*corev1.Node); ok && n.Spec.ProviderID == "" {
			return n.Name
		}
	}
	return ""
}
