package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

const (
	workers = providertest.Workers
	others  = providertest.Others
)

// filled is a world with the suite's groups, and its provider.
func filled(t testing.TB, opts openstack.Options, change ...func(*novaWorld)) (*novaWorld, *nova.Provider) {
	t.Helper()
	w := newNova(t, opts)
	for _, f := range change {
		f(w)
	}
	w.populate(t)
	return w, w.connect(t)
}

// on changes a field of group workers.
func on(field string, value any) func(*novaWorld) {
	return func(w *novaWorld) { w.groups[string(workers)][field] = value }
}

func readGroup(t testing.TB, p provider.Provider, id cluster.GroupID) cluster.NodeGroup {
	t.Helper()
	groups, err := p.Groups(t.Context())
	i := slices.IndexFunc(groups, func(g cluster.NodeGroup) bool { return g.ID == id })
	if err != nil || i < 0 {
		t.Fatalf("%s is not among %d groups: %v", id, len(groups), err)
	}
	return groups[i]
}

// nothingLeft wants no server, port, floating IP or volume in any region.
func (w *novaWorld) nothingLeft(t testing.TB) {
	t.Helper()
	w.settle(t)
	for _, r := range w.regions() {
		if s, p, f, v := r.Servers(), r.Ports(), r.FloatingIPs(), r.Volumes(); len(s)+len(p)+len(f)+len(v) > 0 {
			t.Errorf("region %s: left are %d servers, %d ports, %d floating IPs, %d volumes", r.Name(), len(s), len(p), len(f), len(v))
		}
	}
}

// TestNovaGone: what of the suite's case a cloud without groups can play: a server that
// was deleted, by us or behind our back, is told as gone once Nova answered 404 for it,
// and the target falls with it.
func TestNovaGone(t *testing.T) {
	w, p := filled(t, openstack.Options{})
	alive := w.Alive(workers)
	readGroup(t, p, workers)
	if err := p.Delete(t.Context(), workers, alive[0]); err != nil {
		t.Fatal(err)
	}
	w.Kill(alive[1])
	w.settle(t)
	g := readGroup(t, p, workers)
	if g.Target != 0 || len(g.Instances) != 2 {
		t.Fatalf("target %d, instances %+v", g.Target, g.Instances)
	}
	for _, i := range g.Instances {
		if i.Phase != cluster.PhaseGone || i.Member {
			t.Errorf("%+v, want it gone", i)
		}
	}
}

// TestNovaListsThatLie: servers that a list leaves out, and that Nova knows when it is
// asked by ID, are neither gone nor fewer.
func TestNovaListsThatLie(t *testing.T) {
	w, p := filled(t, openstack.Options{})
	readGroup(t, p, workers)
	w.fault("lie", true, openstack.Fault{Action: "GET /servers/detail", Kind: openstack.EmptyList})
	g := readGroup(t, p, workers)
	if g.Target != 2 || len(g.Instances) != 2 || g.Instances[0].Phase != cluster.PhaseRunning {
		t.Errorf("an empty list: target %d, %+v", g.Target, g.Instances)
	}
	w.fault("one", true, openstack.Fault{Region: "RegionOne", Action: "GET /servers/{id}", Kind: openstack.ServerError500})
	groups, err := p.Groups(t.Context())
	wantErr(t, err, provider.Transient)
	for _, g := range groups {
		if (g.Stale == "") == (g.ID == workers) {
			t.Errorf("%s: stale %q", g.ID, g.Stale)
		}
	}
	// A tag that somebody took away does not hide a server either.
	w.fault("lie", false, openstack.Fault{})
	w.fault("one", false, openstack.Fault{})
	for _, s := range w.members(workers) {
		w.SetServer(s.ID, s.Metadata, nil)
	}
	if g := readGroup(t, p, workers); g.Target != 2 {
		t.Errorf("without tags: target %d", g.Target)
	}
}

