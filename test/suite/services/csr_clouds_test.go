package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/capi"
	plugin "github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// The clouds beside AWS that the same agent looks at, each through its real provider:
// two regions of an OpenStack, a cluster of Magnum in it, Cluster API, and a plug-in that
// tells names and addresses, or leaves them to the section "externalgrpc" or "machines" of
// groups.yaml.
const (
	onNova, onWest, onMagnum = "nova", "nova-west", "magnum"
	onCAPI                   = "clusterapi"
	onPlugIn, onListed       = "externalgrpc", "externalgrpc-listed"
	onMachines               = "machines"
)

var allClouds = []string{onNova, onWest, onMagnum, onCAPI, onPlugIn, onListed, onMachines}

// vm is a machine of such a cloud.
type vm struct {
	id, providerID string
	name           string   // of its Node, as a rule
	addresses      []string // the first is the kubelet's own
}

// v6 is the first IPv6 address; "" where there is none.
func (v *vm) v6() string {
	if i := slices.IndexFunc(v.addresses, func(a string) bool { return strings.Contains(a, ":") }); i >= 0 {
		return v.addresses[i]
	}
	return ""
}

// byTemplate is the name that AUTOSCALER_CSR_EXTRA_NAMES gives it.
func (v *vm) byTemplate() string {
	return v.providerID[strings.LastIndexByte(v.providerID, '/')+1:] + ".workers.example.com"
}

type clouds struct {
	stack  *openstack.Cloud
	capi   *capi.Cloud
	behind *told
	plugin *plugin.Server
	pools  map[string][]*vm
}

// vmSpare is how many machines of each cloud rows may take beside their own.
const vmSpare = 24

const fleet = "fleet" // Cluster API's namespace

func (c *corpus) launchClouds(t *testing.T, rows []csrRow) {
	t.Helper()
	need := map[string]int{}
	for _, on := range allClouds {
		need[on] = vmSpare
	}
	for _, r := range rows {
		need[r.on]++
	}
	c.clouds.pools = map[string][]*vm{}
	c.startOpenStack(t, need)
	c.startClusterAPI(t, need[onCAPI])
	c.startPlugIn(t, need)
}

func (c *corpus) takeOn(on string) *vm {
	v := c.clouds.pools[on][0]
	c.clouds.pools[on] = c.clouds.pools[on][1:]
	return v
}

// env tells the agent of all clouds.
func (c *clouds) env(kubeconfig string) []string {
	return []string{
		"AUTOSCALER_PROVIDER=asg,nova,magnum,clusterapi,externalgrpc",
		"OS_AUTH_URL=" + c.stack.AuthURL(), "OS_REGION_NAME=" + c.stack.Name(),
		"OS_APPLICATION_CREDENTIAL_ID=" + openstack.ApplicationID, "OS_APPLICATION_CREDENTIAL_SECRET=" + openstack.ApplicationSecret,
		"AUTOSCALER_NOVA_CLUSTER_NAME=" + world.ClusterName,
		"AUTOSCALER_MAGNUM_CLUSTER=" + world.ClusterName, "AUTOSCALER_MAGNUM_AUTO_DISCOVERY=magnum:role=worker",
		"AUTOSCALER_CLUSTERAPI_CLOUD_CONFIG=" + kubeconfig,
		"AUTOSCALER_CLUSTERAPI_AUTO_DISCOVERY=clusterapi:namespace=" + fleet + ",clusterName=" + world.ClusterName,
		"AUTOSCALER_EXTERNALGRPC_ADDRESS=" + c.plugin.Address(), "AUTOSCALER_EXTERNALGRPC_INSECURE=true",
	}
}

// groups are those that the agent has to know before requests are sent.
func (*clouds) groups() []string {
	return []string{onNova, onWest, onMagnum, onCAPI, onPlugIn, onListed, onMachines}
}

