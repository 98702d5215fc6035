package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// sim is a small cluster and a small cloud in one: machines boot and join after a
// while, a controller makes and removes pods, a scheduler spreads them, evictions
// take their grace. The API of both is the Snapshot.
type sim struct {
	t        testing.TB
	r        *rand.Rand
	s        cluster.Snapshot
	m        decision.Memory
	p        decision.Policy
	replicas map[int]int // by class
	boot     time.Duration
	next     int
	grows    int
	evicted  int
	lost     int // pods that ran on a machine when it ended
	seed     uint64
	steps    int
	started  map[string]int   // machines by their image
	fleet    *fleet           // what a rollout has to do with; nil: nothing
	deleted  cluster.NodeName // a Node that somebody has deleted: its kubelet does not register it again
}

func newSim(t testing.TB, seed uint64, groups ...cluster.NodeGroup) *sim {
	v := &sim{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 7)), p: policy(), replicas: map[int]int{}, started: map[string]int{}, boot: 40 * time.Second}
	v.s.Now = t0
	v.s.Groups = groups
	return v
}

func (v *sim) deployment(replicas int, requests cluster.Resources) int {
	requests.Pods = 1
	v.s.Classes = append(v.s.Classes, cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": fmt.Sprint(len(v.s.Classes))}, Requests: requests})
	v.replicas[len(v.s.Classes)-1] = replicas
	return len(v.s.Classes) - 1
}

// step lets dt pass, decides, and carries the plan out.
func (v *sim) step(dt time.Duration) decision.Plan {
	v.s.Now = v.s.Now.Add(dt)
	v.cloud()
	v.controller()
	v.scheduler()
	if v.fleet != nil {
		v.fleet.step(v)
	}
	var plan decision.Plan
	if v.steps++; v.fleet == nil || v.steps%10 == 0 { // the fleet is played for hours
		plan, v.m = check(v.t, v.s, v.m, v.p, v.seed)
	} else {
		plan, v.m = Decide(v.s, v.m, v.p)
	}
	v.carryOut(plan)
	return plan
}

func (v *sim) cloud() {
	for g := range v.s.Groups {
		gr := &v.s.Groups[g]
		gr.ReadAt = v.s.Now
		gr.Instances = slices.DeleteFunc(gr.Instances, v.ended)
		for len(gr.Instances) < gr.Target {
			v.next++
			v.started[gr.Template.Source["image"]]++
			gr.Instances = append(gr.Instances, cluster.Instance{ID: cluster.InstanceID(fmt.Sprintf("aws:///z/i-%04d", v.next)), Phase: cluster.PhasePending, Member: true, Source: gr.Template.Source,
				Created: v.s.Now.Add(time.Duration(v.r.IntN(15)) * time.Second)})
		}
		for i := range gr.Instances {
			in := &gr.Instances[i]
			age := v.s.Now.Sub(in.Created)
			if age < v.boot || in.Interruption != nil {
				continue
			}
			in.Phase = cluster.PhaseRunning
			name := cluster.NodeName("node-" + in.ID[len(in.ID)-4:])
			if in.Source["image"] == "never joins" || name == v.deleted {
				continue
			}
			k := slices.IndexFunc(v.s.Nodes, func(n *cluster.Node) bool { return n.Name == name })
			if k < 0 {
				labels := map[string]string{hostname: string(name)}
				maps.Copy(labels, gr.Template.Labels)
				v.s.Nodes = append(v.s.Nodes, &cluster.Node{Name: name, UID: cluster.UID(name), ProviderID: string(in.ID), Created: v.s.Now, Labels: labels,
					Taints: []cluster.Taint{{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}}, Capacity: gr.Template.Capacity, Allocatable: gr.Template.Allocatable, Ready: cluster.StatusFalse})
			} else if n := v.s.Nodes[k]; age > v.boot+20*time.Second && n.Ready == cluster.StatusFalse {
				n.Ready, n.ReadySince, n.Taints = cluster.StatusTrue, v.s.Now, nil
			}
		}
	}
}

// ended tells that an instance's notice has run out, and takes its node and pods away.
func (v *sim) ended(in cluster.Instance) bool {
	if in.Interruption == nil || v.s.Now.Before(in.Interruption.By) {
		return false
	}
	name := cluster.NodeName("node-" + in.ID[len(in.ID)-4:])
	v.s.Nodes = slices.DeleteFunc(v.s.Nodes, func(n *cluster.Node) bool { return n.Name == name })
	before := len(v.s.Pods)
	v.s.Pods = slices.DeleteFunc(v.s.Pods, func(p cluster.Pod) bool { return p.Node == name })
	v.lost += before - len(v.s.Pods)
	return true
}

func (v *sim) controller() {
	v.s.Pods = slices.DeleteFunc(v.s.Pods, func(p cluster.Pod) bool { return !p.Deleting.IsZero() && !v.s.Now.Before(p.Deleting.Time()) })
	for class := range v.s.Classes {
		var alive []int
		for i := range v.s.Pods {
			if p := &v.s.Pods[i]; p.Class == class && p.Deleting.IsZero() {
				alive = append(alive, i)
			}
		}
		rs := fmt.Sprintf("rs-%d", class)
		for n := len(alive); n < v.replicas[class]; n++ {
			v.next++
			v.s.Pods = append(v.s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/%s-%05d", rs, v.next)), UID: cluster.UID(fmt.Sprint(v.next)), Class: class,
				Created: cluster.At(v.s.Now), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: rs, UID: cluster.UID(rs)}, GracePeriod: 5})
		}
		for n := len(alive); n > v.replicas[class]; n-- {
			k := v.r.IntN(len(alive))
			v.s.Pods[alive[k]].Deleting = cluster.At(v.s.Now.Add(5 * time.Second))
			alive = slices.Delete(alive, k, k+1)
		}
	}
}

