package quickstart

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

const moduleOpenStack = deploy + "/terraform/openstack"

// madeResources is what a module would make: a line for each resource.
type madeResources struct {
	lines []string
	rules []openstack.AccessRule
	seen  map[string]int
}

func (p *madeResources) make(address string, c content) (map[string]cty.Value, error) {
	p.seen[address]++
	id := fmt.Sprintf("id of %s", address)
	if strings.HasPrefix(address, "openstack_networking_secgroup_v2") || strings.HasPrefix(address, "openstack_networking_port_v2") {
		id = c.text("name")
	}
	line := strings.Split(address, ".")[0]
	for _, name := range sorted(c.args) {
		raw, err := json.Marshal(plain(c.args[name]))
		if err != nil {
			return nil, err
		}
		line += fmt.Sprintf(" %s=%s", name, raw)
	}
	for _, b := range c.blocks["access_rules"] {
		p.rules = append(p.rules, openstack.AccessRule{Service: b.text("service"), Method: b.text("method"), Path: b.text("path")})
	}
	for _, b := range c.blocks["network"] {
		line += " network.port=" + b.text("port")
	}
	if !strings.HasPrefix(address, "data.") {
		p.lines = append(p.lines, line)
	}
	return map[string]cty.Value{"id": cty.StringVal(id), "address": cty.StringVal("198.51.100.1"), "secret": cty.StringVal("the secret"),
		"all_fixed_ips": cty.ListVal([]cty.Value{cty.StringVal("10.0.0.9")})}, nil
}

// plain is a value as encoding/json writes it.
func plain(v cty.Value) any {
	switch {
	case v.IsNull():
		return nil
	case v.Type() == cty.Number:
		n, _ := v.AsBigFloat().Int64()
		return n
	case v.Type() == cty.Bool:
		return v.True()
	case v.Type().IsListType():
		out := []any{}
		for _, one := range v.AsValueSlice() {
			out = append(out, plain(one))
		}
		return out
	}
	return v.AsString()
}

