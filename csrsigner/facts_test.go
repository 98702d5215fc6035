package csrsigner

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

func TestSettledAndNode(t *testing.T) {
	now := metav1.Now()
	for want, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"":         {},
		"issued":   {Status: certificatesv1.CertificateSigningRequestStatus{Certificate: []byte{1}}},
		"deleting": {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}},
		"approved": {Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}}},
		"denied":   {Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}}},
		"failed":   {Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed}}}},
	} {
		if got := settled(csr); got != want {
			t.Errorf("settled: %q, want %q", got, want)
		}
	}
	for label, want := range map[string]bool{"node-role.kubernetes.io/control-plane": true, "node-role.kubernetes.io/master": true, "node-role.kubernetes.io/worker": false} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: ""}}}
		if toNode(n).ControlPlane != want {
			t.Errorf("label %s: control plane %t", label, !want)
		}
	}
}

func TestSettled(t *testing.T) {
	now := metav1.Now()
	for want, csr := range map[string]certificatesv1.CertificateSigningRequest{
		"":         {},
		"approved": {Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}}},
		"denied":   {Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}}},
		"failed":   {Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed}}}},
		"issued":   {Status: certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("x")}},
		"deleting": {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}},
	} {
		if got := settled(&csr); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestToNode(t *testing.T) {
	now := metav1.Now()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", DeletionTimestamp: &now, Labels: map[string]string{"node-role.kubernetes.io/master": ""}},
		Spec: corev1.NodeSpec{ProviderID: "p"}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{MachineID: "m"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionFalse}}}}
	if got, want := *toNode(n), (rules.Node{Name: "n", UID: "u", ProviderID: "p", MachineID: "m", Deleting: true, ControlPlane: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	n = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	if got := *toNode(n); !got.ControlPlane || !got.Ready || got.Deleting {
		t.Errorf("%+v", got)
	}
	if got := *toNode(&corev1.Node{}); got != (rules.Node{}) {
		t.Errorf("%+v", got)
	}
}

// TestElder: of two Nodes of one machine the younger finds the older one, while that one reports; a Node's own word on its
// system UUID and addresses counts only where it has no provider ID.
func TestElder(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	older := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "older", CreationTimestamp: at(0)}, Spec: corev1.NodeSpec{ProviderID: string(nextID)},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		change(n)
		return n
	}
	asking := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host, CreationTimestamp: at(1)}, Spec: corev1.NodeSpec{ProviderID: string(ownID)},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: "EC2A-1"}}}
	req := rules.Request{Parsed: rules.Parsed{IPs: []netip.Addr{addr("10.0.0.5")}}}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		by     string
	}{
		"another machine":      {func(*corev1.Node) {}, ""},
		"the same provider ID": {func(n *corev1.Node) { n.Spec.ProviderID = string(ownID) }, "provider ID"},
		"the same provider ID, not Ready": {func(n *corev1.Node) {
			n.Spec.ProviderID, n.Status.Conditions[0].Status = string(ownID), corev1.ConditionFalse
		}, "provider ID"},
		"it does not report": {func(n *corev1.Node) {
			n.Spec.ProviderID, n.Status.Conditions[0].Status = string(ownID), corev1.ConditionUnknown
		}, ""},
		"it never reported":              {func(n *corev1.Node) { n.Spec.ProviderID, n.Status.Conditions = string(ownID), nil }, ""},
		"it is younger":                  {func(n *corev1.Node) { n.Spec.ProviderID, n.CreationTimestamp = string(ownID), at(2) }, ""},
		"of the same second":             {func(n *corev1.Node) { n.Spec.ProviderID, n.CreationTimestamp = string(ownID), at(1) }, "provider ID"},
		"it is being deleted":            {func(n *corev1.Node) { now := at(1); n.Spec.ProviderID, n.DeletionTimestamp = string(ownID), &now }, ""},
		"the same UUID, no provider ID":  {func(n *corev1.Node) { n.Spec.ProviderID, n.Status.NodeInfo.SystemUUID = "", "ec2a-1" }, "system UUID"},
		"the same UUID, another machine": {func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = "EC2A-1" }, ""},
		"the address, no provider ID": {func(n *corev1.Node) {
			n.Spec.ProviderID, n.Status.Addresses = "", []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "::ffff:10.0.0.5"}}
		}, "address"},
		"the address, another machine": {func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
		}, ""},
	} {
		index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		for _, n := range []*corev1.Node{asking, older(c.change)} {
			if err := index.Add(n); err != nil {
				t.Fatal(err)
			}
		}
		s := &Service{nodes: corelisters.NewNodeLister(index)}
		got := s.elder(asking, req)
		if (got == nil) != (c.by == "") || got != nil && !strings.HasPrefix(got.By, c.by) {
			t.Errorf("%s: %+v, want %q", name, got, c.by)
		}
	}
}
