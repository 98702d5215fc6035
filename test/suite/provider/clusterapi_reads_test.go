package provider_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/capi"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// storyTemplateFromNode: nothing tells the size of a machine but a node of the group,
// and what it showed holds when the group is empty.
func storyTemplateFromNode(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	ctx := context.Background()
	if err := errors.Join(w.PutTemplate(ctx, "bare", "", nil),
		w.PutDeployment(ctx, capi.Workers{Name: "bare", Cluster: "demo", Replicas: 1, Min: "0", Max: "5", Template: "bare", FailureDomain: "zone-a"})); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if g := readGroup(t, p, w.id("bare")); !strings.Contains(g.Template.Unknown, "capacity.cluster-autoscaler.kubernetes.io/cpu") || g.Stale != "" {
		t.Errorf("nothing tells the size: unknown %q", g.Template.Unknown)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machineOf(w.Alive("bare")[0]), Labels: map[string]string{
		"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "big", "topology.kubernetes.io/zone": "zone-a", "own": "x", "topology.ebs.csi.aws.com/zone": "zone-a"}}}
	if _, err := cp.Client().CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // the controller manager writes to it, too
		made, err := cp.Client().CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		made.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110")}
		made.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("7900m"), "memory": resource.MustParse("31Gi"), "pods": resource.MustParse("110")}
		_, err = cp.Client().CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{})
		return err
	})
	check := func(when string) {
		t.Helper()
		tm := readGroup(t, p, w.id("bare")).Template
		if tm.Unknown != "" || tm.Capacity.MilliCPU != 8000 || tm.Allocatable.MilliCPU != 7900 || tm.Allocatable.Memory != 31<<30 {
			t.Errorf("%s: %+v", when, tm)
		}
		l := tm.Labels
		if l["kubernetes.io/arch"] != "arm64" || l["topology.kubernetes.io/zone"] != "zone-a" || l["topology.ebs.csi.aws.com/zone"] != "zone-a" || l["node.kubernetes.io/instance-type"] != "big" || l["own"] != "" {
			t.Errorf("%s: labels %v", when, l)
		}
	}
	check("with a node")
	if err := p.Delete(ctx, w.id("bare"), w.Alive("bare")...); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	check("from zero")
}

// storyNodeAnnotation: a Machine without provider ID is tied to its Node by the
// annotation cluster.x-k8s.io/machine on the Node.
func storyNodeAnnotation(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineSet")
	ctx := context.Background()
	w.Freeze(true)
	m, err := w.Resource("machines").Get(ctx, machineOf(w.Alive("workers")[0]), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := m.GetName()
	w.patch(t, "machines", name, `{"spec":{"providerID":null}}`)
	w.patch(t, "machines", name, `{"status":{"nodeRef":null,"addresses":null,"phase":"Provisioned"}}`, "status")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + w.namespace, Annotations: map[string]string{"cluster.x-k8s.io/machine": name, "cluster.x-k8s.io/cluster-namespace": w.namespace}}}
	if _, err := cp.Client().CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	g := readGroup(t, p, w.id("workers"))
	at := slices.IndexFunc(g.Instances, func(i cluster.Instance) bool { return slices.Contains(i.NodeNames, node.Name) })
	if at < 0 || g.Instances[at].ID != cluster.InstanceID("pending-machine-"+w.namespace+"_"+name) {
		t.Fatalf("no instance may be called %s: %+v", node.Name, g.Instances)
	}
	w.Freeze(false)
	if err := p.Delete(ctx, w.id("workers"), g.Instances[at].ID); err != nil {
		t.Error(err)
	}
	w.settle(t)
	if w.Target("workers") != 1 {
		t.Errorf("target %d", w.Target("workers"))
	}
}

