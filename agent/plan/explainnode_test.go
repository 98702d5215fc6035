package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// TestNodeHasOneTruth plays drawn worlds for some rounds, with consolidation and without, and
// holds what Explain says of each node against what the plan does with it.
func TestNodeHasOneTruth(t *testing.T) {
	first, times := drawn.Seed(t), drawn.Times(t)
	said := map[string]int{}
	for seed := first; seed < first+uint64(150*times); seed++ {
		r := rand.New(rand.NewPCG(seed, 39))
		w := &teller{t: t}
		if w.s, w.m, w.p = someWorld(r); seed%2 == 0 {
			w = calmWorld(t, r)
		}
		w.p.Consolidate, w.p.ConsolidateAfter = pick(r, "always", "always", "priced", "off"), 0
		w.p.UnneededFor, w.p.DelayAfterAdd = pick(r, 0, time.Minute, time.Hour), 0
		for range 10 {
			var m decision.Memory
			w.last, m = Decide(w.s, w.m, w.p)
			for _, n := range w.s.Nodes {
				said[oneTruth(t, w.s, w.m, w.p, n, w.last)]++
			}
			if t.Failed() {
				t.Fatalf("seed %d\n%s", seed, w.last)
			}
			w.m, w.s.Outcomes = m, nil
			w.line("accept")
			w.line("pass 20s")
		}
	}
	t.Logf("%v", said)
	for _, kind := range []string{"it goes", "it stays", "it goes when the machines that replace it are Ready", "it is starting"} {
		if said[kind] == 0 {
			t.Errorf("%q was never said", kind)
		}
	}
}

// calmWorld is a drawn cluster in which nothing is pending or ends, so that nodes are replaced.
func calmWorld(t *testing.T, r *rand.Rand) *teller {
	t.Helper()
	w := told(t, "")
	for g := range 1 + r.IntN(3) {
		cpu, n := pick(r, 2, 4, 8), 1+r.IntN(4)
		w.line(fmt.Sprintf("group g%d %d..9 cpu=%dm mem=%dGi target=%d price=%.2f", g, r.IntN(2), cpu*1000, cpu*4, n, float64(cpu)*(0.03+r.Float64()/20)))
		for i := range n {
			node := fmt.Sprintf("g%d-%d", g, i)
			w.line(fmt.Sprintf("node %s group=g%d age=2h", node, g))
			w.line(fmt.Sprintf("pods %s %d cpu=%dm mem=%dMi on=%s age=2h", node, 1+r.IntN(3), 100*cpu*(1+r.IntN(4)), 100*(1+r.IntN(10)), node))
		}
	}
	return w
}

// oneTruth checks that the summary of a node says of it what the plan does: it never stays while
// an action removes it, and it goes only where an action, a mark or the cloud removes it. It
// returns how the summary begins.
func oneTruth(t *testing.T, s cluster.Snapshot, m decision.Memory, p decision.Policy, n *cluster.Node, got decision.Plan) string {
	t.Helper()
	removed, kept := actionsOn(got, n.Name)
	x := Explain(s, m, p, decision.Query{Kind: "node", Name: string(n.Name)})
	plan, after := Decide(s, m, p)
	_, told := after.Deleted[x.Node.Instance]
	replaced := after.Consolidation.UnderWay() && after.Consolidation.Has(n.Name) || slices.ContainsFunc(plan.Held, func(h decision.Held) bool {
		return h.Name == string(n.Name) && h.Rule == decision.RuleReplace && (strings.HasSuffix(h.Why, ": a machine is ordered in its place") || strings.Contains(h.Why, "it waits for a machine") || strings.Contains(h.Why, "a machine of its group has come"))
	})
	marked := round.ToBeDeleted(n) && round.CordonedByUs(n)
	ends := told || x.Node.Phase == cluster.PhaseDeleting || x.Node.Phase == cluster.PhaseGone || interrupted(s, x.Node.Instance)
	goes, stays := strings.HasPrefix(x.Summary, "it goes"), strings.HasPrefix(x.Summary, "it stays")
	switch {
	case removed != "" && !goes:
		t.Errorf("%s\nbut explain node %s says %q", removed, n.Name, x.Summary)
	case kept != "" && !stays:
		t.Errorf("%s\nbut explain node %s says %q", kept, n.Name, x.Summary)
	case kept == "" && (marked || replaced || ends) && stays && !n.ControlPlane:
		t.Errorf("node %s: marked by the agent %v, being replaced %v, its machine ends %v; and explain says %q", n.Name, marked, replaced, ends, x.Summary)
	case goes && removed == "" && !marked && !ends && !replaced:
		t.Errorf("nothing removes node %s, and explain says %q", n.Name, x.Summary)
	case x.Summary == "" || strings.HasSuffix(x.Summary, ": "):
		t.Errorf("explain node %s says %q", n.Name, x.Summary)
	}
	begins, _, _ := strings.Cut(x.Summary, ":")
	return begins
}

