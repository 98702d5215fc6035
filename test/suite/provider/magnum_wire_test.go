package provider_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/magnum"
	shared "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// magnums are the worlds of the drivers whose nodes are removed by name.
var magnums = map[string]openstack.Driver{"heat": openstack.HeatDriver, "metadata": openstack.MetadataDriver, "cluster api": openstack.ClusterAPIDriver}

// wantErr wants an error of a kind that says each of the words.
func wantErr(t testing.TB, err error, kind provider.Kind, words ...string) {
	t.Helper()
	if provider.KindOf(err) != kind || err == nil {
		t.Errorf("%v, want kind %q", err, kind)
	}
	for _, word := range words {
		if err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("%v, want it to say %q", err, word)
		}
	}
}

// TestMagnumOneOperationAtATime: a group that is being resized is coming, the others of
// the cluster wait, and Magnum is never asked while it is busy.
func TestMagnumOneOperationAtATime(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{})
	p := w.connect(t, byRole)
	alive := w.Alive(workers)
	w.HoldMagnum(true, true)
	if err := p.Resize(ctx, workers, 2, 4); err != nil {
		t.Fatal(err)
	}
	// Not yet taken up, and then under way.
	for _, moment := range []string{"accepted", "under way"} {
		if moment == "under way" {
			w.HoldMagnum(false, true)
			w.taken()
		}
		got := groups(t, p)
		for id, target := range map[cluster.GroupID]int{workers: 4, others: 1} {
			if g := got[id]; g.Target != target || g.Stale != "" || g.Paused != "" || !strings.Contains(g.Busy, "one operation at a time") {
				t.Errorf("%s: %s: target %d stale %q paused %q busy %q", moment, id, g.Target, g.Stale, g.Paused, g.Busy)
			}
		}
		if err := p.Resize(ctx, workers, 2, 4); provider.KindOf(err) != provider.Conflict && err != nil {
			t.Errorf("%s: the same again: %v", moment, err)
		}
		wantErr(t, p.Resize(ctx, workers, 4, 5), provider.Busy, "one operation at a time")
		wantErr(t, p.Resize(ctx, others, 1, 2), provider.Busy, "one operation at a time")
		wantErr(t, p.Delete(ctx, workers, alive[0]), provider.Busy, "one operation at a time")
	}
	w.HoldMagnum(false, false)
	w.settle(t)
	if g := groups(t, p)[others]; g.Busy != "" {
		t.Errorf("still busy: %s", g.Busy)
	}
	if err := p.Resize(ctx, others, 1, 2); err != nil {
		t.Error(err)
	}
	w.settle(t)
	if m, _ := w.MagnumClusterNamed(k8s); m.Lost != 0 {
		t.Errorf("%d resizes were lost", m.Lost)
	}
	// A node that was named for removal is on its way out at once, and gone sooner or later.
	if err := p.Delete(ctx, workers, alive[0]); err != nil {
		t.Fatal(err)
	}
	for _, in := range groups(t, p)[workers].Instances {
		if goes := in.Phase == cluster.PhaseDeleting || in.Phase == cluster.PhaseGone; goes != (in.ID == alive[0]) {
			t.Errorf("%s is %s", in.ID, in.Phase)
		}
	}
	w.settle(t)
	for range 2 {
		asked := w.Count("GET /servers/{id}")
		list := groups(t, p)[workers].Instances
		if at := slices.IndexFunc(list, func(i cluster.Instance) bool { return i.ID == alive[0] }); at < 0 || list[at].Phase != cluster.PhaseGone || list[at].Member || len(list) != 4 {
			t.Errorf("%s is not told as gone: %+v", alive[0], list)
		}
		if again := w.Count("GET /servers/{id}") - asked; again > 1 {
			t.Errorf("asked %d times", again)
		}
	}
}

