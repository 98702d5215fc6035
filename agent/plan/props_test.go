package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

func text(t testing.TB, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func again[T any](t testing.TB, v T) (out T) {
	if err := json.Unmarshal(text(t, v), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// shuffled returns the same Snapshot with every slice in another order.
func shuffled(t testing.TB, s cluster.Snapshot, r *rand.Rand) cluster.Snapshot {
	s = again(t, s)
	mix := func(n int, swap func(i, j int)) { r.Shuffle(n, swap) }
	perm := r.Perm(len(s.Classes))
	classes := make([]cluster.PodClass, len(s.Classes))
	for i, p := range perm {
		classes[p] = s.Classes[i]
	}
	s.Classes = classes
	for pod := range s.AllPods() {
		takes := pod.OnNode()
		if pod.Class = perm[pod.Class]; pod.Takes > 0 {
			pod.Takes = int32(perm[takes]) + 1
		}
	}
	for i := range s.DaemonSets {
		s.DaemonSets[i].Class = perm[s.DaemonSets[i].Class]
	}
	mix(len(s.Pods), func(i, j int) { s.Pods[i], s.Pods[j] = s.Pods[j], s.Pods[i] })
	mix(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
	mix(len(s.Groups), func(i, j int) { s.Groups[i], s.Groups[j] = s.Groups[j], s.Groups[i] })
	mix(len(s.DaemonSets), func(i, j int) { s.DaemonSets[i], s.DaemonSets[j] = s.DaemonSets[j], s.DaemonSets[i] })
	mix(len(s.Controllers), func(i, j int) { s.Controllers[i], s.Controllers[j] = s.Controllers[j], s.Controllers[i] })
	mix(len(s.Budgets), func(i, j int) { s.Budgets[i], s.Budgets[j] = s.Budgets[j], s.Budgets[i] })
	mix(len(s.Outcomes), func(i, j int) { s.Outcomes[i], s.Outcomes[j] = s.Outcomes[j], s.Outcomes[i] })
	for g := range s.Groups {
		in, f := s.Groups[g].Instances, s.Groups[g].Failures
		mix(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		mix(len(f), func(i, j int) { f[i], f[j] = f[j], f[i] })
	}
	for _, n := range s.Nodes {
		ts, ps := n.Taints, n.Pods
		mix(len(ts), func(i, j int) { ts[i], ts[j] = ts[j], ts[i] })
		mix(len(ps), func(i, j int) { ps[i], ps[j] = ps[j], ps[i] })
	}
	return s
}

// check decides once and holds the result against everything that must always be
// true. It returns the result.
func check(t testing.TB, s cluster.Snapshot, m decision.Memory, p decision.Policy, seed uint64) (decision.Plan, decision.Memory) {
	t.Helper()
	sb, mb := text(t, s), text(t, m)
	plan, out := Decide(s, m, p)
	if !bytes.Equal(sb, text(t, s)) || !bytes.Equal(mb, text(t, m)) {
		t.Fatal("an input was changed")
	}
	same := func(what string, plan2 decision.Plan, out2 decision.Memory) {
		t.Helper()
		if plan.String() != plan2.String() || !plan.Wake.Equal(plan2.Wake) || !bytes.Equal(text(t, out), text(t, out2)) {
			t.Fatalf("%s: another result (seed %d)\n%s%s\n%s\n--- was\n%s%s\n%s", what, seed, plan2, plan2.Wake, text(t, out2), plan, plan.Wake, text(t, out))
		}
	}
	plan2, out2 := Decide(again(t, s), again(t, m), again(t, p))
	same("replay", plan2, out2)
	plan2, out2 = Decide(again(t, s.Seated()), m, p)
	same("seated", plan2, out2)
	r := rand.New(rand.NewPCG(seed, 1))
	plan2, out2 = Decide(shuffled(t, s.Seated(), r), m, p)
	same("order", plan2, out2)
	checkActions(t, &s, &m, &p, plan)
	checkInterrupted(t, s.Seated(), &m, plan)
	checkDisruption(t, s.Seated(), &p, plan)
	checkReservations(t, s, out)
	checkFixpoint(t, s, m, out, p, plan)
	checkRestart(t, s, p)
	checkPatience(t, s, out, p, plan)
	return plan, out
}

// checkPatience: a machine is held no longer than the setting says, and a round comes when it is due.
func checkPatience(t testing.TB, s cluster.Snapshot, m decision.Memory, p decision.Policy, plan decision.Plan) {
	t.Helper()
	held := func(plan decision.Plan) bool {
		return slices.ContainsFunc(plan.Held, func(h decision.Held) bool { return h.Rule == decision.RulePatience })
	}
	if !held(plan) {
		return
	}
	end := s.Now.Add(p.Patience)
	if plan.Wake.IsZero() || plan.Wake.After(end) {
		t.Fatalf("a machine is held until %s, and the next round is at %s\n%s", end, plan.Wake, plan)
	}
	s.Now = end
	if late, _ := Decide(s, m, p); held(late) {
		t.Fatalf("%s later a machine is still held\n%s--- was\n%s", p.Patience, late, plan)
	}
}

// checkReservations: the pods that are remembered together on one machine have room on one of the group.
func checkReservations(t testing.TB, s cluster.Snapshot, m decision.Memory) {
	t.Helper()
	requests := map[cluster.PodKey]cluster.Resources{}
	for pod := range s.AllPods() {
		requests[pod.Key] = s.Classes[pod.Class].Requests
	}
	type machine struct {
		group  cluster.GroupID
		number int
	}
	left := map[machine]cluster.Resources{}
	for _, r := range m.Reservations {
		at := machine{r.Group, r.Machine}
		if r.Machine == 0 {
			continue
		}
		if _, known := left[at]; !known {
			g := slices.IndexFunc(s.Groups, func(g cluster.NodeGroup) bool { return g.ID == r.Group })
			left[at] = s.Groups[g].Template.Allocatable
		}
		for _, key := range r.Pods {
			left[at] = left[at].Sub(requests[key])
		}
	}
	for at, room := range left {
		if room.MilliCPU < 0 || room.Memory < 0 || room.Pods < 0 {
			t.Fatalf("machine %d of group %s has room for less than what is put on it: %+v left", at.number, at.group, room)
		}
	}
}

func movable(s *cluster.Snapshot, n cluster.NodeName) []string {
	var out []string
	for pod := range s.AllPods() {
		if pod.Node == n && !pod.Mirror && !pod.Finished && (pod.Owner == nil || pod.Owner.Kind != "DaemonSet") &&
			(pod.Deleting.IsZero() || !s.Now.After(pod.Deleting.Add(30*time.Second))) {
			out = append(out, string(pod.Key))
		}
	}
	return out
}

func checkActions(t testing.TB, s *cluster.Snapshot, m *decision.Memory, p *decision.Policy, plan decision.Plan) {
	t.Helper()
	grown, shrunk := map[cluster.GroupID]int{}, map[cluster.GroupID]int{}
	budget := map[string]int{}
	unguarded := map[string]bool{}
	for _, b := range s.Budgets {
		budget[b.Key] = b.Allowed
		unguarded[b.Key] = b.Unready
	}
	group := func(id cluster.GroupID) *cluster.NodeGroup {
		return &s.Groups[slices.IndexFunc(s.Groups, func(g cluster.NodeGroup) bool { return g.ID == id })]
	}
	nodeOf := func(name cluster.NodeName) *cluster.Node {
		return s.Nodes[slices.IndexFunc(s.Nodes, func(n *cluster.Node) bool { return n.Name == name })]
	}
	id := cluster.Identify(s.Groups, s.Nodes)
	groupOf := func(name cluster.NodeName) cluster.GroupID {
		for _, g := range s.Groups {
			for _, in := range g.Instances {
				if in.ID == id.Instance[name] {
					return g.ID
				}
			}
		}
		return ""
	}
	nodes := len(s.Nodes)
	for _, a := range plan.Actions {
		if s.Stale != "" {
			if _, ok := a.(decision.Grow); !ok {
				t.Fatalf("on stale facts: %s", a)
			}
		}
		switch a := a.(type) {
		case decision.Grow:
			g := group(a.Group)
			grown[a.Group]++
			nodes += a.To
			if a.To > g.Max || a.To <= a.From || grown[a.Group] > 1 || g.Stale != "" || g.Busy != "" {
				t.Fatalf("out of bounds: %s", a)
			}
			if !slices.IsSorted(a.Pods) {
				t.Fatalf("pods out of order: %s", a)
			}
		case decision.Terminate:
			g := group(a.Group)
			shrunk[a.Group]++
			if g.Stale != "" || s.Now.Sub(g.ReadAt) > p.FreshFor || g.Keeps != "" || g.Busy != "" {
				t.Fatalf("terminate on stale facts, or against the cloud's will: %s", a)
			}
			if a.Forced && (p.ReplaceDrainOverdue != "force" || a.Rule != decision.RuleForced) {
				t.Fatalf("%s, and no setting lets it", a)
			}
			if left := movable(s, a.Node); a.Node != "" && len(left) > 0 && !a.Forced {
				t.Fatalf("%s, and it still has %v", a, left)
			}
			if n, ok := id.Node[a.Instance]; ok && n != a.Node {
				t.Fatalf("%s, and it backs %s", a, n)
			}
			if a.Node != "" && (!round.ToBeDeleted(nodeOf(a.Node)) || !round.CordonedByUs(nodeOf(a.Node))) {
				t.Fatalf("%s, and it carries no mark of ours", a)
			}
			if g.Target-shrunk[a.Group] < g.Min && m.Resized == nil {
				t.Fatalf("%s: below the minimum of %d", a, g.Min)
			}
		case decision.Cordon:
			if a.Rule == decision.RuleInterrupted {
				continue // the cloud ends it, whatever anybody wants; see checkInterrupted
			}
			shrunk[groupOf(a.Node)]++
			if n := nodeOf(a.Node); n.ControlPlane || round.OptedOut(n) != "" || groupOf(a.Node) != "" && group(groupOf(a.Node)).Keeps != "" {
				t.Fatalf("not to be touched: %s", a)
			}
		case decision.Evict:
			for i := range s.AllPods() {
				if i.Key == a.Pod {
					for _, b := range i.Budgets {
						if i.Unstarted || len(i.Budgets) == 1 && i.Unready && unguarded[b] {
							continue
						}
						if budget[b]--; budget[b] < 0 {
							t.Fatalf("budget %s is overdrawn by %s", b, a)
						}
					}
				}
			}
		}
	}
	for g := range grown {
		if shrunk[g] > 0 {
			t.Fatalf("group %s grows and shrinks:\n%s", g, plan)
		}
	}
}

// checkInterrupted: what the cloud ends is emptied in the same round as far as budgets
// allow it, and nothing else is done about its machine; nobody else is cordoned for that.
func checkInterrupted(t testing.TB, s cluster.Snapshot, m *decision.Memory, plan decision.Plan) {
	t.Helper()
	evicted, of, left := map[cluster.PodKey]bool{}, map[cluster.InstanceID]*cluster.Instance{}, map[string]int{}
	paused := map[cluster.InstanceID]bool{}
	for _, b := range s.Budgets {
		left[b.Key] = b.Allowed
	}
	for g := range s.Groups {
		for i := range s.Groups[g].Instances {
			in := &s.Groups[g].Instances[i]
			of[in.ID], paused[in.ID] = in, s.Groups[g].Pause != nil
		}
	}
	id := cluster.Identify(s.Groups, s.Nodes)
	ends := func(n cluster.NodeName) bool {
		in := of[id.Instance[n]]
		return in != nil && in.Interruption != nil
	}
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case decision.Evict:
			evicted[a.Pod] = true
			if in := of[id.Instance[a.Node]]; ends(a.Node) && a.Why != "" && a.Grace > max(in.Interruption.By.Sub(s.Now), time.Second) {
				t.Fatalf("%s has %s, and the machine ends at %s", a, a.Grace, in.Interruption.By)
			}
		case decision.Terminate:
			if in := of[a.Instance]; in != nil && in.Interruption != nil {
				t.Fatalf("%s, and the cloud ends it by itself", a)
			}
		case decision.Cordon:
			if a.Rule == decision.RuleInterrupted && !ends(a.Node) {
				t.Fatalf("%s, and nobody ends it", a)
			}
		case decision.Uncordon:
			if ends(a.Node) && !paused[id.Instance[a.Node]] {
				t.Fatalf("%s, and the cloud ends it", a)
			}
		}
	}
	for pod := range s.AllPods() {
		if evicted[pod.Key] {
			for _, b := range pod.Budgets {
				left[b]--
			}
		}
	}
	for _, n := range s.Nodes {
		_, told := m.Deleted[id.Instance[n.Name]]
		if !ends(n.Name) || paused[id.Instance[n.Name]] || s.Stale != "" || told || n.Deleting || n.ControlPlane {
			continue
		}
		for i := range n.Pods {
			pod := &n.Pods[i]
			free := len(pod.Budgets) == 0 || len(pod.Budgets) == 1 && left[pod.Budgets[0]] > 0
			if free && !evicted[pod.Key] && !pod.Mirror && !pod.Finished && !round.Daemon(pod) && pod.Deleting.IsZero() {
				t.Fatalf("pod %s stays on node %s, whose machine the cloud ends:\n%s", pod.Key, n.Name, plan)
			}
		}
	}
}

// carriedOut is the Snapshot after the cloud accepted the plan's growth.
func carriedOut(t testing.TB, s cluster.Snapshot, plan decision.Plan) cluster.Snapshot {
	s = again(t, s)
	s.Outcomes = nil
	for _, a := range plan.Actions {
		if g, ok := a.(decision.Grow); ok {
			for i := range s.Groups {
				if s.Groups[i].ID == g.Group {
					s.Groups[i].Target = g.To
				}
			}
			s.Outcomes = append(s.Outcomes, cluster.Outcome{Action: "grow", Group: g.Group, From: g.From, To: g.To, At: s.Now})
		}
	}
	return s
}

func checkFixpoint(t testing.TB, s cluster.Snapshot, m, out decision.Memory, p decision.Policy, plan decision.Plan) {
	t.Helper()
	after := carriedOut(t, s, plan)
	plan2, _ := Decide(after, out, p)
	for _, a := range plan2.Actions {
		if g, ok := a.(decision.Grow); ok && !firstOrder(plan, g) && !heldOrder(plan, g) && !heldMachines(s, m, p, plan, plan2) {
			t.Fatalf("no fixpoint: after\n%s\nthe same pods still want\n%s", plan, g)
		}
	}
}

// firstOrder tells a machine that is ordered in place of a node, or of several that are dear, in a group for which the plan before did not order one: it may have
// waited for a purchase of that plan.
func firstOrder(before decision.Plan, g decision.Grow) bool {
	return (g.Rule == decision.RuleReplace || g.Rule == decision.RuleConsolidate) && !slices.ContainsFunc(before.Actions, func(a decision.Action) bool {
		b, ok := a.(decision.Grow)
		return ok && b.Rule == g.Rule && b.Group == g.Group
	})
}

// heldOrder tells machines for no more pods than the plan before let wait for a fuller machine: how full it would be depends on the others.
func heldOrder(before decision.Plan, g decision.Grow) bool {
	n := 0
	for _, h := range before.Held {
		if h.Rule == decision.RulePatience {
			n += h.Count
		}
	}
	return g.Rule == decision.RuleGrow && len(g.Pods)+g.Expected <= n
}

// heldMachines tells that two plans order no more machines together than one would that lets no pod wait for a fuller machine. Which pods
// the ordered machines are for is looked at anew (and after a restart not known): the pods that waited may use them, and others get the
// machines that were held.
func heldMachines(s cluster.Snapshot, m decision.Memory, p decision.Policy, plans ...decision.Plan) bool {
	machines := func(plans ...decision.Plan) (n int) {
		for _, plan := range plans {
			for _, a := range plan.Actions {
				if g, ok := a.(decision.Grow); ok && g.Rule != decision.RuleReplace {
					n += g.To - g.From
				}
			}
		}
		return n
	}
	if p.Patience = 0; !slices.ContainsFunc(plans[0].Held, func(h decision.Held) bool { return h.Rule == decision.RulePatience }) {
		return false
	}
	plan, _ := Decide(s, m, p)
	return machines(plans...) <= machines(plan)
}

// checkRestart decides with a zero Memory: nothing is marked at once, and only nodes
// that carry our mark and instances that never became nodes are terminated.
func checkRestart(t testing.TB, s cluster.Snapshot, p decision.Policy) {
	t.Helper()
	plan, _ := Decide(s, decision.Memory{}, p)
	for _, a := range plan.Actions {
		if c, ok := a.(decision.Cordon); ok && !slices.Contains([]string{decision.RuleRequested, decision.RuleInterrupted, decision.RuleReplaceNode, decision.RuleSick, decision.RuleDrifted, decision.RuleExpired}, c.Rule) && p.UnneededFor > 0 && p.UnreadyFor > 0 {
			t.Fatalf("marked at once after a restart: %s", c)
		}
	}
	if len(s.Outcomes) > 0 {
		return // a process that starts has no outcomes
	}
	after := carriedOut(t, s, plan)
	after.Outcomes = nil
	plan2, _ := Decide(after, decision.Memory{}, p)
	for _, a := range plan2.Actions {
		if g, ok := a.(decision.Grow); ok && !firstOrder(plan, g) && !heldOrder(plan, g) && !heldMachines(s, decision.Memory{}, p, plan, plan2) {
			t.Fatalf("a restart buys twice: after\n%s\nthe same pods still want\n%s", plan, g)
		}
	}
}

// world of chance -------------------------------------------------------------------

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func someClass(r *rand.Rand, i int) cluster.PodClass {
	c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": fmt.Sprint(i)},
		Requests: cluster.Resources{MilliCPU: int64(r.IntN(20)) * 100, Memory: int64(r.IntN(16)) << 28, Pods: 1}, Priority: pick(r, int32(0), 0, 0, 100, -20)}
	if r.IntN(6) == 0 {
		c.HostPorts = []cluster.HostPort{{IP: pick(r, "0.0.0.0", "10.0.0.1", ""), Protocol: "TCP", Port: int32(80 + r.IntN(2))}}
	}
	if r.IntN(6) == 0 {
		c.NodeSelector = map[string]string{"pool": pick(r, "a", "b")}
	}
	if r.IntN(6) == 0 {
		c.Affinity = []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: "pool", Operator: pick(r, "In", "NotIn", "Exists", "DoesNotExist"), Values: []string{"a"}}}}}
	}
	if r.IntN(5) == 0 {
		c.Tolerations = []cluster.Toleration{{Key: "team", Operator: "Exists"}}
	}
	if r.IntN(12) == 0 {
		c.NotUnderstood = []string{"required podAntiAffinity"}
	}
	if r.IntN(8) == 0 {
		c.Requests.Extended = map[string]int64{"nvidia.com/gpu": 1}
	}
	if r.IntN(3) == 0 {
		someTies(r, &c, i)
	}
	return c
}

