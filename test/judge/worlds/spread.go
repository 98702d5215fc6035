package worlds

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

// DrawSpread is a world of two to four zones with equal groups and nodes that are full or have room, in which pods are
// spread over zones: the room of a zone is closed by maxSkew until pods run in the other zones.
func DrawSpread(seed uint64) *World {
	d := newDrawer(seed, 0x5b)
	d.w.Unpriced = true
	d.zones = []string{"a", "b", "c", "d"}[:2+d.IntN(3)]
	t := machineTypes[[]int{3, 4, 6, 7}[d.IntN(4)]]
	for _, zone := range d.zones {
		for range 1 + d.IntN(5)/4 {
			d.spreadGroup(t, zone, 100)
		}
		if d.IntN(4) == 0 { // a node larger than the machines that can be bought
			d.spreadGroup(machineTypes[9+d.IntN(2)], zone, 1)
		}
	}
	if d.IntN(5) == 0 {
		g := &d.w.Groups[d.IntN(len(d.w.Groups))]
		g.Max = min(g.Max, 1+d.IntN(2))
	}
	var apps [][]*corev1.Pod
	for i := range 1 + d.IntN(2) {
		apps = append(apps, d.spreadApp(i, i > 0 && d.IntN(3) == 0, t))
	}
	d.spreadNodes(apps)
	var all []*corev1.Pod
	for _, pods := range apps {
		all = append(all, pods...)
	}
	if d.IntN(2) == 0 {
		d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	d.w.Waves = [][]*corev1.Pod{all}
	return d.w
}

// spreadGroup adds a group of a machine type.
func (d *drawer) spreadGroup(t machineType, zone string, most int) {
	template := cluster.Template{Spec: "lt", Capacity: cluster.Resources{MilliCPU: t.cores * 1000, Memory: t.gib << 30, Pods: t.pods},
		Allocatable: cluster.Resources{MilliCPU: t.milliCPU, Memory: t.bytes, Pods: t.pods},
		Labels:      map[string]string{poolKey: "main", zoneKey: zone, corev1.LabelInstanceTypeStable: t.name}}
	d.w.Groups = append(d.w.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("g%02d-%s-%s", len(d.w.Groups), t.name, zone)), Max: most, ReadAt: start, Price: float64(t.price) / 1000, Template: template})
	d.w.Pool, d.w.Zone = append(d.w.Pool, "main"), append(d.w.Zone, zone)
}

// spreadApp draws the pods of an app; free ones depend on nobody.
func (d *drawer) spreadApp(i int, free bool, t machineType) []*corev1.Pod {
	app := fmt.Sprintf("app%02d", i)
	pods := d.makePods(app, 2+d.IntN(18), fmt.Sprintf("%dm", t.milliCPU*int64(10+d.IntN(50))/100), "256Mi", nil)
	spec := &corev1.PodSpec{}
	if d.IntN(5) == 0 {
		spec.Priority = new(int32(100 * d.IntN(3)))
	}
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	if !free {
		c := corev1.TopologySpreadConstraint{MaxSkew: int32([]int{1, 1, 1, 2, 3}[d.IntN(5)]), TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}
		if d.IntN(5) == 0 {
			c.MinDomains = new(int32(1 + d.IntN(len(d.zones))))
		}
		if d.IntN(4) == 0 {
			c.NodeTaintsPolicy = new([]corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}[d.IntN(2)])
		}
		if d.IntN(4) == 0 {
			c.NodeAffinityPolicy = new([]corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}[d.IntN(2)])
		}
		if d.IntN(4) == 0 {
			c.MatchLabelKeys = []string{"pod-template-hash"}
		}
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
		switch d.IntN(8) {
		case 0:
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: int32(1 + d.IntN(3)), TopologyKey: hostKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own})
		case 1:
			spec.Affinity = keepsOff(hostKey, app)
			pods = pods[:min(len(pods), 8)]
		}
	}
	for _, p := range pods {
		p.Labels = map[string]string{"app": app, "pod-template-hash": "new"}
		p.Spec.Priority, p.Spec.TopologySpreadConstraints, p.Spec.Affinity = spec.Priority, spec.TopologySpreadConstraints, spec.Affinity
	}
	return pods
}