// TestMagnumOperationOfOthers: the conductor writes an operation to its group first, and to
// the cluster later. Also one of a group that is not ours keeps Magnum from another.
func TestMagnumOperationOfOthers(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{})
	w.SetMagnumDriver(time.Hour)
	p := w.connect(t, byRole)
	alive := w.Alive(workers)
	w.ResizeNodeGroup(k8s, "workers-manual", 2)
	if m, _ := w.MagnumClusterNamed(k8s); m.Status != "CREATE_COMPLETE" {
		t.Fatalf("the cluster is %s already", m.Status)
	}
	await.Empty(t, func() string {
		if g, _ := w.NodeGroupNamed(k8s, "workers-manual"); g.Status != "UPDATE_IN_PROGRESS" {
			return g.Status
		}
		return ""
	})
	for id, g := range groups(t, p) {
		if !strings.Contains(g.Busy, "workers-manual is UPDATE_IN_PROGRESS") {
			t.Errorf("%s: busy %q", id, g.Busy)
		}
	}
	wantErr(t, p.Resize(ctx, workers, 2, 3), provider.Busy, "workers-manual")
	wantErr(t, p.Delete(ctx, workers, alive[0]), provider.Busy, "workers-manual")
}

// TestMagnumMicroversions: the API's own limits are found out, and told.
func TestMagnumMicroversions(t *testing.T) {
	for highest, want := range map[int]string{8: "offers microversion 1.8 at most", 9: "1.10", 10: "", 11: ""} {
		w := newMagnum(t, openstack.MagnumCluster{})
		w.SetMagnum(highest, time.Millisecond, time.Millisecond)
		p := w.connect(t, byRole)
		_, err := p.Groups(ctx)
		if highest == 8 {
			wantErr(t, err, provider.Invalid, want)
			wantErr(t, p.Check(ctx), provider.Invalid, "Train")
			continue
		}
		if err != nil {
			t.Fatalf("1.%d: %v", highest, err)
		}
		if err := p.Resize(ctx, workers, 2, 3); err != nil {
			t.Errorf("1.%d: %v", highest, err)
		}
		w.settle(t)
		err = p.Delete(ctx, workers, w.Alive(workers)...)
		if want != "" {
			wantErr(t, err, provider.Invalid, want)
		} else if err != nil {
			t.Errorf("1.%d: to zero: %v", highest, err)
		}
	}
}

// TestMagnumFailureIsKnownLater: a resize is accepted before anybody knows that there
// is no room for it. What came is the target then, so that asking again asks Magnum.
func TestMagnumFailureIsKnownLater(t *testing.T) {
	for name, driver := range magnums {
		for cause, hinder := range map[cluster.Cause]func(*magnumWorld){
			cluster.CauseQuota:    func(w *magnumWorld) { w.Quota(t, true) },
			cluster.CauseCapacity: func(w *magnumWorld) { w.NoValidHost("*", "*") },
		} {
			t.Run(name+" "+string(cause), func(t *testing.T) {
				w := newMagnum(t, openstack.MagnumCluster{Driver: driver})
				p := w.connect(t, byRole)
				before := w.Alive(workers)
				hinder(w)
				if err := p.Resize(ctx, workers, 2, 5); err != nil {
					t.Fatal(err)
				}
				w.settle(t)
				g := groups(t, p)[workers]
				failed := slices.DeleteFunc(slices.Clone(g.Instances), func(i cluster.Instance) bool { return i.Phase != cluster.PhaseFailed })
				if len(g.Failures) != 1 || g.Failures[0].Cause != cause || !strings.Contains(g.Failures[0].Text, "UPDATE_FAILED") || strings.Contains(g.Failures[0].Text, "req-") {
					t.Errorf("failures %+v", g.Failures)
				}
				if g.Target != 2+len(failed) || g.Paused != "" || g.Stale != "" {
					t.Errorf("target %d with %d failed instances, paused %q, stale %q", g.Target, len(failed), g.Paused, g.Stale)
				}
				if (cause == cluster.CauseCapacity) != (len(failed) == 3) {
					t.Errorf("%d failed instances", len(failed))
				}
				// The failed ones are removed like others; then there is room.
				for _, in := range failed {
					if in.Failure == nil || in.Failure.Cause != cluster.CauseCapacity {
						t.Errorf("failure %+v", in.Failure)
					}
				}
				if len(failed) > 0 {
					if err := p.Delete(ctx, workers, failed[0].ID, failed[1].ID, failed[2].ID); err != nil {
						t.Fatal(err)
					}
					w.settle(t)
				}
				w.Space()
				w.SetQuota(openstack.Quota{Instances: -1, Cores: -1, RAM: -1, Ports: -1, FloatingIPs: -1})
				if err := p.Resize(ctx, workers, 2, 3); err != nil {
					t.Fatal(err)
				}
				w.settle(t)
				after := w.Alive(workers)
				for _, id := range before {
					if !slices.Contains(after, id) {
						t.Errorf("%s ended and nobody had named it", id)
					}
				}
				if g := groups(t, p)[workers]; len(g.Failures) != 0 || len(after) != 3 || g.Target != 3 {
					t.Errorf("%d alive, target %d, failures %+v", len(after), g.Target, g.Failures)
				}
			})
		}
	}
}