// someTies constraints a class to others and to volumes.
func someTies(r *rand.Rand, c *cluster.PodClass, i int) {
	app := func() *cluster.Selector {
		return &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{fmt.Sprint(pick(r, i, i, i, r.IntN(6)))}}}}
	}
	key := func() string { return pick(r, hostname, hostname, "zone", "zone", "pool") }
	term := func() cluster.PodTerm {
		return cluster.PodTerm{TopologyKey: key(), Selector: app(), Namespaces: []string{"default"}}
	}
	if r.IntN(3) == 0 {
		c.PodAffinity = append(c.PodAffinity, term())
	}
	if r.IntN(3) == 0 {
		c.PodAntiAffinity = append(c.PodAntiAffinity, term())
	}
	for range r.IntN(3) {
		c.Spread = append(c.Spread, cluster.Spread{TopologyKey: key(), MaxSkew: 1 + r.IntN(2), MinDomains: pick(r, 0, 0, 0, 2), Selector: app(), IgnoreNodeAffinity: r.IntN(4) == 0, HonorTaints: r.IntN(4) == 0})
	}
	if r.IntN(5) == 0 {
		v := cluster.Volume{Claim: fmt.Sprint("default/c", r.IntN(4)), Driver: "ebs", Handle: fmt.Sprint("v", r.IntN(4)), OnePod: r.IntN(3) == 0, Refused: pick(r, "", "", "", "persistentvolumeclaim not found")}
		if r.IntN(2) == 0 {
			v.Affinity = []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: "zone", Operator: "In", Values: []string{pick(r, "a", "b")}}}}}
		}
		c.Volumes = append(c.Volumes, v)
	}
}

