package cluster

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
)

const aUUID = "0e1a2b3c-4d5e-6f70-8190-a1b2c3d4e5f6"

func TestIdentify(t *testing.T) {
	addr := netip.MustParseAddr
	for _, c := range []struct {
		name     string
		instance Instance
		node     Node
		want     bool
	}{
		{"exact", Instance{ID: "aws:///z/i-1"}, Node{ProviderID: "aws:///z/i-1"}, true},
		{"another zone in writing", Instance{ID: "aws:///z/i-1"}, Node{ProviderID: "aws:///i-1"}, true},
		{"bare instance ID", Instance{ID: "aws:///z/i-1"}, Node{ProviderID: "i-1"}, true},
		{"another instance", Instance{ID: "aws:///z/i-1"}, Node{ProviderID: "aws:///z/i-2"}, false},
		{"openstack with region", Instance{ID: "openstack:///" + aUUID}, Node{ProviderID: "openstack://RegionOne/" + aUUID}, true},
		{"openstack with two slashes", Instance{ID: "openstack:///" + aUUID}, Node{ProviderID: "openstack://" + aUUID}, true},
		{"upper case without dashes", Instance{ID: "openstack:///" + aUUID}, Node{ProviderID: "openstack:///0E1A2B3C4D5E6F708190A1B2C3D4E5F6"}, true},
		{"system UUID", Instance{ID: "openstack:///" + aUUID}, Node{SystemUUID: "0E1A2B3C-4D5E-6F70-8190-A1B2C3D4E5F6"}, true},
		{"system UUID, bytes swapped", Instance{ID: "openstack:///" + aUUID}, Node{SystemUUID: "3c2b1a0e-5e4d-706f-8190-a1b2c3d4e5f6"}, true},
		{"address", Instance{ID: "aws:///z/i-1", Addresses: []netip.Addr{addr("10.0.0.1")}}, Node{Addresses: []string{"host", "10.0.0.1"}}, true},
		{"address of a machine that is gone", Instance{ID: "aws:///z/i-1", Phase: PhaseGone, Addresses: []netip.Addr{addr("10.0.0.1")}}, Node{Addresses: []string{"10.0.0.1"}}, false},
		{"name", Instance{ID: "aws:///z/i-1", NodeNames: []string{"n"}}, Node{}, true},
		{"nothing", Instance{ID: "aws:///z/i-1"}, Node{}, false},
	} {
		c.node.Name = "n"
		id := Identify([]NodeGroup{{ID: "g", Instances: []Instance{c.instance}}}, []*Node{&c.node})
		if got := id.Node[c.instance.ID] == "n" && id.Instance["n"] == c.instance.ID; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, id, c.want)
		}
	}
}

// TestIdentifyReusedAddress: a dead Node still lists the address that a new machine
// got. The Node stays with its own instance, and the new machine is claimed.
func TestIdentifyReusedAddress(t *testing.T) {
	ip := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	groups := []NodeGroup{{ID: "g", Instances: []Instance{{ID: "i-old", Phase: PhaseRunning}, {ID: "i-new", Phase: PhaseRunning, Addresses: ip}}}}
	nodes := []*Node{{Name: "n", ProviderID: "i-old", Addresses: []string{"10.0.0.1"}}}
	id := Identify(groups, nodes)
	if id.Instance["n"] != "i-old" || id.Claimed["i-new"] != "n" || id.Node["i-new"] != "" {
		t.Errorf("%+v", id)
	}
	slices.Reverse(groups[0].Instances)
	if again := Identify(groups, nodes); !maps.Equal(again.Node, id.Node) || !maps.Equal(again.Claimed, id.Claimed) {
		t.Errorf("order matters: %+v, %+v", again, id)
	}
}

// TestIdentifyStrongFirst: a Node without a provider ID must not take by address what
// another Node owns by ID, whatever their names.
func TestIdentifyStrongFirst(t *testing.T) {
	ip := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	id := Identify([]NodeGroup{{ID: "g", Instances: []Instance{{ID: "aws:///z/i-1", Addresses: ip}}}},
		[]*Node{{Name: "a", Addresses: []string{"10.0.0.1"}}, {Name: "b", ProviderID: "aws:///z/i-1"}})
	if id.Node["aws:///z/i-1"] != "b" || id.Instance["a"] != "" {
		t.Errorf("%+v", id)
	}
}