// storyBarePool: a MachinePool whose provider makes no Machines grows and says why it
// cannot shrink by name.
func storyBarePool(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachinePool")
	ctx := context.Background()
	w.Freeze(true)
	if err := w.PutPool(ctx, capi.Workers{Name: "bare", Cluster: "demo", Replicas: 2, Min: "0", Max: "5", Template: "template-workers"}); err != nil {
		t.Fatal(err)
	}
	w.patch(t, "machinepools", "bare", `{"spec":{"providerIDList":["aws:///a/i-1","aws:///a/i-2"]}}`)
	g := readGroup(t, p, w.id("bare"))
	if len(g.Instances) != 2 || g.Instances[0].Phase != cluster.PhaseRunning || len(g.Warnings) == 0 {
		t.Errorf("%+v", g)
	}
	wantKind(t, p.Delete(ctx, w.id("bare"), "aws:///a/i-1"), provider.Invalid, "MachinePool Machines")
	wantKind(t, p.Resize(ctx, w.id("bare"), 2, 1), provider.Invalid, "2 instances")
	if err := p.Resize(ctx, w.id("bare"), 2, 3); err != nil {
		t.Error(err)
	}
}

// storyVersion: CAPI_VERSION is spoken when it is set, the preferred one otherwise.
func storyVersion(t *testing.T, cp *controlplane.ControlPlane) {
	w, _ := capiStory(t, cp, "MachineDeployment")
	for version, spoken := range map[string]string{"": "v1beta2", "v1beta1": "v1beta1", "v1beta2": "v1beta2"} {
		p := w.connect(t, clusterapi.Config{ClusterName: "demo", Namespace: w.namespace, Version: version})
		w.proxy.Reset()
		if g := readGroup(t, p, w.id("workers")); len(g.Instances) != 2 {
			t.Errorf("%q: %+v", version, g)
		}
		path := "GET /apis/cluster.x-k8s.io/" + spoken + "/namespaces/" + w.namespace + "/machinedeployments"
		if calls := w.proxy.Calls(); calls[path] != 1 {
			t.Errorf("%q: not asked: %s in %v", version, path, calls)
		}
	}
	_, err := w.connect(t, clusterapi.Config{ClusterName: "demo", Version: "v9"}).Groups(context.Background())
	wantKind(t, err, provider.NotFound, "leave AUTOSCALER_CLUSTERAPI_VERSION empty, or name one of v1beta2, v1beta1")
}

// storyNoAPI: a cluster without Cluster API says so.
func storyNoAPI(t *testing.T, cp *controlplane.ControlPlane) {
	w, _ := capiStory(t, cp, "MachineDeployment")
	groups, err := w.connect(t, clusterapi.Config{ClusterName: "demo", Group: "nobody.example"}).Groups(context.Background())
	wantKind(t, err, provider.NotFound, "nobody.example")
	if groups != nil {
		t.Error("groups of an API that is not there")
	}
	wantKind(t, w.connect(t, clusterapi.Config{ClusterName: "nobody", Namespace: w.namespace}).Check(context.Background()), provider.NotFound, "clusterName=nobody")
}

// storyCheapRead counts the calls of a read.
func storyCheapRead(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	readGroup(t, p, w.id("workers"))
	// No node is there to learn from, so each read asks for one of each template.
	w.proxy.Reset()
	readGroup(t, p, w.id("workers"))
	n := 0
	for call, times := range w.proxy.Calls() {
		n += times
		if times > 1 {
			t.Errorf("%d times %s", times, call)
		}
	}
	if n > 9 { // four kinds, Machines, two templates, two Nodes
		t.Errorf("%d calls: %v", n, w.proxy.Calls())
	}
}

