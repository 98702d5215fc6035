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
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// daemonWorld is a cluster in which the pods of DaemonSets request something else than their
// template says, as an admission webhook makes them. Machines join at once, DaemonSets' pods are
// bound first or last, and a pod that is bound stays.
type daemonWorld struct {
	s       cluster.Snapshot
	m       decision.Memory
	p       decision.Policy
	r       *rand.Rand
	seed    uint64
	real    [][]cluster.Resources    // by group and DaemonSet
	made    map[string]int           // classes of pods of DaemonSets
	shown   map[[2]int]time.Time     // by group and DaemonSet: when a pod last showed what it requests
	anyone  bool                     // every DaemonSet requests the same on all groups
	wrong   map[cluster.GroupID]bool // groups that grew for a pod that does not fit, while none had shown it
	last    bool                     // DaemonSets' pods are bound after the others
	next    int
	tell    strings.Builder
	pending int
}

func newDaemonWorld(seed uint64) *daemonWorld {
	w := &daemonWorld{seed: seed, r: rand.New(rand.NewPCG(seed, 39)), p: policy(), made: map[string]int{}, shown: map[[2]int]time.Time{}, wrong: map[cluster.GroupID]bool{}}
	w.s.Now = t0
	w.p.Expander = []string{"least-waste", "least-nodes", "price", "random"}[w.r.IntN(4)]
	w.anyone, w.last = w.r.IntN(3) > 0, w.r.IntN(3) == 0
	for d := range 1 + w.r.IntN(3) {
		name := fmt.Sprintf("agent-%d", d)
		w.s.Classes = append(w.s.Classes, cluster.PodClass{Namespace: "kube-system", Labels: map[string]string{"app": name}, Requests: w.amount(50, 300)})
		w.s.DaemonSets = append(w.s.DaemonSets, cluster.DaemonSet{Key: cluster.PodKey("kube-system/" + name), UID: cluster.UID(name), Class: d, Revision: "2", Settled: w.r.IntN(2) == 0})
	}
	for g := range 1 + w.r.IntN(4) {
		cores := int64(2) << w.r.IntN(4)
		size := cluster.Resources{MilliCPU: cores*1000 - 70, Memory: cores << 32, Pods: 110}
		w.s.Groups = append(w.s.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("g%d", g)), Max: 20, Price: float64(cores) * (0.9 + w.r.Float64()/5),
			Template: cluster.Template{Spec: "lt-1", Allocatable: size, Capacity: size, Labels: map[string]string{"pool": fmt.Sprint(g)}}})
		var row []cluster.Resources
		for d := range w.s.DaemonSets {
			more := w.s.Classes[w.s.DaemonSets[d].Class].Requests.Add(w.amount(0, 900))
			more.Pods = 1
			if g > 0 && w.anyone {
				more = w.real[0][d]
			}
			row = append(row, more)
		}
		w.real = append(w.real, row)
	}
	for g := range w.s.Groups {
		for range w.r.IntN(3) / 2 {
			w.join(g)
		}
	}
	for i := range 1 + w.r.IntN(6) {
		c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": fmt.Sprintf("web-%d", i)}, Requests: w.amount(200, 4000)}
		w.s.Classes = append(w.s.Classes, c)
		for k := range 1 + w.r.IntN(4) {
			name := fmt.Sprintf("web-%d-%d", i, k)
			w.s.Pods = append(w.s.Pods, cluster.Pod{Key: cluster.PodKey("default/" + name), UID: cluster.UID(name), Class: len(w.s.Classes) - 1, GracePeriod: 1,
				Owner: &cluster.Owner{Kind: "ReplicaSet", Name: fmt.Sprintf("web-%d", i), UID: cluster.UID(fmt.Sprintf("web-%d", i))}, Created: cluster.At(t0), Unschedulable: cluster.At(t0)})
		}
	}
	return w
}

func (w *daemonWorld) amount(low, high int64) cluster.Resources {
	return cluster.Resources{MilliCPU: low + w.r.Int64N(high-low), Memory: (low + w.r.Int64N(high-low)) << 21, Pods: 1}
}

