package config

import (
	"slices"
	"testing"
)

// TestSeed003 takes the words of an operator who comes from Cluster Autoscaler on Cluster
// API: the flags of its documents under the agent's names, and its three variables.
func TestSeed003(t *testing.T) {
	clean(t)
	for name, value := range map[string]string{
		"AUTOSCALER_PROVIDER":                              "clusterapi",                                                // --cloud-provider=clusterapi
		"AUTOSCALER_CLUSTERAPI_AUTO_DISCOVERY":             "clusterapi:namespace=staging,clusterName=purple,owner=jim", // --node-group-auto-discovery
		"AUTOSCALER_KUBECONFIG":                            "/mnt/workload.kubeconfig",                                  // --kubeconfig
		"AUTOSCALER_CLUSTERAPI_CLOUD_CONFIG":               "/mnt/management.kubeconfig",                                // --cloud-config
		"AUTOSCALER_CLUSTERAPI_CLOUD_CONFIG_AUTHORITATIVE": "true",                                                      // --clusterapi-cloud-config-authoritative
		"AUTOSCALER_SCALING_GPU_TOTAL":                     "nvidia.com/gpu:1:2",                                        // --gpu-total=gfx-hardware:1:2
		"AUTOSCALER_SCALING_BALANCE_SIMILAR_NODE_GROUPS":   "true",                                                      // --balance-similar-node-groups
		"AUTOSCALER_SCALING_BALANCE_IGNORE_LABELS":         "topology.ebs.csi.aws.com/zone,lifecycle",                   // --balancing-ignore-label, twice
		"AUTOSCALER_SCALING_BALANCE_LABELS":                "pool",                                                      // --balancing-label
		"AUTOSCALER_SCALING_UTILIZATION_THRESHOLD":         "0.5",                                                       // --scale-down-utilization-threshold
		"AUTOSCALER_SCALING_UNNEEDED_FOR":                  "10m0s",                                                     // --scale-down-unneeded-time
		"AUTOSCALER_SCALING_UNREADY_FOR":                   "20m0s",                                                     // --scale-down-unready-time
		"AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME":       "20m0s",                                                     // --max-node-provision-time
		"CAPI_GROUP":                   "test.k8s.io",
		"CAPI_VERSION":                 "v1beta1",
		"CAPI_SCALE_ZERO_DEFAULT_ARCH": "arm64",
	} {
		t.Setenv(name, value)
	}
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	s, api := c.Scaling, c.ClusterAPI
	if !slices.Equal(api.AutoDiscovery, []string{"clusterapi:namespace=staging,clusterName=purple,owner=jim"}) || api.CloudConfig != "/mnt/management.kubeconfig" ||
		!api.CloudConfigAuthoritative || c.Kubeconfig != "/mnt/workload.kubeconfig" {
		t.Errorf("%+v, kubeconfig %q", api, c.Kubeconfig)
	}
	if len(s.GPUTotal) != 1 || s.GPUTotal[0].Min != 1 || s.GPUTotal[0].Max != 2 || !s.BalanceSimilarNodeGroups ||
		!slices.Equal(s.BalanceIgnoreLabels, []string{"topology.ebs.csi.aws.com/zone", "lifecycle"}) || !slices.Equal(s.BalanceLabels, []string{"pool"}) {
		t.Errorf("%+v", s)
	}
}
