package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// rolling is a rollout of source b, as far as somebody meddles with it.
type rolling struct {
	*sim
	cordons []time.Time // at which a node was cordoned because it is drifted
	halts   []decision.Halt
}

func newRolling(t *testing.T) *rolling {
	seed := drawn.Seed(t)
	r := &rolling{sim: rolloutSim(t, seed)}
	r.fleet.each = func(p decision.Plan) {
		r.halts = append(r.halts, r.m.Halts...)
		for _, a := range p.Actions {
			if c, ok := a.(decision.Cordon); ok && c.Rule == decision.RuleDrifted {
				r.cordons = append(r.cordons, r.s.Now)
			}
		}
	}
	r.start("b")
	return r
}

func (r *rolling) start(image string) { r.s.Groups[0].Template.Source = cluster.Spec{"image": image} }

// half plays until less than 12 machines of the first source are left.
func (r *rolling) half() { r.play(10*time.Hour, func() bool { return r.sources()["a"] < 12 }) }

// still plays for a time, and judges that no node is cordoned meanwhile and that what was begun has ended.
func (r *rolling) still(d time.Duration) {
	r.t.Helper()
	r.cordons = nil
	before := r.sources()["a"]
	r.play(d, func() bool { return false })
	if len(r.cordons) > 0 || r.sources()["a"] < before-2 { // two drains may be under way
		r.t.Errorf("%d nodes were cordoned, of %d machines %d are left (seed %d)", len(r.cordons), before, r.sources()["a"], r.seed)
	}
}

// ends plays until each machine has the image, and some time more.
func (r *rolling) ends(image string) {
	r.t.Helper()
	began := r.s.Now
	done := func() bool { return r.sources()[image] == len(r.s.Groups[0].Instances) }
	r.play(72*time.Hour, done)
	if !done() {
		plan, _ := Decide(r.s, r.m, r.p)
		r.t.Fatalf("%v after %s (seed %d)\n%s", r.sources(), r.s.Now.Sub(began), r.seed, plan)
	}
	r.play(30*time.Minute, func() bool { return false })
	twice := slices.DeleteFunc(slices.Collect(maps.Keys(r.fleet.replaced)), func(n cluster.NodeName) bool { return r.fleet.replaced[n] == 1 })
	if len(twice) > 0 || r.running() != len(r.s.Pods) || !done() {
		r.t.Errorf("ended twice %v, %d of %d pods run, %v (seed %d)", twice, r.running(), len(r.s.Pods), r.sources(), r.seed)
	}
}

// size compares the machines with what the pods need, and the most that there were.
func (r *rolling) size(machines, most int) {
	r.t.Helper()
	if g := r.s.Groups[0]; g.Target != machines || len(g.Instances) != machines || r.fleet.most > most {
		r.t.Errorf("%d machines, target %d, want %d; at most %d, want %d (seed %d)", len(g.Instances), g.Target, machines, r.fleet.most, most, r.seed)
	}
}

func (r *rolling) held(rule string) (out []string) {
	plan, _ := Decide(r.s, r.m, r.p)
	for _, h := range plan.Held {
		if h.Rule == rule {
			out = append(out, h.String())
		}
	}
	return out
}

// stuck compares what rollout status says while no node goes.
func (r *rolling) stuck(want string) {
	r.t.Helper()
	plan, _ := Decide(r.s, r.m, r.p)
	if why := plan.Rollouts[0].Why; !strings.HasPrefix(why, "no node goes now: node-") || !strings.Contains(why, want) {
		r.t.Errorf("%q, want %q in it", why, want)
	}
}

