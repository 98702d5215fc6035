package nova

import "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"

// AccessRules are the calls that the provider makes, no more and no fewer. console adds
// the one by which consoles are read: Keystone cannot tell it from the calls of the same
// path that stop and rebuild servers.
func AccessRules(console bool) []openstack.AccessRule {
	rules := []openstack.AccessRule{
		{Service: "compute", Method: "GET", Path: "/v2.1/servers/detail"},
		{Service: "compute", Method: "GET", Path: "/v2.1/servers/*"},
		{Service: "compute", Method: "POST", Path: "/v2.1/servers"},
		{Service: "compute", Method: "DELETE", Path: "/v2.1/servers/*"},
		{Service: "compute", Method: "GET", Path: "/v2.1/flavors/detail"},
		{Service: "compute", Method: "GET", Path: "/v2.1/limits"},
		{Service: "compute", Method: "GET", Path: "/v2.1/os-server-groups"},
		{Service: "compute", Method: "POST", Path: "/v2.1/os-server-groups"},
		{Service: "image", Method: "GET", Path: "/v2/images"},
		{Service: "image", Method: "GET", Path: "/v2/images/*"},
		{Service: "network", Method: "GET", Path: "/v2.0/networks"},
		{Service: "network", Method: "GET", Path: "/v2.0/security-groups"},
		{Service: "network", Method: "GET", Path: "/v2.0/ports"},
		{Service: "network", Method: "POST", Path: "/v2.0/ports"},
		{Service: "network", Method: "DELETE", Path: "/v2.0/ports/*"},
		{Service: "network", Method: "GET", Path: "/v2.0/floatingips"},
		{Service: "network", Method: "POST", Path: "/v2.0/floatingips"},
		{Service: "network", Method: "DELETE", Path: "/v2.0/floatingips/*"},
	}
	if console {
		rules = append(rules, openstack.AccessRule{Service: "compute", Method: "POST", Path: "/v2.1/servers/*/action"})
	}
	return rules
}
