package provider_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	openstackapi "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// TestNova runs the suite over the wire: gophercloud on one side, an emulated Keystone,
// Nova, Glance and Neutron on the other. Workers are in one region, Others in another.
// Once with what a cloud of today speaks, once with Nova's oldest microversion and lists
// of many pages.
func TestNova(t *testing.T) {
	for how, opts := range map[string]openstack.Options{"today": {}, "oldest": {MaxMicroversion: "2.1", PageLimit: 2}} {
		t.Run(how, func(t *testing.T) {
			providertest.Suite{
				New: func(t testing.TB) (provider.Provider, providertest.World) {
					w := newNova(t, opts)
					w.populate(t)
					return w.connect(t), w
				},
				Settle: func(t testing.TB, w providertest.World) { w.(*novaWorld).settle(t) },
				Cannot: map[string]string{
					"GoneInstanceIsPhaseGone": "Nova has no groups: nobody replaces a server that somebody else deleted, and the target, which is the number of servers, falls with it; TestNovaGone plays the rest",
					"DeleteMoreThanSurplus":   "the target is the number of servers: there is no surplus",
					"CapacityIsExhausted":     "Nova does not try again by itself: each server that found no host is told as failed, is deleted and made anew; TestNovaNoValidHost and TestNovaFallsBack play that",
					"TemplateCannotBeRead":    "flavors and images are remembered for minutes; TestNovaTemplateCannotBeRead plays it with a provider that knows none",
					"PausedGroup":             "Nova has no groups, so nobody can tell it to leave one alone; groups.yaml pauses any",
				},
			}.Run(t)
		})
	}
}

// novaWorld plays an emulated OpenStack for the suite.
type novaWorld struct {
	*openstack.Cloud
	script string

	mu     sync.Mutex
	groups map[string]map[string]any // the section's
	extra  map[string]any
	stops  map[string]func() int
}

var _ providertest.World = (*novaWorld)(nil)

// newNova is a cloud of two regions without servers, and a section of groups.yaml.
func newNova(t testing.TB, opts openstack.Options) *novaWorld {
	t.Helper()
	if len(opts.Regions) == 0 {
		opts.Regions = []string{"RegionOne", "RegionTwo"}
	}
	opts.BuildDelay, opts.DeleteDelay = max(opts.BuildDelay, 2*time.Millisecond), max(opts.DeleteDelay, 3*time.Millisecond)
	c, err := openstack.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the world at the end:\n%s", c)
		}
		c.Close()
	})
	w := &novaWorld{Cloud: c, script: filepath.Join(t.TempDir(), "worker.sh"), stops: map[string]func() int{}, extra: map[string]any{}}
	if err := os.WriteFile(w.script, []byte("#!/bin/sh\nJOIN_TOKEN='{{join token}}'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	group := func(name, cloud string, lo, hi int) map[string]any {
		return map[string]any{"name": name, "cloud": cloud, "flavor": "m1.large", "image": openstack.ImageName, "networks": []any{openstack.NetworkName},
			"securityGroups": []string{"workers"}, "key": openstack.KeyName, "min": lo, "max": hi, "price": 0.2, "userdata": w.script}
	}
	second := opts.Regions[len(opts.Regions)-1]
	w.extra["clouds"] = []any{map[string]any{"name": "one", "region": opts.Regions[0]}, map[string]any{"name": "two", "region": second}}
	w.groups = map[string]map[string]any{string(providertest.Workers): group(string(providertest.Workers), "one", 0, 10), string(providertest.Others): group(string(providertest.Others), "two", 1, 3)}
	for name, value := range map[string]string{
		"OS_AUTH_URL": c.AuthURL(), "OS_APPLICATION_CREDENTIAL_ID": openstack.ApplicationID, "OS_APPLICATION_CREDENTIAL_SECRET": openstack.ApplicationSecret,
	} {
		t.Setenv(name, value)
	}
	for _, name := range []string{"OS_CLOUD", "OS_CLIENT_CONFIG_FILE", "OS_REGION_NAME", "OS_USERNAME", "OS_PASSWORD"} {
		t.Setenv(name, "")
	}
	return w
}

// section is what groups.yaml says at the moment.
func (w *novaWorld) section() json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]any{"cluster": "demo"}
	for key, value := range w.extra {
		out[key] = value
	}
	var list []any
	for _, g := range w.groups {
		list = append(list, g)
	}
	out["groups"] = list
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return raw
}

