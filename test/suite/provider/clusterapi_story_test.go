package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/capi"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// capiStories are tests of what only Cluster API has, by name. They share one control
// plane, each in a namespace of its own.
var capiStories = map[string]func(*testing.T, *controlplane.ControlPlane){
	"Rollout": storyRollout, "TopologyWithoutReplicas": storyTopology, "SeveralNamespaces": storyNamespaces, "Paused": storyPaused,
	"ForeignMark": storyForeignMark, "MarkOfACrash": storyCrash, "StatusWritersDoNotConflict": storyStatusWriters,
	"LostAnswer": storyLostAnswer, "RightsOfClusterAutoscaler": storyOldRights, "MachinesStillToBeMade": storyUnmade,
	"TemplateFromANode": storyTemplateFromNode, "MachineAnnotationOnNodes": storyNodeAnnotation, "PoolWithoutMachines": storyBarePool,
	"Version": storyVersion, "NoClusterAPI": storyNoAPI, "ACheapRead": storyCheapRead, "MixedKinds": storyMixed,
	"CutAnswer": storyCut, "TwinProviderIDs": storyTwins, "BelowMinimum": storyBelowMin,
	"ControllersSeeTheMarkLate": storyLag,
}

// capiStory is a world with the suite's groups and a provider.
func capiStory(t *testing.T, cp *controlplane.ControlPlane, kind string) (*capiWorld, *clusterapi.Provider) {
	t.Helper()
	t.Parallel()
	w := newCAPIWorld(t, cp, kind, capi.Group, "v1beta2")
	w.suite(t)
	return w, w.connect(t, clusterapi.Config{ClusterName: "demo", Namespace: w.namespace})
}

func (w *capiWorld) id(name string) cluster.GroupID {
	return cluster.GroupID(w.kind + "/" + w.namespace + "/" + name)
}

func wantKind(t *testing.T, err error, kind provider.Kind, words string) {
	t.Helper()
	if provider.KindOf(err) != kind || err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("error %v, want kind %s with %q", err, kind, words)
	}
}

func (w *capiWorld) patch(t *testing.T, resource, name, patch string, sub ...string) {
	t.Helper()
	if _, err := w.Resource(resource).Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...); err != nil {
		t.Fatal(err)
	}
}

func machineOf(id cluster.InstanceID) string {
	return string(id)[strings.LastIndex(string(id), "/")+1:]
}

// storyRollout: machines of the old MachineSet are members, there may be more of them
// than the target, nothing is deleted by name meanwhile, growth goes on.
func storyRollout(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	w.Cloud.Quota(3) // the rollout gets no machine, and so stays where it is
	w.patch(t, "machinedeployments", "workers", `{"spec":{"template":{"spec":{"version":"v1.36.2"}}}}`)
	var g cluster.NodeGroup
	eventually(t, func() error { // two old and one new
		g = readGroup(t, p, w.id("workers"))
		if len(g.Instances) < 3 {
			return fmt.Errorf("%d instances", len(g.Instances))
		}
		return nil
	})
	if g.Target != 2 || !strings.Contains(g.Keeps, "rollout") {
		t.Errorf("target %d, keeps %q", g.Target, g.Keeps)
	}
	for _, i := range g.Instances {
		if !i.Member || i.Type == "" {
			t.Errorf("instance %+v", i)
		}
	}
	wantKind(t, p.Delete(context.Background(), w.id("workers"), g.Instances[0].ID), provider.Conflict, "rollout")
	if got := w.Target("workers"); got != 2 {
		t.Errorf("target %d", got)
	}
	if err := p.Resize(context.Background(), w.id("workers"), 2, 4); err != nil {
		t.Errorf("growth during a rollout: %v", err)
	}
	w.Cloud.Quota(0)
	w.settle(t)
	g = readGroup(t, p, w.id("workers"))
	if len(g.Instances) != 4 || g.Target != 4 || g.Keeps != "" {
		t.Errorf("after the rollout: %d instances, target %d, keeps %q", len(g.Instances), g.Target, g.Keeps)
	}
	if err := p.Delete(context.Background(), w.id("workers"), g.Instances[0].ID); err != nil {
		t.Errorf("after the rollout: %v", err)
	}
}