// situations are what operators, clouds and workloads do in the middle of a rollout. In each of them rolling ends, no deployment is below its
// budget (fleet judges it at each step), and nothing happens any more in the end.
var situations = map[string]func(*rolling){
	"a source after the next": func(r *rolling) {
		r.half()
		r.start("c")
		r.ends("c")
		r.size(20, 22)
	},
	"the old source comes back": func(r *rolling) {
		r.half()
		r.start("a")
		r.ends("a")
		r.size(20, 22)
	},
	"the source is switched back and forth each ten minutes for five hours": func(r *rolling) {
		for range 15 {
			for _, image := range []string{"c", "b"} {
				r.start(image)
				r.play(10*time.Minute, func() bool { return false })
			}
		}
		r.ends("b")
		r.size(20, 22)
	},
	"two properties drift at once, one of them twice": func(r *rolling) {
		r.half()
		r.s.Groups[0].Template.Source = cluster.Spec{"image": "b", "user data": "1"}
		r.play(30*time.Minute, func() bool { return false })
		r.s.Groups[0].Template.Source = cluster.Spec{"image": "c", "user data": "2"}
		r.ends("c")
		r.size(20, 22)
	},
	"a window that never opens": func(r *rolling) {
		r.half()
		never := cluster.DisruptionBudgets{{Nodes: 0, Cron: "0 0 30 2 *", For: time.Hour}, {Nodes: 0}}
		r.s.Groups[0].Options.Budgets = &never
		r.still(time.Hour)
		if len(r.held(decision.RuleDisruption)) == 0 {
			r.t.Error("no node tells which budget holds it")
		}
		r.s.Groups[0].Options.Budgets = nil
		r.ends("b")
		r.size(20, 22)
	},
	"at the maximum, and no PodDisruptionBudget allows anything": func(r *rolling) {
		r.s.Groups[0].Max = 20
		r.fleet.closed = map[int]bool{}
		for class := range 20 {
			r.fleet.closed[class] = true
		}
		r.still(time.Hour)
		r.stuck("allows no disruption")
		r.size(20, 20)
		r.s.Groups[0].Max, r.fleet.closed = 21, nil
		r.ends("b")
		r.size(20, 21)
	},
	"a PodDisruptionBudget allows nothing for two hours": func(r *rolling) {
		r.fleet.closed = map[int]bool{3: true, 4: true}
		r.play(2*time.Hour, func() bool { return false })
		if r.sources()["a"] == 0 {
			r.t.Errorf("nodes went with pods whose budget allows nothing: %v", r.sources())
		}
		r.fleet.closed = nil
		r.ends("b")
		r.size(20, 22)
	},
	"a window of the night on which clocks are put forward": func(r *rolling) { window(r, time.Date(2027, 3, 27, 23, 0, 0, 0, time.UTC)) },
	"a window of the night on which clocks are put back":    func(r *rolling) { window(r, time.Date(2027, 10, 30, 22, 0, 0, 0, time.UTC)) },
	"the group is at its maximum": func(r *rolling) {
		r.s.Groups[0].Max = 20
		r.still(2 * time.Hour)
		if held := strings.Join(r.held(decision.RuleReplace), "\n"); !strings.Contains(held, decision.RuleMax) {
			r.t.Errorf("no node tells that its group is at its maximum: %s", held)
		}
		r.stuck("at its maximum of 20")
		r.size(20, 20)
		r.s.Groups[0].Max = 21
		r.ends("b")
		r.size(20, 21)
	},
	"at the maximum one is emptied first, and the image never joins": func(r *rolling) {
		r.s.Groups[0].Max, r.p.ReplaceAtMax, r.fleet.began = 20, "empty-first", false // its pods have no place for a time
		r.start("never joins")
		r.play(3*time.Hour, func() bool { return false })
		if left := r.sources()["a"]; left != 19 || len(r.held(decision.RuleHalted)) == 0 {
			r.t.Errorf("%v, halted %v", r.sources(), r.held(decision.RuleHalted))
		}
		r.s.Groups[0].Max = 21 // two pods of one deployment cannot leave a node one after the other where no machine has room for the first
		r.start("b")
		r.ends("b")
		r.size(20, 21)
	},
	"a burst of pods": func(r *rolling) {
		r.half()
		r.fleet.began = false // pods of the burst wait, and their deployments are not whole
		for class := range 10 {
			r.replicas[class] = 20
		}
		r.ends("b")
	},
	"half of the pods go": func(r *rolling) {
		r.half()
		for class := range 10 {
			r.replicas[class] = 2
		}
		r.fleet.began = false
		r.ends("b")
	},
	"paused before the first machine has proven itself": func(r *rolling) {
		r.play(time.Hour, func() bool { return r.started["b"] > 0 })
		r.p.Rollouts = cluster.RolloutOrders{"workers": {Paused: true, Since: r.s.Now}}
		r.still(2 * time.Hour)
		r.p.Rollouts = nil
		r.ends("b")
		r.size(20, 22)
	},
	"AWS replaces the machines itself for two hours": func(r *rolling) {
		r.half()
		r.s.Groups[0].Replacing = "an instance refresh is under way"
		r.still(2 * time.Hour)
		if len(r.held(decision.RuleElsewhere)) == 0 {
			r.t.Error("no reason is held")
		}
		r.s.Groups[0].Replacing = ""
		r.ends("b")
		r.size(20, 22)
	},
	"it is not known each third time whether AWS replaces the machines": func(r *rolling) {
		look, n := r.fleet.each, 0
		r.fleet.each = func(p decision.Plan) {
			look(p)
			if n++; n%3 == 0 {
				r.s.Groups[0].ReplacingStale = "AWS has not told yet"
			} else {
				r.s.Groups[0].ReplacingStale = ""
			}
			for _, a := range p.Actions {
				if u, ok := a.(decision.Uncordon); ok {
					r.t.Errorf("the cordon of %s is taken back: %s", u.Node, u.Why)
				}
			}
		}
		r.ends("b")
		r.size(20, 22)
	},
	"a third of the kubelets is silent for an hour": func(r *rolling) {
		r.half()
		r.fleet.began, r.fleet.silent = false, map[cluster.NodeName]time.Time{}
		for _, n := range r.s.Nodes[:7] {
			r.fleet.silent[n.Name] = r.s.Now
		}
		r.still(time.Hour)
		r.fleet.silent = nil
		for _, n := range r.s.Nodes {
			if n.Ready == cluster.StatusUnknown {
				n.Ready, n.ReadySince = cluster.StatusTrue, r.s.Now
			}
		}
		r.ends("b")
		r.size(20, 22)
	},
	"an image is pulled for twelve minutes": func(r *rolling) {
		r.fleet.ready = 12 * time.Minute
		r.fleet.began = false
		r.ends("b")
		r.size(20, 22)
		r.neverHalted()
	},
	"machines are Ready, and after three minutes no more": func(r *rolling) {
		r.fleet.began = false
		r.silentAfter("b", 3*time.Minute, 0)
		r.play(3*time.Hour, func() bool { return false })
		if r.sources()["a"] != 20 || len(r.held(decision.RuleHalted)) == 0 || r.cordoned() > 0 {
			r.t.Errorf("%v, %d cordoned, halted %v", r.sources(), r.cordoned(), r.held(decision.RuleHalted))
		}
	},
	"each machine is not Ready from its third minute to its eighth": func(r *rolling) {
		r.fleet.began = false
		r.silentAfter("b", 3*time.Minute, 5*time.Minute)
		r.ends("b")
		r.size(20, 22)
		r.neverHalted()
	},
	"another source while the first machine is on trial": func(r *rolling) {
		r.play(time.Hour, func() bool { return r.sources()["b"] > 0 })
		r.start("c")
		r.ends("c")
		r.size(20, 22)
		r.neverHalted()
	},
	"every deployment goes to zero": func(r *rolling) {
		r.half()
		started := r.started["b"]
		r.fleet.began = false
		for class := range 20 {
			r.replicas[class] = 0
		}
		r.play(3*time.Hour, func() bool { return false })
		if left := len(r.s.Groups[0].Instances); left > 0 || r.started["b"] > started+1 {
			r.t.Errorf("%d machines are left, %d were started after it", left, r.started["b"]-started)
		}
		r.neverHalted()
	},
	"the first machine is interrupted while it is on trial": func(r *rolling) {
		for range 2 {
			r.play(2*time.Hour, func() bool { return r.podsOn("b") > 0 })
			r.fleet.began = false // its pods end with it
			for i := range r.s.Groups[0].Instances {
				if in := &r.s.Groups[0].Instances[i]; in.Source["image"] == "b" && in.Interruption == nil {
					in.Phase, in.Interruption = cluster.PhaseDeleting, &cluster.Interruption{Why: "notice", By: r.s.Now.Add(2 * time.Minute)}
				}
			}
			r.play(10*time.Minute, func() bool { return false })
		}
		r.ends("b")
		r.size(20, 22)
		r.neverHalted()
	},
	"the Node of the first machine is deleted while it is on trial": func(r *rolling) {
		r.play(2*time.Hour, func() bool { return r.podsOn("b") > 0 })
		r.deleteNode(r.first("b"))
		r.play(10*time.Minute, func() bool { return false })
		if r.sources()["a"] != 20 {
			r.t.Errorf("%v: a good machine is ended, and nothing has proven the source", r.sources())
		}
		r.ends("b")
		r.size(20, 22)
		r.neverHalted()
	},
	"the Node of the first machine is deleted as soon as it has joined": func(r *rolling) {
		look := r.fleet.each
		r.fleet.each = func(p decision.Plan) {
			if look(p); r.deleted == "" && r.first("b") != "" {
				r.deleteNode(r.first("b"))
			}
		}
		r.play(2*time.Hour, func() bool { return r.deleted != "" })
		if age := r.s.Now.Sub(r.instanceOf(r.deleted).Created); age > time.Minute {
			r.t.Errorf("the Node is deleted %s after the start of its instance", age)
		}
		r.ends("b")
		r.size(20, 22)
		r.neverHalted()
	},
	"the Node of a drained machine is deleted": func(r *rolling) {
		one := cluster.DisruptionBudgets{{Nodes: 1}}
		r.s.Groups[0].Options.Budgets = &one
		r.half()
		look := r.fleet.each
		r.fleet.each = func(p decision.Plan) {
			look(p)
			for _, n := range r.s.Nodes {
				if r.deleted == "" && n.Unschedulable && r.imageOf()[n.Name] == "a" && !slices.ContainsFunc(r.s.Pods, func(p cluster.Pod) bool { return p.Node == n.Name }) {
					r.deleteNode(n.Name)
				}
			}
		}
		r.play(2*time.Hour, func() bool { return r.deleted != "" })
		r.ends("b")
		r.size(20, 21)
		r.neverHalted()
	},
	"two groups at once, and the one's pods crash": func(r *rolling) {
		bad := workers("other", 2000, 4, 40)
		bad.Template.Source = cluster.Spec{"image": "a"}
		bad.Min, bad.Target = 6, 6
		r.start("a")
		r.s.Groups = append(r.s.Groups, bad)
		r.fleet.began = false
		for class := range 10 {
			r.replicas[class] = 16
		}
		r.play(2*time.Hour, func() bool { return false })
		r.start("b")
		r.s.Groups[1].Template.Source = cluster.Spec{"image": "crashes"}
		old := len(r.s.Groups[1].Instances)
		r.play(40*time.Hour, func() bool { return r.sources()["a"] == 0 })
		held := strings.Join(r.held(decision.RuleHalted), "\n")
		of := map[string]int{}
		for _, in := range r.s.Groups[1].Instances {
			of[in.Source["image"]]++
		}
		if r.sources()["a"] > 0 || !strings.Contains(held, "group other") || strings.Contains(held, "group workers [D31] the rollout") || of["a"] < old-1 {
			r.t.Errorf("the good group %v, the other %v of %d; halted: %s", r.sources(), of, old, held)
		}
	},
	"a StatefulSet of one replica, of which its budget wants one": func(r *rolling) {
		class := r.deployment(1, cluster.Resources{MilliCPU: 100, Memory: 64 << 20})
		r.fleet.began, r.fleet.closed = false, map[int]bool{class: true}
		r.play(40*time.Hour, func() bool { return r.sources()["a"] == 1 })
		r.play(time.Hour, func() bool { return false })
		held := strings.Join(r.held(decision.RuleBlocked), "\n")
		if r.sources()["a"] != 1 || !strings.Contains(held, "PodDisruptionBudget default/pdb-20 allows no disruption") {
			r.t.Errorf("%v, held: %s", r.sources(), held)
		}
		r.neverHalted()
		r.fleet.closed = nil
		r.ends("b")
	},
}

