package days

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

// scaler decides. It is told of what changes, and acts by the world's methods.
type scaler interface {
	start(w *world)
	// moved is told that the cluster changed.
	moved(w *world, u store.Urgency)
	// came is told that a machine came or went in the cloud.
	came(w *world)
}

// world is a cluster, its cloud and the time in one.
type world struct {
	day    *Day
	judge  *oracle.Judge
	r      *rand.Rand
	clock  clock
	from   time.Time // what happens before is not counted
	scaler scaler
	store  *store.Store // what the agent's informers have; nil: the scaler reads the world itself
	log    func(string)

	groups   []*group
	nodes    []*node // by age
	pods     []*pod  // by age
	services []*service
	sets     []*appsv1.ReplicaSet
	serial   int
	kicked   bool // a pass of kube-scheduler is due
	freed    bool // something may help pods that did not fit

	evicting bool // pods that are made now take the place of evicted ones

	failed error
	report Report
}

// group is a node group of the cloud.
type group struct {
	cluster.NodeGroup
	machines []*machine // that run, or are on their way
	removed  time.Time  // when a machine was last terminated
	dear     bool       // and that it was consolidated
}

// machine is one instance.
type machine struct {
	cluster.Instance
	group *group
	node  *node
	ended time.Time // terminated
	dear  bool      // cordoned because it was dear
}

// node is a Node object and what is bound to it.
type node struct {
	object  *corev1.Node
	machine *machine
	pods    []*pod
	ready   bool
}

// Play lets a scaler play a day.
func Play(j *oracle.Judge, day *Day, s Scaler) (Report, error) {
	w := &world{day: day, judge: j, r: rand.New(rand.NewPCG(day.Seed, 0x3a7)), log: s.Log}
	w.clock.Now, w.from = begin, begin.Add(warmUp)
	if w.log == nil {
		w.log = func(string) {}
	}
	for _, g := range day.Groups {
		w.groups = append(w.groups, &group{NodeGroup: g})
	}
	for i := range day.Work {
		w.services = append(w.services, &service{Workload: &day.Work[i]})
	}
	var err error
	if w.scaler, err = s.make(w); err != nil {
		return Report{}, err
	}
	if c, ok := w.scaler.(io.Closer); ok {
		defer c.Close()
	}
	w.scaler.start(w)
	w.look(time.Minute)
	for i := range day.Demand {
		w.clock.At(begin.Add(day.Demand[i].At), func() { w.demand(&day.Demand[i]) })
	}
	w.clock.Run(begin.Add(length), func() bool { return w.failed != nil })
	if w.failed != nil {
		return w.report, fmt.Errorf("day %s, seed %d: %w", day.Kind, day.Seed, w.failed)
	}
	w.report.finish(w)
	return w.report, nil
}

// between is a random time from lo to hi.
func (w *world) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.r.Int64N(int64(hi-lo)))
}

func (w *world) uid() types.UID {
	w.serial++
	return types.UID(fmt.Sprintf("u%06d", w.serial))
}

// launch lets the cloud start what a group lacks to its target.
func (w *world) launch(g *group) {
	w.clock.After(w.between(time.Second, 5*time.Second), func() {
		live := 0
		for _, m := range g.machines {
			if m.ended.IsZero() {
				live++
			}
		}
		for range g.Target - live {
			w.boot(g)
		}
		w.scaler.came(w)
	})
}

// boot starts one machine: it is a Node ten seconds before it is Ready.
func (w *world) boot(g *group) {
	w.serial++
	name := fmt.Sprintf("ip-%06d", w.serial)
	m := &machine{group: g, Instance: cluster.Instance{ID: cluster.InstanceID("aws:///a/i-" + name), Phase: cluster.PhasePending, Created: w.clock.Now, Zone: "a", Member: true,
		NodeNames: []string{name}, Names: []string{name}}}
	g.machines = append(g.machines, m)
	ready := w.between(60*time.Second, 105*time.Second)
	w.clock.After(12*time.Second, func() {
		if m.Phase == cluster.PhasePending {
			m.Phase = cluster.PhaseRunning
		}
	})
	w.clock.After(ready-10*time.Second, func() {
		if m.ended.IsZero() {
			w.register(m, name)
		}
	})
	w.clock.After(ready, func() {
		if m.node != nil && m.ended.IsZero() {
			m.node.ready = true
			w.untaint(m.node, corev1.TaintNodeNotReady)
			m.node.object.Status.Conditions = condition(corev1.ConditionTrue, w.clock.Now)
			w.putNode(m.node)
			w.kick(true)
		}
	})
}

