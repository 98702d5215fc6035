package plan

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// What no round may cost.
const (
	dearestTime = 2 * time.Second // of processor time
	dearestHeap = 500 << 20       // beside the objects themselves
)

// dear is a world by numbers, which a search changes one at a time. Shares are in per cent.
type dear struct {
	Seed                                    uint64
	Nodes, PodsPerNode, Classes, Use        int // what runs, and of how many classes
	Pending, PendingClasses, Large          int // what waits, of how many classes, and how large the pods are
	Groups, Sizes, Zones                    int
	Priced, Taints                          int // shares of the groups
	Hosts, Spread, Affinity, Pinned, Prefer int // shares of the classes with such terms
	Terms                                   int // of a class with terms
	Late                                    int // pods that come when all that was bought for the others is upcoming
	Budgets, Owners, Headroom               int
	Ages                                    int // seconds over which the pending pods were made
	Expander                                int
}

// dearMost is how far the search may go. The worlds of the gate are smaller. Eight terms in each of thousands of classes
// are a bench row of their own (R odd shape=5000-nodes-5000-classes-8-terms).
var dearMost = dear{Nodes: 5_000, PodsPerNode: 30, Classes: 5_000, Use: 100, Pending: 30_000, PendingClasses: 5_000, Large: 100, Groups: 400, Sizes: 20, Zones: 50,
	Priced: 100, Taints: 100, Hosts: 100, Spread: 100, Affinity: 100, Pinned: 100, Prefer: 100, Terms: 2, Late: 5_000, Budgets: 2_000, Owners: 5_000, Headroom: 500, Ages: 100, Expander: 5}

// mutant is the world with one to three of its numbers changed.
func (d dear) mutant(r *rand.Rand, shrink int) dear {
	v, most := reflect.ValueOf(&d).Elem(), reflect.ValueOf(dearMost)
	for range 1 + r.IntN(3) {
		i := 1 + r.IntN(v.NumField()-1)
		limit := most.Field(i).Int()
		if limit > 100 {
			limit = max(limit/int64(shrink), 1)
		}
		x := v.Field(i).Int()
		switch r.IntN(5) {
		case 0:
			x = x*2 + 1
		case 1:
			x /= 2
		case 2:
			x += x/4 + 1
		case 3:
			x = limit
		default:
			x = r.Int64N(limit + 1)
		}
		v.Field(i).SetInt(min(max(x, 0), limit))
	}
	if r.IntN(8) == 0 {
		d.Seed = r.Uint64()
	}
	return d
}

// world draws it.
func (d dear) world() (cluster.Snapshot, decision.Policy) {
	r := rand.New(rand.NewPCG(d.Seed, 0xdea5))
	s := cluster.Snapshot{Now: t0}
	p := policy()
	p.Expander = []string{"price", "least-waste", "least-nodes", "most-pods", "random", "least-waste"}[d.Expander]
	p.Consolidate, p.ConsolidateSaving, p.ConsolidateAfter, p.BurstHold = "priced", 0.05, time.Hour, 0 // late pods do not wait for each other
	for g := range max(d.Groups, 1) {
		k := int64(1 + g%max(d.Sizes, 1))
		a := cluster.Resources{MilliCPU: 2000*k - 110, Memory: (8*k)<<30 - 500<<20, Pods: 110}
		x := cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("g%03d", g)), Max: 100_000, ReadAt: t0, Template: cluster.Template{Spec: "lt", Capacity: a, Allocatable: a,
			Labels: map[string]string{"topology.kubernetes.io/zone": fmt.Sprint(g % max(d.Zones, 1)), "pool": fmt.Sprint(g)}}}
		if r.IntN(100) < d.Priced {
			x.Price = 0.05*float64(k) + 0.001*float64(r.IntN(9))
		}
		if r.IntN(100) < d.Taints {
			x.Template.Taints = []cluster.Taint{{Key: "t", Value: fmt.Sprint(g % 5), Effect: "NoSchedule"}}
		}
		s.Groups = append(s.Groups, x)
	}
	if d.Headroom > 0 {
		p.Headroom = []cluster.Headroom{{Name: "h", Count: d.Headroom, Piece: cluster.PodClass{Requests: cluster.Resources{MilliCPU: 100, Memory: 1 << 28, Pods: 1}}}}
	}
	d.running(r, &s)
	from := len(s.Classes)
	for c := range max(d.PendingClasses, 1) {
		s.Classes = append(s.Classes, d.class(r, fmt.Sprint("w", c), max(d.PendingClasses, 1), fmt.Sprint("g", r.IntN(max(d.Nodes, 1)))))
	}
	d.arrive(&s, from, "early", d.Pending)
	return s, p
}

