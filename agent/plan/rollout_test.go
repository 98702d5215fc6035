package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// fleet is what a rollout is judged by, from outside: deployments with PodDisruptionBudgets of one, pods that become Ready some
// time after they are bound, machines that are counted.
type fleet struct {
	ready    time.Duration
	bound    map[cluster.UID]time.Time
	most     int           // machines that were asked for at once
	pending  time.Duration // the longest that a pod had no node
	began    bool          // from now on everything counts
	restarts bool          // the agent forgets everything after each round with an action
	replaced map[cluster.NodeName]int
	silent   map[cluster.NodeName]time.Time // since when a kubelet does not answer
	closed   map[int]bool                   // deployments whose PodDisruptionBudget allows nothing
	each     func(decision.Plan)            // is shown each plan; nil: plans are not looked at
}

func (f *fleet) step(v *sim) {
	for _, n := range v.s.Nodes {
		if since, is := f.silent[n.Name]; is {
			n.Ready, n.ReadySince = cluster.StatusUnknown, since
		}
	}
	source := map[cluster.NodeName]string{}
	for g := range v.s.Groups {
		for _, in := range v.s.Groups[g].Instances {
			source[cluster.NodeName("node-"+in.ID[len(in.ID)-4:])] = in.Source["image"]
		}
	}
	alive, well := map[int]int{}, map[int]int{}
	for i := range v.s.Pods {
		p := &v.s.Pods[i]
		if !p.Deleting.IsZero() {
			continue
		}
		alive[p.Class]++
		p.Budgets = []string{fmt.Sprintf("default/pdb-%d", p.Class)}
		if p.Node == "" {
			if f.began {
				f.pending = max(f.pending, v.s.Now.Sub(p.Created.Time()))
			}
			continue
		}
		since, known := f.bound[p.UID]
		if !known {
			since = v.s.Now
			f.bound[p.UID] = since
		}
		if p.Trouble = nil; source[p.Node] == "crashes" && v.s.Now.Sub(since) > 20*time.Second {
			p.Trouble = &cluster.PodTrouble{Waiting: "CrashLoopBackOff", Restarts: int32(v.s.Now.Sub(since) / (20 * time.Second)), RestartedAt: cluster.At(v.s.Now)}
		}
		p.Unready = source[p.Node] == "crashes" || v.s.Now.Sub(since) < f.ready
		if !p.Unready {
			well[p.Class]++
		}
	}
	v.s.Budgets = v.s.Budgets[:0:0]
	for class := range v.replicas {
		allowed := well[class] - (v.replicas[class] - 1)
		if f.closed[class] {
			allowed = min(allowed, 0)
		}
		if f.began && allowed < 0 {
			v.t.Fatalf("deployment %d has %d Ready pods of %d at %s (seed %d)", class, well[class], v.replicas[class], v.s.Now.Sub(t0), v.seed)
		}
		v.s.Budgets = append(v.s.Budgets, cluster.Budget{Key: fmt.Sprintf("default/pdb-%d", class), Allowed: max(allowed, 0), Unready: allowed >= 0})
	}
	f.most = max(f.most, v.s.Groups[0].Target)
}

// rolloutSim is 20 machines with 200 pods of 20 deployments, which is nearly full.
func rolloutSim(t *testing.T, seed uint64) *sim {
	v := newSim(t, seed, workers("workers", 2000, 4, 40))
	v.s.Groups[0].Template.Source = cluster.Spec{"image": "a"}
	v.p.Drift = true
	v.fleet = &fleet{ready: 10 * time.Second, bound: map[cluster.UID]time.Time{}, replaced: map[cluster.NodeName]int{}}
	for range 20 {
		v.deployment(10, cluster.Resources{MilliCPU: 190, Memory: 64 << 20})
	}
	v.until("200 running", 20*time.Minute, false, func() bool {
		return v.running() == 200 && !slices.ContainsFunc(v.s.Pods, func(p cluster.Pod) bool { return p.Unready }) && v.s.Groups[0].Target == 20
	})
	for range 80 {
		v.step(10 * time.Second)
	}
	v.fleet.began, v.fleet.most = true, 0
	return v
}

