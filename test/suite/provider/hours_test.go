package provider_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/magnum"
	memory "github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	plugin "github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// The fleet whose reads are counted.
const (
	hourGroups   = 20
	hourMachines = 5
)

func hourName(n int) string { return fmt.Sprintf("group-%02d", n) }

// hourWorld is a cloud with such a fleet.
type hourWorld struct {
	read  provider.Provider
	count func() int // requests so far
}

// TestRequestsOfAnHour: what an hour of following 20 groups of five machines costs at rest, and
// while all of them wait for machines. A read of all groups and one of one group are counted
// on the wire, with and without what a provider may repeat; then the agent's own inventory is
// played for an hour of simulated time, in which each read costs that. AWS is counted call by
// call (TestCallsInAnHour of agent/provider/asg), Cluster API in its story ACheapRead.
func TestRequestsOfAnHour(t *testing.T) {
	for name, c := range map[string]struct {
		world      func(*testing.T) hourWorld
		rest, fast int
	}{
		"nova":         {novaHour, 300, 3700},
		"magnum":       {magnumHour, 850, 5500},
		"externalgrpc": {pluginHour, 3900, 5500},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world(t)
			for range 2 { // what is asked for once is known then
				if _, err := w.read.Groups(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			repeat := provider.WithRepeated(t.Context(), time.Hour)
			cost := hourCosts{anew: w.cost(t, t.Context()), whole: w.cost(t, repeat),
				someAnew: w.cost(t, provider.WithOnly(t.Context(), hourIDs())), some: w.cost(t, provider.WithOnly(repeat, hourIDs()))}
			one := w.cost(t, provider.WithOnly(repeat, []cluster.GroupID{cluster.GroupID(hourName(0))}))
			rest, fast := hourOf(t, cost, false), hourOf(t, cost, true)
			t.Logf("a read of all groups costs %d requests, with repeated facts %d, of one group %d, of all as waiting ones %d and %d; an hour %d at rest, %d while all wait", cost.anew, cost.whole, one, cost.someAnew, cost.some, rest, fast)
			if rest > c.rest || fast > c.fast {
				t.Errorf("%d and %d requests an hour, at most %d and %d wanted", rest, fast, c.rest, c.fast)
			}
		})
	}
}

func hourIDs() []cluster.GroupID {
	var out []cluster.GroupID
	for n := range hourGroups {
		out = append(out, cluster.GroupID(hourName(n)))
	}
	return out
}

// cost is how many requests a read makes.
func (w hourWorld) cost(t *testing.T, ctx context.Context) int {
	t.Helper()
	before := w.count()
	groups, err := w.read.Groups(ctx)
	if err != nil || len(groups) == 0 || len(groups[0].Instances) != hourMachines {
		t.Fatalf("%d groups, %+v, %v", len(groups), groups, err)
	}
	return w.count() - before
}

// hourCosts are the requests of reads: of all groups, and of all as waiting ones; anew, and with
// what may be repeated.
type hourCosts struct{ anew, whole, someAnew, some int }

// hourCloud is a cloud whose reads cost what was counted.
type hourCloud struct {
	provider.Provider
	cost hourCosts

	mu       sync.Mutex
	anew     time.Time // when everything was last read anew
	requests int64
}

func (c *hourCloud) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	repeats := time.Since(c.anew) < provider.Repeated(ctx)
	if !repeats {
		c.anew = time.Now()
	}
	cost, only := c.cost.anew, provider.Only(ctx)
	switch {
	case only == nil && repeats:
		cost = c.cost.whole
	case only != nil && repeats:
		cost = c.cost.some
	case only != nil:
		cost = c.cost.someAnew
	}
	if only == nil {
		only = hourIDs()
	}
	c.requests += int64(cost)
	var out []cluster.NodeGroup
	for _, id := range only {
		out = append(out, cluster.NodeGroup{ID: id, ReadAt: time.Now()})
	}
	return out, nil
}

func (c *hourCloud) made() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// hourOf is what an hour costs with the agent's default periods, the first minutes aside.
func hourOf(t *testing.T, cost hourCosts, waiting bool) (n int) {
	synctest.Test(t, func(t *testing.T) {
		c := &hourCloud{cost: cost}
		log := logrus.New()
		log.SetOutput(io.Discard)
		i := inventory.New(c, 2*time.Second, 30*time.Second, 25*time.Second, log.WithField("service", "test"))
		i.Requests = c.made
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx, func() {}) }()
		if waiting {
			w := inventory.Waiting{Groups: map[cluster.GroupID]time.Time{}}
			for _, id := range hourIDs() {
				w.Groups[id] = time.Time{}
			}
			i.SetWaiting(w)
		}
		time.Sleep(5 * time.Minute)
		before := c.made()
		time.Sleep(time.Hour)
		n = int(c.made() - before)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return n
}

// novaHour has its groups in one region.
func novaHour(t *testing.T) hourWorld {
	w := newNova(t, openstack.Options{Regions: []string{"RegionOne"}})
	one := w.groups[string(providertest.Workers)]
	w.groups = map[string]map[string]any{}
	for n := range hourGroups {
		g := maps.Clone(one)
		g["name"] = hourName(n)
		w.groups[hourName(n)] = g
	}
	w.extra["clouds"] = []any{map[string]any{"name": "one", "region": "RegionOne"}}
	p := w.connect(t)
	for _, id := range hourIDs() {
		if err := p.Resize(t.Context(), id, 0, hourMachines); err != nil {
			t.Fatal(err)
		}
	}
	w.settle(t)
	return hourWorld{w.connect(t), func() int { return len(w.Calls()) }}
}

// magnumHour has its groups in one cluster.
func magnumHour(t *testing.T) hourWorld {
	w := newMagnum(t, openstack.MagnumCluster{Driver: openstack.HeatDriver})
	var groups []openstack.NodeGroup
	for n := range hourGroups {
		groups = append(groups, openstack.NodeGroup{Name: hourName(n), Flavor: "m1.large", Count: hourMachines, Min: 0, Max: 10, Default: n == 0})
	}
	if _, err := w.PutCluster(openstack.MagnumCluster{Name: "large", Driver: openstack.HeatDriver}, groups...); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	return hourWorld{w.connect(t, magnum.Config{Cluster: "large", AutoDiscovery: byRole.AutoDiscovery}), func() int { return len(w.Calls()) }}
}

func pluginHour(t *testing.T) hourWorld {
	cloud := memory.New(time.Now())
	for _, id := range hourIDs() {
		size := cluster.Resources{MilliCPU: 2000, Memory: 8 << 30, Pods: 110}
		cloud.AddGroup(cluster.NodeGroup{ID: id, Max: 10, Target: hourMachines, Template: cluster.Template{Spec: "s", Capacity: size, Allocatable: size}})
	}
	cloud.Step(0)
	cloud.Step(cloud.Boot)
	server, err := plugin.Start(plugin.Options{Cloud: cloud})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	p := connectPlugin(t, externalgrpc.Config{Address: server.Address(), Insecure: true, Timeout: await.Limit})
	return hourWorld{p, func() int {
		n := 0
		for _, times := range server.Counts() {
			n += times
		}
		return n
	}}
}
