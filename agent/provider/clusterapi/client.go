package clusterapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

// inCluster is the configuration of a pod; tests put another in its place.
var inCluster = rest.InClusterConfig

// configs finds the clusters: kubeconfig is the agent's own, the workload cluster's;
// an empty path is the pod's own cluster. The five arrangements of Cluster
// Autoscaler's documents come from these three values.
func (c Config) configs(kubeconfig string) (management, workload *rest.Config, err error) {
	load := func(path string) (*rest.Config, error) {
		if path == "" {
			return inCluster()
		}
		return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{}).ClientConfig()
	}
	path := c.CloudConfig
	if path == "" && !c.CloudConfigAuthoritative {
		path = kubeconfig
	}
	if management, err = load(path); err != nil {
		return nil, nil, fmt.Errorf("management cluster (AUTOSCALER_CLUSTERAPI_CLOUD_CONFIG %q): %w", path, err)
	}
	if workload, err = load(kubeconfig); err != nil {
		return nil, nil, fmt.Errorf("workload cluster (AUTOSCALER_KUBECONFIG %q): %w", kubeconfig, err)
	}
	return management, workload, nil
}

// version is the one that is spoken of Cluster API's own group.
func (p *Provider) version(ctx context.Context) (capi.Served, string, error) {
	s, err := p.management.Serves(ctx, p.set.keys.group)
	if err != nil {
		return s, "", err
	}
	v := cmp.Or(p.set.version, slices.Concat(s.Versions, []string{""})[0])
	if s.Plural[v+"/Machine"] == "" {
		return s, "", &capi.CallError{Action: "find Machine", Err: &capi.MissingError{Text: fmt.Sprintf("version %q of %s has no Machines", v, p.set.keys.group)}}
	}
	return s, v, nil
}