// actionsOn are the last action of a plan that removes a node, and the last one that keeps it.
func actionsOn(p decision.Plan, name cluster.NodeName) (removed, kept string) {
	for _, a := range p.Actions {
		node, keeps := cluster.NodeName(""), false
		switch x := a.(type) {
		case decision.Cordon:
			node = x.Node
		case decision.Evict:
			node = x.Node
		case decision.Terminate:
			node = x.Node
		case decision.Uncordon:
			node, keeps = x.Node, true
		}
		switch {
		case node != name:
		case keeps:
			kept = a.String()
		default:
			removed = a.String()
		}
	}
	return removed, kept
}

// interrupted tells whether the cloud ends an instance of its own accord.
func interrupted(s cluster.Snapshot, id cluster.InstanceID) bool {
	return slices.ContainsFunc(s.Groups, func(g cluster.NodeGroup) bool {
		return slices.ContainsFunc(g.Instances, func(in cluster.Instance) bool { return in.ID == id && in.Interruption != nil })
	})
}

// TestExplainConsolidated asks about a node in each round of its replacement.
func TestExplainConsolidated(t *testing.T) {
	w := told(t, `
policy Consolidate=priced DelayAfterAdd=10m UnneededFor=10m
group big 0..9 cpu=8000m mem=32Gi target=1 price=0.4
group small 0..9 cpu=2000m mem=8Gi price=0.1
node b1 group=big age=2h
pods web 3 cpu=500m on=b1 age=2h
`)
	for i, step := range []struct{ lines, want string }{
		{"pass 1s", "it stays: pod default/web-000 has room nowhere else; 1 machine of group small can replace b1, if that is so until 2026-11-21T12:30:01Z [D21]"},
		{"pass 30m", "it goes when the machines that replace it are Ready: 1 machine of group small can replace b1 [D21]"},
		{"accept\npass 10s", "it goes when the machines that replace it are Ready: 1 machine of group small can replace b1 [D21]"},
		{"node s1 group=small\npass 30s", "it goes: this round marks it for deletion: it is dear: 1 machine of group small can replace b1; utilisation 19%, 3 pods to move [D21]"},
		{"accept\npass 5s", "it goes: this round evicts 3 pods [D11]; 1 machine of group small can replace b1"},
		{"accept\npass 5s", "it goes: this round terminates it: drained: no pod that could be moved is left [D17]; 1 machine of group small can replace b1"},
	} {
		for line := range strings.SplitSeq(step.lines, "\n") {
			w.line(line)
		}
		x := Explain(w.s, w.m, w.p, decision.Query{Kind: "node", Name: "b1"})
		if x.Summary != step.want {
			t.Errorf("step %d: %q\nwant %q", i, x.Summary, step.want)
		}
		w.last, w.m = Decide(w.s, w.m, w.p)
		w.s.Outcomes = nil
	}
}

// TestExplainRoomOfANodeThatGoes: the pod has room by itself, on a node that goes first; the check says so and does not hold.
func TestExplainRoomOfANodeThatGoes(t *testing.T) {
	w := told(t, `
group a 0..9 cpu=2000m mem=8Gi target=2
node a1 group=a age=2h
node a2 group=a age=2h
pods x 1 cpu=200m on=a1 age=2h
`)
	x := Explain(w.s, w.m, w.p, decision.Query{Kind: "node", Name: "a1"})
	at := slices.IndexFunc(x.Node.Checks, func(c decision.Check) bool { return c.Rule == decision.RuleNoRoom })
	if at < 0 || x.Node.Checks[at].OK || x.Node.Checks[at].Why != "pod default/x-000 has room nowhere else once a2 goes" {
		t.Errorf("%s: %+v", x.Summary, x.Node.Checks)
	}
}

// TestExplainSavings asks about nodes above the threshold, of which one could be emptied: young pods keep it, and new pods keep away from it.
func TestExplainSavings(t *testing.T) {
	w := told(t, `
policy Consolidate=priced SoftTaints=10
group a 0..9 cpu=4000m mem=16Gi target=3 price=0.2
node a1 group=a age=2h
node a2 group=a age=2h
node a3 group=a age=2h
pods x 2 cpu=1200m on=a1 age=10m
pods y 4 cpu=600m on=a2 age=2h
pods z 4 cpu=600m on=a3 age=2h
`)
	w.last, w.m = Decide(w.s, w.m, w.p)
	for name, want := range map[cluster.NodeName][]decision.Check{
		"a1": {{Rule: decision.RuleConsolidate, Why: "cheaper machines do not replace it before 2026-11-21T12:50:00Z (in 50m0s): pod default/x-000 has run for less than an hour until then"},
			{Rule: decision.RuleSoft, OK: true, Why: "new pods keep away from it: its pods have had room on other nodes since 2026-11-21T12:00:00Z (now)"}},
		"a2": {},
	} {
		x := Explain(w.s, w.m, w.p, decision.Query{Kind: "node", Name: string(name)})
		var got []decision.Check
		for _, c := range x.Node.Checks {
			if c.Rule == decision.RuleConsolidate || c.Rule == decision.RuleSoft {
				got = append(got, c)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v\nwant %+v", name, got, want)
		}
	}
}