// TestMagnumHoles: Heat counts indices. Where the lower ones never came, or somebody
// deleted their servers, a smaller count alone would end the higher ones, which run.
func TestMagnumHoles(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{})
	p := w.connect(t, byRole)
	if err := p.Resize(ctx, workers, 2, 5); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	g, _ := w.NodeGroupNamed(k8s, string(workers))
	w.Heal(k8s, false)
	for _, s := range g.Servers[:2] { // indices 0 and 1
		w.Kill(cluster.InstanceID("openstack:///" + s.ID))
	}
	w.settle(t)
	alive := w.Alive(workers)
	got := groups(t, p)[workers]
	if got.Target != 3 || len(alive) != 3 {
		t.Fatalf("target %d, %d alive", got.Target, len(alive))
	}
	gone := slices.DeleteFunc(slices.Clone(got.Instances), func(i cluster.Instance) bool { return i.Phase != cluster.PhaseGone })
	if len(gone) != 2 || gone[0].Member {
		t.Errorf("gone: %+v", gone)
	}
	if err := p.Resize(ctx, workers, 3, 4); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	after := w.Alive(workers)
	for _, id := range alive {
		if !slices.Contains(after, id) {
			t.Errorf("%s ended and nobody had named it", id)
		}
	}
	if len(after) != 4 || w.Target(workers) != 4 {
		t.Errorf("%d alive, Magnum counts %d", len(after), w.Target(workers))
	}
	// Without Heat nobody knows where the holes are: nothing is risked.
	w.Kill(after[0])
	w.settle(t)
	w.ForbidHeat(true)
	if g := groups(t, p)[workers]; g.Target != 4 || len(g.Warnings) == 0 {
		t.Errorf("target %d, warnings %q", g.Target, g.Warnings)
	}
	alive = w.Alive(workers)
	wantErr(t, p.Resize(ctx, workers, 4, 3), provider.Invalid, "Heat")
	if err := p.Delete(ctx, workers, alive[0]); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	for _, id := range alive[1:] {
		if !slices.Contains(w.Alive(workers), id) {
			t.Errorf("%s ended and nobody had named it", id)
		}
	}
}

// TestMagnumCAPIHelm: its driver ignores which node is to be removed, so none is.
func TestMagnumCAPIHelm(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{Driver: openstack.CAPIHelmDriver})
	p := w.connect(t, byRole)
	if err := p.Resize(ctx, workers, 2, 3); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	alive := w.Alive(workers)
	g := groups(t, p)[workers]
	if len(alive) != 3 || len(g.Instances) != 3 || !slices.ContainsFunc(g.Warnings, func(s string) bool { return strings.Contains(s, "REMOVES_BY_NAME") }) {
		t.Errorf("%d alive, group %+v", len(alive), g)
	}
	wantErr(t, p.Delete(ctx, workers, alive[2]), provider.Invalid, "clusterapi")
	w.settle(t)
	if now := w.Alive(workers); !slices.Equal(now, alive) {
		t.Errorf("alive %v, want %v", now, alive)
	}
	if err := w.connect(t, magnum.Config{AutoDiscovery: byRole.AutoDiscovery, RemovesByName: "yes"}).Delete(ctx, workers, alive[2]); err != nil {
		t.Error(err)
	}
}

