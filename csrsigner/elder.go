package csrsigner

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// elder is another Node of the machine of n that is older and lives: one that shares its provider ID, else one without a
// provider ID that reports its system UUID or an address. It looks at each Node once, and reads the Lease of those
// that are of the machine.
func (s *Service) elder(ctx context.Context, n *corev1.Node, req rules.Request) *rules.Elder {
	nodes, _ := s.nodes.List(labels.Everything()) // a lister over a cache has no errors
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	var says *rules.Elder
	for _, o := range nodes {
		if o.Name == n.Name || o.DeletionTimestamp != nil || o.CreationTimestamp.After(n.CreationTimestamp.Time) {
			continue
		}
		e := rules.Elder{Name: o.Name, Instance: o.Spec.ProviderID != "", By: sameMachine(o, n, req)}
		if e.By == "" || says != nil && !e.Instance || !s.lives(ctx, o) {
			continue
		}
		if e.Instance {
			return &e
		}
		says = &e
	}
	return says
}

// sameMachine says by which of its facts a Node o is of the machine of n; empty: by none.
func sameMachine(o, n *corev1.Node, req rules.Request) string {
	switch uuid := o.Status.NodeInfo.SystemUUID; {
	case rules.SameMachine(o.Spec.ProviderID, n.Spec.ProviderID):
		return "provider ID " + o.Spec.ProviderID
	case o.Spec.ProviderID != "":
		return ""
	case uuid != "" && strings.EqualFold(uuid, n.Status.NodeInfo.SystemUUID):
		return "system UUID " + uuid
	}
	for _, a := range o.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && slices.ContainsFunc(req.Parsed.IPs, func(x netip.Addr) bool {
			return rules.CanonicalAddress(x) == rules.CanonicalAddress(ip)
		}) {
			return "address " + a.Address
		}
	}
	return ""
}

// leaseFresh is the duration of a kubelet's Lease, which it renews four times as often.
const leaseFresh = 40 * time.Second

// lives tells that the kubelet of a Node works. Its Lease says so where its stamp is fresh. The stamp is the machine's
// clock, which may be wrong; so any other is left to the node controller, which sets the condition to Unknown when the
// Lease has stood still by its own clock. A machine that joins anew under another name leaves a Node whose kubelet is
// dead: that one holds nobody.
func (s *Service) lives(ctx context.Context, n *corev1.Node) bool {
	lease, err := s.deps.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, n.Name, metav1.GetOptions{})
	return err == nil && lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time).Abs() < leaseFresh || reports(n)
}

// reports tells that the node controller has not set the condition of a Node to Unknown.
func reports(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionUnknown
	})
}
