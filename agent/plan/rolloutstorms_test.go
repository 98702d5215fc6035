package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// weather is what goes wrong while a rollout is played.
type weather struct {
	name     string
	single   bool // the agent is killed after each single action: the rest of its plan is lost, and its memory
	leaders  int  // so many agents lead in turn, each with the memory of when it led last
	lagging  bool // a read of the cloud may show what was some rounds ago
	dead     bool // the cloud does not answer for minutes
	silent   bool // the API server is not heard for minutes
	halfRead bool // a read may lack instances
}

// stormy plays a rollout in bad weather until it is done.
func (v *sim) stormy(w weather, limit time.Duration, done func() bool) {
	memories := make([]decision.Memory, max(w.leaders, 1))
	memories[0] = v.m
	var past []cluster.NodeGroup
	var deadUntil, silentUntil time.Time
	for round, end := 0, v.s.Now.Add(limit); v.s.Now.Before(end) && !done(); round++ {
		v.s.Now = v.s.Now.Add(time.Duration(2+v.r.IntN(8)) * time.Second)
		v.cloud()
		v.controller()
		v.scheduler()
		v.fleet.step(v)
		at := v.r.IntN(len(memories))
		if round%50 != 0 {
			at = round / 50 % len(memories)
		}
		look := v.s
		look.Groups = slices.Clone(v.s.Groups)
		if w.dead && v.r.IntN(200) == 0 {
			deadUntil = v.s.Now.Add(time.Duration(1+v.r.IntN(6)) * time.Minute)
		}
		if w.silent && v.r.IntN(200) == 0 {
			silentUntil = v.s.Now.Add(time.Duration(1+v.r.IntN(3)) * time.Minute)
		}
		switch {
		case past != nil && v.s.Now.Before(deadUntil): // what was last read, with its age
			look.Groups = past
		case past != nil && w.lagging && v.r.IntN(5) == 0: // an old answer that looks new
			look.Groups = slices.Clone(past)
			look.Groups[0].ReadAt = v.s.Now
		case w.halfRead && v.r.IntN(5) == 0:
			look.Groups[0].Instances = slices.DeleteFunc(slices.Clone(look.Groups[0].Instances), func(cluster.Instance) bool { return v.r.IntN(4) == 0 })
			look.Groups[0].Stale = "fewer instances than the target"
		default:
			if v.r.IntN(3) == 0 || past == nil {
				past = slices.Clone(v.s.Groups)
				past[0].Instances = slices.Clone(past[0].Instances)
			}
		}
		if v.s.Now.Before(silentUntil) {
			look.Stale = "the API server is not heard"
		}
		plan, next := Decide(look, memories[at], v.p)
		v.p.Halts = next.Halts // as the Lease has them
		memories[at] = next
		if w.single && len(plan.Actions) > 0 {
			plan.Actions = plan.Actions[v.r.IntN(len(plan.Actions)):][:1]
			memories[at] = decision.Memory{}
		}
		for _, a := range plan.Actions {
			if x, ok := a.(decision.Terminate); ok && x.Node != "" {
				v.fleet.replaced[x.Node]++
			}
		}
		v.carryOut(plan)
	}
	v.m = memories[0]
}

// TestRolloutStorms: a rollout ends whatever goes wrong, no machine of the new source is ended or ordered twice, no deployment is
// below its budget, and in the end the group has the machines that it had.
func TestRolloutStorms(t *testing.T) {
	playsHours(t)
	first, times := drawn.Seed(t), drawn.Times(t)
	for _, w := range []weather{
		{name: "killed after each action", single: true},
		{name: "two leaders", leaders: 2},
		{name: "two leaders that are killed after each action", leaders: 2, single: true},
		{name: "a cloud that lags", lagging: true},
		{name: "a cloud that answers half", halfRead: true},
		{name: "a cloud that is away", dead: true},
		{name: "an API server that is not heard", silent: true},
		{name: "all of it", single: true, leaders: 3, lagging: true, dead: true, silent: true, halfRead: true},
	} {
		for n := range times {
			seed := first + uint64(n)
			t.Run(fmt.Sprintf("%s/seed=%d", w.name, seed), func(t *testing.T) {
				v := rolloutSim(t, seed)
				v.s.Groups[0].Template.Source = cluster.Spec{"image": "b"}
				old := v.sources()["a"]
				began := v.s.Now
				v.stormy(w, 20*time.Hour, func() bool { return v.sources()["a"] == 0 })
				if v.sources()["a"] > 0 {
					plan, _ := Decide(v.s, decision.Memory{}, v.p)
					t.Fatalf("%v after %s (seed %d)\n%s", v.sources(), v.s.Now.Sub(began), seed, plan)
				}
				v.stormy(weather{}, 30*time.Minute, func() bool { return false })
				twice := slices.DeleteFunc(slices.Collect(maps.Keys(v.fleet.replaced)), func(name cluster.NodeName) bool { return v.fleet.replaced[name] == 1 })
				t.Logf("%s, at most %d machines, %d of the new source started, longest pending %s", v.s.Now.Sub(began), v.fleet.most, v.started["b"], v.fleet.pending)
				if len(twice) > 0 || v.s.Groups[0].Target != old || len(v.s.Nodes) != old || len(v.s.Groups[0].Instances) != old {
					t.Errorf("ended twice %v; target %d, %d Nodes, %d instances, want %d (seed %d)", twice, v.s.Groups[0].Target, len(v.s.Nodes), len(v.s.Groups[0].Instances), old, seed)
				}
				if v.fleet.most > old+2 || v.started["b"] > old {
					t.Errorf("at most %d machines, %d of the new source were started, want %d (seed %d)", v.fleet.most, v.started["b"], old, seed)
				}
			})
		}
	}
}

