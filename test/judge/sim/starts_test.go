package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestLateStartsBuyNothingMore: 100 drawn mixes of taints that pass, and of labels and devices that come,
// within 90 seconds, on machines of groups of which settled nodes are there: never more machines than
// in the same world without them, and every pod runs in the end.
func TestLateStartsBuyNothingMore(t *testing.T) {
	more := 0
	for seed := uint64(1); seed <= 100; seed++ {
		plain, late := lateWorld(t, seed, false), lateWorld(t, seed, true)
		if late.Machines > plain.Machines {
			t.Errorf("seed %d: %d machines, %d without late starts: %+v", seed, late.Machines, plain.Machines, mixOf(seed))
		}
		if late.stillWaiting > 0 || plain.stillWaiting > 0 {
			t.Errorf("seed %d: %d pods have no node in the end, %d without late starts: %+v", seed, late.stillWaiting, plain.stillWaiting, mixOf(seed))
		}
		more += plain.Machines
	}
	if more < 300 {
		t.Errorf("%d machines in 100 worlds: they ask for too little", more)
	}
}

// mix is what is late in one world.
type mix struct {
	taints  []lateTaintOf
	label   time.Duration
	devices time.Duration
	parts   []int64
	restart time.Duration
}

type lateTaintOf struct {
	key, effect  string
	lasts, comes time.Duration
}

// mixOf draws a mix. At least one thing is late.
func mixOf(seed uint64) (m mix) {
	r := rand.New(rand.NewPCG(seed, 0x1a7e))
	some := func() time.Duration { return time.Duration(r.Int64N(int64(90*time.Second))) + 1 }
	for i := range r.IntN(3) {
		x := lateTaintOf{key: fmt.Sprintf("agent-%d.example.com/not-ready", i), effect: []string{"NoSchedule", "NoExecute"}[r.IntN(2)], lasts: some()}
		if r.IntN(3) == 0 {
			x.comes = time.Duration(r.Int64N(int64(3 * time.Second)))
		}
		m.taints = append(m.taints, x)
	}
	if r.IntN(2) == 0 {
		m.label = some()
	}
	if r.IntN(2) == 0 || len(m.taints) == 0 && m.label == 0 {
		m.devices, m.parts = some(), [][]int64{{-1}, {0}, {0, 2}, {1, 2, 3}}[r.IntN(4)]
	}
	if r.IntN(4) == 0 {
		m.restart = 2 * time.Minute
	}
	return m
}

// lateWorld plays an hour of a world: services that need nothing, a label or devices grow step by step.
// Their pods have one size, four to a machine, so that it makes no difference to the machines that are
// needed which pods kube-scheduler binds first where some can be bound before the others.
func lateWorld(t *testing.T, seed uint64, late bool) Report {
	t.Helper()
	policy, err := Defaults()
	if err != nil {
		t.Fatal(err)
	}
	policy.ScaleDown = false
	m := mixOf(seed)
	report, err := run(Options{Seed: seed, Length: time.Hour, Policy: &policy, ByAge: true, Restart: m.restart}, func(w *world) {
		w.pool("gpu", 8, 32, 0.5, 0, 20, func(p *pool) {
			p.Template.Labels["gpu.product"] = "T4"
			devices := map[string]int64{"example.com/gpu": 4}
			p.Template.Capacity.Extended, p.Template.Allocatable.Extended = devices, devices
		})
		w.starts = newStarts(seed, policy.MaxNodeProvisionTime)
		if late {
			for _, x := range m.taints {
				w.starts.after = append(w.starts.after, lateTaint(x.key, x.effect, x.lasts, x.comes))
			}
			if m.label > 0 {
				w.starts.after = append(w.starts.after, lateLabel("gpu.product", m.label))
			}
			if m.devices > 0 {
				w.starts.after = append(w.starts.after, lateDevices("example.com/gpu", m.parts, m.devices))
			}
		}
		steps := rand.New(rand.NewPCG(seed, 0x57e9))
		var services []*service
		services = append(services, w.deployment("plain", 1900, 512, nil),
			w.deployment("label", 1900, 512, func(c *cluster.PodClass, _ *service) { c.NodeSelector = map[string]string{"gpu.product": "T4"} }),
			w.deployment("devices", 1900, 512, func(c *cluster.PodClass, _ *service) { c.Requests.Extended = map[string]int64{"example.com/gpu": 1} }))
		sizes := make([]int, len(services))
		for step := range 4 {
			at := time.Duration(step) * 12 * time.Minute
			for i, s := range services {
				sizes[i] += steps.IntN(4)
				if step == 0 {
					sizes[i]++
				}
				to := sizes[i]
				w.after(at+time.Duration(steps.Int64N(int64(2*time.Second))), func() { w.scale(s, to) })
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}
