package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
)

// recorded is a day of 60 groups, with more than 5,000 nodes at its peak, as the history remembers it: each group follows the
// working hours, and is bought and emptied step by step.
var recorded = sync.OnceValue(func() history.View {
	h, now := &history.History{}, time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	sizes := make([]int, 60)
	for end := now.Add(24 * time.Hour); now.Before(end); now = now.Add(time.Minute) {
		s, all := cluster.Snapshot{Now: now}, 0
		var p decision.Plan
		hour := float64(now.Hour()) + float64(now.Minute())/60
		for i := range sizes {
			g := cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("general-%02d", i)), Max: 500, Target: int(95 * math.Exp(-math.Pow(hour-13-float64(i%4), 2)/18))}
			o := cluster.Outcome{Group: g.ID, At: now}
			switch d := g.Target - sizes[i]; {
			case d >= 6:
				o.Action, o.From, o.To = "grow", sizes[i], g.Target
				p.Actions = append(p.Actions, decision.Grow{Group: g.ID, From: o.From, To: o.To, Rule: "U3", Why: "no room for pods"})
			case d <= -6:
				o.Action, o.Node = "terminate", cluster.NodeName(fmt.Sprintf("%s-%d", g.ID, sizes[i]))
				p.Actions = append(p.Actions, decision.Terminate{Group: g.ID, Node: o.Node, Rule: "D4", Why: "its pods fit elsewhere"})
			}
			if o.Action != "" {
				s.Outcomes, sizes[i] = append(s.Outcomes, o), g.Target
			}
			g.Instances = slices.Repeat([]cluster.Instance{{Member: true}}, sizes[i])
			all += sizes[i]
			s.Groups = append(s.Groups, g)
		}
		s.Nodes = slices.Repeat([]*cluster.Node{{Ready: cluster.StatusTrue}}, all)
		s.Pods = slices.Repeat([]cluster.Pod{{Unschedulable: cluster.At(now)}}, 10*len(p.Actions))
		h.Acted(p, s.Outcomes)
		h.Look(&s)
	}
	return h.View(now.Add(-time.Minute))
})

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
func day() page.Data {
	v := recorded()
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
