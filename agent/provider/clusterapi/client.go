package clusterapi

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

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

// contracts are the versions of Cluster API's own group whose objects package capi has.
var contracts = []string{"v1beta1", "v1beta2"}

// alpha versions have objects that package capi would read in part. Cluster API serves none since 1.6.
var alpha = regexp.MustCompile(`\Av[0-9]+alpha[0-9]+\z`)

// version returns the API version in use of Cluster API's own group: the one of the setting, else
// the first served one that this package has the objects of, the API server's preferred one first.
func (p *Provider) version(ctx context.Context) (capi.Served, string, error) {
	s, err := p.management.Serves(ctx, p.set.keys.group)
	if err != nil {
		return s, "", err
	}
	missing := func(format string, args ...any) (capi.Served, string, error) {
		return s, "", &capi.CallError{Action: "find Machine", Err: &capi.MissingError{Text: fmt.Sprintf(format, args...)}}
	}
	has := func(v string) bool { return s.Plural[v+"/Machine"] != "" }
	if v := p.set.version; v != "" {
		if !has(v) {
			return missing("version %q of %s has no Machines: leave AUTOSCALER_CLUSTERAPI_VERSION empty, or name one of %s", v, p.set.keys.group, strings.Join(s.Versions, ", "))
		}
		return s, v, nil
	}
	for _, v := range s.Versions {
		if slices.Contains(contracts, v) && has(v) {
			return s, v, nil
		}
	}
	if len(s.Versions) == 0 {
		return missing("%s is served in no version: install Cluster API", p.set.keys.group)
	}
	remedy := "use a newer agent"
	if !slices.ContainsFunc(s.Versions, func(v string) bool { return !alpha.MatchString(v) }) {
		remedy = "upgrade Cluster API to 1.0 or newer, which serves v1beta1 (clusterctl upgrade)"
	}
	return missing("%s is served as %s, and this agent reads %s: %s", p.set.keys.group, strings.Join(s.Versions, ", "), strings.Join(contracts, " and "), remedy)
}
