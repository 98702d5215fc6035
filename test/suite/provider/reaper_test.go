package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fakeworld"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/capi"
	plugin "github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// The reaper's decisions over the real providers and their emulated clouds, minute by
// minute of a clock of its own (package services plays AWS's on the real control plane):
// whatever a cloud answers, no Node goes whose instance exists, and the dead one goes once
// the fault is over.

// reaperFault is something that a cloud answers wrongly. again is the provider that reads
// from then on, where it is another one; nil: the same.
type reaperFault struct {
	name  string
	begin func(t *testing.T) (again provider.Provider, end func())
}

// cleanup is a cluster of six workers and what its reaper remembers.
type cleanup struct {
	t      *testing.T
	world  providertest.World
	p      provider.Provider
	now    time.Time
	nodes  []cluster.Node
	memory reaper.Memory
	policy reaper.Policy
	gone   []reaper.Deletion
}

func reaperPolicy(t *testing.T) reaper.Policy {
	t.Helper()
	var c nodecleaner.Config
	if err := envconfig.Process("nobody_sets_this", &c); err != nil {
		t.Fatal(err)
	}
	return reaper.Policy{SightInterval: c.SightInterval, GoneGrace: c.GoneGrace, SentGrace: c.SentGrace, Grace: c.Grace, KnownFor: c.KnownFor, MaxShare: c.MaxShare,
		FreezeFor: c.FreezeFor, MassHold: c.MassHold, UnledgeredEvery: c.UnledgeredEvery, DetachFor: c.DetachFor, BreakErrors: c.BreakErrors, BreakWithin: c.BreakWithin,
		Silence: 4 * time.Minute}
}

// newReaper fills the world and looks at it for a few minutes.
func newReaper(t *testing.T, w providertest.World, p provider.Provider, settle func()) *cleanup {
	t.Helper()
	if err := p.Resize(t.Context(), providertest.Workers, w.Target(providertest.Workers), 6); err != nil {
		t.Fatal(err)
	}
	settle()
	r := &cleanup{t: t, world: w, p: p, now: time.Now(), policy: reaperPolicy(t)}
	for _, g := range []cluster.GroupID{providertest.Workers, providertest.Others} {
		for _, id := range w.Alive(g) {
			n := w.Node(id)
			n.UID, n.Created, n.Ready, n.ReadySince = cluster.UID("uid of "+string(n.Name)), r.now.Add(-24*time.Hour), cluster.StatusTrue, r.now.Add(-24*time.Hour)
			r.nodes = append(r.nodes, n)
		}
	}
	if len(r.nodes) != 7 {
		t.Fatalf("%d Nodes, want 7", len(r.nodes))
	}
	r.minutes(3)
	return r
}

// minutes lets time pass, with a read of the cloud every three.
func (r *cleanup) minutes(n int) {
	r.t.Helper()
	for range n / 3 {
		r.now = r.now.Add(3 * time.Minute)
		in := reaper.Input{Now: r.now, Nodes: slices.Clone(r.nodes)}
		groups, err := r.p.Groups(r.t.Context())
		if err != nil {
			in.ReadProblem = err.Error()
		}
		for i := range groups {
			groups[i].ReadAt = r.now
		}
		in.Groups = groups
		plan, _ := reaper.Decide(in, r.memory, r.policy)
		in.Leases = map[cluster.NodeName]reaper.Lease{}
		for _, name := range plan.Leases {
			in.Leases[name] = reaper.Lease{} // no kubelet here has one
		}
		if len(plan.Ask) > 0 {
			in.AskedAt = r.now
			in.Answers, _ = provider.Ask(r.t.Context(), r.p, plan.Ask...) // what it cannot say is in the answers
		}
		plan, r.memory = reaper.Decide(in, r.memory, r.policy)
		for _, d := range plan.Delete {
			r.gone = append(r.gone, d)
			r.nodes = slices.DeleteFunc(r.nodes, func(n cluster.Node) bool { return n.UID == d.UID })
		}
	}
}