// scheduler binds pods to the Ready node with the most free cpu, as LeastAllocated
// does, one by one in random order.
func (v *sim) scheduler() {
	st := v.constraints()
	free := map[cluster.NodeName]cluster.Resources{}
	for _, n := range v.s.Nodes {
		if n.Ready == cluster.StatusTrue && !n.Unschedulable && len(n.Taints) == 0 {
			free[n.Name] = n.Allocatable
		}
	}
	for _, p := range v.s.Pods {
		if f, ok := free[p.Node]; ok {
			free[p.Node] = f.Sub(v.s.Classes[p.Class].Requests)
		}
	}
	for _, i := range v.r.Perm(len(v.s.Pods)) {
		p := &v.s.Pods[i]
		if p.Node != "" || !p.Deleting.IsZero() {
			continue
		}
		c := &v.s.Classes[p.Class]
		best := cluster.NodeName("")
		for k, n := range v.s.Nodes {
			f, ok := free[n.Name]
			if ok = ok && (st == nil || st.Passes(p.Class, k)); ok && f.MilliCPU >= c.Requests.MilliCPU && f.Memory >= c.Requests.Memory && f.Pods >= 1 && (best == "" || f.MilliCPU > free[best].MilliCPU) {
				best = n.Name
			}
		}
		if best == "" {
			p.Unschedulable = cluster.At(v.s.Now)
			continue
		}
		p.Node, p.Unschedulable = best, 0
		if st != nil {
			st.Put(p.Class, slices.IndexFunc(v.s.Nodes, func(n *cluster.Node) bool { return n.Name == best }), 1)
		}
		free[best] = free[best].Sub(c.Requests)
	}
}

// constraints are all nodes as filters see them that look at other pods; nil: no class has such constraints.
func (v *sim) constraints() *fit.State {
	if !slices.ContainsFunc(v.s.Classes, func(c cluster.PodClass) bool { return len(c.Spread)+len(c.PodAntiAffinity)+len(c.PodAffinity) > 0 }) {
		return nil
	}
	st := fit.NewState(v.s.Classes, nil)
	for i, n := range v.s.Nodes {
		st.AddNode(&fit.NodeInfo{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable}, nil)
		for _, p := range v.s.Pods {
			switch {
			case p.Node != n.Name:
			case p.Deleting.IsZero():
				st.Put(p.Class, i, 1)
			default:
				st.PutTerminating(p.Class, i, 1)
			}
		}
	}
	return st
}