// silentAfter lets each kubelet of a source say nothing from so long after it was Ready, for a time; 0: for ever.
func (r *rolling) silentAfter(image string, after, lasts time.Duration) {
	look := r.fleet.each
	began := map[cluster.NodeName]time.Time{}
	r.fleet.silent, r.p.ReplaceSettleTime = map[cluster.NodeName]time.Time{}, 15*time.Minute
	r.fleet.each = func(p decision.Plan) {
		look(p)
		of := r.imageOf()
		for _, n := range r.s.Nodes {
			at, was := began[n.Name]
			switch {
			case of[n.Name] == image && !was && n.Ready == cluster.StatusTrue && r.s.Now.Sub(n.ReadySince) >= after:
				began[n.Name], r.fleet.silent[n.Name] = r.s.Now, r.s.Now
			case was && lasts > 0 && n.Ready != cluster.StatusTrue && r.s.Now.Sub(at) >= lasts:
				delete(r.fleet.silent, n.Name)
				n.Ready, n.ReadySince = cluster.StatusTrue, r.s.Now
			}
		}
	}
}

// deleteNode deletes a Node with its pods, as somebody does by hand.
func (r *rolling) deleteNode(name cluster.NodeName) {
	r.deleted, r.fleet.began = name, false // its pods end with it
	r.s.Nodes = slices.DeleteFunc(slices.Clone(r.s.Nodes), func(n *cluster.Node) bool { return n.Name == name })
	r.s.Pods = slices.DeleteFunc(r.s.Pods, func(p cluster.Pod) bool { return p.Node == name })
}