// TestABadSourceStopsForEachLeader: of a source that never joins, and of one on which each pod crashes, one machine is started,
// although the leader forgets everything after each action: the next one knows the halt from the Lease. Resumed, it goes on.
func TestABadSourceStopsForEachLeader(t *testing.T) {
	playsHours(t)
	for _, image := range []string{"never joins", "crashes"} {
		t.Run(image, func(t *testing.T) {
			v := rolloutSim(t, 3)
			v.s.Groups[0].Template.Source = cluster.Spec{"image": image}
			v.stormy(weather{}, 40*time.Minute, func() bool { return len(v.p.Halts) > 0 })
			v.stormy(weather{single: true, leaders: 2}, 5*time.Hour, func() bool { return false })
			if v.started[image] != 1 || v.sources()["a"] != 20 || len(v.p.Halts) != 1 {
				plan, _ := Decide(v.s, decision.Memory{}, v.p)
				t.Fatalf("started %v, there are %v, halts %v\n%s", v.started, v.sources(), v.p.Halts, plan)
			}
			v.p.Rollouts = cluster.RolloutOrders{"workers": {Resumed: v.s.Groups[0].Template.Source.Digest()}}
			v.stormy(weather{}, time.Hour, func() bool { return v.started[image] > 1 })
			if v.started[image] < 2 {
				t.Errorf("resumed, and nothing is started: %v", v.started)
			}
		})
	}
}

// TestPausedRollout: in the middle of a rollout it is paused: no further machine goes, and it ends when it is resumed.
func TestPausedRollout(t *testing.T) {
	playsHours(t)
	first := drawn.Seed(t)
	v := rolloutSim(t, first)
	v.s.Groups[0].Template.Source = cluster.Spec{"image": "b"}
	v.stormy(weather{single: true}, 10*time.Hour, func() bool { return v.sources()["a"] < 12 })
	v.p.Rollouts = cluster.RolloutOrders{cluster.AllGroups: {Paused: true, Since: v.s.Now}}
	left := v.sources()["a"]
	v.stormy(weather{single: true, leaders: 2}, 3*time.Hour, func() bool { return false })
	plan, m := Decide(v.s, v.m, v.p)
	if v.sources()["a"] != left || len(plan.Rollouts) != 1 || plan.Rollouts[0].State != decision.RolloutPaused || plan.Rollouts[0].By[cluster.ReasonDrifted] != left || len(m.Draining) > 0 {
		t.Errorf("%v of %d are left while it is paused; %+v (seed %d)\n%s", v.sources(), left, plan.Rollouts, first, plan)
	}
	v.p.Rollouts = nil
	v.stormy(weather{}, 10*time.Hour, func() bool { return v.sources()["a"] == 0 })
	if v.sources()["a"] > 0 {
		t.Errorf("%v (seed %d)", v.sources(), first)
	}
}

// TestRepair: while a third of the nodes are not Ready, none is touched for an hour, and the reason is held; of one that is not
// Ready the machine is replaced.
func TestRepair(t *testing.T) {
	playsHours(t)
	for sick, replaced := range map[int]int{7: 0, 1: 1} {
		t.Run(fmt.Sprint(sick), func(t *testing.T) {
			v := rolloutSim(t, 5)
			v.p.Drift, v.p.RepairAfter, v.p.ScaleDownUnready = false, 10*time.Minute, true
			v.fleet.began, v.fleet.silent = false, map[cluster.NodeName]time.Time{} // what ran there does not
			for _, n := range v.s.Nodes[:sick] {
				v.fleet.silent[n.Name] = v.s.Now
			}
			held := 0
			for end := v.s.Now.Add(70 * time.Minute); v.s.Now.Before(end); {
				plan := v.step(15 * time.Second)
				held = 0
				for _, a := range plan.Actions {
					if x, ok := a.(decision.Terminate); ok && x.Node != "" {
						v.fleet.replaced[x.Node]++
					}
				}
				for _, h := range plan.Held {
					if _, silent := v.fleet.silent[cluster.NodeName(h.Name)]; silent && h.Rule == decision.RuleBreaker {
						held++
					}
				}
			}
			if len(v.fleet.replaced) != replaced || replaced == 0 && held != sick {
				plan, _ := Decide(v.s, v.m, v.p)
				t.Errorf("%v went, %d are held by D32\n%s", v.fleet.replaced, held, plan)
			}
		})
	}
}