func (v *sim) carryOut(plan decision.Plan) {
	v.s.Outcomes = nil
	done := func(o cluster.Outcome) { o.At = v.s.Now; v.s.Outcomes = append(v.s.Outcomes, o) }
	node := func(name cluster.NodeName) *cluster.Node {
		return v.s.Nodes[slices.IndexFunc(v.s.Nodes, func(n *cluster.Node) bool { return n.Name == name })]
	}
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case decision.Grow:
			for g := range v.s.Groups {
				if gr := &v.s.Groups[g]; gr.ID == a.Group && gr.Target == a.From {
					gr.Target = a.To
					v.grows++
					done(cluster.Outcome{Action: "grow", Group: a.Group, From: a.From, To: a.To})
				}
			}
		case decision.Cordon:
			n := node(a.Node)
			n.Unschedulable = true
			n.Annotations = map[string]string{cluster.AnnotationCordoned: "true " + a.Rule}
			n.Taints = append(n.Taints, cluster.Taint{Key: cluster.TaintToBeDeleted, Value: fmt.Sprint(v.s.Now.Unix()), Effect: "NoSchedule"})
		case decision.Uncordon:
			n := node(a.Node)
			n.Unschedulable, n.Annotations, n.Taints = false, nil, nil
		case decision.Evict:
			for i := range v.s.Pods {
				if v.s.Pods[i].UID == a.UID {
					v.s.Pods[i].Deleting = cluster.At(v.s.Now.Add(a.Grace))
					v.evicted++
				}
			}
		case decision.Terminate:
			for g := range v.s.Groups {
				gr := &v.s.Groups[g]
				if at := slices.IndexFunc(gr.Instances, func(in cluster.Instance) bool { return in.ID == a.Instance }); gr.ID == a.Group && at >= 0 { // as Delete: once
					gr.Target--
					gr.Instances = slices.Delete(gr.Instances, at, at+1)
				}
			}
			v.s.Nodes = slices.DeleteFunc(v.s.Nodes, func(n *cluster.Node) bool { return n.Name == a.Node })
			done(cluster.Outcome{Action: "terminate", Group: a.Group, Instance: a.Instance, Node: a.Node})
		}
	}
}

// until steps on until a condition holds, and gives the world the chance to flap.
func (v *sim) until(what string, limit time.Duration, restarts bool, ok func() bool) {
	v.t.Helper()
	for end := v.s.Now.Add(limit); v.s.Now.Before(end); {
		if restarts && v.r.IntN(4) == 0 {
			v.m = decision.Memory{}
		}
		v.step(time.Duration(1+v.r.IntN(10)) * time.Second)
		if ok() {
			return
		}
	}
	plan, _ := Decide(v.s, v.m, v.p)
	v.t.Fatalf("%s did not happen in %s (seed %d); target %d, nodes %d\n%s", what, limit, v.seed, v.s.Groups[0].Target, len(v.s.Nodes), plan)
}

func (v *sim) running() int {
	n := 0
	for _, p := range v.s.Pods {
		if p.Node != "" && p.Deleting.IsZero() {
			n++
		}
	}
	return n
}

func workers(id string, milli, gib int64, most int) cluster.NodeGroup {
	a := cluster.Resources{MilliCPU: milli, Memory: gib << 30, Pods: 110}
	return cluster.NodeGroup{ID: cluster.GroupID(id), Max: most, Template: cluster.Template{Spec: "lt", Capacity: a, Allocatable: a}}
}

// playsHours ends a test that plays hours of the loop where -short is given. make check plays them.
func playsHours(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it plays hours of the loop: make check does")
	}
}