// TestTerraformOpenStack: what the module makes, resource by resource, and the two files
// that it writes for the agent.
func TestTerraformOpenStack(t *testing.T) {
	m, err := load(moduleOpenStack)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := m.check(); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
	p := &madeResources{seen: map[string]int{}}
	given := map[string]cty.Value{
		"cluster": cty.StringVal("demo"), "auth_url": cty.StringVal("https://keystone.example.net:5000/v3"), "ssh_public_key": cty.StringVal("ssh-ed25519 AAAA ops"),
		"admin_cidrs": cty.TupleVal([]cty.Value{cty.StringVal(admin)}), "network": cty.StringVal("machines"), "leader_flavor": cty.StringVal("m1.medium"),
		"external_network": cty.StringVal("public"),
		"groups":           cty.ObjectVal(map[string]cty.Value{"workers": cty.ObjectVal(map[string]cty.Value{"flavors": cty.TupleVal([]cty.Value{cty.StringVal("m1.large")})})}),
	}
	outputs, err := m.evaluate(given, p.make)
	if err != nil {
		t.Fatal(err)
	}
	rule := func(to, protocol string, port int, from string) string {
		remote := `remote_group_id="` + from + `"`
		if strings.Contains(from, "/") {
			remote = `remote_ip_prefix="` + from + `"`
		}
		return fmt.Sprintf(`openstack_networking_secgroup_rule_v2 direction="ingress" ethertype="IPv4" port_range_max=%d port_range_min=%d protocol=%q %s security_group_id=%q`, port, port, protocol, remote, to)
	}
	want := []string{
		`openstack_compute_instance_v2 flavor_id="id of data.openstack_compute_flavor_v2.leader" image_id="id of data.openstack_images_image_v2.image" key_pair="demo" name="demo-leader" network.port=demo-leader`,
		`openstack_compute_keypair_v2 name="demo" public_key="ssh-ed25519 AAAA ops"`,
		`openstack_identity_application_credential_v3 description="autoscaler-agent of demo" name="demo-autoscaler-agent" roles=["member"]`,
		`openstack_networking_floatingip_v2 pool="public" port_id="demo-leader"`,
		`openstack_networking_port_v2 name="demo-leader" network_id="id of data.openstack_networking_network_v2.machines" security_group_ids=["demo-leader"]`,
		`openstack_networking_secgroup_v2 description="control plane of demo" name="demo-leader"`,
		`openstack_networking_secgroup_v2 description="workers of demo" name="demo-worker"`,
		rule("demo-leader", "tcp", 22, admin), rule("demo-leader", "tcp", 6443, "demo-worker"), rule("demo-leader", "tcp", 10250, "demo-worker"), rule("demo-leader", "udp", 8472, "demo-worker"),
		rule("demo-worker", "tcp", 10250, "demo-leader"), rule("demo-worker", "udp", 8472, "demo-leader"), rule("demo-worker", "tcp", 10250, "demo-worker"), rule("demo-worker", "udp", 8472, "demo-worker"),
	}
	slices.Sort(want)
	slices.Sort(p.lines)
	if !slices.Equal(p.lines, want) {
		t.Errorf("the module makes\n%s\nwant\n%s", strings.Join(p.lines, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(p.rules, nova.AccessRules(false)) {
		t.Errorf("the credential's access rules are\n%v, the agent's\n%v", p.rules, nova.AccessRules(false))
	}
	wantFiles(t, outputs)

	given["external_network"], given["access_rules"] = cty.NullVal(cty.String), cty.False
	p = &madeResources{seen: map[string]int{}}
	if outputs, err = m.evaluate(given, p.make); err != nil {
		t.Fatal(err)
	}
	if outputs["leader"].AsString() != "10.0.0.9" || len(p.rules) > 0 || p.seen["openstack_networking_floatingip_v2.leader"] > 0 {
		t.Errorf("without an external network and access rules: leader %s, %d rules", outputs["leader"].AsString(), len(p.rules))
	}
}

// wantFiles: groups.yaml is one that the provider nova takes, and clouds.yaml one that
// holds the application credential alone.
func wantFiles(t *testing.T, outputs map[string]cty.Value) {
	t.Helper()
	var groups struct{ Nova json.RawMessage }
	if err := yaml.Unmarshal([]byte(outputs["groups_yaml"].AsString()), &groups); err != nil {
		t.Fatal(err)
	}
	const want = `{"cluster":"demo","groups":[{"flavor":["m1.large"],"image":"ubuntu-24.04","key":"demo","max":10,"min":0,"name":"demo-workers","networks":["machines"],"securityGroups":["demo-worker"],"userdata":"/etc/autoscaler-agent/worker.sh"}]}`
	if !sameJSON(t, string(groups.Nova), want) {
		t.Errorf("groups.yaml says %s", groups.Nova)
	}
	if _, err := section.Parse(groups.Nova); err != nil {
		t.Errorf("groups.yaml: %v", err)
	}
	clouds, err := yaml.YAMLToJSON([]byte(outputs["clouds_yaml"].AsString()))
	if err != nil {
		t.Fatal(err)
	}
	const cloud = `{"clouds":{"demo":{"auth":{"application_credential_id":"id of openstack_identity_application_credential_v3.agent","application_credential_secret":"the secret","auth_url":"https://keystone.example.net:5000/v3"},"auth_type":"v3applicationcredential","region_name":"RegionOne"}}}`
	if !sameJSON(t, string(clouds), cloud) {
		t.Errorf("clouds.yaml says %s", clouds)
	}
}

// TestAccessRules: the file that Terraform and openstack.sh read is what openstack-rules
// prints.
func TestAccessRules(t *testing.T) {
	if *update {
		lines := []string{}
		for _, r := range nova.AccessRules(false) {
			lines = append(lines, fmt.Sprintf(`  {"service": %q, "method": %q, "path": %q}`, r.Service, r.Method, r.Path))
		}
		if err := os.WriteFile(moduleOpenStack+"/access-rules.json", []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(moduleOpenStack + "/access-rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var rules []openstack.AccessRule
	if err := json.Unmarshal(raw, &rules); err != nil || !slices.Equal(rules, nova.AccessRules(false)) {
		t.Errorf("%v, %v", rules, err)
	}
}