func (w *novaWorld) connect(t testing.TB, opts ...nova.Option) *nova.Provider {
	t.Helper()
	opts = append([]nova.Option{nova.WithTokens(tokens)}, opts...)
	p, err := nova.New(nova.Config{ParallelCreates: 4, VMMemoryOverheadPercent: 5}, openstackapi.Config{Timeout: await.Limit}, w.section, reservation, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tokens(context.Context, string) (string, error) { return "abcdef.0123456789abcdef", nil }

// populate brings the groups to where the suite wants them, and makes a foreign server.
func (w *novaWorld) populate(t testing.TB) {
	t.Helper()
	p := w.connect(t)
	for id, n := range map[cluster.GroupID]int{providertest.Workers: 2, providertest.Others: 1} {
		if err := p.Resize(t.Context(), id, 0, n); err != nil {
			t.Fatal(err)
		}
	}
	w.settle(t)
}

// settle waits until no server builds or is being deleted.
func (w *novaWorld) settle(t testing.TB) {
	t.Helper()
	await.True(t, "the cloud to settle", func() bool {
		return !slices.ContainsFunc(w.all(), func(s openstack.Server) bool { return s.Status == "BUILD" || s.TaskState != "" })
	})
}

func (w *novaWorld) regions() []*openstack.Region {
	return []*openstack.Region{w.RegionNamed("RegionOne"), w.RegionNamed("RegionTwo")}
}

func (w *novaWorld) all() []openstack.Server {
	var out []openstack.Server
	for _, r := range w.regions() {
		if r != nil {
			out = append(out, r.Servers()...)
		}
	}
	return out
}

// members are the servers of a group that are not on their way out.
func (w *novaWorld) members(id cluster.GroupID) []openstack.Server {
	return slices.DeleteFunc(w.all(), func(s openstack.Server) bool {
		return s.Metadata["autoscaler-agent.group"] != string(id) || s.TaskState == "deleting"
	})
}

func (w *novaWorld) Target(id cluster.GroupID) int { return len(w.members(id)) }

func (w *novaWorld) Alive(id cluster.GroupID) []cluster.InstanceID {
	var out []cluster.InstanceID
	for _, s := range w.members(id) {
		if s.Status != "ERROR" {
			out = append(out, novaID(s))
		}
	}
	slices.Sort(out)
	return out
}

func novaID(s openstack.Server) cluster.InstanceID {
	return cluster.InstanceID("openstack:///" + s.ID)
}

func (w *novaWorld) server(id cluster.InstanceID) (*openstack.Region, openstack.Server) {
	for _, r := range w.regions() {
		if s, ok := r.Server(shortID(id)); ok {
			return r, s
		}
	}
	return nil, openstack.Server{}
}

// Foreign is a server of the same project that is of another cluster, and has the
// group's name.
func (w *novaWorld) Foreign(t testing.TB) cluster.InstanceID {
	s, err := w.CreateServer(openstack.ServerSpec{Name: "workers-else", Metadata: map[string]string{"autoscaler-agent.cluster": "other", "autoscaler-agent.group": string(providertest.Workers)}})
	if err != nil {
		t.Fatal(err)
	}
	// What Alive and Target count is of our own cluster.
	w.SetServer(s.ID, map[string]string{"autoscaler-agent.cluster": "other"}, nil)
	return novaID(s)
}

func (w *novaWorld) ForeignAlive(id cluster.InstanceID) bool {
	_, s := w.server(id)
	return s.ID != "" && s.TaskState == ""
}

func (w *novaWorld) Node(id cluster.InstanceID) cluster.Node {
	_, s := w.server(id)
	n := cluster.Node{Name: cluster.NodeName(s.Name), ProviderID: string(novaID(s)), SystemUUID: s.ID}
	for _, a := range s.Addresses {
		n.Addresses = append(n.Addresses, a.IP)
	}
	return n
}

// SetTarget: somebody makes servers like ours.
func (w *novaWorld) SetTarget(id cluster.GroupID, n int) {
	for len(w.members(id)) < n {
		like := w.members(id)[0]
		r, _ := w.server(novaID(like))
		if _, err := r.CreateServer(openstack.ServerSpec{Name: "by-hand", Metadata: like.Metadata, Tags: like.Tags}); err != nil {
			panic(err)
		}
	}
}

func (w *novaWorld) Kill(id cluster.InstanceID) {
	r, s := w.server(id)
	if err := r.DeleteServer(s.ID); err != nil {
		panic(err)
	}
}

// Vanish: the group is taken out of groups.yaml.
func (w *novaWorld) Vanish(id cluster.GroupID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups, string(id))
}

func (w *novaWorld) Quota(_ testing.TB, on bool) {
	q := openstack.Quota{Instances: -1, Cores: -1, RAM: -1, Ports: -1, FloatingIPs: -1}
	if on {
		q.Instances = 2
	}
	w.SetQuota(q)
}

// fault arms or disarms one fault by name.
func (w *novaWorld) fault(name string, on bool, f openstack.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.stops[name]; stop != nil {
		stop()
		delete(w.stops, name)
	}
	if on {
		w.stops[name] = w.Inject(f)
	}
}

func (w *novaWorld) Throttle(_ testing.TB, on bool) {
	w.fault("throttle", on, openstack.Fault{Kind: openstack.Throttle})
}

func (w *novaWorld) Expire(_ testing.TB, on bool) {
	w.fault("expire", false, openstack.Fault{})
	w.DisableLogins(on)
}

func (w *novaWorld) RefuseDeletes(_ testing.TB, on bool) {
	w.fault("refuse", on, openstack.Fault{Action: "DELETE /servers/{id}", Kind: openstack.Forbidden})
}

// BreakRead: the region of Workers answers with errors.
func (w *novaWorld) BreakRead(_ testing.TB, on bool) {
	w.fault("read", on, openstack.Fault{Region: "RegionOne", Service: "compute", Kind: openstack.Unavailable503})
}