// TestNovaLostAnswers: the answer to POST /servers is lost, the connection is cut before
// the work, or a proxy answers in Nova's place: no server is made twice, and none is
// left that is not counted.
func TestNovaLostAnswers(t *testing.T) {
	for _, c := range []struct {
		kind openstack.Kind
		want int // servers after Resize 2 -> 4 of which one request fails
		ok   bool
	}{{openstack.AnswerLost, 4, true}, {openstack.ConnectionReset, 3, false}, {openstack.BadGateway502, 3, false}, {openstack.ServerError500, 3, false}} {
		t.Run(string(c.kind), func(t *testing.T) {
			w, p := filled(t, openstack.Options{}, on("floatingIP", openstack.PublicNetwork))
			w.fault("post", true, openstack.Fault{Action: "POST /servers", Kind: c.kind, Times: 1})
			err := p.Resize(t.Context(), workers, 2, 4)
			if (err == nil) != c.ok {
				t.Errorf("%v", err)
			}
			if !c.ok {
				wantErr(t, err, provider.Transient)
			}
			w.settle(t)
			g := readGroup(t, p, workers)
			if n := len(w.members(workers)); n > c.want || g.Target != n || c.ok && n != c.want {
				t.Errorf("%d servers, target %d, want %d", n, g.Target, c.want)
			}
			// Every port and floating IP belongs to a server.
			if got := len(w.Ports()); got != g.Target {
				t.Errorf("%d ports for %d servers", got, g.Target)
			}
			if got := len(w.FloatingIPs()); got != g.Target {
				t.Errorf("%d floating IPs for %d servers", got, g.Target)
			}
			w.fault("post", false, openstack.Fault{})
			if err := p.Resize(t.Context(), workers, g.Target, 4); err != nil {
				t.Error(err)
			}
			w.settle(t)
			if n := len(w.members(workers)); n != 4 {
				t.Errorf("%d servers after the next round", n)
			}
		})
	}
}

// TestNovaNoValidHost: a server that finds no host is told as failed with Nova's words,
// counted until it is deleted, and leaves nothing.
func TestNovaNoValidHost(t *testing.T) {
	w, p := filled(t, openstack.Options{}, on("bootVolume", map[string]any{"size": 50}), on("flavor", "v1.large"), on("min", 2), on("floatingIP", openstack.PublicNetwork))
	w.NoValidHost("*", "*")
	if err := p.Resize(t.Context(), workers, 2, 4); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	g := readGroup(t, p, workers)
	var failed []cluster.InstanceID
	for _, i := range g.Instances {
		if i.Phase != cluster.PhaseFailed {
			continue
		}
		failed = append(failed, i.ID)
		if f := i.Failure; f == nil || f.Cause != cluster.CauseCapacity || !strings.Contains(f.Text, "No valid host was found") || f.At.IsZero() || !i.Member {
			t.Errorf("%+v, failure %+v", i, i.Failure)
		}
	}
	if len(failed) != 2 || g.Target != 4 {
		t.Fatalf("%d failed, target %d", len(failed), g.Target)
	}
	if err := p.Delete(t.Context(), workers, failed...); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if got := readGroup(t, p, workers).Target; got != 2 {
		t.Errorf("target %d", got)
	}
	w.groups[string(workers)]["min"], w.groups[string(others)]["min"] = 0, 0
	for _, id := range []cluster.GroupID{workers, others} {
		if err := p.Delete(t.Context(), id, w.Alive(id)...); err != nil {
			t.Error(err)
		}
	}
	w.nothingLeft(t)
}

// TestNovaFailedBelowMin: a failed server is no machine: it goes even at the minimum.
func TestNovaFailedBelowMin(t *testing.T) {
	w, p := filled(t, openstack.Options{})
	alive := w.Alive(others)
	wantErr(t, p.Delete(t.Context(), others, alive[0]), provider.Invalid, "minimum")
	w.groups[string(others)]["min"] = 2
	w.RegionNamed("RegionTwo").NoValidHost("*", "*")
	if err := p.Resize(t.Context(), others, 1, 2); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	// The minimum gives way until the failed one is gone.
	if g := readGroup(t, p, others); g.Min != 1 || g.Target != 2 || len(g.Warnings) != 1 {
		t.Errorf("min %d, target %d, warnings %q", g.Min, g.Target, g.Warnings)
	}
	for _, s := range w.members(others) {
		if err := p.Delete(t.Context(), others, novaID(s)); (err == nil) != (s.Status == "ERROR") {
			t.Errorf("%s: %v", s.Status, err)
		}
	}
}