// join adds a machine of a group with the pods of DaemonSets that it has room for; the others
// wait for it, and show what they request as well.
func (w *daemonWorld) join(g int) {
	w.next++
	gr := &w.s.Groups[g]
	name := cluster.NodeName(fmt.Sprintf("n%03d", w.next))
	id := cluster.InstanceID("aws:///z/i-" + string(name))
	gr.Instances = append(gr.Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: w.s.Now})
	gr.Target = max(gr.Target, len(gr.Instances))
	w.s.Nodes = append(w.s.Nodes, &cluster.Node{Name: name, UID: cluster.UID(name), ProviderID: string(id), Created: w.s.Now, Ready: cluster.StatusTrue, ReadySince: w.s.Now,
		Labels: gr.Template.Labels, Allocatable: gr.Template.Allocatable, Capacity: gr.Template.Capacity})
	if w.last {
		w.bind()
	}
	for d := range w.s.DaemonSets {
		ds := &w.s.DaemonSets[d]
		pod := cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("%s-%s", ds.Key, name)), UID: cluster.UID(fmt.Sprintf("%s-%s", ds.UID, name)), Created: cluster.At(w.s.Now),
			Owner: &cluster.Owner{Kind: "DaemonSet", Name: string(ds.UID), UID: ds.UID}, Class: w.class(g, d, "")}
		if w.room(name).fits(w.real[g][d]) {
			pod.Node = name
		} else {
			pod.Class = w.class(g, d, name)
		}
		w.s.Pods = append(w.s.Pods, pod)
	}
}

// class is the class of a DaemonSet's pod on a group; one that waits is tied to its node.
func (w *daemonWorld) class(g, d int, waits cluster.NodeName) int {
	key := fmt.Sprint(g, " ", d, " ", waits)
	if _, ok := w.made[key]; !ok {
		c := w.s.Classes[w.s.DaemonSets[d].Class]
		c.Requests = w.real[g][d]
		c.Labels = map[string]string{"app": string(w.s.DaemonSets[d].UID), cluster.LabelTemplateGeneration: "2", cluster.LabelRevisionHash: "hash-2"}
		if waits != "" {
			c.Affinity = []cluster.NodeTerm{{Fields: []cluster.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{string(waits)}}}}}
		}
		w.s.Classes = append(w.s.Classes, c)
		w.made[key] = len(w.s.Classes) - 1
	}
	return w.made[key]
}

type room cluster.Resources

func (r room) fits(a cluster.Resources) bool {
	return a.MilliCPU <= r.MilliCPU && a.Memory <= r.Memory && a.Pods <= r.Pods
}

func (w *daemonWorld) room(name cluster.NodeName) room {
	i := slices.IndexFunc(w.s.Nodes, func(n *cluster.Node) bool { return n.Name == name })
	left := w.s.Nodes[i].Allocatable
	for k := range w.s.Pods {
		if p := &w.s.Pods[k]; p.Node == name {
			left = left.Sub(w.s.Classes[p.Class].Requests)
		}
	}
	return room(left)
}

// bind puts each pod that waits where it fits.
func (w *daemonWorld) bind() {
	w.pending = 0
	for k := range w.s.Pods {
		p := &w.s.Pods[k]
		if p.Node != "" || p.Owner.Kind == "DaemonSet" {
			continue
		}
		for _, n := range w.s.Nodes {
			if !n.Unschedulable && w.room(n.Name).fits(w.s.Classes[p.Class].Requests) {
				p.Node, p.Unschedulable = n.Name, cluster.At(time.Time{})
				break
			}
		}
		if p.Node == "" {
			w.pending++
		}
	}
}

// leave takes a node away with the pods of DaemonSets; the others wait again.
func (w *daemonWorld) leave(name cluster.NodeName) {
	w.s.Nodes = slices.DeleteFunc(w.s.Nodes, func(n *cluster.Node) bool { return n.Name == name })
	w.s.Pods = slices.DeleteFunc(w.s.Pods, func(p cluster.Pod) bool {
		c := &w.s.Classes[p.Class]
		return p.Owner.Kind == "DaemonSet" && (p.Node == name || len(c.Affinity) > 0 && c.Affinity[0].Fields[0].Values[0] == string(name))
	})
	for k := range w.s.Pods {
		if p := &w.s.Pods[k]; p.Node == name {
			p.Node, p.Unschedulable = "", cluster.At(w.s.Now)
		}
	}
}

