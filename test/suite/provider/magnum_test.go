package provider_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/magnum"
	shared "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// TestMagnum runs the suite over the wire: gophercloud, and an emulated Keystone, Nova,
// Heat and Magnum. Once for each way in which servers are told to belong to a group, and once with
// reads that repeat what they may.
func TestMagnum(t *testing.T) {
	for _, how := range []struct {
		name    string
		cluster openstack.MagnumCluster
		config  magnum.Config
		heat    bool
		repeat  bool
	}{
		{"heat, by role", openstack.MagnumCluster{Driver: openstack.HeatDriver}, byRole, true, false},
		{"heat, by role, with repeated facts", openstack.MagnumCluster{Driver: openstack.HeatDriver}, byRole, true, true},
		{"heat that may not be read, by name", openstack.MagnumCluster{Driver: openstack.HeatDriver}, magnum.Config{Groups: []string{"workers", "0:3:others"}}, false, false},
		{"metadata", openstack.MagnumCluster{Driver: openstack.MetadataDriver}, byRole, false, false},
		{"cluster api", openstack.MagnumCluster{Driver: openstack.ClusterAPIDriver}, byRole, false, false},
	} {
		t.Run(how.name, func(t *testing.T) {
			providertest.Suite{
				New: func(t testing.TB) (provider.Provider, providertest.World) {
					w := newMagnum(t, how.cluster)
					if !how.heat {
						w.ForbidHeat(true)
					}
					if how.repeat {
						return repeatingMagnum{w.connect(t, how.config)}, w
					}
					return w.connect(t, how.config), w
				},
				Settle: func(t testing.TB, w providertest.World) { w.(*magnumWorld).settle(t) },
				Cannot: magnumCannot,
			}.Run(t)
		})
	}
}

// repeatingMagnum reads as the agent's inventory does.
type repeatingMagnum struct{ *magnum.Provider }

func (p repeatingMagnum) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	return p.Provider.Groups(provider.WithRepeated(ctx, time.Hour))
}