// class draws a class of pods. Its terms are about count classes whose apps are named alike.
func (d dear) class(r *rand.Rand, app string, count int, own string) cluster.PodClass {
	c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": app},
		Requests: cluster.Resources{MilliCPU: 10 + r.Int64N(20*int64(d.Large)+1), Memory: (16 + r.Int64N(80*int64(d.Large)+1)) << 20, Pods: 1}}
	selector := func(n int) *cluster.Selector {
		var apps []string
		for range n {
			apps = append(apps, app[:1]+fmt.Sprint(r.IntN(count)))
		}
		return &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: append(apps, app)}}}
	}
	share := func(n int) bool { return r.IntN(100) < n }
	for range max(d.Terms, 1) {
		key := []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}[r.IntN(4)/3]
		if share(d.Hosts) {
			c.PodAntiAffinity = append(c.PodAntiAffinity, cluster.PodTerm{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"default"}, Selector: selector(r.IntN(4))})
		}
		if share(d.Spread / max(d.Terms, 1)) {
			c.Spread = append(c.Spread, cluster.Spread{TopologyKey: key, MaxSkew: 1 + r.IntN(3), Selector: selector(r.IntN(2))})
		}
		if share(d.Affinity / max(d.Terms, 1)) {
			c.PodAffinity = append(c.PodAffinity, cluster.PodTerm{TopologyKey: "topology.kubernetes.io/zone", Namespaces: []string{"default"}, Selector: selector(r.IntN(3))})
		}
		if share(d.Prefer) {
			if c.Prefers == nil {
				c.Prefers = new(cluster.Preferences)
			}
			c.Prefers.Pods = append(c.Prefers.Pods, cluster.PreferredPods{Weight: int64(r.IntN(200) - 100), Term: cluster.PodTerm{TopologyKey: key, Namespaces: []string{"default"}, Selector: selector(r.IntN(3))}})
			c.Prefers.Spread = append(c.Prefers.Spread, cluster.Spread{TopologyKey: key, MaxSkew: 1, Selector: selector(0)})
		}
	}
	if share(d.Pinned) {
		c.NodeSelector = map[string]string{"own": own}
	}
	if share(d.Taints) {
		c.Tolerations = []cluster.Toleration{{Key: "t", Operator: "Equal", Value: fmt.Sprint(r.IntN(5)), Effect: "NoSchedule"}}
	}
	return c
}

