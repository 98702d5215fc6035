package magnum

import "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"

// AccessRules are the calls that the provider makes, no more and no fewer.
func AccessRules() []openstack.AccessRule {
	return []openstack.AccessRule{
		{Service: "container-infra", Method: "GET", Path: "/v1/clusters/*"},
		{Service: "container-infra", Method: "GET", Path: "/v1/clusters/*/nodegroups"},
		{Service: "container-infra", Method: "GET", Path: "/v1/clusters/*/nodegroups/*"},
		{Service: "container-infra", Method: "POST", Path: "/v1/clusters/*/actions/resize"},
		{Service: "compute", Method: "GET", Path: "/v2.1/servers"},
		{Service: "compute", Method: "GET", Path: "/v2.1/servers/detail"},
		{Service: "compute", Method: "GET", Path: "/v2.1/servers/*"},
		{Service: "compute", Method: "GET", Path: "/v2.1/flavors/detail"},
		{Service: "compute", Method: "GET", Path: "/v2.1/flavors/*/os-extra_specs"},
		{Service: "orchestration", Method: "GET", Path: "/v1/*/stacks/*"},
		{Service: "orchestration", Method: "GET", Path: "/v1/*/stacks/*/*"},
		{Service: "orchestration", Method: "GET", Path: "/v1/*/stacks/*/*/resources/kube_minions"},
	}
}
