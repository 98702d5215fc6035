package csrsigner

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// toRequest converts an API object to what Decide judges.
func toRequest(csr *certificatesv1.CertificateSigningRequest) rules.Request {
	req := rules.Request{
		Name: csr.Name, UID: string(csr.UID), Signer: csr.Spec.SignerName, Username: csr.Spec.Username,
		UserUID: csr.Spec.UID, Groups: csr.Spec.Groups, ExpirationSeconds: csr.Spec.ExpirationSeconds,
		Created: csr.CreationTimestamp.Time, Settled: settled(csr), Parsed: rules.Parse(csr.Spec.Request),
	}
	for _, u := range csr.Spec.Usages {
		req.Usages = append(req.Usages, string(u))
	}
	return req
}

func settled(csr *certificatesv1.CertificateSigningRequest) string {
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateApproved:
			return "approved"
		case certificatesv1.CertificateDenied:
			return "denied"
		case certificatesv1.CertificateFailed:
			return "failed"
		}
	}
	switch {
	case len(csr.Status.Certificate) > 0:
		return "issued"
	case csr.DeletionTimestamp != nil:
		return "deleting"
	}
	return ""
}

func toNode(n *corev1.Node) *rules.Node {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return &rules.Node{Name: n.Name, UID: string(n.UID), ProviderID: n.Spec.ProviderID, MachineID: n.Status.NodeInfo.MachineID,
		Deleting: n.DeletionTimestamp != nil, ControlPlane: cluster.IsControlPlane(n.Labels), Ready: ready}
}
