package scaleup

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/purchase"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

var patienceNow = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// held is a round with a group of machines of two cores and pods of half a core that have waited so long, five minutes after a machine was bought
// that was little filled. It decides with a patience of two minutes, and returns for how long the machine is held, how many pods wait for it, and
// how many machines are bought.
type held struct {
	s cluster.Snapshot
	m decision.Memory
}

func newHeld(ages ...time.Duration) *held {
	machine := cluster.Resources{MilliCPU: 2000, Memory: 8 << 30, Pods: 110}
	h := &held{m: decision.Memory{LittleFilled: patienceNow.Add(-5 * time.Minute)}, s: cluster.Snapshot{Now: patienceNow,
		Groups:  []cluster.NodeGroup{{ID: "workers", Max: 10, ReadAt: patienceNow, Price: 0.1, Template: cluster.Template{Spec: "m", Capacity: machine, Allocatable: machine}}},
		Classes: []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{MilliCPU: 500, Memory: 1 << 30, Pods: 1}}}}}
	for i, age := range ages {
		h.s.Pods = append(h.s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprint("default/web-", i)), Created: cluster.At(patienceNow.Add(-age)), Unschedulable: cluster.At(patienceNow)})
	}
	return h
}

func (h *held) decide() (wait time.Duration, pods, machines int) {
	w := round.New(new(round.Cache), &h.s, &h.m, &decision.Policy{Patience: 2 * time.Minute, UnneededFor: 10 * time.Minute, MaxNodeProvisionTime: 15 * time.Minute})
	w.Remember()
	w.Index()
	w.Account()
	growth.Judge(w)
	w.Gather()
	p := purchase.New(w)
	a := p.Solve()
	for _, x := range holdMachines(p, a) {
		pods += x.Pods
	}
	if wake := w.Plan.Wake; pods > 0 {
		wait = wake.Sub(patienceNow)
	}
	return wait, pods, a.Bought()
}

// TestHoldMachines: for how long a machine is held, worked out by hand: the share that stays empty of two minutes, less what its pods have
// waited, by the number of pods.
func TestHoldMachines(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		round          func() *held
		wait           time.Duration
		pods, machines int
	}{
		"one pod of a quarter of a machine":       {func() *held { return newHeld(0) }, 90 * s, 1, 0},
		"two of them":                             {func() *held { return newHeld(0, 0) }, 30 * s, 2, 0},
		"two, of which one has waited":            {func() *held { return newHeld(0, 40*s) }, 10 * s, 2, 0},
		"two that have waited as long":            {func() *held { return newHeld(20*s, 40*s) }, 0, 0, 1},
		"a full machine":                          {func() *held { return newHeld(0, 0, 0, 0) }, 0, 0, 1},
		"three on a machine, two on another":      {func() *held { return newHeld(0, 0, 0, 0, 0) }, 10 * s, 5, 0}, // as kube-scheduler spreads them: 30 s of three pods
		"a clock that is behind the API server's": {func() *held { return newHeld(-time.Hour) }, 90 * s, 1, 0},
		"no price": {func() *held { return newHeld(0).group(func(g *cluster.NodeGroup) { g.Price = 0 }) }, 90 * s, 1, 0},
		"a machine at twice the price of the cheapest one":         {func() *held { return newHeld(0, 0).beside(0.05) }, 60 * s, 2, 0},
		"at ten times the price a pod waits for two minutes":       {func() *held { return newHeld(0, 30*s).beside(0.01) }, 90 * s, 2, 0},
		"pods of the system's own priority":                        {func() *held { return newHeld(0).class(func(c *cluster.PodClass) { c.Priority = 2_000_000_000 }) }, 0, 0, 1},
		"the machine of an earlier order is missing":               {func() *held { return newHeld(85*s, 85*s).ordered() }, 0, 0, 1},
		"a limit leaves a pod that would take the machine's place": {func() *held { return newHeld(0, 0).large().group(func(g *cluster.NodeGroup) { g.Max = 1 }) }, 0, 0, 1},
		"no limit leaves a pod":                                    {func() *held { return newHeld(0, 0).large() }, 48 * s, 2, 0},
		"pods that are to be made have not waited":                 {func() *held { return newHeld(20 * s).missing(1) }, 40 * s, 2, 0},
		"no machine was little filled":                             {func() *held { return newHeld(0).filled(-1000 * time.Hour) }, 0, 0, 1},
		"the last one is too long ago":                             {func() *held { return newHeld(0).filled(-10 * time.Minute) }, 0, 0, 1},
		"the wait ends with its time":                              {func() *held { return newHeld(0).filled(-9 * time.Minute) }, 60 * s, 1, 0},
	} {
		if wait, pods, machines := c.round().decide(); wait != c.wait || pods != c.pods || machines != c.machines {
			t.Errorf("%s: %d pods wait for %s, and %d machines are bought; by hand %d, %s, %d", name, pods, wait, machines, c.pods, c.wait, c.machines)
		}
	}
}

// TestUntilIsAMoment: however much later the same pods are looked at, their machine is held until the same moment; the Engine gives such an
// answer again without working it out.
func TestUntilIsAMoment(t *testing.T) {
	for name, of := range map[string]func() *held{
		"two pods":                func() *held { return newHeld(0, 40*time.Second) },
		"one that is to be made":  func() *held { return newHeld(20 * time.Second).missing(1) },
		"part of a second is due": func() *held { return newHeld(0, 0).beside(0.0700001) },
	} {
		first, _, _ := of().decide()
		for _, later := range []time.Duration{time.Millisecond, 700 * time.Millisecond, time.Second, 1900 * time.Millisecond, 7 * time.Second} {
			h := of()
			h.s.Now = patienceNow.Add(later)
			if wait, pods, _ := h.decide(); wait != first || pods == 0 {
				t.Errorf("%s: until %s, and %s later until %s", name, first, later, wait)
			}
		}
	}
}

// large makes the pods so large that a machine takes one, and is 60 % full.
func (h *held) large() *held {
	return h.class(func(c *cluster.PodClass) { c.Requests.MilliCPU = 1200 })
}

func (h *held) group(change func(g *cluster.NodeGroup)) *held {
	change(&h.s.Groups[0])
	return h
}

func (h *held) class(change func(g *cluster.PodClass)) *held {
	change(&h.s.Classes[0])
	return h
}

func (h *held) filled(ago time.Duration) *held {
	h.m.LittleFilled = patienceNow.Add(ago)
	return h
}

// beside adds a cheaper group whose machines are too small.
func (h *held) beside(price float64) *held {
	small := h.s.Groups[0]
	small.ID, small.Price, small.Template.Allocatable = "small", price, cluster.Resources{MilliCPU: 100, Memory: 1 << 30, Pods: 110}
	h.s.Groups = append(h.s.Groups, small)
	return h
}

// ordered says that a machine was ordered for all pods, which the cloud does not have.
func (h *held) ordered() *held {
	r := decision.Reservation{Group: "workers"}
	for i := range h.s.Pods {
		r.Pods = append(r.Pods, h.s.Pods[i].Key)
	}
	h.m.Reservations = decision.Reservations{r}
	return h
}

// missing says that the pods are of a controller that has still to make some.
func (h *held) missing(n int) *held {
	o := cluster.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}
	for i := range h.s.Pods {
		h.s.Pods[i].Owner = &o
	}
	h.s.Controllers = append(h.s.Controllers, cluster.Controller{Owner: o, Missing: n})
	return h
}
