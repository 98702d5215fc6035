package section

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func parse(t *testing.T, text string) (Section, error) {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Parse(raw)
}

const good = `
cluster: production
clouds:
  - {name: east, cloud: mine, region: RegionOne}
  - {name: west, cloud: mine, region: RegionTwo, providerIDRegion: true}
groups:
  - name: workers
    cloud: east
    flavor: [m1.large, m1.xlarge]
    image: ubuntu-24.04
    networks: [workers, {network: storage, portSecurity: false}]
    securityGroups: [workers]
    key: ops
    zones: [az1, az2]
    serverGroup: soft-anti-affinity
    bootVolume: {size: 50, type: ssd}
    floatingIP: public
    configDrive: true
    metadata: {owner: me}
    labels: {pool: a}
    taints: ["dedicated=a:NoSchedule"]
    min: 1
    max: 10
    price: 0.2
    userdata: /etc/autoscaler-agent/worker.sh
    arch: amd64
`

func TestSection(t *testing.T) {
	s, err := parse(t, good)
	if err != nil {
		t.Fatal(err)
	}
	g := s.Groups[0]
	if s.Cluster != "production" || len(s.Clouds) != 2 || g.Cloud != "east" || len(g.Flavor) != 2 || g.Networks[0].Network != "workers" || g.Networks[1].PortSecurity == nil ||
		g.BootVolume.Size != 50 || g.Taints[0].Taint != (cluster.Taint{Key: "dedicated", Value: "a", Effect: "NoSchedule"}) || g.Min != 1 || g.Max != 10 || g.Price != 0.2 {
		t.Errorf("%+v", s)
	}
	s, err = parse(t, strings.NewReplacer(oneFlavor, severalFlavors, "    min: 1\n", "", "    price: 0.2\n", "").Replace(good))
	if err != nil || len(s.Groups) != 3 {
		t.Fatalf("a group of each flavor: %+v, %v", s, err)
	}
	for i, want := range []string{"workers-m1.large [m1.large] 0..10 0", "workers-scs-2v-8-100 [SCS-2V:8:100] 0..10 0", "workers-big [m1.xlarge m2.xlarge] 2..4 0.4"} {
		g := s.Groups[i]
		if got := fmt.Sprintf("%s %v %d..%d %g", g.Name, g.Flavor, g.Min, g.Max, g.Price); got != want || g.Cloud != "east" || g.Image != "ubuntu-24.04" || g.Flavors != nil || len(g.Taints) != 1 {
			t.Errorf("%+v, want %s", g, want)
		}
	}
	each := "zones: [Z 1, z2]\n    eachZone: true\n    maxTotal: 12\n    flavors: [m1.large, {flavor: m1.xlarge, name: big, max: 4}]"
	s, err = parse(t, strings.NewReplacer(oneFlavor, each, "    zones: [az1, az2]\n", "", "    min: 1\n", "", "    price: 0.2\n", "").Replace(good))
	if err != nil || len(s.Groups) != 4 {
		t.Fatalf("a group of each flavor and zone: %+v, %v", s, err)
	}
	for i, want := range []string{"workers-m1.large-z-1 [Z 1] 10", "workers-m1.large-z2 [z2] 10", "workers-big-z-1 [Z 1] 4", "workers-big-z2 [z2] 4"} {
		if g := s.Groups[i]; fmt.Sprintf("%s %v %d", g.Name, g.Zones, g.Max) != want {
			t.Errorf("%+v, want %s", g, want)
		} else if name, most := g.Pool(); name != "workers" || most != 12 {
			t.Errorf("%s: %d machines in pool %s", g.Name, most, name)
		}
	}
	s, err = parse(t, "groups: [{name: a, flavor: b, image: c, networks: [d], max: 1, userdata: /e}]")
	if err != nil || len(s.Groups[0].Flavor) != 1 || s.Groups[0].OwnPorts() {
		t.Errorf("the shortest: %+v, %v", s, err)
	}
}

// What makes a group of each flavor of the section good.
const (
	oneFlavor      = "flavor: [m1.large, m1.xlarge]"
	severalFlavors = "flavors: [m1.large, 'SCS-2V:8:100', {flavor: [m1.xlarge, m2.xlarge], name: big, min: 2, max: 4, price: 0.4}]"
)

