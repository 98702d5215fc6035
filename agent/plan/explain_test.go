package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/explain"
)

// noContradiction asks Explain about everything that a plan holds or does, and about
// every node, pod and group: it names the same rules, and says nothing that the plan
// denies.
func noContradiction(t *testing.T, s cluster.Snapshot, m decision.Memory, p decision.Policy, got decision.Plan) {
	t.Helper()
	for _, h := range got.Held {
		x, where := decision.Explanation{}, ""
		switch h.Kind {
		case "pod", "node", "group", "headroom":
			x = Explain(s, m, p, decision.Query{Kind: h.Kind, Name: h.Name})
			where = h.Kind + " " + h.Name
		case "cluster":
			x = Explain(s, m, p, decision.Query{Kind: "group", Name: ""})
			x.Verdicts = x.Cluster
			x.Found = true
		case "instance":
			for i := range s.Groups {
				if slices.ContainsFunc(s.Groups[i].Instances, func(in cluster.Instance) bool { return string(in.ID) == h.Name }) {
					where = "group " + string(s.Groups[i].ID)
					x = Explain(s, m, p, decision.Query{Kind: "group", Name: string(s.Groups[i].ID)})
				}
			}
		}
		if !x.Found || !slices.ContainsFunc(x.Verdicts, func(v decision.Verdict) bool { return v.Rule == h.Rule && (v.Why == h.Why || h.Count > 1) }) {
			t.Errorf("%s\nbut explain %s says %+v (%s)", h, where, x.Verdicts, x.Summary)
		}
		if h.Kind == "node" {
			failing(t, h, x)
		}
	}
	for _, n := range s.Nodes {
		oneTruth(t, s, m, p, n, got)
	}
	for i := range s.Groups {
		id := s.Groups[i].ID
		x := Explain(s, m, p, decision.Query{Kind: "group", Name: string(id)})
		for _, a := range got.Actions {
			if g, ok := a.(decision.Grow); ok && g.Group == id && !slices.ContainsFunc(x.Verdicts, func(v decision.Verdict) bool { return v.Rule == g.Rule }) {
				t.Errorf("%s\nbut explain group says %+v", g, x.Verdicts)
			}
		}
	}
}

// failing checks that the condition which holds a node is one that its list of
// conditions shows as failed.
func failing(t *testing.T, h decision.Held, x decision.Explanation) {
	t.Helper()
	listed := []string{decision.RuleInstance, decision.RuleOptOut, decision.RuleBusy, decision.RuleBlocked, decision.RuleAtMin, decision.RuleNoRoom, decision.RuleUnneededFor, decision.RuleCooldown, decision.RuleFailed}
	if x.Node == nil || !slices.Contains(listed, h.Rule) {
		return
	}
	for _, c := range x.Node.Checks {
		if c.Rule == h.Rule && !c.OK {
			return
		}
	}
	// What the nodes before it in the round took is gone for it, and comes back for
	// whoever asks about it alone: a budget, a place in the group, room.
	if h.Rule == decision.RuleBlocked || h.Rule == decision.RuleAtMin || h.Rule == decision.RuleNoRoom {
		return
	}
	t.Errorf("%s\nbut all its conditions hold: %+v", h, x.Node.Checks)
}

func told(t *testing.T, lines string) *teller {
	t.Helper()
	w := &teller{t: t, p: policy()}
	w.s.Now = t0
	w.tell("the test's lines", section{body: lines, line: 1})
	return w
}