func (r *cleanup) silence(ids ...string) {
	for i := range r.nodes {
		if n := &r.nodes[i]; slices.Contains(ids, n.ProviderID) && n.Ready == cluster.StatusTrue {
			n.Ready, n.ReadySince = cluster.StatusUnknown, r.now
			n.Taints = append(n.Taints, cluster.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"})
		}
	}
}

func (r *cleanup) wake(ids ...string) {
	for i := range r.nodes {
		if n := &r.nodes[i]; slices.Contains(ids, n.ProviderID) {
			n.Ready, n.ReadySince, n.Taints = cluster.StatusTrue, r.now, nil
		}
	}
}

func (r *cleanup) taint(id string) {
	for i := range r.nodes {
		if n := &r.nodes[i]; n.ProviderID == id {
			n.Taints = append(n.Taints, cluster.Taint{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"})
		}
	}
}

// safe fails the test when a Node of one that lives was deleted.
func (r *cleanup) safe(when string, alive []string) {
	r.t.Helper()
	for _, id := range alive {
		if !slices.ContainsFunc(r.nodes, func(n cluster.Node) bool { return n.ProviderID == id }) {
			i := slices.IndexFunc(r.gone, func(d reaper.Deletion) bool { return d.Node == r.world.Node(cluster.InstanceID(id)).Name })
			why := "?"
			if i >= 0 {
				why = fmt.Sprintf("%+v", r.gone[i])
			}
			r.t.Errorf("%s: the Node of %s was deleted, and the instance exists: %s", when, id, why)
		}
	}
}

// play runs one fault in three steps. First the kubelets of two living machines are silent (a
// scale-down removed one of the two) and a third machine is gone. Then all kubelets of the group
// are silent, and at last all kubelets of the other group.
func (r *cleanup) play(f reaperFault, settle func()) {
	t := r.t
	var ids []string
	for _, n := range r.nodes {
		ids = append(ids, n.ProviderID)
	}
	silent, sent, dead := ids[0], ids[1], ids[2]
	r.silence(silent, sent, dead)
	r.taint(sent)
	r.minutes(3)
	r.world.Kill(cluster.InstanceID(dead))
	settle()
	alive := slices.Concat(ids[:2], ids[3:])
	was := r.p
	again, end := f.begin(t)
	t.Cleanup(end)
	if again != nil {
		r.p = again
	}
	r.minutes(45)
	r.safe("some are silent", alive)
	r.silence(ids[:6]...)
	r.minutes(45)
	r.safe("all of the group are silent", alive)
	r.silence(ids...)
	r.minutes(45)
	r.safe("all are silent", alive)
	end()
	r.p = was
	r.wake(alive...)
	r.silence(silent)
	r.minutes(120)
	r.safe("after the fault", alive)
	if slices.ContainsFunc(r.nodes, func(n cluster.Node) bool { return n.ProviderID == dead }) {
		i := slices.IndexFunc(r.nodes, func(n cluster.Node) bool { return n.ProviderID == dead })
		groups, _ := r.p.Groups(t.Context())
		v := reaper.Explain(reaper.Input{Now: r.now, Nodes: r.nodes, Groups: groups}, r.memory, r.policy, r.nodes[i].Name)
		t.Errorf("the dead Node stays: %s: %s %v", v.Rule, v.Why, v.Facts)
	}
}

// same has a fault meet the same provider.
func same(name string, begin func() (end func())) reaperFault {
	return reaperFault{name, func(*testing.T) (provider.Provider, func()) { return nil, begin() }}
}

// openstackFaults are those that a cloud of Nova can play by itself.
func openstackFaults(c *openstack.Cloud) []reaperFault {
	inject := func(name string, f openstack.Fault) reaperFault {
		return same(name, func() func() { stop := c.Inject(f); return func() { stop() } })
	}
	return []reaperFault{
		same("no fault", func() func() { return func() {} }),
		inject("empty list of servers", openstack.Fault{Service: "compute", Action: "GET /servers/detail", Kind: openstack.EmptyList}),
		inject("403", openstack.Fault{Service: "compute", Kind: openstack.Forbidden}),
		inject("500", openstack.Fault{Service: "compute", Kind: openstack.ServerError500}),
		inject("502 of a proxy", openstack.Fault{Kind: openstack.BadGateway502}),
		inject("partitioned from the cloud", openstack.Fault{Kind: openstack.ConnectionReset}),
		inject("throttled", openstack.Fault{Kind: openstack.Throttle}),
		same("logins refused", func() func() { c.DisableLogins(true); return func() { c.DisableLogins(false) } }),
		same("stale reads", func() func() { c.Freeze(true); return func() { c.Freeze(false) } }),
	}
}

// asAdmin logs in to another project than the servers'.
func asAdmin(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"OS_APPLICATION_CREDENTIAL_ID": "", "OS_APPLICATION_CREDENTIAL_SECRET": "", "OS_USERNAME": openstack.AdminUser, "OS_PASSWORD": openstack.AdminPassword,
		"OS_PROJECT_NAME": "admin", "OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default"} {
		t.Setenv(name, value)
	}
}

func TestReaperOverNova(t *testing.T) {
	faults := func(w *novaWorld) []reaperFault {
		return append(openstackFaults(w.Cloud),
			reaperFault{"wrong project", func(t *testing.T) (provider.Provider, func()) {
				asAdmin(t)
				return w.connect(t), func() {}
			}},
			reaperFault{"wrong region", func(t *testing.T) (provider.Provider, func()) {
				w.mu.Lock()
				defer w.mu.Unlock()
				was := w.extra["clouds"]
				w.extra["clouds"] = []any{map[string]any{"name": "one", "region": "RegionTwo"}, map[string]any{"name": "two", "region": "RegionTwo"}}
				return w.connect(t), func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.extra["clouds"] = was
				}
			}},
			same("group taken out of groups.yaml", func() func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				was := w.groups[string(providertest.Workers)]
				delete(w.groups, string(providertest.Workers))
				return func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.groups[string(providertest.Workers)] = was
				}
			}))
	}
	for n := range faults(&novaWorld{Cloud: &openstack.Cloud{}}) {
		w := newNova(t, openstack.Options{PageLimit: 3})
		f := faults(w)[n]
		t.Run(f.name, func(t *testing.T) {
			p := w.connect(t)
			w.populate(t)
			settle := func() { w.settle(t) }
			newReaper(t, w, p, settle).play(f, settle)
		})
	}
}