// first is the first Node of an image; empty: there is none.
func (r *rolling) first(image string) cluster.NodeName {
	of := r.imageOf()
	for _, n := range r.s.Nodes {
		if of[n.Name] == image {
			return n.Name
		}
	}
	return ""
}

func (r *rolling) instanceOf(node cluster.NodeName) *cluster.Instance {
	for i := range r.s.Groups[0].Instances {
		if in := &r.s.Groups[0].Instances[i]; strings.HasSuffix(string(in.ID), string(node[len("node"):])) {
			return in
		}
	}
	return nil
}

// imageOf are the images of the nodes of the first group.
func (r *rolling) imageOf() map[cluster.NodeName]string {
	out := map[cluster.NodeName]string{}
	for _, in := range r.s.Groups[0].Instances {
		out[cluster.NodeName("node-"+in.ID[len(in.ID)-4:])] = in.Source["image"]
	}
	return out
}

func (r *rolling) podsOn(image string) (n int) {
	of := r.imageOf()
	for i := range r.s.Pods {
		if of[r.s.Pods[i].Node] == image {
			n++
		}
	}
	return n
}

func (r *rolling) cordoned() (n int) {
	for _, x := range r.s.Nodes {
		if x.Unschedulable || len(x.Taints) > 0 {
			n++
		}
	}
	return n
}

