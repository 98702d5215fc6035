package provider_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/magnum"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// TestMagnumChaos does random things under random faults, by a fixed seed or by
// AUTOSCALER_TEST_SEED, and holds what must never happen: a machine that ends without
// having been named, a count outside the bounds, a resize while Magnum is busy, an error
// of no kind.
func TestMagnumChaos(t *testing.T) {
	seed := uint64(7)
	if s := os.Getenv("AUTOSCALER_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for name, driver := range magnums {
		for _, readable := range []bool{true, false} {
			if !readable && driver != openstack.HeatDriver {
				continue
			}
			t.Run(name+" heat "+strconv.FormatBool(readable), func(t *testing.T) {
				t.Logf("seed %d (another with AUTOSCALER_TEST_SEED)", seed)
				w := newMagnum(t, openstack.MagnumCluster{Driver: driver})
				w.Heal(k8s, false)
				w.ForbidHeat(!readable)
				c := &magnumChaos{T: t, w: w, p: w.connect(t, byRole), r: rand.New(rand.NewPCG(seed, 1)), known: map[cluster.InstanceID]bool{}, named: map[cluster.InstanceID]bool{}}
				for range 60 {
					c.step()
				}
				w.ClearFaults()
				w.settle(t)
				c.look()
				if m, _ := w.MagnumClusterNamed(k8s); m.Lost != 0 {
					t.Errorf("%d resizes came while Magnum was busy", m.Lost)
				}
				t.Logf("%d machines came, %d were named, %d are alive", len(c.known), len(c.named), len(w.Alive(workers)))
			})
		}
	}
}

var openStackFaults = []openstack.Kind{openstack.Throttle, openstack.ServerError500, openstack.Unavailable503, openstack.BadGateway502, openstack.Forbidden,
	openstack.Unauthorized, openstack.ConnectionReset, openstack.EmptyList, openstack.AnswerLost}

// magnumChaos is a random game against the group workers, and what it knows of it.
type magnumChaos struct {
	*testing.T
	w            *magnumWorld
	p            *magnum.Provider
	r            *rand.Rand
	steps        []string
	did          string
	known, named map[cluster.InstanceID]bool // machines seen, machines that were named or killed
}

// look holds that only what was named has ended.
func (c *magnumChaos) look() {
	c.Helper()
	alive := c.w.Alive(workers)
	for _, id := range alive {
		// One that has not built yet may fail to, and Heat replaces it then.
		if s, _ := c.w.Server(uuidOf(id)); s.Status == "ACTIVE" {
			c.known[id] = true
		}
	}
	for id := range c.known {
		if s, ok := c.w.Server(uuidOf(id)); !c.named[id] && (!ok || s.TaskState == "deleting") {
			c.Fatalf("%s ended and nobody had named it; the last steps were %q", id, c.steps[max(0, len(c.steps)-4):])
		}
	}
}

func (c *magnumChaos) step() {
	c.look()
	c.w.ClearFaults()
	if c.r.IntN(3) > 0 {
		c.w.Inject(openstack.Fault{Kind: openStackFaults[c.r.IntN(len(openStackFaults))], After: c.r.IntN(8), Times: 1 + c.r.IntN(3)})
	}
	switch c.r.IntN(8) {
	case 0:
		c.w.NoValidHost("*", "*")
	case 1:
		c.w.SetQuota(openstack.Quota{Instances: 4 + c.r.IntN(6), Cores: -1, RAM: -1, Ports: -1, FloatingIPs: -1})
	case 2:
		c.w.Space()
		c.w.SetQuota(openstack.Quota{Instances: -1, Cores: -1, RAM: -1, Ports: -1, FloatingIPs: -1})
	case 3:
		if alive := c.w.Alive(workers); len(alive) > 0 && c.w.MagnumBusy() == "" {
			victim := alive[c.r.IntN(len(alive))]
			c.named[victim] = true
			c.w.Kill(victim)
		}
	}
	err := c.act()
	c.steps = append(c.steps, fmt.Sprintf("%s: %v", c.did, err))
	if err != nil && len(provider.Errors(err)) == 0 {
		c.Errorf("an error of no kind: %v", err)
	}
	if n := c.w.Target(workers); n < 0 || n > 10 {
		c.Fatalf("count %d is outside the bounds", n)
	}
	if c.r.IntN(3) > 0 {
		c.w.settle(c)
	}
}

func (c *magnumChaos) act() error {
	list, err := c.p.Groups(ctx)
	at := slices.IndexFunc(list, func(g cluster.NodeGroup) bool { return g.ID == workers })
	if at < 0 {
		return err
	}
	g := list[at]
	c.did = fmt.Sprintf("target %d, %d instances, resize", g.Target, len(g.Instances))
	switch c.r.IntN(3) {
	case 0:
		return c.p.Resize(ctx, workers, g.Target, c.r.IntN(13)-1)
	case 1:
		return c.p.Resize(ctx, workers, g.Target, g.Target+1+c.r.IntN(3))
	}
	var ids []cluster.InstanceID
	for _, in := range g.Instances {
		if c.r.IntN(3) == 0 {
			c.named[in.ID] = true
			ids = append(ids, in.ID)
		}
	}
	c.did = fmt.Sprintf("target %d, %d instances, delete %d", g.Target, len(g.Instances), len(ids))
	return c.p.Delete(ctx, workers, ids...)
}