func condition(s corev1.ConditionStatus, since time.Time) []corev1.NodeCondition {
	return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: s, LastTransitionTime: metav1.Time{Time: since}}}
}

func (w *world) register(m *machine, name string) {
	o := nodeOf(&m.group.Template, name)
	o.UID, o.CreationTimestamp, o.Spec.ProviderID = w.uid(), metav1.Time{Time: w.clock.Now}, string(m.ID)
	o.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	o.Status.Conditions = condition(corev1.ConditionFalse, w.clock.Now)
	m.node = &node{object: o, machine: m}
	w.nodes = append(w.nodes, m.node)
	w.putNode(m.node)
}

// nodeOf is the Node that a template becomes.
func nodeOf(t *cluster.Template, name string) *corev1.Node {
	list := func(r cluster.Resources) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(r.MilliCPU, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(r.Memory, resource.BinarySI), corev1.ResourcePods: *resource.NewQuantity(r.Pods, resource.DecimalSI)}
	}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	for k, v := range t.Labels {
		o.Labels[k] = v
	}
	o.Status.Allocatable, o.Status.Capacity = list(t.Allocatable), list(t.Capacity)
	return o
}

// putNode tells the watchers of a Node.
func (w *world) putNode(n *node) {
	u := store.Soon
	if w.store != nil {
		u = w.store.PutNode(n.object.DeepCopy())
	}
	w.scaler.moved(w, u)
}

func (w *world) untaint(n *node, key string) {
	n.object.Spec.Taints = slices.DeleteFunc(slices.Clone(n.object.Spec.Taints), func(t corev1.Taint) bool { return t.Key == key })
}

func (w *world) tainted(n *node, key string) bool {
	return slices.ContainsFunc(n.object.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// vanish ends the Node of a terminated machine, and what still runs on it.
func (w *world) vanish(m *machine) {
	m.Phase, m.Member = cluster.PhaseGone, false
	m.group.machines = slices.DeleteFunc(m.group.machines, func(x *machine) bool { return x == m })
	w.scaler.came(w)
	n := m.node
	if n == nil {
		return
	}
	w.clock.After(w.between(5*time.Second, 20*time.Second), func() {
		for _, p := range slices.Clone(n.pods) {
			w.drop(p)
		}
		w.nodes = slices.DeleteFunc(w.nodes, func(x *node) bool { return x == n })
		u := store.Soon
		if w.store != nil {
			u = w.store.DeleteNode(cluster.NodeName(n.object.Name))
		}
		w.scaler.moved(w, u)
	})
}

// kick asks for a pass of kube-scheduler. With freed, pods that did not fit are tried again.
func (w *world) kick(freed bool) {
	w.freed = w.freed || freed
	if w.kicked {
		return
	}
	w.kicked = true
	w.clock.After(w.between(20*time.Millisecond, 100*time.Millisecond), func() {
		w.kicked = false
		w.pass()
	})
}

// pass lets kube-scheduler bind what waits: pods that it has not tried, and all of them after
// something that may help those that did not fit.
func (w *world) pass() {
	var waiting []*pod
	for _, p := range w.pods {
		if p.node == nil && !p.deleting && (w.freed || !p.tried) {
			waiting = append(waiting, p)
		}
	}
	w.freed = false
	if len(waiting) == 0 || w.failed != nil {
		return
	}
	ask := &oracle.World{ReplicaSets: w.sets}
	for _, n := range w.nodes {
		ask.Nodes = append(ask.Nodes, n.object)
		for _, p := range n.pods {
			ask.Pods = append(ask.Pods, p.object)
		}
	}
	for _, p := range waiting {
		ask.Waiting = append(ask.Waiting, p.object)
	}
	w.serial++
	bindings, err := w.judge.Bind(ask, w.day.Seed+uint64(w.serial))
	if err != nil {
		w.failed = err
		return
	}
	for i, b := range bindings {
		if b.Node > 0 {
			w.bind(waiting[i], w.nodes[b.Node-1])
		} else {
			w.fail(waiting[i])
		}
	}
}

// Scaler is one that plays, by name.
type Scaler struct {
	Name string
	Log  func(string) // is told every action; nil: nobody
	make func(*world) (scaler, error)
}

// Program is another program that plays, as a child process; see Moment. The context ends it.
func Program(ctx context.Context, path string) Scaler {
	return Scaler{Name: path, make: func(w *world) (scaler, error) { return startProgram(ctx, path) }}
}