// TestExplainAgreesWithDecide asks about everything in random worlds.
func TestExplainAgreesWithDecide(t *testing.T) {
	n := uint64(150)
	if testing.Short() {
		n = 50
	}
	for seed := range n {
		s, m, p := someWorld(rand.New(rand.NewPCG(seed, 1)))
		got, _ := Decide(s, m, p)
		noContradiction(t, s, m, p, got)
		asData(t, s, m, p, got)
		s = s.Seated()
		for _, node := range s.Nodes {
			Explain(s, m, p, decision.Query{Kind: "node", Name: string(node.Name)})
		}
		for pod := range s.AllPods() {
			x := Explain(s, m, p, decision.Query{Kind: "pod", Name: string(pod.Key)})
			waits := x.Pod != nil && (x.Pod.State == "waiting" || x.Pod.State == "unjudged")
			if !x.Found || x.Summary == "" || waits && x.Pod.Groups == nil || waits && x.Pod.State == "waiting" && len(x.Verdicts) == 0 {
				t.Errorf("pod %s: %+v %+v", pod.Key, x, x.Pod)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, plan\n%s", seed, got)
		}
	}
}

// asData: a plan as data says what the plan says, and a round that went through a
// recording is decided as it was.
func asData(t *testing.T, s cluster.Snapshot, m decision.Memory, p decision.Policy, got decision.Plan) {
	t.Helper()
	d := got.Data()
	if d.String() != got.String() {
		t.Errorf("as data:\n%swant\n%s", d, got)
	}
	for _, a := range d.Actions {
		if a.Kind == "" {
			t.Errorf("no kind: %s", a.Text)
		}
	}
	replayed, _ := Decide(again(t, s), again(t, m), again(t, p))
	if !bytes.Equal(text(t, replayed.Data()), text(t, d)) {
		t.Errorf("recorded and decided once more:\n%swant\n%s", replayed, got)
	}
}

func TestExplainPod(t *testing.T) {
	w := told(t, `
group a 0..5 cpu=2000m mem=8Gi
group b 0..5 cpu=8000m mem=32Gi taints=team:x:NoSchedule
group c 0..5 cpu=2000m mem=2Gi
node n1 group=a age=1h
node n2 group=a age=1h cordon=1
node plane cpu=1000m mem=1Gi taints=node-role.kubernetes.io/control-plane::NoSchedule plane=1
pods big 2 cpu=4000m mem=4Gi
pods small 1 cpu=1500m
pods fresh 1 cpu=100m new=1
pods naked 1 cpu=10m on=n1 owner=none
pods gated 1 cpu=10m gated=1
pods ds 1 cpu=10m owner=DaemonSet
pods odd 1 cpu=10m uses=dra
pods low 1 cpu=10m prio=-20
pods claim 1 cpu=10m refused=claim_"c"_not_found
`)
	for name, want := range map[string][]string{
		"big-001": {"no node has room for it and no node group can help", "0/3 node groups can help: 1 Insufficient memory, 1 node(s) had untolerated taint {team: x}, 2 Insufficient cpu",
			"0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 1 node(s) were unschedulable", "U5"},
		"default/small-000": {"room on a node", "U1"},
		"fresh-000":         {"kube-scheduler has not judged it yet"},
		"naked-000":         {"it is bound to node n1", "it keeps its node", "no controller"},
		"gated-000":         {"scheduling gates"},
		"ds-000":            {"a machine is never bought for it"},
		"odd-000":           {"not judged: dra", "U6"},
		"claim-000":         {"0/3 node groups can help: 1 node(s) had untolerated taint {team: x}, 2 claim ", "U25"},
		"low-000":           {"priority -20 is below the cutoff", "U14"},
		"sma":               {"there is no pod sma; near: default/small-000"},
		"nobody":            {"there is no pod nobody", "finished"},
	} {
		b, err := json.Marshal(Explain(w.s, w.m, w.p, decision.Query{Kind: "pod", Name: name}))
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range want {
			if !strings.Contains(string(b), words) {
				t.Errorf("pod %s: no %q in\n%s", name, words, b)
			}
		}
	}
}

// TestExplainInterrupted: a node whose machine the cloud ends goes, by its rule, and its
// pods are told where they are and what becomes of them.
func TestExplainInterrupted(t *testing.T) {
	w := told(t, `
group a 1..5 cpu=2000m mem=8Gi target=2
node n1 group=a age=1h anno=autoscaler-agent/keep:true
node n2 group=a age=1h
pdb default/one 0
pods web 1 cpu=500m on=n1
pods full 1 cpu=1900m on=n2
pods kept 1 cpu=100m on=n1 pdb=default/one safe=false
pods ds 1 cpu=10m on=n1 owner=DaemonSet
interrupt n1
`)
	for _, tc := range []struct {
		kind, name string
		words      []string
		never      string
	}{
		{"node", "n1", []string{"it goes: this round marks it for deletion: the cloud ends its machine by 2026-11-21T12:02:00Z", `"rule":"D23"`, `"pod":"default/kept-000"`, `"utilisation":0.305`, `"passengers":1`}, "safe-to-evict"},
		{"pod", "web-000", []string{`"state":"running"`, `"node":"n1"`, `"rule":"D23"`, "so it is evicted; it waits for a machine that is coming in group a", `"rule":"U2"`}, "blockers"},
		{"pod", "kept-000", []string{`"state":"running"`, "as soon as its budgets allow it (PodDisruptionBudget default/one allows no disruption)", `"rule":"D23"`}, "safe-to-evict"},
		{"pod", "ds-000", []string{`"state":"running"`, `"rule":"D23"`, "and the pod goes with it"}, "evicted"},
	} {
		b, err := json.Marshal(Explain(w.s, w.m, w.p, decision.Query{Kind: tc.kind, Name: tc.name}))
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range tc.words {
			if !strings.Contains(string(b), words) {
				t.Errorf("%s %s: no %q in\n%s", tc.kind, tc.name, words, b)
			}
		}
		if strings.Contains(string(b), tc.never) {
			t.Errorf("%s %s: %q in\n%s", tc.kind, tc.name, tc.never, b)
		}
	}
}

// TestExplainPodOfTies: nodes refuse for what is on them, too, in the scheduler's words.
func TestExplainPodOfTies(t *testing.T) {
	w := told(t, `
group a 0..0 cpu=2000m mem=8Gi target=0
node n1 cpu=2000m mem=8Gi labels=kubernetes.io/hostname:n1
node n2 cpu=2000m mem=8Gi labels=kubernetes.io/hostname:n2
pods one 1 cpu=100m on=n1
pods one 1 cpu=100m
`)
	for i := range w.s.Classes {
		w.s.Classes[i].PodAntiAffinity = []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"default"},
			Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{"one"}}}}}}
	}
	w.s.Pods[1].Key = "default/two"
	x := Explain(w.s, w.m, w.p, decision.Query{Kind: "pod", Name: "two"})
	if x.Pod == nil || x.Pod.Nodes.Words != "1/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules" || x.Pod.Nodes.Refusals[0].Rule != fit.RuleInterPod {
		t.Errorf("%+v %+v", x, x.Pod)
	}
}