// TestFlavorsMistakes: a mistake of the group is told once, and one of a flavor at its place.
func TestFlavorsMistakes(t *testing.T) {
	several := strings.NewReplacer(oneFlavor, severalFlavors, "    min: 1\n", "", "    price: 0.2\n", "").Replace(good)
	for _, c := range []struct{ old, new, want string }{
		{"    key: ops", "    key: ops\n    flavor: a", "groups[0].flavor: flavors is there too: write flavor for one group"},
		{"    key: ops", "    key: ops\n    min: 3", "groups[0].min: 3: each of the flavors would keep so many machines: write the minimum at one flavor, for example flavors: [{flavor: m1.large, min: 3}]"},
		{"    key: ops", "    key: ops\n    price: 0.5", "groups[0].price: 0.5: machines of several flavors"},
		{severalFlavors, "flavors: []", "groups[0].flavors: name at least one flavor"},
		{"    key: ops", "    key: ops\n    eachZone: true", "groups[0].flavors[2].min: each of the zones would keep so many machines"},
		{"    zones: [az1, az2]", "    eachZone: true", "groups[0].zones: eachZone makes a group of each zone"},
		{"    key: ops", "    key: ops\n    maxTotal: -1", "groups[0].maxTotal: -1"},
		{severalFlavors, "flavor: a\n    maxTotal: 3", "groups[0].flavors: eachZone and maxTotal are of groups that flavors makes"},
		{"name: workers", "name: Workers", "groups[0].name: \"Workers\""},
		{"name: big", "name: Big", "groups[0].flavors[2].name: \"workers-Big\" would be the group's name"},
		{"name: big", "name: m1.large", "groups[0].flavors[2].name: \"workers-m1.large\" stands twice"},
		{"SCS-2V:8:100", "a-flavor-with-a-name-that-is-far-too-long", "groups[0].flavors[1].name: \"workers-a-flavor"},
		{"SCS-2V:8:100", "", "groups[0].flavors[1].flavor: name a flavor"},
		{"max: 4", "max: 1", "groups[0].flavors[2].max: 2..1"},
		{"    max: 10\n", "", "groups[0].flavors[0].max: 0..0"},
		{"price: 0.4", "price: -1", "groups[0].flavors[2].price: -1"},
		{"price: 0.4", "prize: 1", "groups[0].flavors[2].prize: no such field: known are flavor, max, min, name, price"},
		{"image: ubuntu-24.04", "image: \"\"", "groups[0].image: "},
		{"cloud: east", "cloud: north", "groups[0].cloud: "},
	} {
		if !strings.Contains(several, c.old) {
			t.Fatalf("the section has no %q", c.old)
		}
		_, err := parse(t, strings.Replace(several, c.old, c.new, 1))
		if err == nil || strings.Count(err.Error(), c.want) != 1 {
			t.Errorf("%s: %v, want %q once", c.new, err, c.want)
		}
	}
}

// TestSectionMistakes: every mistake has its place and what to write instead.
func TestSectionMistakes(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"flavor: [m1", "flavour: [m1", "groups[0].flavour: no such field: known are arch, bootVolume"},
		{"size: 50", "sise: 50", "groups[0].bootVolume.sise: no such field"},
		{"portSecurity: false", "portSec: false", "groups[0].networks[1].portSec: no such field"},
		{"region: RegionOne", "regio: RegionOne", "clouds[0].regio: no such field"},
		{"cluster: production", "cluster: pro/duction", "cluster: "},
		{"name: west", "name: east", "clouds[1].name: \"east\" stands twice"},
		{"name: west, ", "", "clouds[1].name: give it a name"},
		{"cloud: east", "cloud: north", "groups[0].cloud: \"north\" is not among"},
		{"    cloud: east\n", "", "groups[0].cloud: there are several clouds: name one of east, west"},
		{"name: workers", "name: Workers", "groups[0].name: \"Workers\""},
		{"flavor: [m1.large, m1.xlarge]", "flavor: []", "groups[0].flavor: name a flavor"},
		{"image: ubuntu-24.04", "image: \"\"", "groups[0].image: "},
		{"networks: [workers, {network: storage, portSecurity: false}]", "networks: []", "groups[0].networks: name at least one"},
		{"portSecurity: false", "portSecurity: false, allowedAddresses: [10.0.0.0/8]", "groups[0].networks[1].portSecurity: "},
		{"serverGroup: soft-anti-affinity", "serverGroup: far-apart", "groups[0].serverGroup: \"far-apart\": write one of affinity"},
		{"size: 50", "size: 0", "groups[0].bootVolume.size: 0"},
		{"{owner: me}", "{own/er: me}", "groups[0].metadata.own/er: "},
		{"{owner: me}", "{autoscaler-agent.group: me}", "groups[0].metadata.autoscaler-agent.group: "},
		{"dedicated=a:NoSchedule", "dedicated", "is no taint"},
		{"min: 1", "min: 11", "groups[0].max: 11..10"},
		{"min: 1", "min: one", "min: write a whole number, not a string"},
		{"price: 0.2", "price: -1", "groups[0].price: "},
		{"userdata: /etc", "userdata: etc", "groups[0].userdata: "},
		{"arch: amd64", "arch: x86_64", "groups[0].arch: \"x86_64\": write amd64 or arm64"},
	} {
		if !strings.Contains(good, c.old) {
			t.Fatalf("the section has no %q", c.old)
		}
		_, err := parse(t, strings.Replace(good, c.old, c.new, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
}
