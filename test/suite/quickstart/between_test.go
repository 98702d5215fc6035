package quickstart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

const adminSix = "2001:db8:7::/64"

// wantOpen: SSH comes from the network of IPv6, and each group of machines reaches every port of the other and its own.
func wantOpen(t *testing.T, c *aws.Cloud) {
	t.Helper()
	a := c.Account()
	leader, worker := a.SecurityGroups["demo-leader"], a.SecurityGroups["demo-worker"]
	all := func(from string) aws.SecurityRule {
		return aws.SecurityRule{Protocol: "-1", From: -1, To: -1, Group: from}
	}
	ssh := aws.SecurityRule{Protocol: "tcp", From: 22, To: 22, CIDR: adminSix}
	for name, want := range map[string][]aws.SecurityRule{"demo-leader": {ssh, all(leader.ID), all(worker.ID)}, "demo-worker": {all(leader.ID), all(worker.ID)}} {
		got := map[string]bool{}
		for _, rule := range a.SecurityGroups[name].Ingress {
			got[ruleKey(rule)] = true
		}
		for _, rule := range want {
			if !got[ruleKey(rule)] {
				t.Errorf("%s lacks %+v", name, rule)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s lets in %v", name, a.SecurityGroups[name].Ingress)
		}
	}
	if len(a.Interfaces) != 1 || a.Interfaces[0].IPv6 == "" {
		t.Errorf("the leader has no address of IPv6: %+v", a.Interfaces)
	}
}

// TestOpenBetweenMachinesAWS: the script and the module, with an administrator of IPv6.
func TestOpenBetweenMachinesAWS(t *testing.T) {
	m, err := load(moduleAWS)
	if err != nil {
		t.Fatal(err)
	}
	c := emptyAccount(t)
	outputs, err := m.evaluate(map[string]cty.Value{
		"cluster": cty.StringVal("demo"), "admin_cidrs": cty.TupleVal([]cty.Value{cty.StringVal(adminSix)}),
		"ssh_public_key": cty.StringVal("ssh-ed25519 AAAA ops"), "open_between_machines": cty.True,
	}, (&applier{t, c, connect(c)}).make)
	if err != nil {
		t.Fatal(err)
	}
	wantOpen(t, c)
	if got := outputs["leader_ipv6"].AsValueSlice(); len(got) != 1 || got[0].AsString() != c.Account().Interfaces[0].IPv6 {
		t.Errorf("output leader_ipv6 is %v", got)
	}

	awsCommand(t)
	c = emptyAccount(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"id.pub": "ssh-ed25519 AAAA ops\n", "ssh-keyscan": "#!/bin/sh\necho a key\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(script(t, "aws.sh"), "leader", "--cluster", "demo", "--admin", adminSix, "--key", "id.pub", "--between", "all")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(c.Env(), "PATH="+dir+":"+os.Getenv("PATH"), "AWS_PAGER=")...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, problem.String())
	}
	wantOpen(t, c)
	if !strings.HasPrefix(string(out), "LEADER="+c.Account().Interfaces[0].IPv6+"\n") {
		t.Errorf("it prints %s", out)
	}
}

// TestOpenBetweenMachinesOpenStack: the module, with an administrator of IPv6.
func TestOpenBetweenMachinesOpenStack(t *testing.T) {
	m, err := load(moduleOpenStack)
	if err != nil {
		t.Fatal(err)
	}
	p := &madeResources{seen: map[string]int{}}
	_, err = m.evaluate(map[string]cty.Value{
		"cluster": cty.StringVal("demo"), "auth_url": cty.StringVal("https://keystone.example.net:5000/v3"), "ssh_public_key": cty.StringVal("ssh-ed25519 AAAA ops"),
		"admin_cidrs": cty.TupleVal([]cty.Value{cty.StringVal(adminSix)}), "network": cty.StringVal("machines"), "leader_flavor": cty.StringVal("m1.medium"),
		"open_between_machines": cty.True,
		"groups":                cty.ObjectVal(map[string]cty.Value{"workers": cty.ObjectVal(map[string]cty.Value{"flavors": cty.TupleVal([]cty.Value{cty.StringVal("m1.large")})})}),
	}, p.make)
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, line := range p.lines {
		if !strings.HasPrefix(line, "openstack_networking_secgroup_rule_v2 ") {
			continue
		}
		rules++
		ssh := strings.Contains(line, `ethertype="IPv6"`) && strings.Contains(line, "port_range_max=22 ") && strings.Contains(line, `remote_ip_prefix="`+adminSix+`"`)
		if all := strings.Contains(line, "remote_group_id") && !strings.Contains(line, "port_range_max=1") && !strings.Contains(line, `protocol="`); !ssh && !all {
			t.Errorf("it lets in %s", line)
		}
	}
	if rules != 1+2*4 { // SSH, and of each IP version from both groups to both
		t.Errorf("%d rules:\n%s", rules, strings.Join(p.lines, "\n"))
	}
}
