package rules

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestWitnessIsAsOldAsItsNames: R15 counts from the read of names and addresses.
func TestWitnessIsAsOldAsItsNames(t *testing.T) {
	group := cluster.NodeGroup{ID: "a", ReadAt: noon, NamesReadAt: noon.Add(-31 * time.Second), Instances: []cluster.Instance{*ownInstance()}}
	for name, w := range map[string]*Witness{
		"serving": Sources{}.Witness([]cluster.NodeGroup{group}, string(ownID), host, Parsed{DNS: []string{host}}),
		"join":    Sources{}.JoinWitness([]cluster.NodeGroup{group}, host),
	} {
		if !w.ReadAt.Equal(group.NamesReadAt) {
			t.Errorf("%s: the witness is of %s", name, w.ReadAt)
		}
	}
	f := honestFacts()
	f.Now = noon
	f.Inventory.ReadAt = group.WitnessedAt()
	if v := Decide(honestRequest(), f); v.Do != Later || v.Rule != "R15" {
		t.Errorf("%+v", v)
	}
}

func TestExtraNames(t *testing.T) {
	i := cluster.Instance{ID: "aws:///us-gov-west-1a/i-0a", Zone: "us-gov-west-1a"}
	nova := cluster.Instance{ID: "openstack://RegionOne/" + uuidA}
	for _, c := range []struct {
		template string
		of       cluster.Instance
		want     string
		ok       bool
	}{
		{"{{node}}.corp.example", i, "n1.corp.example", true},
		{"{{instance}}.{{zone}}.corp.example.", i, "i-0a.us-gov-west-1a.corp.example", true},
		{"{{instance}}.{{region}}.corp.example", i, "i-0a.us-gov-west-1.corp.example", true},
		{"{{node}}.{{region}}.corp.example", nova, "n1.regionone.corp.example", true},
		{"{{node}}.{{zone}}.corp.example", nova, "", false},
		{"{{node}}.{{region}}.corp.example", cluster.Instance{ID: "openstack:///" + uuidA}, "", false},
		{"{{node}}.{{region}}.corp.example", cluster.Instance{ID: "aws:///nowhere/i-1", Zone: "nowhere"}, "", false},
		{"{{node}}.{{region}}.corp.example", cluster.Instance{ID: "plugin://a/b"}, "", false},
	} {
		if got, ok := expand(c.template, "n1", c.of); got != c.want || ok != c.ok {
			t.Errorf("%s: %q %v, want %q", c.template, got, ok, c.want)
		}
	}
	w := Sources{Extra: []string{"{{node}}.{{zone}}.example", "{{node}}.x.example"}}.newSearch("", nil)
	bare := cluster.Instance{ID: "plugin://a/b", NodeNames: []string{"n1", "N2."}, Names: []string{"n1"}}
	if vouched := w.lay(&bare); vouched || !slices.Equal(bare.Names, []string{"n1", "n1.x.example", "n2.x.example"}) ||
		!slices.Equal(bare.NodeNames, []string{"n1", "N2.", "n1.x.example", "n2.x.example"}) {
		t.Errorf("%v names %q %q", vouched, bare.Names, bare.NodeNames)
	}
	if fault := TemplateFault("{{name}}.{{node}}"); !strings.Contains(fault, "stand for something") {
		t.Errorf("an unknown placeholder: %q", fault)
	}
	for template, sound := range map[string]bool{"{{node}}.corp.example": true, "{{instance}}": true, "{{name}}.corp.example": false,
		"fixed.corp.example": false, "{{zone}}.corp.example": false, "*.{{node}}.corp.example": false, "{{node}}.": true, "{{node}": false} {
		if fault := TemplateFault(template); (fault == "") != sound {
			t.Errorf("%s: fault %q", template, fault)
		}
	}
}

const uuidA, uuidB = "4bb6a6c0-6a24-4a53-9a3e-0d2f8b3f0f11", "5bb6a6c0-6a24-4a53-9a3e-0d2f8b3f0f11"

func TestSameMachine(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{string(ownID), string(ownID), true},
		{"", "", false},
		{"aws:///us-east-1a/i-0a", "aws:///us-east-1b/i-0a", false},
		{"openstack:///" + uuidA, "openstack:///" + uuidA, true},
		{"openstack:///" + uuidA, "openstack://RegionOne/" + uuidA, true},
		{"openstack://RegionOne/" + uuidA, "openstack:///" + strings.ToUpper(uuidA), true},
		{"openstack://RegionOne/" + uuidA, "openstack://RegionTwo/" + uuidA, false},
		{"openstack:///" + uuidA, "openstack:///" + uuidB, false},
		{"openstack:///x", "openstack://RegionOne/x", false},
		{"openstack:///" + uuidA, "aws:///" + uuidA, false},
		{"openstack:///" + uuidA, "", false},
		{uuidA, "openstack:///" + uuidA, false},
		{"openstack://" + uuidA, "openstack:///" + uuidA, false},
	} {
		if got := SameMachine(c.a, c.b); got != c.want || SameMachine(c.b, c.a) != got {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
		if c.want && MachineKey(c.a) != MachineKey(c.b) {
			t.Errorf("%q and %q have the keys %q and %q", c.a, c.b, MachineKey(c.a), MachineKey(c.b))
		}
	}
}