// TestExplainNodeOfTies: a pod that may not stand beside its like has nowhere to go.
func TestExplainNodeOfTies(t *testing.T) {
	w := told(t, `
group a 0..9 cpu=2000m mem=8Gi target=2 labels=kubernetes.io/hostname:x
node n1 group=a age=2h
node n2 group=a age=2h
pods one 1 cpu=100m on=n1
pods two 1 cpu=100m on=n2
`)
	for i := range w.s.Nodes {
		w.s.Nodes[i].Labels = map[string]string{"kubernetes.io/hostname": string(w.s.Nodes[i].Name)}
	}
	for i := range w.s.Classes {
		w.s.Classes[i].Labels = map[string]string{"app": "one"}
		w.s.Classes[i].PodAntiAffinity = []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"default"},
			Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{"one"}}}}}}
	}
	x := Explain(w.s, w.m, w.p, decision.Query{Kind: "node", Name: "n1"})
	if x.Verdicts[0].Rule != decision.RuleNoRoom || x.Node.Destinations[0].Why != "0/1 other nodes have room: 1 node(s) didn't match pod anti-affinity rules" {
		t.Errorf("%+v %+v", x, x.Node)
	}
}

func TestExplainPromise(t *testing.T) {
	w := told(t, "group a 0..5 cpu=2000m mem=8Gi\npods p 3 cpu=1500m")
	var plan decision.Plan
	plan, m := Decide(w.s, w.m, w.p)
	x := Explain(w.s, w.m, w.p, decision.Query{Kind: "pod", Name: "p-001"})
	if x.Verdicts[0].Rule != decision.RuleGrow || !strings.Contains(x.Summary, "group a 0->3") {
		t.Errorf("%+v", x)
	}
	w.last, w.m = plan, m
	w.line("accept")
	w.line("pass 10s")
	_, w.m = Decide(w.s, w.m, w.p)
	w.s.Outcomes = nil
	w.line("pass 30s")
	x = Explain(w.s, w.m, w.p, decision.Query{Kind: "pod", Name: "p-001"})
	if x.Verdicts[0].Rule != decision.RuleRoomUpcoming || x.Pod.Reservation == nil || x.Pod.Reservation.Group != "a" || !strings.Contains(x.Summary, "coming in group a since") || !strings.Contains(x.Summary, "30s ago") {
		t.Errorf("%+v %+v", x, x.Pod.Reservation)
	}
}