// TestMagnumProviderIDs: a server's UUID is found in every form in which a Node may
// write it (seed 000: a machine ID has no dashes).
func TestMagnumProviderIDs(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{})
	p := w.connect(t, byRole)
	for _, form := range []func(uuid string) string{
		func(u string) string { return "openstack:///" + u },
		func(u string) string { return "openstack://RegionOne/" + u },
		func(u string) string { return "openstack://" + u },
		func(u string) string { return "openstack:///" + strings.ToUpper(u) },
		func(u string) string { return strings.ReplaceAll(u, "-", "") },
		func(u string) string { return u },
	} {
		target := w.Target(workers)
		if target == 0 {
			if err := p.Resize(ctx, workers, 0, 4); err != nil {
				t.Fatal(err)
			}
			w.settle(t)
			target = 4
		}
		victim := w.Alive(workers)[0]
		id := form(uuidOf(victim))
		n := cluster.Node{Name: "n", ProviderID: id}
		if got := cluster.Identify([]cluster.NodeGroup{groups(t, p)[workers]}, []*cluster.Node{&n}).Instance["n"]; got != victim {
			t.Errorf("a Node with provider ID %s is taken for %q", id, got)
		}
		if err := p.Delete(ctx, workers, cluster.InstanceID(id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		w.settle(t)
		if now := w.Alive(workers); len(now) != target-1 || slices.Contains(now, victim) {
			t.Errorf("%s: alive %v", id, now)
		}
	}
	for _, id := range []cluster.InstanceID{"fake:///workers/0", "aws:///a/i-1", "openstack:///", "openstack:///a/b/c", "0"} {
		wantErr(t, p.Delete(ctx, workers, id), provider.NotFound, "names no OpenStack server")
	}
}

// TestMagnumTemplates: the flavor is exact, and what labels of the group say of its
// Nodes is read; Magnum's other labels are no labels of Nodes.
func TestMagnumTemplates(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{})
	w.PutFlavor(openstack.Flavor{Name: "m3.medium", VCPUs: 8, RAM: 30720, Disk: 60}) // of Jetstream
	for _, g := range []openstack.NodeGroup{
		{Name: "plain", Flavor: "m3.medium", Max: 3, Role: "autoscaling", Labels: map[string]string{"kube_tag": "v1.36.0", "auto_scaling_enabled": "true"}},
		{Name: "told", Flavor: "v1.large", Max: 3, Labels: map[string]string{
			"availability_zone": "nova", "boot_volume_size": "50",
			"kubelet_options": "--node-labels=team=a,tier=gold --register-with-taints=dedicated=a:NoSchedule --max-pods=40",
			"k8s.io/cluster-autoscaler/node-template/label/disk":                                        "ssd",
			"k8s.io/cluster-autoscaler/node-template/taint/gpu":                                         "yes:NoExecute",
			"k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu":                          "2",
			"k8s.io/cluster-autoscaler/node-template/autoscaling-options/scaledownunneededtime":         "3m",
			"k8s.io/cluster-autoscaler/node-template/autoscaling-options/scaledownutilizationthreshold": "0.7",
			"k8s.io/cluster-autoscaler/node-template/autoscaling-options/nonsense":                      "1",
		}},
		{Name: "gpu", Flavor: "g1.large", Max: 3},
		{Name: "no-disk", Flavor: "v1.large", Max: 3},
	} {
		if err := w.PutNodeGroup(k8s, g); err != nil {
			t.Fatal(err)
		}
	}
	w.settle(t)
	p := w.connect(t, byRole)
	got := groups(t, p)
	plain := got["plain"].Template
	memory := int64(30720-2304) << 20
	if c := plain.Capacity; c.MilliCPU != 8000 || c.Memory != memory || c.EphemeralStorage != 60<<30 || c.Pods != 110 {
		t.Errorf("m3.medium: %+v", c)
	}
	if a := plain.Allocatable; a.MilliCPU != 7930 || a.Memory != memory-600<<20 {
		t.Errorf("allocatable %+v", a)
	}
	for name, value := range map[string]string{"magnum.openstack.org/nodegroup": "plain", "magnum.openstack.org/role": "autoscaling",
		"node.kubernetes.io/instance-type": "m3.medium", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kube_tag": ""} {
		if plain.Labels[name] != value {
			t.Errorf("label %s=%q, want %q", name, plain.Labels[name], value)
		}
	}
	told := got["told"]
	for name, value := range map[string]string{"team": "a", "tier": "gold", "disk": "ssd", "topology.kubernetes.io/zone": "nova", "topology.cinder.csi.openstack.org/zone": "nova"} {
		if told.Template.Labels[name] != value {
			t.Errorf("label %s=%q, want %q", name, told.Template.Labels[name], value)
		}
	}
	if want := []cluster.Taint{{Key: "gpu", Value: "yes", Effect: "NoExecute"}, {Key: "dedicated", Value: "a", Effect: "NoSchedule"}}; !slices.Equal(told.Template.Taints, want) {
		t.Errorf("taints %v", told.Template.Taints)
	}
	if c := told.Template.Capacity; c.EphemeralStorage != 50<<30 || c.Extended["nvidia.com/gpu"] != 2 || told.Template.Allocatable.Pods != 40 {
		t.Errorf("%+v, allocatable %+v", c, told.Template.Allocatable)
	}
	if o := told.Options; o.ScaleDownUnneededTime == nil || *o.ScaleDownUnneededTime != 3*time.Minute || o.ScaleDownUtilization == nil || *o.ScaleDownUtilization != 0.7 {
		t.Errorf("options %+v", o)
	}
	if len(told.Warnings) != 1 || !strings.Contains(told.Warnings[0], "nonsense") {
		t.Errorf("warnings %q", told.Warnings)
	}
	if g := got["no-disk"]; len(g.Warnings) != 1 || !strings.Contains(g.Warnings[0], "boot_volume_size") {
		t.Errorf("warnings %q", g.Warnings)
	}
	// A label that decides which kubelet runs makes what was learnt void; another does not.
	for label, changes := range map[string]bool{"kube_tag": true, "monitoring_enabled": false} {
		labels := map[string]string{"kube_tag": "v1.36.0", label: "other"}
		if err := w.PutNodeGroup(k8s, openstack.NodeGroup{Name: "plain", Flavor: "m3.medium", Max: 3, Labels: labels}); err != nil {
			t.Fatal(err)
		}
		if now := groups(t, p)["plain"].Template.Spec; (now != plain.Spec) != changes {
			t.Errorf("label %s: spec changed: %t", label, now != plain.Spec)
		}
	}
	if err := w.PutNodeGroup(k8s, openstack.NodeGroup{Name: "lost", Flavor: "m3.medium", Max: 3}); err != nil {
		t.Fatal(err)
	}
	w.RemoveFlavor("m3.medium")
	if g := groups(t, w.connect(t, byRole))["lost"]; !strings.Contains(g.Template.Unknown, "m3.medium") || g.Stale != "" {
		t.Errorf("a flavor that is gone: %q, stale %q", g.Template.Unknown, g.Stale)
	}
}

