package worlds

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/yardstick"
)

const (
	zoneKey = corev1.LabelTopologyZone
	hostKey = corev1.LabelHostname
	poolKey = "pool"
)

var start = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// machineType is an EC2 type: what a kubelet with EKS's reservations leaves allocatable, and
// the price in thousandths of a dollar an hour.
type machineType struct {
	name            string
	cores, gib      int64
	milliCPU, bytes int64
	pods, price     int64
}

// machineTypes are c5, m5 and r5: 70m of the first cores, then less; 11 MiB a pod and
// 355 MiB of memory, and about two hundredths that the machine itself keeps.
var machineTypes = func() (out []machineType) {
	kept := map[int64]int64{2: 70, 4: 80, 8: 90, 16: 110, 32: 150, 48: 190}
	pods := map[int64]int64{2: 29, 4: 58, 8: 58, 16: 234, 32: 234, 48: 234}
	for _, t := range []struct {
		family            string
		cores, gib, price int64
	}{
		{"c5", 2, 4, 85}, {"m5", 2, 8, 96}, {"r5", 2, 16, 126}, {"c5", 4, 8, 170}, {"m5", 4, 16, 192}, {"r5", 4, 32, 252},
		{"c5", 8, 16, 340}, {"m5", 8, 32, 384}, {"r5", 8, 64, 504}, {"c5", 16, 32, 680}, {"m5", 16, 64, 768}, {"r5", 16, 128, 1008},
		{"m5", 32, 128, 1536}, {"m5", 48, 192, 2304},
	} {
		m := machineType{name: fmt.Sprintf("%s-%dx%d", t.family, t.cores, t.gib), cores: t.cores, gib: t.gib, price: t.price, pods: pods[t.cores]}
		m.milliCPU = t.cores*1000 - kept[t.cores]
		m.bytes = t.gib<<30 - t.gib<<30/50 - (355+11*m.pods)<<20
		out = append(out, m)
	}
	return out
}()

// World is one drawn cluster. Waves are pods that come one after the other, each in the
// order in which kube-scheduler's queue has them.
type World struct {
	Seed        uint64
	Groups      []cluster.NodeGroup
	Pool, Zone  []string // by group
	Nodes       []*corev1.Node
	Bound       []*corev1.Pod
	Waves       [][]*corev1.Pod
	ReplicaSets []*appsv1.ReplicaSet
	Tie         map[string]yardstick.Tie // by app
	Skew        map[string]int
	Classes     int
	Unpriced    bool   // the agent is not told the prices
	Expander    string // of the agent; empty: that of Policy
	UIDs        int    // given so far
}

// Pods is how many pods wait in all.
func (w *World) Pods() (n int) {
	for _, wave := range w.Waves {
		n += len(wave)
	}
	return n
}

type drawer struct {
	*rand.Rand
	w     *World
	zones []string
}

func newDrawer(seed, kind uint64) *drawer {
	return &drawer{Rand: rand.New(rand.NewPCG(seed, kind)), w: &World{Seed: seed, Tie: map[string]yardstick.Tie{}, Skew: map[string]int{}}}
}

// Draw makes the world of a seed.
func Draw(seed uint64) *World {
	d := newDrawer(seed, 0x3017)
	d.zones = []string{"a", "b", "c"}[:1+d.IntN(3)]
	d.groups()
	tied := d.IntN(5) < 2
	classes := 1 + d.IntN([]int{4, 15, 60}[d.IntN(3)])
	total := 50 * math.Pow(40, d.Float64()) // 50 to 2,000, as often below 300 as above
	var all []*corev1.Pod
	for i := range classes {
		n := max(1, int(total/float64(classes)*(0.3+1.4*d.Float64())))
		all = append(all, d.workload(i, n, tied)...)
	}
	d.existing()
	if d.IntN(2) == 0 {
		d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	waves := 1
	if d.IntN(4) == 0 {
		waves = 3
	}
	for i, p := range all {
		p.CreationTimestamp = metav1.Time{Time: start.Add(time.Duration(i/50) * time.Second)}
	}
	for k := range waves {
		d.w.Waves = append(d.w.Waves, all[len(all)*k/waves:len(all)*(k+1)/waves])
	}
	return d.w
}

func (d *drawer) groups() {
	zoneless := d.IntN(6) == 0
	for i := range 1 + d.IntN(12) {
		t := machineTypes[d.IntN(len(machineTypes))]
		pool, zone := "main", d.zones[d.IntN(len(d.zones))]
		if zoneless {
			zone = "a"
		}
		if i > 1 && d.IntN(6) == 0 {
			pool = "special"
		}
		price := t.price
		if d.IntN(4) == 0 {
			price = price * int64(90+d.IntN(20)) / 100
		}
		template := cluster.Template{Spec: "lt", Capacity: cluster.Resources{MilliCPU: t.cores * 1000, Memory: t.gib << 30, Pods: t.pods},
			Allocatable: cluster.Resources{MilliCPU: t.milliCPU, Memory: t.bytes, Pods: t.pods},
			Labels:      map[string]string{poolKey: pool, zoneKey: zone, corev1.LabelInstanceTypeStable: t.name}}
		if pool == "special" {
			template.Taints = []cluster.Taint{{Key: "special", Effect: "NoSchedule"}}
		}
		d.w.Groups = append(d.w.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("g%02d-%s-%s", i, t.name, zone)), Max: 100000, ReadAt: start, Price: float64(price) / 1000, Template: template})
		d.w.Pool, d.w.Zone = append(d.w.Pool, pool), append(d.w.Zone, zone)
	}
}