func TestReaperOverMagnum(t *testing.T) {
	faults := func(w *magnumWorld) []reaperFault {
		inject := func(name string, f openstack.Fault) reaperFault {
			return same(name, func() func() { stop := w.Inject(f); return func() { stop() } })
		}
		return append(openstackFaults(w.Cloud),
			inject("empty list of node groups", openstack.Fault{Service: "container-infra", Action: "GET /clusters/{id}/nodegroups", Kind: openstack.EmptyList}),
			inject("403 of Magnum", openstack.Fault{Service: "container-infra", Kind: openstack.Forbidden}),
			inject("503 of Heat", openstack.Fault{Service: "orchestration", Kind: openstack.Unavailable503}),
			inject("empty list of Heat's resources", openstack.Fault{Service: "orchestration", Kind: openstack.EmptyList}),
			reaperFault{"wrong project", func(t *testing.T) (provider.Provider, func()) {
				asAdmin(t)
				return w.connect(t, byRole), func() {}
			}})
	}
	for n := range faults(&magnumWorld{Cloud: &openstack.Cloud{}}) {
		w := newMagnum(t, openstack.MagnumCluster{Driver: openstack.HeatDriver})
		f := faults(w)[n]
		t.Run(f.name, func(t *testing.T) {
			settle := func() { w.settle(t) }
			newReaper(t, w, w.connect(t, byRole), settle).play(f, settle)
		})
	}
}