// TestMagnumBounds: the list of groups says 0 and none for every bound; the group itself
// is believed, and the configuration may narrow it.
func TestMagnumBounds(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{})
	for config, want := range map[string][2]int{
		"workers": {0, 10}, "2:5:workers": {2, 5}, "0:30:workers": {0, 10}, "20:30:workers": {0, 10}, "1:4:workers-manual": {1, 4}, "workers-manual": {1, 1},
		"1:2:DefaultNodeGroup": {1, 2},
	} {
		p := w.connect(t, magnum.Config{Groups: []string{config}})
		all, err := p.Groups(ctx)
		if err != nil || len(all) != 1 || all[0].Min != want[0] || all[0].Max != want[1] {
			t.Errorf("%s: %+v, %v", config, all, err)
		}
	}
	p := w.connect(t, magnum.Config{Groups: []string{"2:5:workers"}})
	wantErr(t, p.Resize(ctx, workers, 2, 6), provider.Invalid, "2..5")
	wantErr(t, p.Delete(ctx, workers, w.Alive(workers)...), provider.Invalid, "minimum")
	wantErr(t, p.Resize(ctx, "default-master", 1, 2), provider.NotFound, "the agent does not manage this node group")
	wantErr(t, p.Resize(ctx, others, 1, 2), provider.NotFound, "the agent does not manage this node group")
	err := w.connect(t, magnum.Config{AutoDiscovery: magnum.Discovery{"magnum:role=gpu"}}).Check(ctx)
	wantErr(t, err, provider.NotFound, "openstack coe nodegroup list k8s")
	if err := w.PutNodeGroup(k8s, openstack.NodeGroup{Name: "gpu", Role: "gpu", Flavor: "m1.small", Max: -1}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.connect(t, magnum.Config{AutoDiscovery: magnum.Discovery{"magnum:role=gpu"}}).Check(ctx), provider.NotFound, "max_node_count")
}

