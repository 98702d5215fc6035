package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/capi"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	core "github.com/autoscaler-agent/autoscaler-agent/test/suite/clusterapi"
)

// TestClusterAPICore runs the suite, and the stories that need no stopped controllers,
// against Cluster API's own core manager: only the infrastructure provider is emulated.
func TestClusterAPICore(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_CLUSTERAPI") != "1" {
		t.Skip("Cluster API's core manager takes minutes to build: make e2e-clusterapi runs this")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	manager, err := core.Build(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	cp := controlplane.ForTest(t, controlplane.Options{Fast: true})
	c, err := core.Start(ctx, cp, manager, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last lines of the core manager:\n%s", c.Tail(40))
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := capi.Install(ctx, cp.RESTConfig(), capi.Group, ""); err != nil {
		t.Fatal(err)
	}
	realCores.Store(cp, true)
	t.Run("ZeroToSixToZero", func(t *testing.T) { storyZero(t, cp) })
	for _, kind := range []string{"MachineDeployment", "MachineSet"} {
		t.Run(kind, func(t *testing.T) {
			suite := providertest.Suite{
				New: func(t testing.TB) (provider.Provider, providertest.World) {
					w := newCAPIWorld(t, cp, kind, capi.Group, "v1beta2")
					w.suite(t)
					return w.renamed(w.connect(t, clusterapi.Config{ClusterName: "demo", Namespace: w.namespace})), w
				},
				Settle: func(t testing.TB, w providertest.World) { w.(*capiWorld).settle(t) },
				Cannot: capiCannot,
			}
			if kind == "MachineDeployment" || os.Getenv("AUTOSCALER_TEST_NO_SKIP") == "1" {
				suite.Run(t)
				return
			}
			for _, name := range inShort {
				for _, complaint := range suite.Fails(t, name) {
					t.Errorf("%s: %s", name, complaint)
				}
			}
		})
	}
	for _, name := range []string{"Rollout", "SeveralNamespaces", "Paused", "ForeignMark", "MarkOfACrash", "StatusWritersDoNotConflict", "RightsOfClusterAutoscaler",
		"Version", "NoClusterAPI", "ACheapRead", "CutAnswer", "BelowMinimum"} {
		t.Run(name, func(t *testing.T) { capiStories[name](t, cp) })
	}
}

// storyZero: nothing, six machines, two that were chosen go and no others, and nothing
// again. The mark stands on the chosen ones before the count falls.
func storyZero(t *testing.T, cp *controlplane.ControlPlane) {
	w := newCAPIWorld(t, cp, "MachineDeployment", capi.Group, "v1beta2")
	ctx := t.Context()
	status := map[string]any{"capacity": map[string]any{"cpu": "4", "memory": "16Gi"}}
	if err := errors.Join(w.PutCluster(ctx, "demo", nil), w.PutTemplate(ctx, "template", "m1.large", status),
		w.PutDeployment(ctx, capi.Workers{Name: "workers", Cluster: "demo", Min: "0", Max: "10", Template: "template"})); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	p := w.connect(t, clusterapi.Config{ClusterName: "demo", Namespace: w.namespace})
	id := w.id("workers")
	if g := readGroup(t, p, id); g.Target != 0 || len(g.Instances) != 0 || g.Template.Capacity.MilliCPU != 4000 || g.Paused != "" {
		t.Errorf("at zero: %+v", g)
	}
	began := time.Now()
	if err := p.Resize(ctx, id, 0, 6); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	t.Logf("0 to 6 in %s", time.Since(began).Round(time.Millisecond))
	g := readGroup(t, p, id)
	for _, i := range g.Instances {
		if i.Phase != cluster.PhaseRunning || len(i.NodeNames) == 0 || i.Failure != nil {
			t.Errorf("%+v", i)
		}
	}
	alive := w.Alive("workers")
	order := w.orderOf(t, "workers")
	began = time.Now()
	chosen := []cluster.InstanceID{alive[1], alive[4]}
	if err := p.Delete(ctx, id, chosen...); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	t.Logf("2 of 6 gone in %s", time.Since(began).Round(time.Millisecond))
	if got, want := w.Alive("workers"), []cluster.InstanceID{alive[0], alive[2], alive[3], alive[5]}; !slices.Equal(got, want) || w.Target("workers") != 4 {
		t.Errorf("alive %v, want %v; target %d", got, want, w.Target("workers"))
	}
	order(machineOf(chosen[0]), machineOf(chosen[1]))
	if err := p.Delete(ctx, id, w.Alive("workers")...); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	w.nothingLeft(t)
}

// orderOf watches from now on; the function that it returns wants the marks of the
// named Machines to be older than the fall of the count.
func (w *capiWorld) orderOf(t *testing.T, group string) func(machines ...string) {
	t.Helper()
	ctx := t.Context()
	machines, err := w.Resource("machines").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := w.Resource(w.resource()).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// first is the resource version of the first event that fits.
	first := func(in watch.Interface, what string, fits func(*unstructured.Unstructured) bool) int64 {
		deadline := time.After(await.Limit)
		for {
			select {
			case e, open := <-in.ResultChan():
				u, ok := e.Object.(*unstructured.Unstructured)
				if !open {
					t.Fatalf("the watch ended before %s", what)
				}
				if ok && fits(u) {
					n, err := strconv.ParseInt(u.GetResourceVersion(), 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					return n
				}
			case <-deadline:
				t.Fatalf("%s was not seen", what)
			}
		}
	}
	was := w.Target(cluster.GroupID(group))
	return func(names ...string) {
		defer machines.Stop()
		defer groups.Stop()
		fell := first(groups, "the fall of the count", func(u *unstructured.Unstructured) bool {
			n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
			return u.GetName() == group && int(n) < was
		})
		marked := map[string]int64{}
		for len(marked) < len(names) {
			first(machines, "a mark", func(u *unstructured.Unstructured) bool {
				_, ok := u.GetAnnotations()["cluster.x-k8s.io/delete-machine"]
				if !ok || marked[u.GetName()] != 0 {
					return false
				}
				marked[u.GetName()], err = strconv.ParseInt(u.GetResourceVersion(), 10, 64)
				return true
			})
		}
		for _, name := range names {
			if marked[name] == 0 || marked[name] > fell {
				t.Errorf("Machine %s was marked at %d, and the count fell at %d", name, marked[name], fell)
			}
		}
	}
}

// nothingLeft wants no Machine, no instance and no Node of this world.
func (w *capiWorld) nothingLeft(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		machines, err := w.Resource("machines").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(machines.Items) > 0 {
			return fmt.Errorf("%d Machines: %w", len(machines.Items), err)
		}
		for _, i := range w.Instances() {
			if i.Alive {
				return fmt.Errorf("instance %s", i.ProviderID)
			}
			if _, err := w.cp.Client().CoreV1().Nodes().Get(t.Context(), i.Machine, metav1.GetOptions{}); err == nil {
				return fmt.Errorf("node %s", i.Machine)
			}
		}
		return nil
	})
}
