package leader

import (
	"bytes"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestFamilies: on a machine with addresses of both IP versions, the API server gets one of the version that it needs, and
// the kubelet those of the pods' versions in their order.
func TestFamilies(t *testing.T) {
	const pods4, pods6, services4, services6 = "10.244.0.0/16", "fd00:10:244::/56", "10.96.0.0/12", "fd00:10:96::/112"
	for name, c := range map[string]struct {
		change              func(*Spec)
		advertised, nodeIP  string // of an init
		joinAdvertised, ips string // of a join with the same machine's flags
	}{
		"IPv4":             {func(*Spec) {}, "", "", "", ""},
		"IPv6":             {func(s *Spec) { s.PodSubnet, s.ServiceSubnet = pods6, services6 }, "::", "::", "", ""},
		"both, IPv4 first": {func(s *Spec) { s.PodSubnet, s.ServiceSubnet = pods4+","+pods6, services4+","+services6 }, "", nodeIPs, "", ""},
		"both, IPv6 first": {func(s *Spec) { s.PodSubnet, s.ServiceSubnet = pods6+","+pods4, services6+","+services4 }, "::", nodeIPs, "", ""},
		"Services of IPv6": {func(s *Spec) { s.PodSubnet, s.ServiceSubnet = pods4+","+pods6, services6 }, "::", nodeIPs, "", ""},
		"an own address": {func(s *Spec) { s.PodSubnet, s.ServiceSubnet, s.AdvertiseAddress = pods6, services6, "2001:db8::4" },
			"2001:db8::4", "::", "2001:db8::4", "::"},
		"asked, IPv6": {func(s *Spec) { s.PodSubnet, s.ServiceSubnet, s.Machine.NodeIP = pods6, services6, "ipv6" }, "::", "::", "::", "::"},
		"asked, both": {func(s *Spec) {
			s.PodSubnet, s.ServiceSubnet, s.Machine.NodeIP = pods6+","+pods4, services6, "ipv6,ipv4"
		}, "::", nodeIPs, "::", nodeIPs},
		"asked, the rest": {func(s *Spec) { s.Machine.NodeIP = "ipv4,ipv6" }, "", nodeIPs, "", nodeIPs},
		"both, on AWS":    {func(s *Spec) { s.PodSubnet, s.ServiceSubnet, s.CloudController = pods4+","+pods6, services4, "aws" }, "", "", "", ""},
	} {
		for _, version := range []string{"v1.30.14", "v1.36.3"} {
			s := sample()
			s.Machine.KubernetesVersion = version
			c.change(&s)
			script, err := Render(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_, rest, _ := strings.Cut(string(script), "cat >\"$config\" <<'"+endOfFile+"'\n")
			document, _, _ := strings.Cut(rest, "---\n")
			endpoint, ip := read(t, []byte(document), "localAPIEndpoint")
			if endpoint != c.advertised || ip != c.nodeIP {
				t.Errorf("%s %s: advertises %q with --node-ip %q, want %q and %q", name, version, endpoint, ip, c.advertised, c.nodeIP)
			}
			steps := bytes.Contains(script, []byte("\nnode_ips ipv"))
			if replaced := bytes.Contains(script, []byte("\nsed -i \"s/[$]{NODE_IPS}/$NODE_IPS/\" \"$config\"\n")); replaced != (ip == nodeIPs) || steps != replaced {
				t.Errorf("%s %s: the addresses are looked for: %t, and put in: %t", name, version, steps, replaced)
			}
			join, err := joinConfiguration(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			endpoint, ip = read(t, join, "controlPlane", "localAPIEndpoint")
			if endpoint != c.joinAdvertised || ip != c.ips {
				t.Errorf("%s %s: a join advertises %q with --node-ip %q, want %q and %q", name, version, endpoint, ip, c.joinAdvertised, c.ips)
			}
			if script, err = renderJoin(s); err != nil || bytes.Contains(script, []byte("\nnode_ips ipv")) != (c.ips == nodeIPs) {
				t.Errorf("%s %s: the join's script looks for addresses, or does not: %v", name, version, err)
			}
		}
	}
	for _, change := range []func(*Spec){
		func(s *Spec) { s.AdvertiseAddress = "2001:db8::4" },
		func(s *Spec) { s.PodSubnet, s.ServiceSubnet, s.AdvertiseAddress = pods6, services6, "10.0.0.4" },
	} {
		s := sample()
		change(&s)
		if _, err := Render(s); err == nil || !strings.Contains(err.Error(), "advertiseAddress: ") || !strings.Contains(err.Error(), "another IP version") {
			t.Errorf("%v", err)
		}
	}
}

// read is the advertised address at a path of a document, and the kubelet's --node-ip in either form of kubeadm.
func read(t *testing.T, text []byte, path ...string) (address, nodeIP string) {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	at := doc
	for _, key := range path {
		at, _ = at[key].(map[string]any)
	}
	address, _ = at["advertiseAddress"].(string)
	registration, _ := doc["nodeRegistration"].(map[string]any)
	switch args := registration["kubeletExtraArgs"].(type) {
	case map[string]any:
		nodeIP, _ = args["node-ip"].(string)
	case []any:
		for _, one := range args {
			if arg := one.(map[string]any); arg["name"] == "node-ip" {
				nodeIP, _ = arg["value"].(string)
			}
		}
	}
	return address, nodeIP
}
