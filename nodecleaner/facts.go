package nodecleaner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// toNode converts what the rules look at.
func toNode(n *corev1.Node) cluster.Node {
	_, control := n.Labels["node-role.kubernetes.io/control-plane"]
	_, master := n.Labels["node-role.kubernetes.io/master"]
	out := cluster.Node{Name: cluster.NodeName(n.Name), UID: cluster.UID(n.UID), ProviderID: n.Spec.ProviderID,
		Created: n.CreationTimestamp.Time, Deleting: n.DeletionTimestamp != nil, ControlPlane: control || master}
	if v, ok := n.Annotations[cluster.AnnotationKeep]; ok {
		// The annotation keeps whatever its value, also an empty one, but not "false".
		if v == "" {
			v = "true"
		}
		if v != "false" {
			out.Annotations = map[string]string{cluster.AnnotationKeep: v}
		}
	}
	if zone := n.Labels[corev1.LabelTopologyZone]; zone != "" {
		out.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	}
	for _, t := range n.Spec.Taints {
		out.Taints = append(out.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		out.ReadySince = c.LastTransitionTime.Time
		switch c.Status {
		case corev1.ConditionTrue:
			out.Ready = cluster.StatusTrue
		case corev1.ConditionFalse:
			out.Ready = cluster.StatusFalse
		}
	}
	return out
}

// nodes are all Nodes, and the names of those that are this very machine: by name, or
// by the machine ID that its kubelet reports.
func (s *Service) nodes() (nodes []cluster.Node, own []cluster.NodeName, err error) {
	list, err := s.lister.List(labels.Everything())
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes = make([]cluster.Node, 0, len(list))
	for _, n := range list {
		nodes = append(nodes, toNode(n))
		if n.Name == s.deps.OwnNode || s.deps.OwnMachine != "" && n.Status.NodeInfo.MachineID == s.deps.OwnMachine {
			own = append(own, cluster.NodeName(n.Name))
		}
	}
	return nodes, own, nil
}

// attached counts the volumes that are attached to each Node.
func (s *Service) attached() map[cluster.NodeName]int {
	list, err := s.volumes.List(labels.Everything())
	if err != nil || len(list) == 0 {
		return nil // a lister of a cache does not fail
	}
	out := map[cluster.NodeName]int{}
	for _, v := range list {
		out[cluster.NodeName(v.Spec.NodeName)]++
	}
	return out
}

// readLeases fills in when the kubelets of the named Nodes last renewed their Lease.
// Leases are not watched (each changes every ten seconds): they are read when a
// deletion would rest on them. One that cannot be read counts as renewed now.
func (s *Service) readLeases(ctx context.Context, nodes []cluster.Node, of []cluster.NodeName, now time.Time) {
	for i := range nodes {
		if !slices.Contains(of, nodes[i].Name) {
			continue
		}
		lease, err := s.deps.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, string(nodes[i].Name), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			nodes[i].LeaseRenewed = now
			if text := err.Error(); text != s.leaseErr {
				s.leaseErr = text
				s.log.WithFields(logrus.Fields{"node": nodes[i].Name, "rule": "L2", "why": text}).
					Warn("a kubelet's Lease cannot be read: the Node is kept as if it had been renewed just now")
			}
		case lease.Spec.RenewTime != nil:
			nodes[i].LeaseRenewed = lease.Spec.RenewTime.Time
		}
	}
}