// play lets the rollout go on for a time, or until it is done.
func (v *sim) play(limit time.Duration, done func() bool) (rounds int) {
	for end := v.s.Now.Add(limit); v.s.Now.Before(end) && !done(); rounds++ {
		plan := v.step(time.Duration(2+v.r.IntN(8)) * time.Second)
		for _, a := range plan.Actions {
			if x, ok := a.(decision.Terminate); ok && x.Node != "" {
				v.fleet.replaced[x.Node]++
			}
		}
		if v.fleet.each != nil {
			v.fleet.each(plan)
		}
		if v.fleet.restarts && len(plan.Actions) > 0 {
			v.m = decision.Memory{}
		}
	}
	return rounds
}

func (v *sim) sources() map[string]int {
	out := map[string]int{}
	for _, in := range v.s.Groups[0].Instances {
		out[in.Source["image"]]++
	}
	return out
}

// TestRollout: a new source reaches each of 20 machines within the budget of two at once; no deployment is below its
// budget, no pod waits, and then nothing happens any more. With restarts the agent forgets everything after each action.
func TestRollout(t *testing.T) {
	playsHours(t)
	first, times := drawn.Seed(t), drawn.Times(t)
	for _, restarts := range []bool{false, true} {
		for n := range 2 * times {
			seed := first + uint64(n)
			t.Run(fmt.Sprintf("restarts=%v/seed=%d", restarts, seed), func(t *testing.T) {
				v := rolloutSim(t, seed)
				v.fleet.restarts = restarts
				v.s.Groups[0].Template.Source = cluster.Spec{"image": "b"}
				began := v.s.Now
				v.play(10*time.Hour, func() bool { return v.sources()["a"] == 0 })
				took := v.s.Now.Sub(began)
				if v.sources()["a"] > 0 {
					plan, _ := Decide(v.s, v.m, v.p)
					t.Fatalf("%v after %s (seed %d)\n%s", v.sources(), took, seed, plan)
				}
				if v.fleet.most > 22 || v.fleet.pending > 30*time.Second || len(v.fleet.replaced) != 20 {
					t.Errorf("at most %d machines, a pod waited %s, %d nodes went (seed %d)", v.fleet.most, v.fleet.pending, len(v.fleet.replaced), seed)
				}
				t.Logf("%s, at most %d machines, longest pending %s, %d evictions", took, v.fleet.most, v.fleet.pending, v.evicted)
				v.fleet.replaced = map[cluster.NodeName]int{}
				v.play(20*time.Minute, func() bool { return false })
				if len(v.fleet.replaced) > 0 || v.s.Groups[0].Target != 20 {
					t.Errorf("no fixpoint: %v went afterwards, target %d (seed %d)", v.fleet.replaced, v.s.Groups[0].Target, seed)
				}
			})
		}
	}
}

// TestRolloutHalts: of a source that never joins, and of one on which each pod crashes, one machine is started.
func TestRolloutHalts(t *testing.T) {
	playsHours(t)
	for _, image := range []string{"never joins", "crashes"} {
		t.Run(image, func(t *testing.T) {
			v := rolloutSim(t, 1)
			v.s.Groups[0].Template.Source = cluster.Spec{"image": image}
			v.play(75*time.Minute, func() bool { return false })
			plan, _ := Decide(v.s, v.m, v.p)
			halted := slices.ContainsFunc(plan.Held, func(h decision.Held) bool { return h.Rule == decision.RuleHalted && h.Kind == "group" })
			if !halted || v.fleet.most > 21 || v.sources()["a"] != 20 || v.sources()[image] != 0 || v.started[image] != 1 {
				t.Fatalf("halted %v, at most %d machines, %v, started %v\n%s", halted, v.fleet.most, v.sources(), v.started, plan)
			}
			v.s.Groups[0].Template.Source = cluster.Spec{"image": "b"}
			v.play(10*time.Hour, func() bool { return v.sources()["b"] == len(v.s.Groups[0].Instances) })
			if v.sources()["b"] != len(v.s.Groups[0].Instances) {
				plan, _ := Decide(v.s, v.m, v.p)
				t.Fatalf("a newer source does not go on: %v\n%s", v.sources(), plan)
			}
		})
	}
}
