package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/internal/schedule"
)

// replaceWish sets what a group says of nodes that are replaced: source (k:v,k:v), drift, maxage, repair and
// budgets.
func (w *teller) replaceWish(g *cluster.NodeGroup, k, v string) {
	switch k {
	case "source":
		g.Template.Source, g.Template.Expected = pairs(v), cluster.Expected(g.Template.Labels, g.Template.Taints)
	case "drift":
		yes := v == "true"
		g.Options.Drift = &yes
	case "maxage":
		d := dur(v)
		g.Options.MaxNodeAge = &d
	case "repair":
		d := dur(v)
		g.Options.RepairAfter = &d
	case "budgets":
		list, err := schedule.Parse(v)
		list = must(v, list, err)
		g.Options.Budgets = &list
	}
}

func (w *teller) replacePolicy(k, v string) bool {
	switch k {
	case "Drift":
		w.p.Drift = v == "true"
	case "MaxNodeAge":
		w.p.MaxNodeAge = dur(v)
	case "RepairAfter":
		w.p.RepairAfter = dur(v)
	case "RepairConditions":
		if err := w.p.RepairConditions.Decode(v); err != nil {
			panic(err)
		}
	case "ReplaceAtMax":
		w.p.ReplaceAtMax = v
	case "ReplaceDrainOverdue":
		w.p.ReplaceDrainOverdue = v
	case "Paused", "Resumed", "Started":
		w.order(k, v)
	case "RepairMaxSick":
		w.p.RepairMaxSick = num(v)
	case "DisruptionBudgets":
		return w.p.DisruptionBudgets.Decode(v) == nil
	default:
		return false
	}
	return true
}

// order is what an operator orders for the rollout of a group, "w:reason" or "w:source"; ":reason" is for all groups.
func (w *teller) order(what, v string) {
	group, text, _ := strings.Cut(v, ":")
	o := w.p.Rollouts[cluster.GroupID(group)]
	switch what {
	case "Paused":
		o.Paused, o.Since, o.Reason = text != "no", w.s.Now, text
	case "Resumed":
		o = cluster.RolloutOrder{Resumed: text}
	case "Started":
		o.Started = text
	}
	next := cluster.RolloutOrders{}
	maps.Copy(next, w.p.Rollouts)
	next[cluster.GroupID(group)] = o
	w.p.Rollouts = next
}

// nodeSource sets what a node's machine was started from; without words, what its group starts now.
func (w *teller) nodeSource(g *cluster.NodeGroup, id cluster.InstanceID, kv map[string]string) {
	for i := range g.Instances {
		if in := &g.Instances[i]; in.ID == id {
			own := map[string]string(maps.Clone(g.Template.Source))
			for k, v := range pairs(kv["source"]) {
				round.Set(&own, k, v)
			}
			in.Source = own
		}
	}
}

// someReplacements gives a world what replaces nodes, by the seconds of its nodes: another draw would make other worlds of
// the seeds that found something.
func someReplacements(s *cluster.Snapshot, m *decision.Memory, p *decision.Policy) {
	if len(s.Nodes) == 0 {
		return
	}
	x := s.Nodes[0].Created.Unix()
	if x%3 == 0 {
		replacements(s, m, p, x)
	}
	if x%4 == 1 {
		settle(s)
	}
}

// settle lets all pods have run for two hours, so that they may be moved to save money.
func settle(s *cluster.Snapshot) {
	for i := range s.Pods {
		if s.Pods[i].Node != "" {
			s.Pods[i].Created = cluster.At(t0.Add(-2 * time.Hour))
		}
	}
	for _, n := range s.Nodes {
		for i := range n.Pods {
			n.Pods[i].Created = cluster.At(t0.Add(-2 * time.Hour))
		}
	}
}

// replaceWorld is a world of chance in which nodes are replaced, and in which less than usual keeps them from it.
func replaceWorld(r *rand.Rand) (cluster.Snapshot, decision.Memory, decision.Policy) {
	s, m, p := someWorld(r)
	s.Controllers = nil // explain has no name for pods that are still to be made
	s.Stale, p.MinCoresTotal, p.MaxNodesTotal, p.MaxCoresTotal, p.GPUTotal = "", 0, 0, 0, nil
	p.OKTotalUnready = 10
	for g := range s.Groups {
		gr := &s.Groups[g]
		gr.Min, gr.Max, gr.ReadAt, gr.Stale, gr.Paused, gr.Pause, gr.Failures = min(gr.Min, 1), gr.Max+5, t0, "", "", nil, nil
	}
	replacements(&s, &m, &p, r.Int64N(1000))
	if r.IntN(3) == 0 {
		settle(&s)
	}
	return s, m, p
}