func (r *rolling) neverHalted() {
	r.t.Helper()
	if len(r.halts) > 0 {
		r.t.Errorf("halted: %v (seed %d)", r.halts, r.seed)
	}
}

// window lets nodes go between half past one and half past three by the clocks of Berlin, and compares with the hours of UTC.
func window(r *rolling, evening time.Time) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		r.t.Fatal(err)
	}
	budget := cluster.DisruptionBudgets{{Nodes: 2, Cron: "30 1 * * *", For: 2 * time.Hour, Zone: "Europe/Berlin"}}
	r.s.Groups[0].Options.Budgets = &budget
	r.cordons = nil
	for night := evening; r.sources()["a"] > 0 && night.Before(evening.Add(5*24*time.Hour)); night = night.Add(24 * time.Hour) {
		r.s.Now = night // nothing but time passes between two nights
		r.play(5*time.Hour, func() bool { return r.sources()["a"] == 0 })
	}
	r.ends("b")
	for _, at := range r.cordons {
		local := at.In(zone)
		begin := time.Date(local.Year(), local.Month(), local.Day(), 1, 30, 0, 0, zone)
		if at.Before(begin) || at.After(begin.Add(2*time.Hour)) {
			r.t.Errorf("a node was cordoned at %s, and the window opens at %s for two hours", local, begin)
		}
	}
	if len(r.cordons) < 20 {
		r.t.Errorf("%d nodes were cordoned", len(r.cordons))
	}
	r.size(20, 22)
}

// TestRolloutSituations: see situations.
func TestRolloutSituations(t *testing.T) {
	playsHours(t)
	for _, name := range slices.Sorted(maps.Keys(situations)) {
		t.Run(name, func(t *testing.T) {
			r := newRolling(t)
			r.t = t
			situations[name](r)
		})
	}
}