func someTemplate(r *rand.Rand) cluster.Template {
	t := cluster.Template{Spec: "lt-1", Capacity: cluster.Resources{MilliCPU: 2000, Memory: 8 << 30, Pods: 110},
		Allocatable: cluster.Resources{MilliCPU: int64(1+r.IntN(8)) * 500, Memory: int64(1+r.IntN(16)) << 30, Pods: pick(r, int64(4), 30, 110)}}
	if r.IntN(2) == 0 {
		t.Labels = map[string]string{"pool": pick(r, "a", "b")}
	}
	if r.IntN(4) > 0 {
		round.Set(&t.Labels, "zone", pick(r, "a", "b", "c"))
	}
	if r.IntN(3) == 0 {
		t.VolumeLimits = map[string]int64{"ebs": int64(r.IntN(4))}
	}
	if r.IntN(4) == 0 {
		t.Taints = []cluster.Taint{{Key: "team", Value: "x", Effect: "NoSchedule"}}
	}
	if r.IntN(6) == 0 {
		t.Allocatable.Extended = map[string]int64{"nvidia.com/gpu": 2}
	}
	if r.IntN(15) == 0 {
		t.Unknown = "launch template not found"
	}
	return t
}

func someWorld(r *rand.Rand) (cluster.Snapshot, decision.Memory, decision.Policy) {
	p := policy()
	p.Expander = pick(r, "least-waste", "most-pods", "least-nodes", "most-pods,least-waste")
	p.MaxNodesTotal = pick(r, 0, 0, 0, 12)
	somePolicy(r, &p)
	p.MaxCoresTotal = pick(r, int64(0), 0, 0, 20)
	s := cluster.Snapshot{Now: t0}
	ago := func(max time.Duration) time.Time {
		return t0.Add(-time.Duration(r.Int64N(int64(max)))).Truncate(time.Second)
	}
	for i := range 1 + r.IntN(6) {
		s.Classes = append(s.Classes, someClass(r, i))
	}
	for i := range r.IntN(3) {
		s.DaemonSets = append(s.DaemonSets, cluster.DaemonSet{Key: cluster.PodKey(fmt.Sprintf("kube-system/ds-%d", i)), UID: cluster.UID(fmt.Sprintf("ds-%d", i)), Class: r.IntN(len(s.Classes))})
	}
	for i := range r.IntN(3) {
		s.Budgets = append(s.Budgets, cluster.Budget{Key: fmt.Sprintf("default/pdb-%d", i), Allowed: r.IntN(3)})
	}
	m := decision.Memory{}
	for g := range 1 + r.IntN(3) {
		id := cluster.GroupID(fmt.Sprintf("g%d", g))
		gr := cluster.NodeGroup{ID: id, Min: r.IntN(3), Max: r.IntN(9), Template: someTemplate(r), ReadAt: t0.Add(-pick(r, 0, 0, 0, 2*time.Minute))}
		gr.Stale = pick(r, "", "", "", "", "throttled")
		gr.Paused = pick(r, "", "", "", "", "", "Launch is suspended")
		switch gr.Max { // drawn already: another draw would make other worlds of the seeds that found something
		case 3:
			gr.Keeps = "a rollout is under way"
		case 5:
			gr.Busy = "cluster k8s updates"
		}
		someWishes(r, &gr, s.Groups)
		n := r.IntN(5)
		for i := range n {
			in := cluster.Instance{ID: cluster.InstanceID(fmt.Sprintf("aws:///z/i-%d%d", g, i)), Member: r.IntN(10) > 0, Created: ago(time.Hour),
				Phase: pick(r, cluster.PhaseRunning, cluster.PhaseRunning, cluster.PhaseRunning, cluster.PhaseRunning, cluster.PhasePending, cluster.PhaseDeleting, cluster.PhaseStopped, cluster.PhaseFailed, cluster.PhaseGone)}
			if in.Phase == cluster.PhaseDeleting && in.Created.Unix()%4 > 0 { // no draw, as above
				in.Interruption = &cluster.Interruption{Why: "spot interruption notice", By: t0.Add(time.Duration(in.Created.Unix()%130) * time.Second)}
			}
			gr.Instances = append(gr.Instances, in)
			if r.IntN(4) > 0 {
				someNode(r, &s, &m, &gr, in, ago)
			}
		}
		gr.Target = max(n+r.IntN(5)-1, 0)
		if r.IntN(5) == 0 {
			gr.Failures = append(gr.Failures, cluster.Failure{Cause: pick(r, cluster.CauseCapacity, cluster.CauseQuota), Text: "no capacity", At: ago(10 * time.Minute)}, cluster.Failure{Cause: cluster.CauseCapacity, Text: "older", At: ago(time.Hour)})
		}
		if r.IntN(4) == 0 {
			round.Set(&m.Resized, id, decision.Resized{To: gr.Target + r.IntN(2), At: ago(2 * time.Minute)})
		}
		s.Groups = append(s.Groups, gr)
	}
	for i := range r.IntN(25) {
		pod := somePod(r, &s, i, ago)
		if r.IntN(3) > 0 {
			pod.Unschedulable = cluster.At(ago(time.Minute))
		}
		if r.IntN(3) == 0 {
			m.Reservations = append(m.Reservations, decision.Reservation{Group: pick(r, cluster.GroupID("g0"), "g1"), Pods: []cluster.PodKey{pod.Key}})
		}
		s.Pods = append(s.Pods, pod)
	}
	if r.IntN(4) == 0 {
		s.Controllers = append(s.Controllers, cluster.Controller{Owner: cluster.Owner{Kind: "ReplicaSet", Name: "rs-1", UID: "rs-1"}, Key: "default/rs-1", Missing: r.IntN(20)})
	}
	s.Stale = pick(r, "", "", "", "", "", "", "the API server does not answer")
	m.LittleFilled = t0.Add(-time.Second) // no draw: with patience, pods wait for fuller machines
	someReplacements(&s, &m, &p)
	someDevices(rand.New(rand.NewPCG(r.Uint64(), 58)), &s)
	return s, m, p
}