// TestNovaFallsBack: where Nova finds no host for a flavor in a zone, the next zone is
// taken, then the next flavor, and the failure is no reason to leave the group alone.
func TestNovaFallsBack(t *testing.T) {
	w, p := filled(t, openstack.Options{Zones: []string{"az1", "az2"}}, on("zones", []string{"az1", "az2"}), on("flavor", []string{"m1.large", "m1.xlarge"}))
	count := func(flavor, zone string) (n int) {
		for _, s := range w.members(workers) {
			if s.Flavor.Name == flavor && s.Status == "ACTIVE" && s.Zone == zone {
				n++
			}
		}
		return n
	}
	if count("m1.large", "az1") != 1 || count("m1.large", "az2") != 1 {
		t.Errorf("two servers do not stand in two zones")
	}
	if zones := readGroup(t, p, workers).Template.Zones; !slices.Equal(zones, []string{"az1", "az2"}) {
		t.Errorf("the zones of a group over two: %q", zones)
	}
	if labels := readGroup(t, p, workers).Template.Labels; labels["topology.kubernetes.io/zone"] != "" || labels["node.kubernetes.io/instance-type"] != "" {
		t.Errorf("labels that differ from server to server: %v", labels)
	}
	w.NoValidHost("m1.large", "*")
	for range 3 { // az1, az2, and then the other flavor
		g := readGroup(t, p, workers)
		if err := p.Resize(t.Context(), workers, g.Target, g.Target+1); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
		for _, i := range readGroup(t, p, workers).Instances {
			if i.Failure == nil {
				continue
			}
			if !i.Failure.At.IsZero() || !strings.Contains(i.Failure.Text, "is tried next") {
				t.Errorf("failure %+v", i.Failure)
			}
			if err := p.Delete(t.Context(), workers, i.ID); err != nil {
				t.Error(err)
			}
		}
		w.settle(t)
	}
	if count("m1.xlarge", "az1")+count("m1.xlarge", "az2") != 1 {
		t.Errorf("the second flavor was not taken")
	}
	// When nothing is left to try, the failure counts.
	w.NoValidHost("*", "*")
	for range 2 {
		g := readGroup(t, p, workers)
		if err := p.Resize(t.Context(), workers, g.Target, g.Target+1); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
	}
	if g := readGroup(t, p, workers); !slices.ContainsFunc(g.Instances, func(i cluster.Instance) bool { return i.Failure != nil && !i.Failure.At.IsZero() }) {
		t.Errorf("no failure counts: %+v", g.Instances)
	}
}

// TestNovaQuotas: each of the three quotas is looked at before anything is made; one that
// is hit on the way (by somebody else) is told with how many were made; those of ports
// and floating IPs leave nothing behind.
func TestNovaQuotas(t *testing.T) {
	for name, c := range map[string]struct {
		quota openstack.Quota
		words string
	}{
		"instances": {openstack.Quota{Instances: 3, Cores: -1, RAM: -1, Ports: -1, FloatingIPs: -1}, "instances"},
		"cores":     {openstack.Quota{Instances: -1, Cores: 11, RAM: -1, Ports: -1, FloatingIPs: -1}, "cores"},
		"ram":       {openstack.Quota{Instances: -1, Cores: -1, RAM: 3 * 8192, Ports: -1, FloatingIPs: -1}, "RAM"},
		"ports":     {openstack.Quota{Instances: -1, Cores: -1, RAM: -1, Ports: 3, FloatingIPs: -1}, "port"},
		"floating":  {openstack.Quota{Instances: -1, Cores: -1, RAM: -1, Ports: -1, FloatingIPs: 3}, "floatingip"},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := filled(t, openstack.Options{}, on("floatingIP", openstack.PublicNetwork))
			w.SetQuota(c.quota)
			err := p.Resize(t.Context(), workers, 2, 4)
			wantErr(t, err, provider.Exhausted, c.words)
			w.settle(t)
			g := readGroup(t, p, workers)
			if n := len(w.members(workers)); g.Target != n || n > 3 || name != "ports" && name != "floating" && n != 2 {
				t.Errorf("%d servers, target %d", n, g.Target)
			}
			if len(w.Ports()) != g.Target || len(w.FloatingIPs()) != g.Target {
				t.Errorf("%d ports and %d floating IPs for %d servers", len(w.Ports()), len(w.FloatingIPs()), g.Target)
			}
		})
	}
	t.Run("without limits", func(t *testing.T) { // no access rule for them: Nova itself refuses
		w, p := filled(t, openstack.Options{})
		w.fault("limits", true, openstack.Fault{Action: "GET /limits", Kind: openstack.Forbidden})
		w.SetQuota(openstack.Quota{Instances: 3, Cores: -1, RAM: -1, Ports: -1, FloatingIPs: -1})
		wantErr(t, p.Resize(t.Context(), workers, 2, 9), provider.Exhausted, "1 of 7", "Quota exceeded for instances")
		w.settle(t)
		if g := readGroup(t, p, workers); g.Target != 3 {
			t.Errorf("target %d", g.Target)
		}
	})
}