// TestNodeNamesByTemplate: where the cloud does not tell the domain of its guests (Nova's
// dhcp_domain), the operator's template makes a Node's name of it, for both certificates;
// without the template the verdict names the variable.
func TestNodeNamesByTemplate(t *testing.T) {
	server := cluster.Instance{ID: "openstack:///" + uuidA, Phase: cluster.PhaseRunning, Member: true, Created: noon.Add(-time.Minute),
		NodeNames: []string{"w-1", "w-1.novalocal"}, Names: []string{"w-1", "w-1.novalocal"}, Addresses: []netip.Addr{addr("10.0.0.5")}}
	groups := []cluster.NodeGroup{{ID: "nova", ReadAt: noon, Instances: []cluster.Instance{server}}}
	const fqdn = "w-1.dc1.corp.example"
	serving := func(s Sources, dnsDomain string) Verdict {
		r, f := honestRequest(), honestFacts()
		rename(&r, &f, fqdn)
		f.Node.ProviderID, f.Forbidden.DNSDomain = string(server.ID), dnsDomain
		f.Inventory = s.Witness(groups, string(server.ID), fqdn, r.Parsed)
		return Decide(r, f)
	}
	join := func(s Sources, name string) Verdict {
		r, f := honestJoin()
		r.Parsed.CommonNames, f.Forbidden.DNSDomain = []string{UserPrefix + name}, "corp.example"
		f.Inventory = s.JoinWitness(groups, name)
		return Decide(r, f)
	}
	domain := Sources{Extra: []string{"{{node}}.dc1.corp.example"}}
	for _, dns := range []string{"cluster.local", "corp.example", "dc1.corp.example"} {
		if v := serving(domain, dns); v.Do != Approve {
			t.Errorf("serving, in cluster domain %s: %+v", dns, v)
		}
	}
	if v := join(domain, fqdn); v.Do != Approve {
		t.Errorf("join: %+v", v)
	}
	if v := serving(Sources{}, "cluster.local"); v.Do != Later || v.Rule != "R11" || !strings.Contains(v.Why, "AUTOSCALER_CSR_EXTRA_NAMES") {
		t.Errorf("without the template: %+v", v)
	}
	for name, want := range map[string]string{"w-2.dc1.corp.example": "J11", "kubernetes.corp.example": "J8", "w-1.svc.corp.example": "J8"} {
		if v := join(domain, name); v.Do == Approve || v.Rule != want {
			t.Errorf("join as %s: %+v, want %s", name, v, want)
		}
	}
	// Two servers of one name stay two.
	twin := server
	twin.ID = "openstack:///" + uuidB
	groups[0].Instances = append(groups[0].Instances, twin)
	if v := join(domain, fqdn); v.Do != Later || v.Rule != "J11" {
		t.Errorf("two of one name: %+v", v)
	}
}

// TestOperatorsInventory: a machine whose cloud tells nothing is witnessed by the list in
// groups.yaml, and by nothing else.
func TestOperatorsInventory(t *testing.T) {
	const id = cluster.InstanceID("plugin://a/1")
	bare := cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true}
	groups := []cluster.NodeGroup{{ID: "plugin", ReadAt: noon, Instances: []cluster.Instance{bare, {ID: "plugin://a/2", Phase: cluster.PhaseRunning, Member: true}}}}
	machines, err := ParseMachines(json.RawMessage(`[{"instance":"plugin://a/1","node":"W-1","names":["w-1.corp.example"],"addresses":["10.0.0.5","2001:db8::5"]}]`))
	if err != nil {
		t.Fatal(err)
	}
	judge := func(s Sources, names ...string) Verdict {
		r, f := honestRequest(), honestFacts()
		rename(&r, &f, "w-1")
		r.Parsed.DNS, f.Node.ProviderID = names, string(id)
		f.Inventory = s.Witness(groups, string(id), "w-1", r.Parsed)
		return Decide(r, f)
	}
	vouched := Sources{Machines: machines, Extra: []string{"{{node}}.x.example"}}
	if v := judge(vouched, "w-1", "w-1.corp.example", "w-1.x.example"); v.Do != Approve {
		t.Errorf("covered by the list: %+v", v)
	}
	if v := judge(vouched, "w-2.corp.example"); v.Do != Later || v.Rule != "R13" {
		t.Errorf("a name that the list has not: %+v", v)
	}
	if v := judge(Sources{}, "w-1"); v.Do != Later || v.Rule != "R11" {
		t.Errorf("without the list: %+v", v)
	}
	if len(groups[0].Instances[0].NodeNames)+len(groups[0].Instances[0].Addresses) != 0 {
		t.Error("the shared inventory was changed")
	}
	// What a list or a template gives to another machine is the other's.
	others := Sources{Machines: append(slices.Clone(machines), Machine{Instance: "plugin://a/2", Node: "w-2", Addresses: []netip.Addr{addr("10.0.0.6")}}), Extra: []string{"{{node}}.x.example"}}
	if v := judge(others, "w-2.x.example"); v.Do != Deny || v.Rule != "R9" {
		t.Errorf("another machine's extra name: %+v", v)
	}
}