func TestReaperOverPlugIns(t *testing.T) {
	faults := func(w *pluginWorld) []reaperFault {
		inject := func(name string, f plugin.Fault) reaperFault {
			return same(name, func() func() { return w.server.Inject(f) })
		}
		return []reaperFault{
			same("no fault", func() func() { return func() {} }),
			inject("empty list of nodes", plugin.Fault{Method: "NodeGroupNodes", Change: func(a any) { a.(*protos.NodeGroupNodesResponse).Instances = nil }}),
			inject("half a list of nodes", plugin.Fault{Method: "NodeGroupNodes", Change: func(a any) {
				list := a.(*protos.NodeGroupNodesResponse)
				list.Instances = list.Instances[len(list.Instances)/2:]
			}}),
			inject("empty list of groups", plugin.Fault{Method: "NodeGroups", Change: func(a any) { a.(*protos.NodeGroupsResponse).NodeGroups = nil }}),
			inject("nodes without a state", plugin.Fault{Method: "NodeGroupNodes", Change: func(a any) {
				for _, i := range a.(*protos.NodeGroupNodesResponse).Instances {
					i.Status = nil
				}
			}}),
			inject("permission denied", plugin.Fault{Code: codes.PermissionDenied, Text: "not yours"}),
			inject("not found", plugin.Fault{Method: "NodeGroupNodes", Code: codes.NotFound, Text: "no such group"}),
			inject("unavailable", plugin.Fault{Code: codes.Unavailable, Text: "later"}),
			inject("refresh fails", plugin.Fault{Method: "Refresh", Code: codes.Internal, Text: "the cloud does not answer"}),
			reaperFault{"another cloud's plug-in", func(t *testing.T) (provider.Provider, func()) {
				return newPlugin(t, plugin.Options{}).connect(t), func() {}
			}},
		}
	}
	for n := range faults(&pluginWorld{}) {
		w := newPlugin(t, plugin.Options{})
		f := faults(w)[n]
		t.Run(f.name, func(t *testing.T) {
			settle := func() { fakeworld.Settle(t, w.World) }
			newReaper(t, w, w.connect(t), settle).play(f, settle)
		})
	}
}

func init() { capiStories["Reaper"] = storyReaper }

// storyReaper plays on the real API server of a management cluster.
func storyReaper(t *testing.T, cp *controlplane.ControlPlane) {
	t.Parallel()
	machines := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/machines") }
	faults := func(w *capiWorld) []reaperFault {
		inject := func(name string, f capi.Fault) reaperFault {
			return same(name, func() func() { w.proxy.Set("reaper", f); return func() { w.proxy.Clear("reaper") } })
		}
		other := func(name string, c clusterapi.Config) reaperFault {
			return reaperFault{name, func(t *testing.T) (provider.Provider, func()) { return w.renamed(w.connect(t, c)), func() {} }}
		}
		return []reaperFault{
			same("no fault", func() func() { return func() {} }),
			inject("401", capi.Fault{Code: http.StatusUnauthorized}),
			inject("403 on Machines", capi.Fault{Code: http.StatusForbidden, When: machines}),
			inject("500 on Machines", capi.Fault{Code: http.StatusInternalServerError, When: machines}),
			other("another cluster's name", clusterapi.Config{ClusterName: "foreign", Namespace: w.namespace}),
			other("no such cluster", clusterapi.Config{ClusterName: "nobody", Namespace: w.namespace}),
			inject("answers cut short", capi.Fault{Cut: true, When: machines}),
			{"the right to list is gone", func(t *testing.T) (provider.Provider, func()) {
				role := w.role.DeepCopy()
				role.ResourceVersion = ""
				role.Rules[1].Verbs = []string{"get"}
				if _, err := w.cp.Client().RbacV1().ClusterRoles().Update(context.Background(), role, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				w.awaitRight(t, "list", false)
				return nil, func() {
					role := w.role.DeepCopy()
					role.ResourceVersion = ""
					_, _ = w.cp.Client().RbacV1().ClusterRoles().Update(context.Background(), role, metav1.UpdateOptions{}) // the test fails when it did not work
					w.awaitRight(t, "list", true)
				}
			}},
		}
	}
	for n := range faults(&capiWorld{}) {
		if n%2 == 1 && os.Getenv("AUTOSCALER_TEST_NO_SKIP") != "1" {
			continue // every night plays the others: each makes its own machines
		}
		w := newCAPIWorld(t, cp, "MachineDeployment", capi.Group, "v1beta2")
		f := faults(w)[n]
		t.Run(f.name, func(t *testing.T) {
			w.suite(t)
			settle := func() { w.settle(t) }
			newReaper(t, w, w.renamed(w.connect(t, clusterapi.Config{ClusterName: "demo", Namespace: w.namespace})), settle).play(f, settle)
		})
	}
}