// TestNovaTokensExpire: a token that runs out or is revoked is renewed without anybody
// noticing; one that runs out while a server builds costs that server.
func TestNovaTokensExpire(t *testing.T) {
	w, p := filled(t, openstack.Options{})
	readGroup(t, p, workers)
	before := w.Tokens()
	w.RevokeTokens()
	if err := p.Resize(t.Context(), workers, 2, 6); err != nil {
		t.Error(err)
	}
	if n := w.Tokens() - before; n != 1 {
		t.Errorf("%d logins after the token was revoked, want 1", n)
	}
	w.settle(t)
	if n := len(w.Alive(workers)); n != 6 {
		t.Errorf("%d servers", n)
	}
	t.Run("while a server builds", func(t *testing.T) {
		w, p := filled(t, openstack.Options{BuildDelay: 30 * time.Millisecond})
		if err := p.Resize(t.Context(), workers, 2, 3); err != nil {
			t.Fatal(err)
		}
		w.RevokeTokens()
		w.settle(t)
		g := readGroup(t, p, workers)
		if !slices.ContainsFunc(g.Instances, func(i cluster.Instance) bool { return i.Phase == cluster.PhaseFailed && i.Failure != nil }) {
			t.Errorf("%+v", g.Instances)
		}
	})
}

// TestNovaServersInEveryState: a server that ran and whose host was lost is not failed,
// and one that is shut off or whose state is not clear is not gone.
func TestNovaServersInEveryState(t *testing.T) {
	w, p := filled(t, openstack.Options{})
	alive := w.members(workers)
	w.StopServer(alive[0].ID)
	w.FailServer(alive[1].ID, 500, "host lost")
	want := map[cluster.InstanceID]cluster.Phase{novaID(alive[0]): cluster.PhaseStopped, novaID(alive[1]): cluster.PhaseUnknown}
	g := readGroup(t, p, workers)
	for _, i := range g.Instances {
		if i.Phase != want[i.ID] || !i.Member || i.Failure != nil {
			t.Errorf("%+v, want phase %q", i, want[i.ID])
		}
	}
	if g.Target != 2 {
		t.Errorf("target %d", g.Target)
	}
}

// TestNovaTemplate: a flavor's numbers are MiB and GiB, and cores are cores.
func TestNovaTemplate(t *testing.T) {
	w, p := filled(t, openstack.Options{}, on("labels", map[string]string{"pool": "a"}), on("taints", []string{"dedicated=a:NoSchedule"}), on("zones", []string{"nova"}))
	tpl := readGroup(t, p, workers).Template
	if c := tpl.Capacity; c.MilliCPU != 4000 || c.Memory != 8192<<20 || c.EphemeralStorage != 80<<30 {
		t.Errorf("capacity %+v", c)
	}
	// 5 % of the memory is the kernel's, 600 MiB are reserved.
	if a := tpl.Allocatable; a.MilliCPU != 3930 || a.Memory < 7180<<20 || a.Memory > 7184<<20 || a.Pods != 110 {
		t.Errorf("allocatable %+v", a)
	}
	for key, value := range map[string]string{
		"pool": "a", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "m1.large",
		"topology.kubernetes.io/region": "RegionOne", "topology.kubernetes.io/zone": "nova", "topology.cinder.csi.openstack.org/zone": "nova",
	} {
		if tpl.Labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, tpl.Labels[key], value)
		}
	}
	if want := (cluster.Taint{Key: "dedicated", Value: "a", Effect: "NoSchedule"}); len(tpl.Taints) != 1 || tpl.Taints[0] != want {
		t.Errorf("taints %v", tpl.Taints)
	}
	if g := readGroup(t, p, workers); g.Price != 0.2 {
		t.Errorf("price %g", g.Price)
	}
	before := tpl.Spec
	w.groups[string(workers)]["flavor"] = []string{"m1.large", "m1.xlarge"}
	small := readGroup(t, p, workers).Template
	if small.Capacity.MilliCPU != 4000 || small.Capacity.Memory != 8192<<20 || small.Spec == before {
		t.Errorf("two flavors: %+v, spec %s after %s", small.Capacity, small.Spec, before)
	}
	w.groups[string(workers)]["flavor"] = "nope"
	if u := readGroup(t, p, workers).Template.Unknown; !strings.Contains(u, "nope") {
		t.Errorf("an unknown flavor: %q", u)
	}
	wantErr(t, p.Resize(t.Context(), workers, 2, 3), provider.Invalid, "nope", "flavor list")
}