// startOpenStack starts two regions, whose lists come in small pages.
func (c *corpus) startOpenStack(t *testing.T, need map[string]int) {
	t.Helper()
	stack, err := openstack.New(openstack.Options{Regions: []string{"RegionOne", "RegionTwo"}, BuildDelay: time.Millisecond, DeleteDelay: time.Millisecond, PageLimit: 20, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stack.Close)
	c.clouds.stack = stack
	script := filepath.Join(t.TempDir(), "worker.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nJOIN_TOKEN='{{join token}}'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var groups []any
	for on, cloud := range map[string]string{onNova: "east", onWest: "west"} {
		groups = append(groups, map[string]any{"name": on, "cloud": cloud, "flavor": "m1.large", "image": openstack.ImageName, "networks": []any{openstack.NetworkName},
			"min": 0, "max": 1000, "userdata": script})
	}
	err = c.w.PutSection("nova", map[string]any{"groups": groups, "clouds": []any{
		map[string]any{"name": "east", "region": "RegionOne"}, map[string]any{"name": "west", "region": "RegionTwo", "providerIDRegion": true}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []string{onNova, onWest} {
		for n := range need[on] {
			c.clouds.pools[on] = append(c.clouds.pools[on], c.server(t, on, fmt.Sprintf("%s-%03d", on, n), nil))
		}
	}
	if _, err := stack.PutCluster(openstack.MagnumCluster{Name: world.ClusterName, Masterless: true},
		openstack.NodeGroup{Name: onMagnum, Flavor: "m1.large", Count: need[onMagnum], Max: 1000}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "all servers run", func() bool {
		return !slices.ContainsFunc(slices.Concat(stack.Servers(), stack.RegionNamed("RegionTwo").Servers()), func(s openstack.Server) bool { return s.Status != "ACTIVE" })
	})
	g, _ := stack.NodeGroupNamed(world.ClusterName, onMagnum)
	for _, s := range g.Servers {
		c.clouds.pools[onMagnum] = append(c.clouds.pools[onMagnum], vmOf(s, "openstack:///"))
	}
}

func vmOf(s openstack.Server, prefix string) *vm {
	v := &vm{id: s.ID, providerID: prefix + s.ID, name: strings.ToLower(s.Name)}
	for _, a := range s.Addresses {
		v.addresses = append(v.addresses, a.IP)
	}
	return v
}

func (c *clouds) region(on string) *openstack.Region {
	if on == onWest {
		return c.stack.RegionNamed("RegionTwo")
	}
	return c.stack.Region
}

// server makes a server with two networks as the agent would, but for what change has
// other ideas about.
func (c *corpus) server(t *testing.T, on, name string, change func(*openstack.ServerSpec)) *vm {
	t.Helper()
	spec := openstack.ServerSpec{Name: name, Flavor: "m1.large", Networks: []string{openstack.NetworkName, "storage"}, Tags: []string{"autoscaler-agent:" + world.ClusterName},
		Metadata: map[string]string{"autoscaler-agent.cluster": world.ClusterName, "autoscaler-agent.group": on}}
	if change != nil {
		change(&spec)
	}
	s, err := c.clouds.region(on).CreateServer(spec)
	if err != nil {
		t.Fatal(err)
	}
	prefix := "openstack:///"
	if on == onWest {
		prefix = "openstack://RegionTwo/"
	}
	if change != nil {
		await.True(t, "server "+name+" runs", func() bool { now, _ := c.clouds.region(on).Server(s.ID); return now.Status == "ACTIVE" })
	}
	return vmOf(s, prefix)
}

// startClusterAPI makes Machines and stops the controllers, so that rows may write what
// infrastructure providers of other kinds would have told.
func (c *corpus) startClusterAPI(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(capi.Install(ctx, c.cp.RESTConfig(), capi.Group, ""))
	_, err := c.cp.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet}}, metav1.CreateOptions{})
	must(err)
	c.clouds.capi, err = capi.New(capi.Options{Config: c.cp.RESTConfig(), Namespace: fleet, Provision: time.Millisecond, Terminate: time.Millisecond, Seed: 5})
	must(err)
	t.Cleanup(c.clouds.capi.Close)
	must(c.clouds.capi.PutCluster(ctx, world.ClusterName, nil))
	must(c.clouds.capi.PutTemplate(ctx, "workers", "emulated", nil))
	must(c.clouds.capi.PutDeployment(ctx, capi.Workers{Name: onCAPI, Cluster: world.ClusterName, Replicas: n, Min: "0", Max: "1000", Template: "workers"}))
	must(c.clouds.capi.Settle(ctx))
	c.clouds.capi.Freeze(true)
	list, err := c.clouds.capi.Resource("machines").List(ctx, metav1.ListOptions{})
	must(err)
	for k, m := range list.Items {
		id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
		v := &vm{id: m.GetName(), providerID: id, name: m.GetName(), addresses: []string{fmt.Sprintf("10.64.200.%d", k), fmt.Sprintf("fd00:64::%x", k+1)}}
		c.tells(t, v, "Hostname", v.name, "InternalIP", v.addresses[0], "InternalIP", v.addresses[1])
		c.clouds.pools[onCAPI] = append(c.clouds.pools[onCAPI], v)
	}
}

// tells replaces the addresses of a Machine: types and addresses in turn.
func (c *corpus) tells(t *testing.T, v *vm, list ...string) {
	t.Helper()
	c.machine(t, v, func(m map[string]any) {
		var out []any
		for n := 0; n < len(list); n += 2 {
			out = append(out, map[string]any{"type": list[n], "address": list[n+1]})
		}
		_ = unstructured.SetNestedSlice(m, out, "status", "addresses")
	})
}

// machine changes the status of a Machine.
func (c *corpus) machine(t *testing.T, v *vm, change func(map[string]any)) {
	t.Helper()
	r := c.clouds.capi.Resource("machines")
	m, err := r.Get(t.Context(), v.id, metav1.GetOptions{})
	if err == nil {
		change(m.Object)
		_, err = r.UpdateStatus(t.Context(), m, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// told is what a plug-in manages: it says what rows want and refuses every change.
type told struct {
	mu     sync.Mutex
	groups []cluster.NodeGroup
}

func (p *told) Groups(context.Context) ([]cluster.NodeGroup, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := slices.Clone(p.groups)
	for n := range out {
		out[n].ReadAt, out[n].Instances = time.Now(), slices.Clone(out[n].Instances)
	}
	return out, nil
}

var errTold = errors.New("nothing is changed here")

func (*told) Resize(context.Context, cluster.GroupID, int, int) error { return errTold }
func (*told) Delete(context.Context, cluster.GroupID, ...cluster.InstanceID) error {
	return errTold
}

// change changes the instance of a machine.
func (p *told) change(v *vm, f func(*cluster.Instance)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for g := range p.groups {
		for i := range p.groups[g].Instances {
			if in := &p.groups[g].Instances[i]; string(in.ID) == v.providerID {
				f(in)
			}
		}
	}
}

// startPlugIn starts a plug-in with three groups: it tells all of the machines of the
// first, and only the IDs of those of the others.
func (c *corpus) startPlugIn(t *testing.T, need map[string]int) {
	t.Helper()
	c.clouds.behind = &told{}
	var listed, machines []any
	for g, on := range []string{onPlugIn, onListed, onMachines} {
		group := cluster.NodeGroup{ID: cluster.GroupID(on), Max: 1000, Target: need[on], Template: cluster.Template{Unknown: "nobody tells"}}
		for n := range need[on] {
			v := &vm{id: fmt.Sprintf("%s-%03d", on, n), addresses: []string{fmt.Sprintf("10.80.%d.%d", g, n+1), fmt.Sprintf("fd00:80:%d::%x", g, n+1)}}
			v.name, v.providerID = v.id+".racks", "emulated:///"+v.id
			in := cluster.Instance{ID: cluster.InstanceID(v.providerID), Phase: cluster.PhaseRunning, Member: true}
			switch on {
			case onPlugIn:
				in.Created, in.NodeNames, in.Names = time.Now().Add(-time.Minute), []string{v.name}, []string{v.name, v.id + ".example.net"}
				in.Addresses = []netip.Addr{mustAddr(v.addresses[0]), mustAddr(v.addresses[1])}
			case onListed:
				listed = append(listed, map[string]any{"instance": v.providerID, "node": v.name, "names": []string{v.id + ".example.net"}, "addresses": v.addresses,
					"created": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)})
			case onMachines:
				machines = append(machines, map[string]any{"instance": v.providerID, "node": v.name, "names": []string{v.id + ".example.net"}, "addresses": v.addresses})
			}
			group.Instances = append(group.Instances, in)
			c.clouds.pools[on] = append(c.clouds.pools[on], v)
		}
		// Two that nobody has told anything about.
		for n := range 2 {
			group.Instances = append(group.Instances, cluster.Instance{ID: cluster.InstanceID(fmt.Sprintf("emulated:///%s-dark-%d", on, n)), Phase: cluster.PhaseRunning, Member: true})
		}
		group.Target = len(group.Instances)
		c.clouds.behind.groups = append(c.clouds.behind.groups, group)
	}
	// One that stands in the list alone: the list makes no machine a member of a group.
	machines = append(machines, map[string]any{"instance": "emulated:///only-listed", "node": "only-listed", "addresses": []string{"10.80.9.9"}})
	if err := errors.Join(c.w.PutSection("externalgrpc", map[string]any{"instances": listed}), c.w.PutSection("machines", machines)); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.clouds.plugin, err = plugin.Start(plugin.Options{Cloud: c.clouds.behind}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.clouds.plugin.Close)
}