func eventually(t *testing.T, try func() error) {
	t.Helper()
	await.Empty(t, func() string {
		if err := try(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// storyTopology: a ClusterClass's MachineDeployment without replicas, with its
// annotations from the topology; and one whose topology sets replicas after all.
func storyTopology(t *testing.T, cp *controlplane.ControlPlane) {
	w, _ := capiStory(t, cp, "MachineDeployment")
	ctx := context.Background()
	topology := map[string]any{"classRef": map[string]any{"name": "quick-start"}, "version": "v1.36.3", "workers": map[string]any{"machineDeployments": []any{
		map[string]any{"class": "default-worker", "name": "linux"}, map[string]any{"class": "default-worker", "name": "fixed", "replicas": int64(3)}}}}
	err := errors.Join(w.PutCluster(ctx, "classy", topology),
		w.PutDeployment(ctx, capi.Workers{Name: "linux", Cluster: "classy", Replicas: -1, Min: "2", Max: "5", Template: "template-workers", Labels: map[string]string{"topology.cluster.x-k8s.io/deployment-name": "linux"}}),
		w.PutDeployment(ctx, capi.Workers{Name: "fixed", Cluster: "classy", Replicas: 3, Min: "0", Max: "5", Template: "template-workers", Labels: map[string]string{"topology.cluster.x-k8s.io/deployment-name": "fixed"}}))
	if err != nil {
		t.Fatal(err)
	}
	p := w.connect(t, clusterapi.Config{AutoDiscovery: clusterapi.Discovery{"clusterapi:clusterName=classy,namespace=" + w.namespace}})
	g := readGroup(t, p, w.id("linux"))
	if g.Target != 0 || g.Min != 2 || g.Max != 5 || g.Stale != "" || g.Paused != "" {
		t.Errorf("replicas unset: %+v", g)
	}
	// Below its minimum it goes there in one step (kubernetes/autoscaler#4942).
	if err := p.Resize(ctx, w.id("linux"), 0, 2); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if g := readGroup(t, p, w.id("linux")); g.Target != 2 || len(g.Instances) != 2 {
		t.Errorf("after the first resize: %+v", g)
	}
	if g := readGroup(t, p, w.id("fixed")); !strings.Contains(g.Paused, "sets replicas of fixed to 3") || g.Pause == nil {
		t.Errorf("a topology that sets replicas: paused %q", g.Paused)
	}
}

// storyNamespaces: two namespaces by rules of their own; one that cannot be read does
// not hide the other.
func storyNamespaces(t *testing.T, cp *controlplane.ControlPlane) {
	a, _ := capiStory(t, cp, "MachineDeployment")
	b := newCAPIWorld(t, cp, "MachineDeployment", capi.Group, "v1beta2")
	b.suite(t)
	p := a.connect(t, clusterapi.Config{AutoDiscovery: clusterapi.Discovery{"clusterapi:namespace=" + a.namespace + ",clusterName=demo", "clusterapi:namespace=" + b.namespace + ",clusterName=demo"}})
	groups, err := p.Groups(context.Background())
	if err != nil || len(groups) != 4 {
		t.Errorf("%d groups of two namespaces, want 4: %v", len(groups), err)
	}
	a.proxy.Set("b", capi.Fault{Code: http.StatusInternalServerError, When: func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/"+b.namespace+"/") }})
	groups, err = p.Groups(context.Background())
	if len(groups) != 2 || err == nil || !strings.Contains(err.Error(), b.namespace) {
		t.Errorf("%d groups while one namespace is broken, want 2 and an error that names it: %v", len(groups), err)
	}
}

// storyPaused: the annotation on the object, and spec.paused of its Cluster.
func storyPaused(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	id := w.id("workers")
	for _, c := range []struct{ resource, name, on, off, words string }{
		{"machinedeployments", "workers", `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`, "cluster.x-k8s.io/paused"},
		{"clusters", "demo", `{"spec":{"paused":true}}`, `{"spec":{"paused":null}}`, "Cluster demo is paused"},
	} {
		w.patch(t, c.resource, c.name, c.on)
		g := readGroup(t, p, id)
		if !strings.Contains(g.Paused, c.words) || g.Pause == nil {
			t.Errorf("%s: paused %q", c.name, g.Paused)
		}
		wantKind(t, p.Delete(context.Background(), id, w.Alive("workers")[0]), provider.Conflict, c.words)
		w.patch(t, c.resource, c.name, c.off)
		if g := readGroup(t, p, id); g.Paused != "" || g.Pause != nil {
			t.Errorf("%s: paused %q after all", c.name, g.Paused)
		}
	}
}

// storyForeignMark: a mark that somebody else left would send another machine away.
func storyForeignMark(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineSet")
	ctx, alive := context.Background(), w.Alive("workers")
	for _, key := range []string{"cluster.x-k8s.io/delete-machine", "cluster.k8s.io/delete-machine"} {
		w.patch(t, "machines", machineOf(alive[1]), `{"metadata":{"annotations":{"`+key+`":"yes"}}}`)
		wantKind(t, p.Delete(ctx, w.id("workers"), alive[0]), provider.Conflict, machineOf(alive[1]))
		if g := readGroup(t, p, w.id("workers")); g.Target != 2 || g.Instances[0].Phase != cluster.PhaseRunning || g.Instances[1].Phase != cluster.PhaseRunning {
			t.Errorf("%s: %+v", key, g)
		}
		w.patch(t, "machines", machineOf(alive[1]), `{"metadata":{"annotations":{"`+key+`":null}}}`)
	}
	// The marked machine itself may go.
	w.patch(t, "machines", machineOf(alive[1]), `{"metadata":{"annotations":{"cluster.x-k8s.io/delete-machine":"yes"}}}`)
	if err := p.Delete(ctx, w.id("workers"), alive[1]); err != nil {
		t.Error(err)
	}
	w.settle(t)
	if got := w.Alive("workers"); !slices.Equal(got, alive[:1]) || w.Target("workers") != 1 {
		t.Errorf("alive %v, target %d", got, w.Target("workers"))
	}
}

// storyCrash: a mark of ours for which the count never fell is taken away before
// another machine is ended, and does not make its machine look as if it went.
func storyCrash(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	ctx, alive := context.Background(), w.Alive("workers")
	w.patch(t, "machines", machineOf(alive[1]), `{"metadata":{"annotations":{"cluster.x-k8s.io/delete-machine":"autoscaler-agent 2026-01-01T00:00:00Z"}}}`)
	for _, i := range readGroup(t, p, w.id("workers")).Instances {
		if i.Phase != cluster.PhaseRunning {
			t.Errorf("%s is %s", i.ID, i.Phase)
		}
	}
	if err := p.Delete(ctx, w.id("workers"), alive[0]); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if got := w.Alive("workers"); !slices.Equal(got, alive[1:]) {
		t.Errorf("alive %v, want %v", got, alive[1:])
	}
	m, err := w.Resource("machines").Get(ctx, machineOf(alive[1]), metav1.GetOptions{})
	if err != nil || m.GetAnnotations()["cluster.x-k8s.io/delete-machine"] != "" {
		t.Errorf("the old mark stands: %v %v", m.GetAnnotations(), err)
	}
}

// storyStatusWriters: controllers write status between the read and the write; that is
// no conflict. Replicas that somebody else set are one.
func storyStatusWriters(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	ctx, alive := context.Background(), w.Alive("workers")
	n := 0
	scaled := func(r *http.Request) bool { return r.Method == "PUT" && strings.HasSuffix(r.URL.Path, "/scale") }
	w.proxy.Set("writer", capi.Fault{When: scaled, Before: func() {
		if n++; n <= 3 {
			w.patch(t, "machinedeployments", "workers", fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, n))
		}
	}})
	if err := p.Resize(ctx, w.id("workers"), 2, 3); err != nil || n != 4 {
		t.Errorf("after %d writes: %v", n, err)
	}
	w.settle(t)
	n = 0
	if err := p.Delete(ctx, w.id("workers"), alive[0]); err != nil || n != 4 {
		t.Errorf("after %d writes: %v", n, err)
	}
	w.settle(t)
	w.proxy.Set("writer", capi.Fault{When: scaled, Before: func() { w.SetTarget("workers", 5) }})
	wantKind(t, p.Resize(ctx, w.id("workers"), 2, 3), provider.Conflict, "target is 5")
	w.settle(t)
	w.proxy.Set("writer", capi.Fault{When: scaled, Before: func() { w.SetTarget("workers", 6) }})
	victim := w.Alive("workers")[0]
	wantKind(t, p.Delete(ctx, w.id("workers"), victim), provider.Conflict, "target is 6")
	m, err := w.Resource("machines").Get(ctx, machineOf(victim), metav1.GetOptions{})
	if err != nil || len(m.GetAnnotations()) > 0 || m.GetDeletionTimestamp() != nil {
		t.Errorf("a refused deletion leaves %v: %v", m.GetAnnotations(), err)
	}
}

// storyLostAnswer: the count fell and the answer was lost. The mark stays, so that the
// count ends the right machine, and the next Delete lowers nothing more.
func storyLostAnswer(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	ctx, alive := context.Background(), w.Alive("workers")
	w.Freeze(true)
	w.proxy.Set("lost", capi.Fault{Code: http.StatusGatewayTimeout, After: true, When: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/scale") }})
	wantKind(t, p.Delete(ctx, w.id("workers"), alive[0]), provider.Transient, "")
	w.proxy.Clear("lost")
	for _, i := range readGroup(t, p, w.id("workers")).Instances {
		if going := i.Phase == cluster.PhaseDeleting; going != (i.ID == alive[0]) {
			t.Errorf("%s is %s", i.ID, i.Phase)
		}
	}
	if err := p.Delete(ctx, w.id("workers"), alive[0]); err != nil {
		t.Error(err)
	}
	w.Freeze(false)
	w.settle(t)
	if got := w.Alive("workers"); !slices.Equal(got, alive[1:]) || w.Target("workers") != 1 {
		t.Errorf("alive %v, target %d", got, w.Target("workers"))
	}
}

// storyOldRights: with the rights that Cluster Autoscaler has, Machines cannot be
// deleted; the mark and the count do it, one machine or several.
func storyOldRights(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	ctx := context.Background()
	role := w.role.DeepCopy()
	role.Rules[1].Verbs = []string{"list", "patch"}
	if _, err := cp.Client().RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitRight(t, "delete", false)
	if err := p.Resize(ctx, w.id("workers"), 2, 6); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	alive := w.Alive("workers")
	if err := p.Delete(ctx, w.id("workers"), alive[1], alive[3], alive[4]); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if got, want := w.Alive("workers"), []cluster.InstanceID{alive[0], alive[2], alive[5]}; !slices.Equal(got, want) {
		t.Errorf("alive %v, want %v", got, want)
	}
	// A machine that somebody else deletes counts until it is gone: another deletion
	// would be swallowed, and is refused.
	w.Freeze(true)
	w.Kill(alive[0])
	wantKind(t, p.Delete(ctx, w.id("workers"), alive[2]), provider.Conflict, "allow delete on machines")
	w.Freeze(false)
}

// storyUnmade: Machines that their controller has not made yet do not take the named
// one's place.
func storyUnmade(t *testing.T, cp *controlplane.ControlPlane) {
	w, p := capiStory(t, cp, "MachineDeployment")
	ctx, alive := context.Background(), w.Alive("workers")
	w.Freeze(true)
	if err := errors.Join(p.Resize(ctx, w.id("workers"), 2, 5), p.Delete(ctx, w.id("workers"), alive[0])); err != nil {
		t.Fatal(err)
	}
	w.Freeze(false)
	w.settle(t)
	if got := w.Alive("workers"); len(got) != 4 || slices.Contains(got, alive[0]) || !slices.Contains(got, alive[1]) || w.Target("workers") != 4 {
		t.Errorf("alive %v, target %d", got, w.Target("workers"))
	}
	// What has not come is taken back, and no machine goes for it.
	w.Freeze(true)
	if err := p.Resize(ctx, w.id("workers"), 4, 9); err != nil {
		t.Fatal(err)
	}
	wantKind(t, p.Resize(ctx, w.id("workers"), 9, 3), provider.Invalid, "4 instances")
	if err := p.Resize(ctx, w.id("workers"), 9, 4); err != nil {
		t.Error(err)
	}
	w.Freeze(false)
}