func TestClosedLoop(t *testing.T) {
	first, times := drawn.Seed(t), drawn.Times(t)
	for _, restarts := range []bool{false, true} {
		seeds := 6 * times
		if testing.Short() {
			seeds = 1
		}
		for n := range seeds {
			seed := first + uint64(n)
			t.Run(fmt.Sprintf("restarts=%v/seed=%d", restarts, seed), func(t *testing.T) {
				v := newSim(t, seed, workers("workers", 2000, 4, 50))
				web := v.deployment(300, cluster.Resources{MilliCPU: 100, Memory: 64 << 20})
				v.until("300 running", 20*time.Minute, restarts, func() bool { return v.running() == 300 })
				if v.s.Groups[0].Target != 15 || v.grows != 1 {
					t.Fatalf("target %d after %d grows; want 15 after 1 (seed %d)", v.s.Groups[0].Target, v.grows, seed)
				}
				v.replicas[web] = 3
				v.p.UnneededFor, v.p.DelayAfterAdd = 30*time.Second, 20*time.Second
				if restarts {
					v.p.UnneededFor = 5 * time.Second
				}
				v.until("back to one machine", 60*time.Minute, restarts, func() bool { return v.s.Groups[0].Target == 1 && len(v.s.Nodes) == 1 })
				v.replicas[web] = 0
				v.until("back to min", 60*time.Minute, restarts, func() bool { return v.s.Groups[0].Target == 0 && len(v.s.Nodes) == 0 })
				if v.grows != 1 {
					t.Fatalf("%d grows (seed %d)", v.grows, seed)
				}
			})
		}
	}
}

// TestInterruptedLoop: the cloud takes a third of the machines back, with two minutes'
// notice, and puts others in their place. No pod is on a machine when it ends, all of
// them run again, and nothing is bought for them, with restarts and without.
func TestInterruptedLoop(t *testing.T) {
	playsHours(t)
	first, times := drawn.Seed(t), drawn.Times(t)
	for _, restarts := range []bool{false, true} {
		for n := range 2 * times {
			seed := first + uint64(n)
			t.Run(fmt.Sprintf("restarts=%v/seed=%d", restarts, seed), func(t *testing.T) {
				v := newSim(t, seed, workers("spot", 2000, 4, 50))
				v.deployment(180, cluster.Resources{MilliCPU: 100, Memory: 64 << 20})
				v.until("180 running", 20*time.Minute, false, func() bool { return v.running() == 180 })
				g := &v.s.Groups[0]
				for _, i := range v.r.Perm(len(g.Instances))[:3] {
					in := &g.Instances[i]
					in.Phase, in.Interruption = cluster.PhaseDeleting, &cluster.Interruption{Why: "notice", By: v.s.Now.Add(2 * time.Minute)}
				}
				v.until("the machines are replaced", 5*time.Minute, restarts, func() bool {
					return !slices.ContainsFunc(g.Instances, func(in cluster.Instance) bool { return in.Interruption != nil })
				})
				if v.until("180 run again", 5*time.Minute, restarts, func() bool { return v.running() == 180 }); v.grows != 1 || g.Target != 9 || v.lost > 0 || v.evicted != 60 {
					t.Fatalf("%d grows, target %d, %d pods lost, %d evicted (seed %d)", v.grows, g.Target, v.lost, v.evicted, seed)
				}
			})
		}
	}
}

// TestMixedLoop has several classes and groups: the size that the first decision
// asked for is the size that is reached, restarts or not, unless the scheduler itself
// packs worse than the plan did.
func TestMixedLoop(t *testing.T) {
	first, times := drawn.Seed(t), drawn.Times(t)
	for n := range 6 * times {
		seed := first + uint64(n)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			v := newSim(t, seed, workers("a", 4000, 8, 40), workers("b", 8000, 32, 40))
			total := 0
			for range 1 + v.r.IntN(4) {
				k := 5 + v.r.IntN(40)
				v.deployment(k, cluster.Resources{MilliCPU: 100 * (1 + v.r.Int64N(15)), Memory: 256 << 20 * (1 + v.r.Int64N(8))})
				total += k
			}
			v.until("all running", 30*time.Minute, v.r.IntN(2) == 0, func() bool { return v.running() == total })
			for c := range v.replicas {
				v.replicas[c] = 0
			}
			v.p.UnneededFor, v.p.DelayAfterAdd = 30*time.Second, 20*time.Second
			v.until("back to min", 60*time.Minute, false, func() bool { return len(v.s.Nodes) == 0 && v.s.Groups[0].Target+v.s.Groups[1].Target == 0 })
		})
	}
}