// workload draws a ReplicaSet of n pods that some group can take.
func (d *drawer) workload(i, n int, tied bool) []*corev1.Pod {
	app := fmt.Sprintf("app%02d", i)
	labels := map[string]string{"app": app, "pod-template-hash": fmt.Sprint("h", i)}
	spec := corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName}
	var cpu, memory int64
	for {
		cpu = []int64{50, 100, 250, 500, 750, 1000, 1500, 2000, 4000}[d.IntN(9)] + 10*d.Int64N(10)
		memory = []int64{64, 128, 256, 512, 1024, 2048, 4096, 8192}[d.IntN(8)]<<20 + d.Int64N(16)<<22
		fits := false
		for g := range d.w.Groups {
			a := &d.w.Groups[g].Template.Allocatable
			fits = fits || d.w.Pool[g] == "main" && cpu <= a.MilliCPU && memory <= a.Memory
		}
		if fits {
			break
		}
	}
	spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)}}}}
	if d.IntN(4) == 0 {
		spec.Tolerations = []corev1.Toleration{{Key: "special", Operator: corev1.TolerationOpExists}}
	}
	if tied && d.IntN(2) == 0 {
		n = d.tie(&spec, app, n)
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app, UID: d.uid()}, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	d.w.ReplicaSets = append(d.w.ReplicaSets, set)
	d.w.Classes++
	var out []*corev1.Pod
	for k := range n {
		out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%04d", app, k), UID: d.uid(), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: set.UID, Controller: new(true)}}},
			Spec: *spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending}})
	}
	return out
}

func (d *drawer) tie(spec *corev1.PodSpec, app string, n int) int {
	tie := []yardstick.Tie{yardstick.AntiHost, yardstick.SpreadHost, yardstick.SpreadZone, yardstick.SpreadZone, yardstick.TogetherIn}[d.IntN(5)]
	skew := 1 + d.IntN(3)
	switch tie {
	case yardstick.AntiHost:
		n = min(n, 20)
	case yardstick.SpreadHost, yardstick.SpreadZone:
		n = min(n, 60)
	}
	tieSpec(spec, tie, skew, app)
	d.w.Tie[app], d.w.Skew[app] = tie, skew
	return n
}

// tieSpec makes the pods of an app depend on each other.
func tieSpec(spec *corev1.PodSpec, tie yardstick.Tie, skew int, app string) {
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	term := corev1.PodAffinityTerm{TopologyKey: hostKey, LabelSelector: own}
	spread := corev1.TopologySpreadConstraint{MaxSkew: int32(skew), TopologyKey: hostKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}
	switch tie {
	case yardstick.AntiHost:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case yardstick.TogetherIn:
		term.TopologyKey = zoneKey
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case yardstick.SpreadZone:
		spread.TopologyKey = zoneKey
		fallthrough
	case yardstick.SpreadHost:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread}
	}
}

// existing are a few nodes that are partly filled.
func (d *drawer) existing() {
	if d.IntN(3) == 0 {
		return
	}
	for range d.IntN(8) {
		g := d.IntN(len(d.w.Groups))
		n := d.w.addMachine(g)
		a := &d.w.Groups[g].Template.Allocatable
		share := 0.3 + 0.6*d.Float64()
		for k := range 4 {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("old-%s-%d", n.Name, k), UID: d.uid(), Labels: map[string]string{"app": "old"}, CreationTimestamp: metav1.Time{Time: start.Add(-time.Hour)}}}
			p.Spec = corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, NodeName: n.Name, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(share*float64(a.MilliCPU)/4), resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(int64(share*float64(a.Memory)/4*(0.5+0.5*d.Float64())), resource.BinarySI)}}}}}
			p.Status.Phase = corev1.PodRunning
			d.w.Bound = append(d.w.Bound, p)
		}
	}
}

// addMachine lets a machine of a group join.
func (w *World) addMachine(group int) *corev1.Node {
	return w.join(group, w.order(group, start), start.Add(-time.Hour))
}

// order orders a machine of a group, and returns the name that its node will have.
func (w *World) order(group int, now time.Time) string {
	g := &w.Groups[group]
	name := fmt.Sprintf("%s-m%d", g.ID, g.Target)
	g.Target++
	g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(providerID(name)), Phase: cluster.PhaseRunning, Created: now, NodeNames: []string{name}, Names: []string{name}, Member: true})
	return name
}

func providerID(name string) string { return "worlds:///" + name }

// join makes the node of a machine that was ordered, which is Ready since a time.
func (w *World) join(group int, name string, since time.Time) *corev1.Node {
	g := &w.Groups[group]
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: w.uid(), Labels: map[string]string{hostKey: name}, CreationTimestamp: metav1.Time{Time: start}}}
	for k, v := range g.Template.Labels {
		n.Labels[k] = v
	}
	for _, t := range g.Template.Taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	n.Spec.ProviderID = providerID(name)
	list := func(r cluster.Resources) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(r.MilliCPU, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(r.Memory, resource.BinarySI), corev1.ResourcePods: *resource.NewQuantity(r.Pods, resource.DecimalSI)}
	}
	n.Status.Allocatable, n.Status.Capacity = list(g.Template.Allocatable), list(g.Template.Capacity)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: since}}}
	w.Nodes = append(w.Nodes, n)
	return n
}

func (w *World) uid() types.UID {
	w.UIDs++
	return types.UID(fmt.Sprintf("u%d", w.UIDs))
}

func (d *drawer) uid() types.UID { return d.w.uid() }