// TestNovaEveryOption: what groups.yaml says of a group is what Nova and Neutron were
// asked for; each option is looked at by its name.
func TestNovaEveryOption(t *testing.T) {
	yes := false
	w := newNova(t, openstack.Options{Zones: []string{"az1", "az2"}})
	g := w.groups[string(workers)]
	for field, value := range map[string]any{
		"flavor": "v1.large", "image": openstack.ImageID, "key": openstack.KeyName, "zones": []string{"az2"}, "serverGroup": "soft-anti-affinity",
		"bootVolume": map[string]any{"size": 33, "type": "ssd"}, "floatingIP": openstack.PublicNetwork, "configDrive": true,
		"metadata": map[string]string{"owner": "me"}, "securityGroups": []string{"workers"}, "arch": "arm64",
		"networks": []any{
			map[string]any{"network": openstack.NetworkName, "subnet": w.Network(openstack.NetworkName).SubnetID, "securityGroups": []string{"default"}, "allowedAddresses": []string{"10.244.0.0/16"}},
			map[string]any{"network": "storage", "portSecurity": yes},
		},
	} {
		g[field] = value
	}
	p := w.connect(t)
	if err := p.Resize(t.Context(), workers, 0, 2); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	list := w.members(workers)
	if len(list) != 2 || len(w.ServerGroups()) != 1 || len(w.ServerGroups()[0].Members) != 2 || w.ServerGroups()[0].Policy != "soft-anti-affinity" {
		t.Fatalf("%d servers, server groups %+v", len(list), w.ServerGroups())
	}
	s := list[0]
	if s.Flavor.Name != "v1.large" || s.KeyName != openstack.KeyName || s.Zone != "az2" || !s.ConfigDrive || s.Metadata["owner"] != "me" || s.ImageID != "" {
		t.Errorf("%+v", s)
	}
	if v := w.Volumes(); len(v) != 2 || v[0].SizeGiB != 33 || v[0].Type != "ssd" || !v[0].DeleteOnTermination {
		t.Errorf("volumes %+v", v)
	}
	if !strings.HasPrefix(s.Name, "workers-") || len(s.Tags) != 1 || s.Metadata["autoscaler-agent.request"] == list[1].Metadata["autoscaler-agent.request"] {
		t.Errorf("name %s, tags %v, metadata %v", s.Name, s.Tags, s.Metadata)
	}
	ports := w.Ports()
	if len(ports) != 4 || len(w.FloatingIPs()) != 2 {
		t.Fatalf("%d ports, %d floating IPs", len(ports), len(w.FloatingIPs()))
	}
	for _, port := range ports {
		if storage := port.NetworkID == w.Network("storage").ID; storage == port.PortSecurity || !storage && (len(port.SecurityGroups) != 2 || !slices.Equal(port.AllowedPairs, []string{"10.244.0.0/16"})) {
			t.Errorf("port %+v", port)
		}
	}
	group := readGroup(t, p, workers)
	if group.Template.Labels["kubernetes.io/arch"] != "arm64" || group.Template.Capacity.EphemeralStorage != 33<<30 {
		t.Errorf("template %+v", group.Template)
	}
	if in := group.Instances[0]; len(in.Addresses) != 4 || len(in.NodeNames) != 2 || in.NodeNames[1] != in.NodeNames[0]+".novalocal" {
		t.Errorf("addresses %v (two networks, one with IPv6, and a floating one), names %v (the server's, and that with the domain of Nova's DHCP)", in.Addresses, in.NodeNames)
	}
	w.extra["dhcpDomain"] = "cloud.example.com"
	if in := readGroup(t, p, workers).Instances[0]; in.NodeNames[1] != in.NodeNames[0]+".cloud.example.com" || !slices.Contains(in.Names, in.NodeNames[1]) {
		t.Errorf("names %v of %v: want that with the site's domain", in.NodeNames, in.Names)
	}
	w.Kill(group.Instances[0].ID) // so that it is asked for by its ID
	w.settle(t)
	readGroup(t, p, workers)
	g["image"] = openstack.ImageName
	readGroup(t, p, workers)
	if err := p.Delete(t.Context(), workers, group.Instances[0].ID, group.Instances[1].ID); err != nil {
		t.Fatal(err)
	}
	w.nothingLeft(t)
	w.withinAccessRules(t)
}

