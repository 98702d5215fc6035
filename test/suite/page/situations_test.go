package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/trouble"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

var now = time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)

// world is a cluster with one node of one group, and three pods that have no room; edit makes a situation of it.
func world(edit func(s *cluster.Snapshot, g *cluster.NodeGroup, m *decision.Memory)) trouble.Facts {
	machine := cluster.Resources{MilliCPU: 4000, Memory: 16 << 30, Pods: 110}
	g := cluster.NodeGroup{ID: "workers", Max: 5, Target: 1, ReadAt: now, Template: cluster.Template{Spec: "v1", Capacity: machine, Allocatable: machine},
		Instances: []cluster.Instance{{ID: "aws:///a/i-1", Phase: cluster.PhaseRunning, Member: true, Created: now.Add(-time.Hour)}}}
	s := cluster.Snapshot{Now: now, Classes: []cluster.PodClass{{Namespace: "shop", Requests: cluster.Resources{MilliCPU: 3000, Pods: 1}}}, Nodes: []*cluster.Node{{Name: "n-1", ProviderID: "aws:///a/i-1", Created: now.Add(-time.Hour),
		Ready: cluster.StatusTrue, ReadySince: now.Add(-time.Hour), Capacity: machine, Allocatable: machine, Pods: []cluster.Pod{{Key: "shop/web-0", UID: "0", Node: "n-1", Owner: &cluster.Owner{Kind: "ReplicaSet", UID: "r"}}}}}}
	for i := 1; i <= 3; i++ {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("shop/web-%d", i)), UID: cluster.UID(fmt.Sprint(i)), Created: cluster.At(now.Add(-time.Minute)), Unschedulable: cluster.At(now.Add(-time.Minute))})
	}
	var m decision.Memory
	edit(&s, &g, &m)
	s.Groups = []cluster.NodeGroup{g}
	policy := decision.Policy{MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute, BackoffInitial: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour}
	p, next := plan.Decide(s, m, policy)
	return trouble.Facts{Now: now, Held: p.Held, Backoff: next.Backoff, Machines: fleet.Machines(&s, plan.Machines(s, next, policy, p), nil)}
}

// situations are what an operator finds at three in the morning: the facts, and what he has to read of cause and
// remedy.
var situations = []struct {
	name    string
	facts   trouble.Facts
	standby bool
	what    string
	cause   string
	remedy  string
}{
	{"pods that no group can serve", world(func(s *cluster.Snapshot, _ *cluster.NodeGroup, _ *decision.Memory) {
		s.Classes[0].Requests.MilliCPU = 64000
	}), false,
		"No node group can serve 3 pods", "Insufficient cpu", "offer a group with larger machines"},
	{"a group at its maximum", world(func(_ *cluster.Snapshot, g *cluster.NodeGroup, _ *decision.Memory) { g.Max = 1 }), false,
		"Group workers is at its limit, and 3 pods wait", "at its maximum of 1", "Raise the maximum in the cloud or in groups.yaml"},
	{"a cloud that refuses", world(func(_ *cluster.Snapshot, g *cluster.NodeGroup, _ *decision.Memory) {
		g.Failures = []cluster.Failure{{Cause: cluster.CauseQuota, Text: "VcpuLimitExceeded: you have requested more vCPU capacity than your limit of 32", At: now.Add(-time.Second)}}
	}), false, "The cloud refuses machines of group workers", "VcpuLimitExceeded", "Ask the cloud for a higher quota"},
	{"machines that never join", world(func(_ *cluster.Snapshot, g *cluster.NodeGroup, m *decision.Memory) {
		g.Target = 2
		g.Instances = append(g.Instances, cluster.Instance{ID: "aws:///a/i-lost", Phase: cluster.PhaseRunning, Member: true, Created: now.Add(-time.Hour)})
		m.Unregistered = map[cluster.InstanceID]time.Time{"aws:///a/i-lost": now.Add(-time.Hour)}
	}), false, "Machines of group workers never join", "i-lost has not become a Node", "Look where the start of the machine stopped"},
	{"certificates held", trouble.Facts{Now: now, Certificates: []trouble.Certificate{{Request: "csr-x2k9d", Node: "ip-10-0-0-4", Kind: "serving certificate", Rule: "R13", Why: "the name ip-10-0-0-4.corp.example is none of the instance's", Since: now.Add(-time.Hour)}}}, false,
		"1 certificate request is held", "ip-10-0-0-4.corp.example is none of the instance's", "AUTOSCALER_CSR_EXTRA_NAMES"},
	{"a frozen reaper", trouble.Facts{Now: now, Breakers: []trouble.Breaker{{Rule: "B2", Why: "14 of 20 Nodes are gone at once"}}}, false,
		"Node deletion is frozen: no dead Node is deleted", "14 of 20 Nodes are gone at once", "Look what took so many Nodes at once"},
	{"a standby that should act", trouble.Facts{Now: now, Hindered: true, Why: "waiting for Lease kube-system/autoscaler-agent: leader-1 has not renewed it, and its time ended at 2026-11-27T02:50:00Z: leases is forbidden"}, true,
		"This agent should act and does not", "leases is forbidden", "restart this one"},
	{"old facts", trouble.Facts{Now: now, Stale: "the API server has not answered since 2026-11-27T02:50:00Z"}, false,
		"The facts of Kubernetes are old", "has not answered since 2026-11-27T02:50:00Z", "Look whether the API server answers"},
}