// storyMixed: all three kinds beside each other, found by one rule; a MachineSet of a
// MachineDeployment, which carries its annotations, is none.
func storyMixed(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	ctx := context.Background()
	if err := errors.Join(w.PutSet(ctx, capi.Workers{Name: "set", Cluster: "demo", Replicas: 1, Min: "0", Max: "2", Template: "template-workers"}),
		w.PutPool(ctx, capi.Workers{Name: "pool", Cluster: "demo", Replicas: 1, Min: "0", Max: "2", Template: "template-workers"})); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	groups, err := p.Groups(ctx)
	var got []string
	for _, g := range groups {
		got = append(got, strings.Replace(string(g.ID), w.namespace+"/", "", 1))
		if len(g.Instances) != g.Target || g.Stale != "" {
			t.Errorf("%+v", g)
		}
	}
	slices.Sort(got)
	if want := []string{"MachineDeployment/others", "MachineDeployment/workers", "MachinePool/pool", "MachineSet/set"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("groups %v, want %v: %v", got, want, err)
	}
}

// storyCut: an answer that ends in the middle is an error and no fact.
func storyCut(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	w.proxy.Set("cut", capi.Fault{Cut: true, When: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/machines") }})
	groups, err := p.Groups(context.Background())
	wantKind(t, err, provider.Transient, "cut short")
	if len(groups) != 2 || groups[0].Stale == "" || groups[1].Stale == "" {
		t.Errorf("groups %+v", groups)
	}
	alive := w.Alive("workers")
	wantKind(t, p.Delete(context.Background(), w.id("workers"), alive[0]), provider.Transient, "cut short")
	if w.Target("workers") != 2 {
		t.Error("the target fell")
	}
}

// storyTwins: two Machines with one provider ID are left alone.
func storyTwins(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineSet")
	w.Freeze(true)
	alive := w.Alive("workers")
	w.patch(t, "machines", machineOf(alive[1]), `{"spec":{"providerID":"`+string(alive[0])+`"}}`)
	g := readGroup(t, p, w.id("workers"))
	for _, i := range g.Instances {
		if i.Phase != cluster.PhaseUnknown {
			t.Errorf("%+v", i)
		}
	}
	if len(g.Warnings) == 0 {
		t.Error("no warning")
	}
	wantKind(t, p.Delete(context.Background(), w.id("workers"), alive[0]), provider.Invalid, "two Machines")
}

// storyLag: controllers that see Machines later than counts still end the named one.
func storyLag(t *testing.T, cp *controlplane.ControlPlane) {
	w, _ := capiStory(t, cp, "MachineSet")
	w.Freeze(true)
	w.Lag = 100 * time.Millisecond
	w.Freeze(false)
	p := w.connect(t, clusterapi.Config{ClusterName: "demo", Namespace: w.namespace, MarkLead: time.Second})
	ctx := context.Background()
	if err := p.Resize(ctx, w.id("workers"), 2, 4); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	alive := w.Alive("workers")
	if err := p.Delete(ctx, w.id("workers"), alive[1], alive[2]); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if got, want := w.Alive("workers"), []cluster.InstanceID{alive[0], alive[3]}; !slices.Equal(got, want) {
		t.Errorf("alive %v, want %v", got, want)
	}
}

// storyBelowMin: a group below its minimum can grow, and one whose annotations make no
// sense is frozen and named, with the others unharmed.
func storyBelowMin(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	ctx := context.Background()
	w.patch(t, "machinedeployments", "workers", `{"metadata":{"annotations":{"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":"4"}}}`)
	if err := p.Resize(ctx, w.id("workers"), 2, 4); err != nil {
		t.Error(err)
	}
	w.patch(t, "machinedeployments", "workers", `{"metadata":{"annotations":{"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":"four"}}}`)
	g := readGroup(t, p, w.id("workers"))
	if g.Min != 4 || g.Max != 4 || g.Target != 4 || !strings.Contains(g.Paused, `"four"`) {
		t.Errorf("%+v", g)
	}
	if o := readGroup(t, p, w.id("others")); o.Paused != "" || o.Stale != "" {
		t.Errorf("%+v", o)
	}
	wantKind(t, p.Resize(ctx, w.id("workers"), 4, 5), provider.Invalid, `"four"`)
}
