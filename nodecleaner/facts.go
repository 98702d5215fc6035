package nodecleaner

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// toNode converts the fields that the rules use.
func toNode(n *corev1.Node) cluster.Node {
	out := cluster.Node{Name: cluster.NodeName(n.Name), UID: cluster.UID(n.UID), ProviderID: n.Spec.ProviderID,
		Created: n.CreationTimestamp.Time, Deleting: n.DeletionTimestamp != nil, ControlPlane: cluster.IsControlPlane(n.Labels),
		SystemUUID: n.Status.NodeInfo.SystemUUID, MachineID: n.Status.NodeInfo.MachineID, BootID: n.Status.NodeInfo.BootID}
	annotate := func(key, value string) {
		if out.Annotations == nil {
			out.Annotations = make(map[string]string, 1)
		}
		out.Annotations[key] = value
	}
	for _, key := range []string{cluster.AnnotationGroup, cluster.AnnotationBoot} {
		if value := n.Annotations[key]; value != "" {
			annotate(key, value)
		}
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
			out.Addresses = append(out.Addresses, a.Address)
		}
	}
	if v, ok := n.Annotations[cluster.AnnotationKeep]; ok {
		// The annotation keeps the Node with every value, also an empty one, except "false".
		if v == "" {
			v = "true"
		}
		if v != "false" {
			annotate(cluster.AnnotationKeep, v)
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
		out.ReadySince, out.Heartbeat = c.LastTransitionTime.Time, c.LastHeartbeatTime.Time
		switch c.Status {
		case corev1.ConditionTrue:
			out.Ready = cluster.StatusTrue
		case corev1.ConditionFalse:
			out.Ready = cluster.StatusFalse
		}
	}
	return out
}

// nodes returns all Nodes, and the names of the Nodes of this machine.
func (s *Service) nodes() (nodes []cluster.Node, own []cluster.NodeName, err error) {
	list, err := s.lister.List(labels.Everything())
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes = make([]cluster.Node, 0, len(list))
	for _, n := range list {
		nodes = append(nodes, toNode(n))
		if n.Name == s.deps.OwnNode || s.deps.Host.is(n) {
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

// readLeases reads the Leases of the named Nodes' kubelets. Leases are not watched, because
// each changes every ten seconds; they are read when a deletion depends on them.
func (s *Service) readLeases(ctx context.Context, of []cluster.NodeName, in *reaper.Input) {
	if in.Leases == nil {
		in.Leases = map[cluster.NodeName]reaper.Lease{}
	}
	s.feltAt = in.Now
	for _, name := range of {
		lease, err := s.deps.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, string(name), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			in.Leases[name] = reaper.Lease{}
		case err != nil:
			in.Leases[name] = reaper.Lease{Problem: err.Error()}
			if text := err.Error(); text != s.leaseErr {
				s.leaseErr = text
				s.log.WithFields(logrus.Fields{"node": name, "rule": "L2", "why": text}).
					Warn("a kubelet's Lease cannot be read: the Node is kept as if it were renewed")
			}
		case lease.Spec.RenewTime != nil:
			in.Leases[name] = reaper.Lease{Renewed: lease.Spec.RenewTime.Time}
		default:
			in.Leases[name] = reaper.Lease{}
		}
	}
	in.Now = time.Now()
}