// spreadNodes are nodes of all groups, full or with room, some with pods of the apps.
func (d *drawer) spreadNodes(apps [][]*corev1.Pod) {
	for g := range d.w.Groups {
		for range min(1+d.IntN(4)/3, d.w.Groups[g].Max) {
			n := d.w.addMachine(g)
			share := []float64{0.9, 0.9, 0.6, 0.3, 0}[d.IntN(5)]
			cpu := int64(share * float64(d.w.Groups[g].Template.Allocatable.MilliCPU))
			if cpu > 0 {
				d.running("filler", fmt.Sprintf("filler-%s", n.Name), n.Name, cpu, nil)
			}
			if share < 0.7 && d.IntN(3) == 0 {
				like := apps[d.IntN(len(apps))][0]
				hash := []string{"new", "old"}[d.IntN(2)]
				d.running(like.Labels["app"], fmt.Sprintf("%s-on-%s", like.Labels["app"], n.Name), n.Name, like.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()/2, like).Labels["pod-template-hash"] = hash
			}
		}
	}
}

// running adds a pod that runs on a node; its constraints are those of another.
func (d *drawer) running(app, name, node string, cpu int64, like *corev1.Pod) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: d.uid(), Labels: map[string]string{"app": app}, CreationTimestamp: metav1.Time{Time: start.Add(-time.Hour)}}}
	p.Spec = corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI)}}}}}
	if like != nil {
		p.Spec.TopologySpreadConstraints, p.Spec.Affinity = like.Spec.TopologySpreadConstraints, like.Spec.Affinity
	}
	p.Status.Phase = corev1.PodRunning
	d.w.Bound = append(d.w.Bound, p)
	return p
}

// spreadDraws is how many draws a purchase has to stand: of ties, and of the order of pods that were made in the same second.
const spreadDraws = 6

// holds tells whether kube-scheduler leaves at most so many pods of a world in each draw, where so many machines of each group join
// after it has bound what has room on the nodes.
func holds(j *oracle.Judge, draw func() *World, machines []int, left int) (bool, error) {
	for k := range uint64(spreadDraws) {
		w := draw()
		p := &player{w: w, judge: j, seed: w.Seed, now: start}
		waiting, err := p.bind(slices.Concat(w.Waves...))
		if err != nil {
			return false, err
		}
		for g, n := range machines {
			for range n {
				w.addMachine(g)
			}
		}
		p.seed += k
		if k > 0 {
			r := rand.New(rand.NewPCG(w.Seed, k))
			r.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		}
		if waiting, err = p.bind(waiting); err != nil || len(waiting) > left {
			return false, err
		}
	}
	return true, nil
}

// fewest is the smallest number of machines, at most so many, with which kube-scheduler leaves no more than so many pods of a
// world, and one such purchase. It costs a binding of all pods for each purchase with one machine less, and a few more.
func fewest(j *oracle.Judge, draw func() *World, most, left int) (n int, best []int, err error) {
	w := draw()
	for n = most; n > 0; n-- {
		found := false
		for _, x := range purchases(w, n-1) {
			if found, err = holds(j, draw, x, left); err != nil {
				return n, best, err
			}
			if found {
				best = x
				break
			}
		}
		if !found {
			break
		}
	}
	return n, best, nil
}

// purchases are all purchases of so many machines that the groups' maxima allow, with equal groups of a zone counted once.
func purchases(w *World, n int) (out [][]int) {
	var add func(x []int, from, left int)
	add = func(x []int, from, left int) {
		if left == 0 {
			out = append(out, slices.Clone(x))
			return
		}
		for g := from; g < len(w.Groups); g++ {
			gr := &w.Groups[g]
			twin := slices.IndexFunc(w.Groups[:g], func(o cluster.NodeGroup) bool {
				return o.Template.Labels[zoneKey] == gr.Template.Labels[zoneKey] && o.Template.Capacity.MilliCPU == gr.Template.Capacity.MilliCPU && o.Max >= 100
			})
			if twin >= 0 || gr.Target+x[g] >= gr.Max {
				continue
			}
			x[g]++
			add(x, g, left-1)
			x[g]--
		}
	}
	add(make([]int, len(w.Groups)), 0, n)
	return out
}