// TestParseControlPlane: the list of control-plane machines says which machine has which name, once.
func TestParseControlPlane(t *testing.T) {
	list, err := ParseControlPlane(json.RawMessage(`[{"node":"CP-2.","addresses":["10.0.0.12","::ffff:10.0.1.12"]},{"node":"cp-3","instance":"aws:///eu-west-1a/i-3","names":["cp-3.corp.example"],"addresses":["10.0.0.13"]},{"node":"cp-4","addresses":["10.0.0.14"]}]`))
	if err != nil || len(list) != 3 || list[0].Node != "cp-2" || !list[0].Has("10.0.1.12") || list[1].Instance != "aws:///eu-west-1a/i-3" {
		t.Errorf("%v %+v", err, list)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no address":             {`[{"node":"cp-2"}]`, "[0].addresses: write the addresses of machine cp-2"},
		"one address twice":      {`[{"node":"cp-2","addresses":["10.0.0.2"]},{"node":"cp-3","addresses":["::ffff:10.0.0.2"]}]`, "[1].addresses: 10.0.0.2 stands in [0] already"},
		"another's Node as name": {`[{"node":"cp-2","addresses":["10.0.0.2"]},{"node":"cp-3","names":["CP-2"],"addresses":["10.0.0.3"]}]`, "[1].names: cp-2 stands in [0] already"},
		"loopback":               {`[{"node":"cp-2","addresses":["127.0.0.1"]}]`, "[0].addresses[0]: 127.0.0.1 is no address of one machine"},
		"unspecified":            {`[{"node":"cp-2","addresses":["10.0.0.2","::"]}]`, "[0].addresses[1]: :: is no address of one machine"},
		"link-local":             {`[{"node":"cp-2","addresses":["fe80::1"]}]`, "no address of one machine"},
		"mapped loopback":        {`[{"node":"cp-2","addresses":["::ffff:127.0.0.1"]}]`, "no address of one machine"},
		"one Node twice":         {`[{"node":"cp-2","addresses":["10.0.0.2"]},{"node":"cp-2","addresses":["10.0.0.3"]}]`, "stands in [0] already"},
		"one instance twice":     {`[{"node":"cp-2","instance":"a://1","addresses":["10.0.0.2"]},{"node":"cp-3","instance":"a://1","addresses":["10.0.0.3"]}]`, "instance a://1 stands in [0] already"},
		"no provider ID":         {`[{"node":"cp-2","instance":"i-3","addresses":["10.0.0.2"]}]`, `[0].instance: "i-3" is no provider ID`},
		"no Node":                {`[{"addresses":["10.0.0.2"]}]`, "[0].node:"},
		"unknown field":          {`[{"node":"cp-2","address":"10.0.0.2"}]`, "there is no field"},
		"a mapping":              {`{"cp-2":["10.0.0.2"]}`, "write a list of machines"},
	} {
		if _, err := ParseControlPlane(json.RawMessage(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestParseMachinesNamesEveryMistake(t *testing.T) {
	_, err := ParseMachines(json.RawMessage(`[{"node":"a b","names":["*"],"addresses":["10.0.0","fe80::1%eth0"]},{"instance":"i","node":"n"},{"instance":"i","node":"n"}]`))
	for _, want := range []string{"[0].instance", "[0].node", "[0].names[0]", "[0].addresses[0]", "[0].addresses[1]", "[2].instance: instance i stands in [1] already", "node n stands"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if _, err := ParseMachines(json.RawMessage(`[{"instance":"i","node":"n","adresses":[]}]`)); err == nil || !strings.Contains(err.Error(), "adresses") {
		t.Errorf("an unknown field: %v", err)
	}
	if list, err := ParseMachines(nil); err != nil || list != nil {
		t.Errorf("no section: %v %v", list, err)
	}
}
