package csrsigner

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