func TestExplainNode(t *testing.T) {
	w := told(t, `
group a 1..5 cpu=2000m mem=8Gi target=3
node n1 group=a age=2h
node n2 group=a age=2h
node n3 group=a age=2h anno=cluster-autoscaler.kubernetes.io/scale-down-disabled:true
node other cpu=1000m mem=1Gi
node plane cpu=1000m mem=1Gi plane=1
pods naked 1 cpu=1200m on=n1 owner=none
pods wide 1 cpu=1900m on=n3
pods keep 1 cpu=300m on=n1 safe=false
`)
	w.line("pass 1s")
	for name, want := range map[string][]string{
		"n1":    {`it stays: utilisation 75% is above 50%`, `"D4","ok":false`, `"D6","ok":false`, `"name":"no controller"`, `"name":"safe-to-evict=false"`, `"first":"n2"`},
		"n2":    {"not needed: may go at", `"mayGoAt"`, `"D3","ok":false`, "used little enough: utilisation 0%, at most 50%", "more machines than its minimum: 3, at least 1"},
		"n3":    {"annotated cluster-autoscaler.kubernetes.io/scale-down-disabled", `"D5","ok":false`, `"D4","ok":false`},
		"other": {"no node group of the agent's has an instance for it"},
		"plane": {"a control-plane node is never touched"},
		"n4":    {"there is no node n4"},
	} {
		b, err := json.Marshal(Explain(w.s, w.m, w.p, decision.Query{Kind: "node", Name: name}))
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range want {
			if !strings.Contains(strings.ReplaceAll(string(b), `"rule":`, ""), words) {
				t.Errorf("node %s: no %q in\n%s", name, words, b)
			}
		}
	}
}

func TestExplainGroup(t *testing.T) {
	w := told(t, `
group a 0..5 cpu=2000m mem=8Gi
group b 0..0 cpu=2000m mem=8Gi unknown=gone paused=Launch_is_suspended
failure a capacity no m5.large in zone a
pods p 1 cpu=1000m
daemonset ds cpu=100m
`)
	for name, want := range map[string][]string{
		"a": {"it cannot grow: backed off until", "(capacity): no m5.large in zone a", `"canGrow":false`, `"kube-system/ds"`, "at its minimum of 0"},
		"b": {`"U10"`, `"U11"`, `"U7"`},
		"x": {"there is no node group x"},
	} {
		b, err := json.Marshal(Explain(w.s, w.m, w.p, decision.Query{Kind: "group", Name: name}))
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range want {
			if !strings.Contains(string(b), words) {
				t.Errorf("group %s: no %q in\n%s", name, words, b)
			}
		}
	}
}

func TestSum(t *testing.T) {
	var list []decision.Refusal
	for i := range 7 {
		list = append(list, decision.Refusal{Name: fmt.Sprintf("g%d", i), Rule: explain.RuleResources, Why: "Insufficient cpu, Insufficient memory"})
	}
	list = append(list, decision.Refusal{Name: "h", Rule: decision.RuleBackoff, Why: "backed off"})
	const want = "1 backed off (group h), 7 Insufficient cpu (groups g0, g1, g2, g3, g4, ...), 7 Insufficient memory (groups g0, g1, g2, g3, g4, ...)"
	if got := explain.Sum(list); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func BenchmarkExplain(b *testing.B) {
	s := busy(1000, 30_000, 100)
	p := policy()
	node := string(s.Nodes[0].Name)
	b.ReportAllocs()
	for b.Loop() {
		if x := Explain(s, decision.Memory{}, p, decision.Query{Kind: "node", Name: node}); !x.Found {
			b.Fatal(x.Summary)
		}
	}
}