// step decides, carries the plan out, and lets time pass.
func (w *daemonWorld) step(t *testing.T, dt time.Duration) {
	for g := range w.s.Groups {
		w.s.Groups[g].ReadAt = w.s.Now
		for d := range w.s.DaemonSets {
			if len(w.s.Groups[g].Instances) > 0 {
				w.shown[[2]int{g, d}] = w.s.Now
			}
		}
	}
	w.bind()
	plan, m := Decide(w.s, w.m, w.p)
	if w.seed%10 == 0 { // the order of the Snapshot means nothing
		other, remembered := Decide(shuffled(t, w.s.Seated(), rand.New(rand.NewPCG(w.seed, 1))), w.m, w.p)
		if other.String() != plan.String() || string(text(t, remembered)) != string(text(t, m)) {
			t.Errorf("in another order:\n%s%s\n--- was\n%s%s", other, text(t, remembered), plan, text(t, m))
		}
	}
	w.m = m
	fmt.Fprintf(&w.tell, "%s:\n%s", w.s.Now.Format("15:04"), plan.String())
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case decision.Grow:
			g := slices.IndexFunc(w.s.Groups, func(x cluster.NodeGroup) bool { return x.ID == a.Group })
			w.judge(t, g, a)
			w.s.Groups[g].Target = a.To
			for len(w.s.Groups[g].Instances) < a.To {
				w.join(g)
			}
		case decision.Terminate:
			for g := range w.s.Groups {
				gr := &w.s.Groups[g]
				before := len(gr.Instances)
				gr.Instances = slices.DeleteFunc(gr.Instances, func(in cluster.Instance) bool { return in.ID == a.Instance })
				gr.Target -= before - len(gr.Instances)
			}
			w.leave(a.Node)
		case decision.Cordon:
			for i, n := range w.s.Nodes {
				if n.Name == a.Node {
					c := *n
					c.Unschedulable, c.Annotations = true, map[string]string{cluster.AnnotationCordoned: a.Rule}
					c.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: cluster.TaintToBeDeleted, Value: fmt.Sprint(w.s.Now.Unix()), Effect: "NoSchedule"})
					w.s.Nodes[i] = &c
				}
			}
		case decision.Uncordon:
			for i, n := range w.s.Nodes {
				if n.Name == a.Node {
					c := *n
					c.Unschedulable, c.Annotations, c.Taints = false, nil, nil
					w.s.Nodes[i] = &c
				}
			}
		}
	}
	w.s.Now = w.s.Now.Add(dt)
}

// judge refuses growth for a pod that does not fit, once the group has shown what its
// DaemonSets request, within a day; or any group has, where they request the same everywhere.
func (w *daemonWorld) judge(t *testing.T, g int, a decision.Grow) {
	left, known := w.s.Groups[g].Template.Allocatable, true
	for d := range w.s.DaemonSets {
		left = left.Sub(w.real[g][d])
		at, ok := w.shown[[2]int{g, d}]
		for other := range w.s.Groups {
			if o, has := w.shown[[2]int{other, d}]; has && w.anyone && (!ok || o.After(at)) {
				at, ok = o, true
			}
		}
		known = known && ok && w.s.Now.Sub(at) < 24*time.Hour
	}
	known = known || w.wrong[a.Group]
	for _, key := range a.Pods {
		i := slices.IndexFunc(w.s.Pods, func(p cluster.Pod) bool { return p.Key == key })
		if i < 0 || room(left).fits(w.s.Classes[w.s.Pods[i].Class].Requests) {
			continue
		}
		if known {
			t.Errorf("%s grows %d->%d for %s, which asks for %+v of the %+v that its DaemonSets leave\n%s", a.Group, a.From, a.To, key, w.s.Classes[w.s.Pods[i].Class].Requests, left, w.tell.String())
			return
		}
		w.wrong[a.Group] = true
	}
}

// play lets a day and a half pass. Empty machines go every few rounds.
func (w *daemonWorld) play(t *testing.T) {
	defer func() {
		if t.Failed() {
			t.Logf("AUTOSCALER_TEST_SEED=%d", w.seed)
		}
	}()
	for round := range 24 {
		dt := time.Minute
		if round%4 == 3 {
			dt = 3 * time.Hour
		}
		w.step(t, dt)
	}
}

// TestDaemonSetsTakeMore: in drawn worlds where the pods of DaemonSets request more than their
// template says, no group grows for a pod that does not fit on its machines, once a pod of the
// DaemonSet has shown it; not when the machines have gone again, either.
func TestDaemonSetsTakeMore(t *testing.T) {
	first, times := drawn.Seed(t), drawn.Times(t)
	grows := 0
	for k := range 1000 * times {
		seed := first + uint64(k)
		w := newDaemonWorld(seed)
		w.play(t)
		grows += w.next
		if w.next > 60 {
			t.Errorf("%d machines for %d pods\n%s", w.next, len(w.s.Pods), w.tell.String())
		}
		if t.Failed() {
			return
		}
	}
	if grows < 1000*times {
		t.Errorf("%d machines in %d worlds: they show nothing", grows, 1000*times)
	}
}