// TestMagnumCluster: the cluster is found by name and by UUID; what it cannot do is told.
func TestMagnumCluster(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{})
	m, _ := w.MagnumClusterNamed(k8s)
	if err := w.connect(t, magnum.Config{Cluster: m.UUID, AutoDiscovery: byRole.AutoDiscovery}).Check(ctx); err != nil {
		t.Error(err)
	}
	wantErr(t, w.connect(t, magnum.Config{Cluster: "none", AutoDiscovery: byRole.AutoDiscovery}).Check(ctx), provider.NotFound, "AUTOSCALER_MAGNUM_CLUSTER")
	p := w.connect(t, byRole)
	for status, kind := range map[string]provider.Kind{"CREATE_FAILED": provider.Invalid, "DELETE_IN_PROGRESS": provider.Invalid, "ROLLBACK_FAILED": provider.Invalid, "UPDATE_IN_PROGRESS": provider.Busy} {
		w.SetClusterStatus(k8s, status, "")
		wantErr(t, p.Resize(ctx, workers, 2, 3), kind, status)
		for id, g := range groups(t, p) {
			if why := map[bool]string{true: g.Paused, false: g.Busy}[kind == provider.Invalid]; !strings.Contains(why, status) {
				t.Errorf("%s: %s: paused %q, busy %q", status, id, g.Paused, g.Busy)
			}
		}
	}
	w.SetClusterStatus(k8s, "UPDATE_FAILED", "others failed")
	if err := p.Resize(ctx, workers, 2, 3); err != nil {
		t.Errorf("UPDATE_FAILED can be left by a resize: %v", err)
	}
	if _, err := w.PutCluster(openstack.MagnumCluster{Name: k8s}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.connect(t, byRole).Check(ctx), provider.Invalid, "UUID")
}

