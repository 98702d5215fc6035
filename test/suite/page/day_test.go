package page

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/sim"
)

// seed is that of the day; the package of the simulation has more.
const seed = 7

// copies is how many groups stand for each of the day's.
const copies = 20

// recorded plays the day once: the engine decides, and the history looks at what it is
// shown, with each group twenty times, and each machine so often that 5,000 nodes are
// there at the peak.
var recorded = sync.OnceValues(func() (history.View, error) {
	var day []cluster.Snapshot
	var plans []decision.Plan
	most := 1
	_, err := sim.Run(sim.Options{Curve: "lemons", Seed: seed, Check: func(s cluster.Snapshot, _ decision.Memory, _ decision.Policy, p decision.Plan) {
		day, plans = append(day, light(s)), append(plans, p)
		most = max(most, len(s.Nodes))
	}})
	if err != nil {
		return history.View{}, err
	}
	h, each := &history.History{}, 1+5000/(copies*most)
	var last decision.Plan
	for i := range day {
		h.Acted(last, day[i].Outcomes)
		if last = plans[i]; h.Due(day[i].Now) || len(last.Actions) > 0 {
			many := enlarge(day[i], each)
			h.Look(&many)
		}
	}
	v := h.View(day[len(day)-1].Now)
	var marks []history.Mark
	for _, m := range v.Marks {
		for n := range copies { // as often as its group
			of := m
			if of.Group != "" {
				of.Group += fmt.Sprintf("-%02d", n)
			}
			marks = append(marks, of)
		}
	}
	v.Marks = marks[max(0, len(marks)-500):] // as many as a history keeps
	return v, nil
})

// enlarge repeats every group, and every machine in it.
func enlarge(s cluster.Snapshot, each int) cluster.Snapshot {
	out := s
	out.Nodes, out.Groups = slices.Repeat(s.Nodes, copies*each), nil
	for n := range copies {
		for _, g := range s.Groups {
			g.ID = cluster.GroupID(fmt.Sprintf("%s-%02d", g.ID, n))
			g.Min, g.Max, g.Target, g.Instances = g.Min*each, g.Max*each, g.Target*each, slices.Repeat(g.Instances, each)
			out.Groups = append(out.Groups, g)
		}
	}
	return out
}

// light is what the history reads of a snapshot.
func light(s cluster.Snapshot) cluster.Snapshot {
	out := cluster.Snapshot{Now: s.Now, Outcomes: s.Outcomes}
	for _, n := range s.Nodes {
		out.Nodes = append(out.Nodes, &cluster.Node{Ready: n.Ready})
	}
	for i := range s.Pods {
		out.Pods = append(out.Pods, cluster.Pod{Unschedulable: s.Pods[i].Unschedulable})
	}
	for _, g := range s.Groups {
		g.Instances = slices.Clone(g.Instances)
		out.Groups = append(out.Groups, g)
	}
	return out
}

// machines are so many in the groups, in three zones and in every state.
func machines(n int, now time.Time, groups []history.Group) []fleet.Machine {
	out := make([]fleet.Machine, n)
	for i := range out {
		state := fleet.Ready
		if i%10 == 0 {
			state = fleet.States[i/10%len(fleet.States)].Name
		}
		out[i] = fleet.Machine{Name: fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i/60000, i/250%250, i%250), Group: groups[i*len(groups)/n].Name, Zone: fmt.Sprintf("eu-west-1%c", 'a'+i%3), Type: "m5.2xlarge",
			State: state, Exactly: state, CPU: 40 + i%61, Memory: 20 + i%71, GPU: fleet.Unknown, Pods: 20, Daemons: 4, FirstPods: []string{"shop/web-7d4b9c6f5-abcde", "shop/cart-7d4b9c6f5-abcde", "shop/pay-7d4b9c6f5-abcde"},
			Price: 0.384, Created: now.Add(-time.Duration(i) * time.Minute), Rule: "D4", Why: "requests are 63% of the larger of cpu and memory, above the threshold of 50%"}
	}
	slices.SortStableFunc(out, func(a, b fleet.Machine) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.State, b.State))
	})
	return out
}

func groups(names ...string) (out []history.Group) {
	for _, name := range names {
		out = append(out, history.Group{Name: name})
	}
	return out
}

func peak(values []int) int { return slices.Max(values) }

// day is the page of that day, with lists as long as a large cluster's.
func day(t *testing.T) page.Data {
	t.Helper()
	v, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	v.Groups, v.Marks = slices.Clone(v.Groups), slices.Clone(v.Marks)
	now := v.Start.Add(24 * time.Hour)
	d := page.Data{At: now, Version: "v1", Node: "leader-1", Since: now.Add(-30 * time.Hour), Acting: true, Nodes: v.Nodes[len(v.Nodes)-1], Ready: v.Ready[len(v.Ready)-1], Pods: 150000, Pending: 120,
		History: v, Requests: 3}
	for _, g := range v.Groups {
		d.Groups = append(d.Groups, page.Group{Name: g.Name, Max: 500, Target: 120, Machines: 120, Remark: "its machines have no price"})
	}
	d.Machines = machines(5000, now, v.Groups)
	for i := range 120 {
		w := page.Waiting{Name: fmt.Sprintf("shop/web-%d", i), Count: i + 1, Rule: "U5", Why: "no node group can help: 40 groups: Insufficient cpu"}
		for _, g := range v.Groups {
			w.Groups = append(w.Groups, page.Refusal{Name: g.Name, Rule: "F1", Why: "Insufficient cpu: needs 64, the machine offers 3.8"})
		}
		d.Waiting = append(d.Waiting, w)
		d.Leaving = append(d.Leaving, page.Leaving{Node: fmt.Sprintf("ip-10-0-%d-17.eu-west-1.compute.internal", i), Group: v.Groups[i%len(v.Groups)].Name, Since: now.Add(-time.Duration(i) * time.Second), Pods: i % 30, Why: "D14: the budget shop/web allows no eviction now"})
		d.Reaped = append(d.Reaped, page.Reaped{Node: fmt.Sprintf("ip-10-1-%d-4.eu-west-1.compute.internal", i), At: now.Add(-time.Duration(i) * time.Minute), Why: "G3: two reads list the instance as terminated"})
	}
	for i := range 12 {
		d.Verdicts = append(d.Verdicts, page.Verdict{Do: "approve", Rule: fmt.Sprintf("R%d", i), Count: 400 * i})
	}
	return d
}
