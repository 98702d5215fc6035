// Package joined answers as which Node an instance has joined the cluster: by an index of
// the Nodes' provider IDs, which csrsigner/rules compares, and by the instance's names.
//
// It refuses to read anything but the Nodes that the informer holds, and to take one that
// carries another machine's provider ID for the instance's.
package joined

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// byMachine is the index of Nodes by the machine of their provider IDs, byRole that of the leaders.
const (
	byMachine = "machine"
	byRole    = "role"
	leader    = "leader"
)

// Nodes are the cluster's Nodes with an index of their machines.
type Nodes struct{ informer cache.SharedIndexInformer }

// Index adds the index to the informer of the Nodes, before it starts.
func Index(shared *kube.Informers) (Nodes, error) {
	n := Nodes{shared.Nodes()}
	return n, n.informer.AddIndexers(cache.Indexers{byMachine: func(o any) ([]string, error) {
		node, ok := o.(*corev1.Node)
		if !ok || node.Spec.ProviderID == "" {
			return nil, nil
		}
		return []string{rules.MachineKey(node.Spec.ProviderID)}, nil
	}, byRole: func(o any) ([]string, error) {
		if node, ok := o.(*corev1.Node); ok && cluster.IsControlPlane(node.Labels) {
			return []string{leader}, nil
		}
		return nil, nil
	}})
}

// Leaders are the Nodes of the control plane.
func (n Nodes) Leaders() []*corev1.Node {
	var out []*corev1.Node
	found, _ := n.informer.GetIndexer().ByIndex(byRole, leader) // fails without the index only
	for _, o := range found {
		if node, ok := o.(*corev1.Node); ok {
			out = append(out, node)
		}
	}
	return out
}

// Read tells whether the Nodes have been read.
func (n Nodes) Read() bool { return n.informer.HasSynced() }

// Of is the Node by which an instance has joined: the one with its provider ID, or one
// of its names that has no provider ID; empty: none, or the Nodes are not read yet.
func (n Nodes) Of(in *cluster.Instance) string {
	nodes := n.informer.GetIndexer()
	same, _ := nodes.ByIndex(byMachine, rules.MachineKey(string(in.ID))) // fails without the index only
	for _, o := range same {
		if node, ok := o.(*corev1.Node); ok && rules.SameMachine(node.Spec.ProviderID, string(in.ID)) {
			return node.Name
		}
	}
	for _, name := range in.NodeNames {
		o, _, _ := nodes.GetByKey(name) // a store in memory has no errors
		if node, ok := o.(*corev1.Node); ok && node.Spec.ProviderID == "" {
			return node.Name
		}
	}
	return ""
}

// Known is Of where "none" has consequences: before the Nodes are read it is an error.
func (n Nodes) Known(in *cluster.Instance) (string, error) {
	if !n.informer.HasSynced() {
		return "", errors.New("the Nodes are not read yet")
	}
	return n.Of(in), nil
}