// someDevices gives half of the worlds devices, and pods that claim them. It draws last, as above.
func someDevices(r *rand.Rand, s *cluster.Snapshot) {
	if r.IntN(2) == 0 {
		return
	}
	kinds := []string{"gpu", "nic"}
	some := func() *cluster.Devices {
		out := &cluster.Devices{Unready: pick(r, "", "", "", "", "nic/pool")}
		for range r.IntN(5) {
			kind := pick(r, kinds...)
			out.Devices = append(out.Devices, cluster.Device{Driver: kind, Matches: []string{kind}, Attributes: map[string]string{"k/numa": pick(r, "int:0", "int:1")}})
		}
		return pick(r, out, out, nil)
	}
	for i := range s.Groups {
		s.Groups[i].Template.Devices = some()
	}
	for i, n := range s.Nodes {
		own := *n
		if own.Devices = some(); own.Devices != nil {
			for k := range own.Devices.Devices {
				own.Devices.Devices[k].Taken = r.IntN(2) == 0
			}
		}
		s.Nodes[i] = &own
	}
	for i := range s.Classes {
		for range max(0, r.IntN(4)-1) {
			ask := func() cluster.DeviceAsk {
				return cluster.DeviceAsk{Selectors: []string{pick(r, kinds...)}, Count: 1 + r.IntN(2), All: r.IntN(5) == 0, Admin: r.IntN(8) == 0}
			}
			c := cluster.DeviceClaim{Requests: []cluster.DeviceRequest{{Name: "a", Alternatives: []cluster.DeviceAsk{ask()}}}, Refused: pick(r, "", "", "", "", "", "device class x does not exist")}
			if r.IntN(3) == 0 {
				c.Requests[0].Alternatives = append(c.Requests[0].Alternatives, ask())
			}
			if r.IntN(3) == 0 {
				c.Constraints = []cluster.DeviceConstraint{{Attribute: "k/numa", Distinct: r.IntN(3) == 0}}
			}
			if r.IntN(8) == 0 && len(s.Nodes) > 0 {
				c = cluster.DeviceClaim{On: []cluster.NodeTerm{{Fields: []cluster.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{string(s.Nodes[0].Name)}}}}}}
			}
			s.Classes[i].Claims = append(s.Classes[i].Claims, c)
		}
	}
}