// running draws the nodes and what is on them.
func (d dear) running(r *rand.Rand, s *cluster.Snapshot) {
	for b := range d.Budgets {
		s.Budgets = append(s.Budgets, cluster.Budget{Key: fmt.Sprint("default/b", b), Allowed: r.IntN(3)})
	}
	classes := max(min(d.Classes, d.Nodes*d.PodsPerNode), 1)
	for c := range classes {
		x := d.class(r, fmt.Sprint("r", c), classes, fmt.Sprint("n", c%max(d.Nodes, 1)))
		per := int64(max(d.PodsPerNode, 1))
		x.Requests = cluster.Resources{MilliCPU: int64(d.Use)*20/per - r.Int64N(9) + 9, Memory: (int64(d.Use)*80/per + r.Int64N(9)) << 20, Pods: 1}
		s.Classes = append(s.Classes, x)
	}
	born := t0.Add(-time.Hour)
	for i := range d.Nodes {
		g := &s.Groups[i%len(s.Groups)]
		name := cluster.NodeName(fmt.Sprintf("n%05d", i))
		id := cluster.InstanceID("aws:///z/i-" + string(name))
		g.Target++
		g.Instances = append(g.Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: born})
		n := &cluster.Node{Name: name, UID: cluster.UID(id), ProviderID: string(id), Created: born, Capacity: g.Template.Capacity, Allocatable: g.Template.Allocatable, Ready: cluster.StatusTrue, ReadySince: born, Taints: g.Template.Taints,
			Labels: map[string]string{"kubernetes.io/hostname": string(name), "own": fmt.Sprint("n", i), "topology.kubernetes.io/zone": g.Template.Labels["topology.kubernetes.io/zone"], "pool": g.Template.Labels["pool"]}}
		for k := range d.PodsPerNode {
			class := (i + k*d.Nodes) % classes
			p := cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/r-%05d-%02d", i, k)), UID: cluster.UID(fmt.Sprint("r", i, "-", k)), Class: class, Node: name, Created: cluster.At(born), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: fmt.Sprint(class), UID: cluster.UID(fmt.Sprint("r", class))}}
			if d.Budgets > 0 {
				p.Budgets = []string{fmt.Sprint("default/b", r.IntN(d.Budgets))}
			}
			n.Pods = append(n.Pods, p)
		}
		s.Nodes = append(s.Nodes, n)
	}
}

// arrive makes pods that wait, of the classes from one on.
func (d dear) arrive(s *cluster.Snapshot, from int, name string, n int) {
	for i := range n {
		class := from + i%(len(s.Classes)-from)
		p := cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/%s-%06d", name, i)), UID: cluster.UID(fmt.Sprint(name, i)), Class: class,
			Created: cluster.At(s.Now.Add(-time.Duration(i%(d.Ages+1)) * time.Second)), Unschedulable: cluster.At(s.Now)}
		if d.Owners > 0 {
			owner := fmt.Sprint(class, "-", i%d.Owners)
			p.Owner = &cluster.Owner{Kind: "ReplicaSet", Name: owner, UID: cluster.UID(owner)}
		}
		s.Pods = append(s.Pods, p)
	}
}

// bill is what a round has cost.
type bill struct {
	steps          map[round.Part]int
	time           time.Duration // of processor
	bytes, objects uint64        // allocated
}

// due is what the search looks for the most of: the shares of the budgets, and the allocations
// as shares of so many that they would be as bad. Time is no part of it: it is
// another one on each machine.
func (b *bill) due() float64 {
	sum := float64(b.bytes)/dearestHeap + float64(b.objects)/5e6
	for p, n := range b.steps {
		sum += float64(n) / float64(p.Budget())
	}
	return sum
}

func (b *bill) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%.2f due: %s, %d MB and %d objects allocated", b.due(), b.time.Round(time.Millisecond), b.bytes>>20, b.objects)
	for _, p := range round.Parts() {
		fmt.Fprintf(&out, ", %d steps of %s", b.steps[p], p)
	}
	return out.String()
}

// costs plays the last round of the world.
func (d dear) costs() *bill {
	s, m, p := d.last()
	return billOf(&s, m, p)
}

// last is the world before its only round, or where pods come late before the one after it,
// with all that was bought upcoming.
func (d dear) last() (s cluster.Snapshot, m decision.Memory, p decision.Policy) {
	s, p = d.world()
	if d.Late > 0 {
		var first decision.Plan
		first, m = Decide(s, m, p)
		s.Now = s.Now.Add(10 * time.Second)
		for i := range s.Groups {
			s.Groups[i].ReadAt = s.Now
		}
		for _, a := range first.Actions {
			if a, ok := a.(decision.Grow); ok {
				i := slices.IndexFunc(s.Groups, func(g cluster.NodeGroup) bool { return g.ID == a.Group })
				s.Groups[i].Target = a.To
			}
		}
		d.arrive(&s, len(s.Classes)-max(d.PendingClasses, 1), "late", d.Late)
	}
	return s, m, p
}