func replacements(s *cluster.Snapshot, m *decision.Memory, p *decision.Policy, x int64) {
	p.Drift, p.RepairConditions = x%2 == 0, cluster.RepairConditions{{Type: "KernelDeadlock", Status: cluster.StatusTrue}}
	if x%5 < 2 {
		p.MaxNodeAge = 30 * time.Minute
	}
	p.ReplaceAtMax = pick2(x%23 < 12, "wait", "empty-first")
	if x%7 < 3 {
		p.RepairAfter = 5 * time.Minute
	}
	switch x % 11 {
	case 0:
		p.DisruptionBudgets = cluster.DisruptionBudgets{{Nodes: 50, Percent: true, Cron: "0 * * * *", For: 30 * time.Minute}}
	case 1:
		p.DisruptionBudgets = cluster.DisruptionBudgets{{Nodes: 2}}
	}
	p.ReplaceDrainOverdue = pick2(x%29 < 10, "force", "give-up")
	switch x % 31 {
	case 0:
		p.Rollouts = cluster.RolloutOrders{"g0": {Paused: true, Since: t0}}
	case 1:
		p.Rollouts = cluster.RolloutOrders{cluster.AllGroups: {Paused: true, Since: t0, Reason: "a test"}}
	case 2, 3:
		p.Rollouts = cluster.RolloutOrders{"g0": {Started: cluster.Spec{"image": "a", "user data": "1"}.Digest()}}
	case 4:
		p.Rollouts, p.Halts = cluster.RolloutOrders{"g0": {Resumed: "0ddba11"}}, []decision.Halt{{Group: "g0", Source: "0ddba11", Why: "it did not join", At: t0}}
	}
	s.ControlPlaneVersion = "v1.33.4"
	for g := range s.Groups {
		gr := &s.Groups[g]
		if x%4 < 3 {
			gr.Template.Source, gr.Template.Expected = cluster.Spec{"image": "a", "user data": "1"}, cluster.Expected(gr.Template.Labels, gr.Template.Taints)
		}
		switch (x + int64(g)) % 17 {
		case 0:
			gr.Replacing = "an instance refresh is under way"
		case 1:
			gr.ReplacingStale = "AWS has not told yet"
		}
		if x%13 == 0 {
			gr.Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 100, Percent: true}}
		}
		for i := range gr.Instances {
			in := &gr.Instances[i]
			in.Source = cluster.Spec{"image": pick2(in.Created.Unix()%2 == 0, "a", "b")}
		}
	}
	for i, n := range s.Nodes {
		y := n.Created.Unix()
		n.KubeletVersion = pick2(y%2 == 0, "v1.33.1", "v1.32.9")
		if y%9 == 0 {
			n.Conditions = map[string]time.Time{"KernelDeadlock": t0.Add(-time.Duration(y%20) * time.Minute)}
		}
		if y%21 == 0 {
			n.Annotations = maps.Clone(n.Annotations)
			round.Set(&n.Annotations, cluster.AnnotationReplace, "true")
		}
		n.ReadySince = t0.Add(-time.Duration(y%40) * time.Minute)
		if y%17 == 1 && i < 3 {
			m.Consolidation = &decision.Consolidation{Nodes: []cluster.NodeName{n.Name}, Group: "g0", Machines: int(y % 3), Ordered: t0.Add(-time.Duration(y%40) * time.Minute), Came: y%4 == 0}
		}
	}
	if x%19 < 4 {
		m.Halts = []decision.Halt{{Group: "g0", Source: "0ddba11", Why: "it did not join", At: t0}}
	}
	for i := range s.Budgets {
		s.Budgets[i].Unready = (x+int64(i))%2 == 0
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		pod.Unready = pod.Node != "" && len(pod.Key)%3 == 0 && i%5 == 0
		if pod.Node != "" && i%11 == 0 {
			pod.Trouble = &cluster.PodTrouble{Waiting: "CrashLoopBackOff", Restarts: int32(i % 4), RestartedAt: cluster.At(t0.Add(-time.Duration(i) * time.Minute))}
		}
		pod.Unstarted = pod.Unready && i%4 == 0
	}
}