func somePod(r *rand.Rand, s *cluster.Snapshot, i int, ago func(time.Duration) time.Time) cluster.Pod {
	rs := fmt.Sprintf("rs-%d", r.IntN(4))
	pod := cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/p-%03d", i)), UID: cluster.UID(fmt.Sprintf("p-%d", i)), Class: r.IntN(len(s.Classes)),
		Created: cluster.At(ago(time.Minute)), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: rs, UID: cluster.UID(rs)}, GracePeriod: 30}
	if len(s.Budgets) > 0 && r.IntN(3) == 0 {
		pod.Budgets = []string{s.Budgets[r.IntN(len(s.Budgets))].Key}
	}
	return pod
}

func someNode(r *rand.Rand, s *cluster.Snapshot, m *decision.Memory, g *cluster.NodeGroup, in cluster.Instance, ago func(time.Duration) time.Time) {
	n := cluster.Node{Name: cluster.NodeName("node-" + string(in.ID[len(in.ID)-2:])), UID: cluster.UID(in.ID), ProviderID: string(in.ID), Created: in.Created,
		Labels: g.Template.Labels, Taints: g.Template.Taints, Allocatable: g.Template.Allocatable, Capacity: g.Template.Capacity, Ready: pick(r, cluster.StatusTrue, cluster.StatusTrue, cluster.StatusTrue, cluster.StatusFalse)}
	if r.IntN(8) > 0 {
		n.Labels = maps.Clone(n.Labels)
		round.Set(&n.Labels, hostname, string(n.Name))
	}
	switch r.IntN(6) {
	case 0:
		n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: cluster.TaintToBeDeleted, Value: fmt.Sprint(ago(2 * time.Minute).Unix()), Effect: "NoSchedule"})
		n.Unschedulable = true
		if r.IntN(4) > 0 {
			n.Annotations = map[string]string{cluster.AnnotationCordoned: "true"}
			if in.Created.Unix()%3 == 0 {
				n.Annotations[cluster.AnnotationCordoned] += " " + decision.RuleInterrupted
			}
		}
	case 1:
		n.Annotations = map[string]string{cluster.AnnotationNoScaleDown: "true"}
	}
	if r.IntN(2) == 0 {
		round.Set(&m.Unneeded, n.Name, ago(30*time.Minute))
	}
	if r.IntN(2) == 0 {
		round.Set(&m.Unready, n.Name, ago(40*time.Minute))
	}
	someStart(&n, m)
	s.Nodes = append(s.Nodes, &n)
	for range r.IntN(4) {
		pod := somePod(r, s, 100+len(s.Pods), ago)
		pod.Node = n.Name
		pod.LocalStorage = pick(r, "", "", "", "", "cache")
		pod.SafeToEvict = pick(r, "", "", "", "true", "false")
		if r.IntN(6) == 0 {
			pod.Deleting = cluster.At(t0.Add(time.Duration(r.IntN(120)-90) * time.Second))
		}
		s.Pods = append(s.Pods, pod)
	}
}

