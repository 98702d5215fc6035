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

// inCluster returns the configuration of a pod; tests replace it.
var inCluster = rest.InClusterConfig

// configs returns the configurations of both clusters. kubeconfig is the agent's own, of the
// workload cluster; an empty path means the pod's own cluster. These three values give the
// five arrangements of Cluster Autoscaler's documents.
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

// version returns the API version in use of Cluster API's own group.
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
