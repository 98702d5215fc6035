package round

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestLabelsOfPlacesAreIgnored plays every label that Cluster Autoscaler's documents for
// Cluster API advise to ignore, --balancing-ignore-label and --balancing-label.
func TestLabelsOfPlacesAreIgnored(t *testing.T) {
	w := &State{Policy: &decision.Policy{}}
	with := func(k, v string) map[string]string { return map[string]string{"pool": "a", k: v} }
	for _, label := range []string{
		"topology.diskplugin.csi.alibabacloud.com/zone", "alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name",
		"eks.amazonaws.com/nodegroup", "k8s.amazonaws.com/eniConfig", "lifecycle", "topology.ebs.csi.aws.com/zone",
		"topology.disk.csi.azure.com/zone", "agentpool", "kubernetes.azure.com/agentpool", "topology.gke.io/zone",
		"ibm-cloud.kubernetes.io/worker-id", "vpc-block-csi-driver-labels", "ibm-cloud.kubernetes.io/vpc-instance-id",
	} {
		if !w.sameLabels(with(label, "1"), with(label, "2")) {
			t.Errorf("groups that differ in %s are not similar", label)
		}
	}
	if w.sameLabels(with("example.com/rack", "1"), with("example.com/rack", "2")) {
		t.Error("groups that differ in a label of their own are similar")
	}
	w.Policy.BalanceIgnoreLabels = []string{"example.com/rack"}
	if !w.sameLabels(with("example.com/rack", "1"), with("example.com/rack", "2")) {
		t.Error("--balancing-ignore-label does not hold")
	}
	w.Policy.BalanceLabels = []string{"example.com/rack"}
	if w.sameLabels(with("example.com/rack", "1"), with("example.com/rack", "2")) || !w.sameLabels(map[string]string{"a": "1"}, map[string]string{"a": "2"}) {
		t.Error("--balancing-label does not hold")
	}
}