// someStart gives a node a start that is not over, or was not, by the second in which it was made: another
// draw would make other worlds of the seeds that found something.
func someStart(n *cluster.Node, m *decision.Memory) {
	x := n.Created.Unix()
	start := decision.Start{}
	if x%3 == 0 {
		start.Taints = []cluster.Taint{{Key: "agent-not-ready", Value: fmt.Sprint(x % 2), Effect: pick2(x%2 == 0, "NoExecute", "NoSchedule")}}
		n.Taints = append(slices.Clone(n.Taints), start.Taints...)
		if x%7 == 0 {
			n.OperatorTaints = start.Taints
		}
	}
	if key := slices.Sorted(maps.Keys(n.Labels)); x%5 < 2 && len(key) > 0 {
		n.Labels = maps.Clone(n.Labels)
		delete(n.Labels, key[0])
		start.Labels = key[:1]
	}
	if x%11 < 3 {
		n.Allocatable.Extended = map[string]int64{"nvidia.com/gpu": 0}
	}
	switch x % 4 {
	case 0:
		round.Set(&m.Starting, n.Name, start)
	case 1:
		round.Set(&m.Starting, n.Name, decision.Start{Passed: t0.Add(-time.Duration(x%20) * time.Second)})
	}
}

func pick2(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

func TestProperties(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 300
	}
	for seed := range uint64(n) {
		s, m, p := someWorld(rand.New(rand.NewPCG(seed, 0)))
		t.Run("", func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			check(t, s, m, p, seed)
		})
		if t.Failed() {
			return
		}
	}
}

func FuzzDecide(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		s, m, p := someWorld(rand.New(rand.NewPCG(a, b)))
		check(t, s, m, p, a^b)
		s, m, p = replaceWorld(rand.New(rand.NewPCG(a, b)))
		check(t, s, m, p, a^b)
	})
}