func billOf(s *cluster.Snapshot, m decision.Memory, p decision.Policy) *bill {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e := new(Engine)
	began := processorTime()
	r := newRun(&e.round, &e.down, s, &m, &p)
	for _, step := range steps {
		step.do(r)
	}
	b := &bill{steps: make(map[round.Part]int), time: processorTime() - began}
	runtime.ReadMemStats(&after)
	b.bytes, b.objects = after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs
	for _, part := range round.Parts() {
		b.steps[part] = r.Spent.Of(part)
	}
	return b
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heapOf is the most heap that the world's round has in use beyond the world itself. The
// collector runs early, so that what is garbage hardly counts.
func (d dear) heapOf() uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtime.GC()
	metrics.Read(sample)
	before, most := sample[0].Value.Uint64(), uint64(0)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				metrics.Read(sample)
				most = max(most, sample[0].Value.Uint64())
			}
		}
	}()
	d.costs()
	close(done)
	<-stopped
	return most - min(before, most)
}

// check fails where a round is beyond a bound. The first purchase has to be judged within one budget, and a trial may begin
// while a step is left; what is bought is then bound twice more, for its contents, and once more to be explained.
func (d dear) check(t *testing.T, b *bill) {
	t.Helper()
	for _, p := range round.Parts() {
		if most := 5 * p.Budget(); b.steps[p] > most {
			t.Errorf("%d steps of %s, at most %d are right: %+v", b.steps[p], p, most, d)
		}
	}
	if b.time > dearestTime { // another process may have slowed this one down
		if b = d.costs(); b.time > dearestTime {
			t.Errorf("%s: %+v", b, d)
		}
	}
	if b.bytes > dearestHeap {
		if heap := d.heapOf(); heap > dearestHeap {
			t.Errorf("%d MB of heap: %+v", heap>>20, d)
		}
	}
}

// TestDearestInput looks for the world whose round costs most, by steps and allocations, and
// holds every round on its way against the bounds. It climbs from drawn worlds by changing
// some of their numbers. The gate tries a few small ones; AUTOSCALER_TEST_DEAREST is how
// long it looks among worlds of every size.
func TestDearestInput(t *testing.T) {
	seed := drawn.Seed(t)
	tries, shrink, until := 15, 20, time.Time{}
	if text := os.Getenv("AUTOSCALER_TEST_DEAREST"); text != "" {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("AUTOSCALER_TEST_DEAREST: %v", err)
		}
		tries, shrink, until = 1<<30, 1, time.Now().Add(long)
	}
	r := rand.New(rand.NewPCG(seed, 0xc11b))
	begin := dear{Seed: r.Uint64(), Nodes: 50, PodsPerNode: 3, Classes: 30, Use: 40, Pending: 100, PendingClasses: 10, Large: 20, Groups: 4, Sizes: 4, Zones: 3, Priced: 100, Terms: 1, Owners: 1}
	at, best, dearest, slowest := begin, begin.costs(), begin, begin
	top, slow, stale := best, best, 0
	for n := range tries {
		if t.Failed() && until.IsZero() || !until.IsZero() && time.Now().After(until) {
			t.Logf("%d worlds", n)
			break
		}
		d := at.mutant(r, shrink)
		b := d.costs()
		d.check(t, b)
		if b.time > slow.time {
			slowest, slow = d, b
		}
		if b.due() > top.due() {
			dearest, top = d, b
		}
		if stale++; b.due() > best.due() {
			at, best, stale = d, b, 0
		}
		if stale > 40 { // a summit: from a drawn world again
			at, stale = begin, 0
			for range 6 {
				at = at.mutant(r, shrink)
			}
			at.Seed = r.Uint64()
			best = at.costs()
			at.check(t, best)
		}
	}
	t.Logf("dearest: %s: %+v", top, dearest)
	t.Logf("slowest: %s: %+v", slow, slowest)
}