// TestMagnumLogins: every way in which an operator of seed 000 can give credentials.
func TestMagnumLogins(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{})
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cloudConfig := file("cloud-config", "[Global]\nauth-url="+w.AuthURL()+"\nuser-id=de30de30de304de38de3de30de30de30\npassword="+openstack.DemoPassword+"\ntenant-name=demo\ntenant-domain-id=default\nregion=RegionOne\n[LoadBalancer]\nuse-octavia=True\n")
	cloudsYAML := file("clouds.yaml", "clouds:\n  jetstream:\n    auth_type: v3applicationcredential\n    region_name: RegionOne\n    auth:\n      auth_url: "+w.AuthURL()+"\n      application_credential_id: "+openstack.ApplicationID+"\n      application_credential_secret: "+openstack.ApplicationSecret+"\n")
	user := map[string]string{"OS_APPLICATION_CREDENTIAL_ID": "", "OS_APPLICATION_CREDENTIAL_SECRET": "", "OS_USERNAME": "demo", "OS_PASSWORD": openstack.DemoPassword,
		"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_NAME": "demo", "OS_PROJECT_DOMAIN_ID": "default", "OS_REGION_NAME": "RegionOne", "OS_INTERFACE": "internal"}
	for name, c := range map[string]struct {
		config shared.Config
		env    map[string]string
		kind   provider.Kind
		words  string
	}{
		"application credential": {env: map[string]string{}},
		"openrc":                 {env: user},
		"cloud-config":           {config: shared.Config{CloudConfig: cloudConfig}},
		"clouds.yaml":            {config: shared.Config{Cloud: "jetstream"}, env: map[string]string{"OS_CLIENT_CONFIG_FILE": cloudsYAML}},
		"OS_CLOUD":               {env: map[string]string{"OS_CLIENT_CONFIG_FILE": cloudsYAML, "OS_CLOUD": "jetstream"}},
		"wrong secret":           {env: map[string]string{"OS_APPLICATION_CREDENTIAL_SECRET": "wrong"}, kind: provider.Denied, words: "with a cluster that was made anew"},
		"wrong region":           {config: shared.Config{Region: "Nowhere"}, kind: provider.Invalid, words: "AUTOSCALER_OPENSTACK_REGION"},
		"nobody answers":         {env: map[string]string{"OS_AUTH_URL": "http://127.0.0.1:1/v3"}, kind: provider.Transient, words: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			c.config.Timeout = 5 * time.Second
			session, err := shared.NewSession(c.config, nil)
			if err != nil {
				t.Fatal(err)
			}
			p, err := magnum.New(magnum.Config{Cluster: k8s, AutoDiscovery: byRole.AutoDiscovery, Heat: "auto", RemovesByName: "auto", Arch: "amd64"}, session, reservation)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Groups(ctx)
			if c.words == "" && err == nil {
				err = p.Resize(ctx, workers, w.Target(workers), w.Target(workers)+1)
				w.settle(t)
			}
			if c.words != "" {
				wantErr(t, err, c.kind, c.words)
				if strings.Contains(err.Error(), "wrong:") || strings.Contains(err.Error(), openstack.ApplicationSecret) {
					t.Errorf("a secret is in %v", err)
				}
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMagnumTokenRunsOut: a token that is no more is renewed without a word.
func TestMagnumTokenRunsOut(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{})
	p := w.connect(t, byRole)
	groups(t, p)
	tokens := w.Tokens()
	w.RevokeTokens()
	if err := p.Resize(ctx, workers, 2, 3); err != nil {
		t.Error(err)
	}
	if w.Tokens() != tokens+1 {
		t.Errorf("%d tokens, had %d", w.Tokens(), tokens)
	}
}

// TestMagnumHollowAnswers: an answer that is empty or short never makes groups or
// machines vanish.
func TestMagnumHollowAnswers(t *testing.T) {
	for name, driver := range magnums {
		for _, action := range []string{"GET /servers/detail", "GET /clusters/k8s", "GET /clusters/{id}", "GET /clusters/{id}/nodegroups", "GET /clusters/{id}/nodegroups/{id}", "GET /flavors/detail", "GET /{id}/stacks/{id}/{id}"} {
			t.Run(name+" "+action, func(t *testing.T) {
				w := newMagnum(t, openstack.MagnumCluster{Driver: driver})
				p := w.connect(t, byRole)
				alive := w.Alive(workers)
				w.fault("hollow", true, openstack.Fault{Action: action, Kind: openstack.EmptyList})
				list, err := p.Groups(ctx)
				if list != nil && len(list) < 2 {
					t.Errorf("%d groups, %v", len(list), err)
				}
				for _, g := range list {
					if g.Target == 0 && g.Stale == "" || slices.ContainsFunc(g.Instances, func(i cluster.Instance) bool { return i.Phase == cluster.PhaseGone }) {
						t.Errorf("%+v", g)
					}
				}
				_ = p.Resize(ctx, workers, 2, 3)
				_ = p.Resize(ctx, workers, 0, 1)
				w.fault("hollow", false, openstack.Fault{})
				w.settle(t)
				for _, id := range alive {
					if !slices.Contains(w.Alive(workers), id) {
						t.Errorf("%s ended", id)
					}
				}
			})
		}
	}
}

// TestMagnumSurvivesEveryFault: whatever the network does to any single request, a
// method either does its work or returns an *Error that is sorted.
func TestMagnumSurvivesEveryFault(t *testing.T) {
	for _, kind := range []openstack.Kind{openstack.Throttle, openstack.ThrottleOld, openstack.ServerError500, openstack.Unavailable503,
		openstack.BadGateway502, openstack.Forbidden, openstack.Unauthorized, openstack.ConnectionReset, openstack.AnswerLost} {
		for _, service := range []string{"identity", "compute", "container-infra", "orchestration"} {
			t.Run(string(kind)+" "+service, func(t *testing.T) {
				w := newMagnum(t, openstack.MagnumCluster{})
				p := w.connect(t, byRole)
				w.fault("f", true, openstack.Fault{Service: service, Kind: kind})
				_, err := p.Groups(ctx)
				victim := w.Alive(workers)[0]
				for what, err := range map[string]error{"read": err, "resize": p.Resize(ctx, workers, 2, 3), "delete": p.Delete(ctx, workers, victim)} {
					for _, e := range provider.Errors(err) {
						if e.Kind == provider.Other || e.Kind == provider.NotFound {
							t.Errorf("%s: kind %q: %v", what, e.Kind, err)
						}
					}
					if err != nil && len(provider.Errors(err)) == 0 {
						t.Errorf("%s: no kind: %v", what, err)
					}
				}
			})
		}
	}
}