// checkDisruption: no more nodes of a group are marked to be replaced than a budget of a tenth lets go, counted naively, where
// no budget is set and but for those that somebody asked for; and none while nothing asks for it, or while an operator has paused it.
func checkDisruption(t testing.TB, s cluster.Snapshot, p *decision.Policy, plan decision.Plan) {
	t.Helper()
	id := cluster.Identify(s.Groups, s.Nodes)
	for g := range s.Groups {
		gr := &s.Groups[g]
		of := func(name cluster.NodeName) bool {
			return slices.ContainsFunc(gr.Instances, func(in cluster.Instance) bool { return in.ID == id.Instance[name] })
		}
		nodes, marked, replaced := 0, 0, 0
		for _, n := range s.Nodes {
			if of(n.Name) && !n.ControlPlane {
				nodes++
				if round.ToBeDeleted(n) {
					marked++
				}
			}
		}
		for _, a := range plan.Actions {
			switch a := a.(type) {
			case decision.Cordon:
				if of(a.Node) && slices.Contains([]string{decision.RuleSick, decision.RuleDrifted, decision.RuleExpired}, a.Rule) {
					replaced++
					if _, _, paused := p.Rollouts.Pause(gr.ID); paused && a.Rule != decision.RuleSick {
						t.Fatalf("%s, and the rollout is paused", a)
					}
					if gr.Replacing+gr.ReplacingStale != "" && a.Rule != decision.RuleSick {
						t.Fatalf("%s, and somebody else replaces the machines of the group, or may", a)
					}
					if !p.Drift && p.Rollouts[gr.ID].Started == "" && p.MaxNodeAge+p.RepairAfter == 0 && gr.Options.Drift == nil && gr.Options.MaxNodeAge == nil && gr.Options.RepairAfter == nil {
						t.Fatalf("%s, and no setting asks for it", a)
					}
				}
			case decision.Grow:
				if a.Group == gr.ID && a.Rule == decision.RuleReplace {
					names, _, _ := strings.Cut(strings.TrimPrefix(a.Why, "in place of "), ":")
					for name := range strings.SplitSeq(names, ", ") {
						if i := slices.IndexFunc(s.Nodes, func(n *cluster.Node) bool { return string(n.Name) == name }); s.Nodes[i].Annotations[cluster.AnnotationReplace] != "true" {
							replaced++
						}
					}
				}
			}
		}
		if limit := max(nodes/10, 1); gr.Options.Budgets == nil && replaced > 0 && marked+replaced > limit {
			t.Fatalf("group %s of %d nodes: %d are marked, and %d more are to be replaced\n%s", gr.ID, nodes, marked, replaced, plan)
		}
	}
}

// TestReplaceWorlds holds drawn worlds in which nodes are replaced against everything that must always be true, and asks whether
// they reach each rule.
func TestReplaceWorlds(t *testing.T) {
	n := uint64(1500)
	if testing.Short() {
		n = 150
	}
	seen := map[string]int{}
	for seed := range n {
		s, m, p := replaceWorld(rand.New(rand.NewPCG(seed, 0)))
		plan, _ := Decide(s, m, p)
		noContradiction(t, s, m, p, plan)
		check(t, s, m, p, seed)
		if t.Failed() {
			t.Fatalf("seed %d, plan\n%s", seed, plan)
		}
		for _, a := range plan.Data().Actions {
			seen[a.Kind+" "+a.Rule]++
		}
		for _, h := range plan.Held {
			seen["held "+h.Rule]++
		}
	}
	for _, want := range []string{"held D21", "cordon D25", "cordon D26", "cordon D27", "cordon D33", "held D34", "held D36", "grow D28", "held D12", "held D28", "held D29", "held D30", "held D31", "held D32"} {
		if seen[want] == 0 && !testing.Short() {
			t.Errorf("no world of %d has %q", n, want)
		}
	}
	t.Log(seen)
}

// BenchmarkDrifted is a round of 5,000 nodes that are all drifted: the first machine is awaited, or is proven and a budget in a
// window holds the others.
func BenchmarkDrifted(b *testing.B) {
	for _, proven := range []bool{false, true} {
		b.Run(fmt.Sprintf("proven=%v", proven), func(b *testing.B) {
			s, p := rounds{nodes: 5000, use: 90}.snapshot(), policy()
			p.Drift, p.DisruptionBudgets = true, cluster.DisruptionBudgets{{Nodes: 1, Cron: "0 0 * * *", For: time.Hour, Zone: "Europe/Berlin"}}
			old := cluster.Spec{"image": "a", "user data": "1", "instance type": "m", "security groups": "x", "launch template": "lt@1"}
			for g := range s.Groups {
				wanted := maps.Clone(old)
				wanted["image"] = "b"
				s.Groups[g].Template.Source = wanted
				for i := range s.Groups[g].Instances {
					if s.Groups[g].Instances[i].Source = old; i == 0 && proven {
						s.Groups[g].Instances[i].Source = wanted
					}
				}
			}
			var e Engine
			_, m := e.Decide(s, decision.Memory{}, p)
			for b.Loop() {
				s.Now = s.Now.Add(time.Second)
				s.Pods = append(s.Pods[:0:0], cluster.Pod{Key: "default/new", UID: cluster.UID(fmt.Sprint(s.Now.Unix())), Created: cluster.At(s.Now)})
				_, m = e.Decide(s, m, p)
			}
		})
	}
}