// above says where a text stands whole: "shown" above the fold, or what is wrong with it.
const above = `(text => {
	const list = [...document.querySelectorAll("header strong, header p")].filter(e => e.innerText.includes(text));
	if (!list.length) return "not there";
	const r = list[list.length - 1].getBoundingClientRect();
	return !list[list.length - 1].checkVisibility() ? "hidden" : r.top < 0 || r.bottom > innerHeight ? "from " + r.top + " to " + r.bottom + " of " + innerHeight : "shown"})(%q)`

// TestSituations: of each situation, cause and remedy stand whole at the top of a phone's screen and of a desk's, in
// words, on the page of 300 machines; the page never says that nothing is wrong, and passes axe-core's rules.
func TestSituations(t *testing.T) {
	b := open(t)
	for i, c := range situations {
		d := page.Data{At: now, Version: "v1", Node: "leader-2", Since: now.Add(-time.Hour), Acting: !c.standby, Nodes: 300, Ready: 300, Pending: 3, Troubles: trouble.List(c.facts)}
		d.Machines = machines(300, now, groups("workers", "gpu"))
		address, _ := serve(t, d)
		for _, s := range []screen{narrow, wide} {
			b.on(s, address, i%2 == 0)
			for _, text := range []string{c.what, c.cause, c.remedy} {
				if is := eval[string](b, fmt.Sprintf(above, text)); is != "shown" {
					t.Errorf("%s, %d pixels: %q is %s", c.name, s.width, text, is)
				}
			}
			if eval[bool](b, `document.body.innerText.includes("Nothing is wrong")`) {
				t.Errorf("%s: the page says that nothing is wrong", c.name)
			}
			b.shot(fmt.Sprintf("situation-%d-%d", i+1, s.width))
		}
		if i == 0 {
			b.axe(c.name)
		}
	}
}

// TestWellStandby: a standby that stands by is not red, and the map stands on the first screen, of a phone too.
func TestWellStandby(t *testing.T) {
	b := open(t)
	address, _ := serve(t, page.Data{At: now, Version: "v1", Node: "leader-2", Since: now.Add(-time.Hour), StandsBy: true, Why: "standing by: leader-1 holds Lease kube-system/autoscaler-agent", Nodes: 30, Ready: 30,
		Machines: machines(30, now, groups("workers", "gpu"))})
	for _, s := range []screen{narrow, wide} {
		b.on(s, address, false)
		if n := eval[int](b, `document.querySelectorAll("header .bad, header .troubles").length`); n > 0 {
			t.Errorf("%d parts of a standby's page are red", n)
		}
		if bottom := eval[float64](b, `document.querySelector(".fleet .box:last-child").getBoundingClientRect().bottom`); bottom > float64(s.height) {
			t.Errorf("%d pixels: the first group ends at %.0f of %d", s.width, bottom, s.height)
		}
		b.shot(fmt.Sprintf("standby-%d", s.width))
	}
}