// TestMagnumRepeats: the bounds of a group at rest are repeated as long as the caller allows it
// and does not name the group; a server that Heat has replaced meanwhile is seen at once.
func TestMagnumRepeats(t *testing.T) {
	w := newMagnum(t, openstack.MagnumCluster{Driver: openstack.HeatDriver})
	p := w.connect(t, byRole)
	read := func(ctx context.Context) cluster.NodeGroup {
		t.Helper()
		groups, err := p.Groups(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return groups[slices.IndexFunc(groups, func(g cluster.NodeGroup) bool { return g.ID == providertest.Workers })]
	}
	repeat := provider.WithRepeated(t.Context(), time.Hour)
	before := read(repeat).Max
	w.change(t, func(g *openstack.NodeGroup) { g.Max = before - 3 })
	if g := read(repeat); g.Max != before {
		t.Errorf("an hour old at most: maximum %d, want %d", g.Max, before)
	}
	for range 2 { // the second time Magnum's own account of the group is as after the first
		w.Kill(w.Alive(providertest.Workers)[0])
		w.settle(t)
		await.True(t, "a server in the place of the lost one", func() bool { return len(w.Alive(providertest.Workers)) == 2 })
		g := read(repeat)
		for _, id := range w.Alive(providertest.Workers) {
			if !slices.ContainsFunc(g.Instances, func(in cluster.Instance) bool { return in.ID == id && in.Phase == cluster.PhaseRunning }) {
				t.Errorf("instance %s is missing: %+v", id, g.Instances)
			}
		}
	}
	for n, ctx := range []context.Context{t.Context(), provider.WithRepeated(t.Context(), time.Nanosecond), provider.WithOnly(repeat, []cluster.GroupID{providertest.Workers})} {
		want := before - 4 - n
		w.change(t, func(g *openstack.NodeGroup) { g.Max = want })
		if g := read(ctx); g.Max != want {
			t.Errorf("read %d: maximum %d, want %d", n, g.Max, want)
		}
	}
}

// magnumCannot names what Magnum cannot play.
var magnumCannot = map[string]string{
	"SourceThroughRotation": "Magnum makes the user data, and tells it of no node",
	"SourceTellsUserData":   "Magnum makes the user data, and tells it of no node",
	"DeleteMoreThanSurplus": "Magnum ends nodes itself when somebody lowers a node count",
	"DeletionRefusedForOne": "all nodes of one call are removed by one request, which is refused or not",
	"TemplateCannotBeRead":  "flavors are remembered for the life of the process, and all else of a template stands on the node group",
	"PausedGroup":           "the states in which Magnum resizes nothing are the whole cluster's (TestMagnumCluster)",
	"ReadLagsBehindWrites":  "Magnum reads its one database; what lags is its conductor (TestMagnumOneOperationAtATime, TestWhatWasAskedForIsRemembered)",
}

var byRole = magnum.Config{AutoDiscovery: magnum.Discovery{"magnum:role=worker,autoscaling"}}

const k8s = "k8s" // the cluster of seed 000

// magnumWorld plays an emulated OpenStack for the suite.
type magnumWorld struct {
	*openstack.Cloud
	t     testing.TB
	stops map[string]func() int
	heals bool // what was killed is healed by the next settle
}

var _ providertest.World = (*magnumWorld)(nil)

// newMagnum is a world with a cluster that heals, the suite's groups, and one that is
// not ours since it has no maximum; an application credential is in the environment.
func newMagnum(t testing.TB, c openstack.MagnumCluster) *magnumWorld {
	t.Helper()
	return newSlowMagnum(t, c, 5*time.Millisecond)
}

// newSlowMagnum is one whose servers take so long to build.
func newSlowMagnum(t testing.TB, c openstack.MagnumCluster, build time.Duration) *magnumWorld {
	t.Helper()
	cloud, err := openstack.New(openstack.Options{BuildDelay: build, DeleteDelay: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the world at the end:\n%s", cloud)
		}
		cloud.Close()
	})
	w := &magnumWorld{Cloud: cloud, t: t, stops: map[string]func() int{}}
	c.Name, c.Healing = k8s, true
	_, err = cloud.PutCluster(c,
		openstack.NodeGroup{Name: "others", Flavor: "m1.medium", Count: 1, Min: 1, Max: 3, Default: true},
		openstack.NodeGroup{Name: "workers", Flavor: "m1.large", Count: 2, Min: 0, Max: 10},
		openstack.NodeGroup{Name: "workers-manual", Flavor: "m1.large", Count: 1, Min: 0, Max: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range shared.Variables() {
		t.Setenv(name, "")
	}
	for name, value := range map[string]string{
		"OS_AUTH_URL": cloud.AuthURL(), "OS_APPLICATION_CREDENTIAL_ID": openstack.ApplicationID, "OS_APPLICATION_CREDENTIAL_SECRET": openstack.ApplicationSecret,
	} {
		t.Setenv(name, value)
	}
	w.settle(t)
	return w
}

// connect makes a provider by what is in the environment.
func (w *magnumWorld) connect(t testing.TB, c magnum.Config) *magnum.Provider {
	t.Helper()
	session, err := shared.NewSession(shared.Config{Timeout: await.Limit}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Cluster == "" {
		c.Cluster = k8s
	}
	if c.Heat == "" {
		c.Heat = "auto"
	}
	if c.RemovesByName == "" {
		c.RemovesByName = "auto"
	}
	c.Arch, c.VMMemoryOverheadPercent = "amd64", 7.5
	p, err := magnum.New(c, session, reservation)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *magnumWorld) settle(t testing.TB) {
	t.Helper()
	if w.heals {
		w.heals = false
		w.Heal(k8s, true)
	}
	await.Empty(t, func() string {
		if w.Accepted() > 0 {
			return "the conductor has something to take up"
		}
		return w.MagnumBusy()
	})
}

// taken waits until Magnum's conductor has taken up what Magnum accepted.
func (w *magnumWorld) taken() {
	await.Empty(w.t, func() string {
		if w.Accepted() > 0 {
			return "the conductor has something to take up"
		}
		return ""
	})
}

func (w *magnumWorld) Target(id cluster.GroupID) int {
	w.taken()
	g, ok := w.NodeGroupNamed(k8s, string(id))
	if !ok {
		return -1
	}
	return g.Count
}

func (w *magnumWorld) Alive(id cluster.GroupID) []cluster.InstanceID {
	w.taken()
	g, _ := w.NodeGroupNamed(k8s, string(id))
	var out []cluster.InstanceID
	for _, s := range g.Servers {
		if s.TaskState != "deleting" && s.Status != "ERROR" {
			out = append(out, cluster.InstanceID("openstack:///"+s.ID))
		}
	}
	slices.Sort(out)
	return out
}

func uuidOf(id cluster.InstanceID) string { return string(id)[strings.LastIndex(string(id), "/")+1:] }

func (w *magnumWorld) Foreign(testing.TB) cluster.InstanceID { return w.Alive("workers-manual")[0] }

func (w *magnumWorld) ForeignAlive(id cluster.InstanceID) bool {
	return slices.Contains(w.Alive("workers-manual"), id)
}

func (w *magnumWorld) Node(id cluster.InstanceID) cluster.Node {
	s, _ := w.Server(uuidOf(id))
	n := cluster.Node{Name: cluster.NodeName(s.Name), ProviderID: "openstack:///" + s.ID}
	for _, a := range s.Addresses {
		n.Addresses = append(n.Addresses, a.IP)
	}
	return n
}

func (w *magnumWorld) SetTarget(id cluster.GroupID, n int) { w.ResizeNodeGroup(k8s, string(id), n) }

// Kill waits for what was asked for before: an operation that heals would make Magnum
// lose it. A healing cluster heals when the next settle lets it: not between two requests
// of one read, one of which would then be before it and one after.
func (w *magnumWorld) Kill(id cluster.InstanceID) {
	w.taken()
	if m, _ := w.MagnumClusterNamed(k8s); m.Healing {
		w.heals = true
		w.Heal(k8s, false)
	}
	if err := w.DeleteServer(uuidOf(id)); err != nil {
		panic(err)
	}
}

func (w *magnumWorld) Vanish(id cluster.GroupID) { w.RemoveNodeGroup(k8s, string(id)) }

// Quota leaves no room; taking it back is followed by the operator's own resize to what
// Magnum counts already, since Magnum tries once.
func (w *magnumWorld) Quota(_ testing.TB, on bool) {
	if on {
		w.SetQuota(openstack.Quota{Instances: len(w.Servers()), Cores: -1, RAM: -1, Ports: -1, FloatingIPs: -1})
		return
	}
	w.SetQuota(openstack.Quota{Instances: -1, Cores: -1, RAM: -1, Ports: -1, FloatingIPs: -1})
	w.ResizeNodeGroup(k8s, string(providertest.Workers), w.Target(providertest.Workers))
}

func (w *magnumWorld) fault(name string, on bool, f openstack.Fault) {
	if stop := w.stops[name]; stop != nil {
		stop()
		delete(w.stops, name)
	}
	if on {
		w.stops[name] = w.Inject(f)
	}
}

func (w *magnumWorld) Throttle(_ testing.TB, on bool) {
	w.fault("throttle", on, openstack.Fault{Kind: openstack.Throttle})
}

func (w *magnumWorld) Expire(_ testing.TB, on bool) {
	w.fault("expire", false, openstack.Fault{})
	w.DisableLogins(on)
}

// ExpireAfter counts requests, and the login that follows a refusal is refused too. A
// method makes up to a dozen, so the moments that are played are three apart.
func (w *magnumWorld) ExpireAfter(_ testing.TB, calls int) {
	w.fault("expire", true, openstack.Fault{Kind: openstack.Unauthorized, After: 3 * calls})
}

func (w *magnumWorld) Hang(_ testing.TB, on bool) {
	w.fault("hang", on, openstack.Fault{Kind: openstack.Slow, Delay: time.Hour})
}

// LoseAnswer lets the next resize be done and not heard of.
func (w *magnumWorld) LoseAnswer(testing.TB) {
	w.SetMagnum(10, 0, 5*time.Millisecond)
	w.fault("lose", true, openstack.Fault{Action: resizing, Kind: openstack.AnswerLost, Times: 1})
}

func (w *magnumWorld) LimitCapacity(_ testing.TB, on bool) {
	if on {
		w.NoValidHost("*", "*")
		return
	}
	w.Space()
	// The operator deletes what is in ERROR, and the healer makes it anew.
	g, _ := w.NodeGroupNamed(k8s, string(providertest.Workers))
	for _, s := range g.Servers {
		if s.Status == "ERROR" {
			w.Kill(cluster.InstanceID("openstack:///" + s.ID))
		}
	}
}

func (w *magnumWorld) FailLaunches(_ testing.TB, on bool) {
	w.FailNodes("")
	if on {
		w.FailNodes("Resource CREATE failed: StackValidationFailed: resources[2].resources.kube-minion: Property error: image: Error validating value 'fcos-40': The Image (fcos-40) could not be found.")
	}
}

// Forms are those of the cloud provider (with and without regions), of the Cluster API
// provider, and a machine ID (seed 000).
func (w *magnumWorld) Forms(id cluster.InstanceID) []string {
	u := uuidOf(id)
	return []string{string(id), "openstack://RegionOne/" + u, "openstack://" + u, "openstack:///" + strings.ToUpper(u), u, strings.ReplaceAll(u, "-", "")}
}

func (w *magnumWorld) Furnish(t testing.TB) {
	w.change(t, func(g *openstack.NodeGroup) {
		taint := providertest.FurnishTaint
		g.Labels = map[string]string{"kubelet_options": "--node-labels=" + providertest.FurnishLabel[0] + "=" + providertest.FurnishLabel[1] +
			" --register-with-taints=" + taint.Key + "=" + taint.Value + ":" + taint.Effect}
	})
}

func (w *magnumWorld) ChangeTemplate(t testing.TB) {
	w.change(t, func(g *openstack.NodeGroup) { g.Flavor = "m1.xlarge" })
}

// change describes Workers anew.
func (w *magnumWorld) change(t testing.TB, change func(*openstack.NodeGroup)) {
	t.Helper()
	g, _ := w.NodeGroupNamed(k8s, string(providertest.Workers))
	change(&g)
	if err := w.PutNodeGroup(k8s, g); err != nil {
		t.Fatal(err)
	}
}

// resizing is the one request by which the provider changes anything.
const resizing = "POST /clusters/{id}/actions/resize"

func (w *magnumWorld) RefuseDeletes(_ testing.TB, on bool) {
	w.fault("refuse", on, openstack.Fault{Service: "container-infra", Action: resizing, Kind: openstack.Forbidden})
}

func (w *magnumWorld) BreakRead(_ testing.TB, on bool) {
	w.BreakNodeGroup(k8s, string(providertest.Workers), on)
}