// withinAccessRules wants every call so far among the access rules of the manual.
func (w *novaWorld) withinAccessRules(t testing.TB) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/providers/nova.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, _ := strings.Cut(rest, "```")
	var rules []struct{ Service, Method, Path string }
	if err := json.Unmarshal([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	version := map[string]string{"compute": "/v2.1", "image": "/v2", "network": "/v2.0"}
	used := map[int]bool{}
	for _, c := range w.Calls() {
		if c.Service == "identity" || c.Action == "GET /v2.1/" { // logins and version documents ask for no token
			continue
		}
		method, path, _ := strings.Cut(c.Action, " ")
		i := slices.IndexFunc(rules, func(r struct{ Service, Method, Path string }) bool {
			return r.Service == c.Service && r.Method == method && r.Path == version[c.Service]+strings.ReplaceAll(path, "{id}", "*")
		})
		if i < 0 {
			t.Errorf("no access rule allows %s %s", c.Service, c.Action)
		}
		used[i] = true
	}
	for i, r := range rules {
		if !used[i] {
			t.Errorf("the access rule %+v is not used", r)
		}
	}
}

// TestNovaUserData: each server gets a join token of its own; where none can be minted,
// no server is made.
func TestNovaUserData(t *testing.T) {
	if nova.TokenPlaceholder != userdata.TokenPlaceholder {
		t.Errorf("the generator writes %q, the provider looks for %q", userdata.TokenPlaceholder, nova.TokenPlaceholder)
	}
	w := newNova(t, openstack.Options{})
	var mu sync.Mutex
	minted := map[string]string{}
	p := w.connect(t, nova.WithTokens(func(_ context.Context, server string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		minted[server] = fmt.Sprintf("abcde%d.0123456789abcdef", len(minted))
		return minted[server], nil
	}))
	if err := p.Resize(t.Context(), workers, 0, 3); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range w.members(workers) {
		if text := string(s.UserData); !strings.Contains(text, minted[s.Name]) || seen[text] || minted[s.Name] == "" {
			t.Errorf("server %s, token %s: %q", s.Name, minted[s.Name], text)
		}
		seen[string(s.UserData)] = true
	}
	broken := w.connect(t, nova.WithTokens(func(context.Context, string) (string, error) { return "", errors.New("no API server") }))
	wantErr(t, broken.Resize(t.Context(), workers, 3, 4), provider.Transient, "no API server")
	none := w.connect(t, nova.WithTokens(nil))
	wantErr(t, none.Resize(t.Context(), workers, 3, 4), provider.Invalid, "AUTOSCALER_BOOTSTRAP_ENABLED")
	plain := filepath.Join(t.TempDir(), "plain.sh")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.groups[string(workers)]["userdata"] = plain
	if err := none.Resize(t.Context(), workers, 3, 4); err != nil {
		t.Errorf("user data without a place for a token: %v", err)
	}
	if err := os.WriteFile(plain, make([]byte, 50000), 0o600); err != nil {
		t.Fatal(err)
	}
	wantErr(t, none.Resize(t.Context(), workers, 4, 5), provider.Invalid, "49149")
	if n := len(w.members(workers)); n != 4 {
		t.Errorf("%d servers", n)
	}
}

// TestNovaProviderIDs: Delete takes a server by every written form of its provider ID, and
// Instances carry the form that the kubelets are told to write.
func TestNovaProviderIDs(t *testing.T) {
	w, p := filled(t, openstack.Options{})
	if err := p.Resize(t.Context(), workers, 2, 6); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	list := w.members(workers)
	for i, id := range []string{"openstack:///" + list[0].ID, "openstack://RegionOne/" + list[1].ID, "openstack://" + list[2].ID, "openstack:///" + strings.ToUpper(list[3].ID)} {
		if err := p.Delete(t.Context(), workers, cluster.InstanceID(id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if n := len(w.members(workers)); n != 5-i {
			t.Errorf("%s: %d servers are left", id, n)
		}
	}
	w.extra["clouds"] = []any{map[string]any{"name": "one", "region": "RegionOne", "providerIDRegion": true}, map[string]any{"name": "two", "region": "RegionTwo"}}
	if err := p.Resize(t.Context(), workers, 2, 3); err != nil {
		t.Fatal(err)
	}
	forms := map[string]int{}
	for _, in := range readGroup(t, p, workers).Instances {
		if in.Member {
			forms[string(in.ID)[:strings.LastIndexByte(string(in.ID), '/')]]++
		}
	}
	if forms["openstack://RegionOne"] != 1 || forms["openstack://"] != 2 {
		t.Errorf("provider IDs by form: %v", forms)
	}
}

// TestNovaOrphans: a port whose server never came is removed once it is old enough, and
// so is a floating IP without a port; what is young or somebody else's stays.
func TestNovaOrphans(t *testing.T) {
	w, p := filled(t, openstack.Options{}, on("floatingIP", openstack.PublicNetwork))
	mark := w.Ports()[0].Description
	old, young := time.Now().Add(-time.Hour), time.Now()
	network := w.Network(openstack.NetworkName).ID
	for name, created := range map[string]time.Time{"old": old, "young": young} {
		w.PutPort(openstack.Port{Name: name, Description: mark, NetworkID: network, Created: created})
	}
	w.PutPort(openstack.Port{Name: "foreign", Description: mark + "x", NetworkID: network, Created: old})
	if err := p.Resize(t.Context(), workers, 2, 3); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, port := range w.Ports() {
		if port.DeviceID == "" && port.Description != "" {
			names = append(names, port.Name)
		}
	}
	w.settle(t)
	slices.Sort(names)
	if !slices.Equal(names, []string{"foreign", "young"}) {
		t.Errorf("ports without a server: %v", names)
	}
}

// TestNovaStrayServers: servers of a group that groups.yaml no longer has are told about.
func TestNovaStrayServers(t *testing.T) {
	w, p := filled(t, openstack.Options{})
	w.mu.Lock()
	w.groups["renamed"] = w.groups[string(workers)]
	w.groups["renamed"]["name"] = "renamed"
	delete(w.groups, string(workers))
	w.mu.Unlock()
	g := readGroup(t, p, "renamed")
	if len(g.Warnings) != 1 || !strings.Contains(g.Warnings[0], `2 servers belong to the group "workers"`) || g.Target != 0 {
		t.Errorf("target %d, warnings %q", g.Target, g.Warnings)
	}
}

// TestNovaTemplateCannotBeRead: images cannot be read, and the servers are told as ever.
func TestNovaTemplateCannotBeRead(t *testing.T) {
	w, _ := filled(t, openstack.Options{})
	p := w.connect(t)
	w.fault("image", true, openstack.Fault{Region: "RegionOne", Service: "image", Kind: openstack.Unavailable503})
	groups, err := p.Groups(t.Context())
	wantErr(t, err, provider.Transient)
	for _, g := range groups {
		if g.Stale != "" || len(g.Instances) == 0 || (g.TemplateStale == "") == (g.ID == workers) {
			t.Errorf("%s: stale %q, template stale %q, %d instances", g.ID, g.Stale, g.TemplateStale, len(g.Instances))
		}
	}
	w.fault("image", false, openstack.Fault{})
	if g := readGroup(t, p, workers); g.TemplateStale != "" || g.Template.Unknown != "" {
		t.Errorf("after that was over: %q %q", g.TemplateStale, g.Template.Unknown)
	}
}
