package worlds

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

const labelPool = "pool"

// Shrinking is a cluster with more nodes than it needs, whose workloads are spread over hosts and zones in all ways that the
// API has, and budgets for some of them.
type Shrinking struct {
	Seed    uint64
	Nodes   []*corev1.Node
	Bound   []*corev1.Pod
	Budgets map[string]int // by workload, evictions that its PodDisruptionBudget allows
}

// DrawShrinking draws a cluster and lets kube-scheduler bind its pods. Pods that it leaves are not part of it.
func DrawShrinking(j *oracle.Judge, seed uint64) (*Shrinking, error) {
	r := rand.New(rand.NewPCG(seed, 0x5d))
	w := &Shrinking{Seed: seed, Budgets: map[string]int{}}
	zones := []string{"a", "b", "c"}[:1+r.IntN(3)]
	cores := int64(2 + 2*r.IntN(3))
	for i := range 2 + r.IntN(7) {
		w.Nodes = append(w.Nodes, shrinkingNode(fmt.Sprintf("n%d", i), zones[r.IntN(len(zones))], []string{"x", "y"}[min(r.IntN(4), 1)], cores))
	}
	var waiting []*corev1.Pod
	for i := range 1 + r.IntN(4) {
		model := shrinkingPod(r, fmt.Sprintf("w%d", i))
		for k := range 1 + r.IntN(8) {
			p := model.DeepCopy()
			p.Name = fmt.Sprintf("%s-%d", model.Name, k)
			p.UID = types.UID(p.Name)
			waiting = append(waiting, p)
		}
		if r.IntN(3) == 0 {
			w.Budgets[model.Labels["app"]] = 1 + r.IntN(2)
		}
	}
	left, err := w.bind(j, waiting, 0)
	_ = left // they have no place today
	if err == nil && r.IntN(4) == 0 {
		w.addDaemons(fmt.Sprintf("w%d", r.IntN(2)))
	}
	return w, err
}

func shrinkingNode(name, zone, pool string, cores int64) *corev1.Node {
	size := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cores, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.Time{Time: start.Add(-time.Hour)},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, labelPool: pool}},
		Spec:   corev1.NodeSpec{ProviderID: "aws:///z/i-" + name},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// shrinkingPod is the model of a workload.
func shrinkingPod(r *rand.Rand, app string) *corev1.Pod {
	cpu := []string{"50m", "100m", "200m", "500m", "1500m"}[r.IntN(5)]
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app, Labels: map[string]string{"app": app}, CreationTimestamp: metav1.Time{Time: start},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: types.UID(app), Controller: new(true)}}},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{Name: "c",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Mi")}}}}},
	}
	if r.IntN(5) == 0 {
		p.Spec.NodeSelector = map[string]string{labelPool: "x"}
	}
	if r.IntN(8) == 0 {
		p.Spec.Tolerations = []corev1.Toleration{{Key: cluster.TaintToBeDeleted, Operator: corev1.TolerationOpExists}}
	}
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		if r.IntN(2) == 0 {
			continue
		}
		t := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: int32(1 + r.IntN(2)), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}
		if r.IntN(3) == 0 {
			t.MinDomains = new(int32(1 + r.IntN(3)))
		}
		policies := []*corev1.NodeInclusionPolicy{nil, new(corev1.NodeInclusionPolicyHonor), new(corev1.NodeInclusionPolicyIgnore)}
		t.NodeTaintsPolicy, t.NodeAffinityPolicy = policies[r.IntN(3)], policies[r.IntN(3)]
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, t)
	}
	return p
}

// addDaemons puts a DaemonSet's pod with a workload's labels on each node, so that its spread counts them.
func (w *Shrinking) addDaemons(app string) {
	for _, n := range w.Nodes {
		name := "ds-" + n.Name
		w.Bound = append(w.Bound, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": app}, CreationTimestamp: metav1.Time{Time: start},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "ds", UID: "ds", Controller: new(true)}}},
			Spec:   corev1.PodSpec{NodeName: n.Name, SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{Name: "c"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
}

// bind lets kube-scheduler bind what it can, again as long as that helps, and returns what it leaves.
func (w *Shrinking) bind(j *oracle.Judge, waiting []*corev1.Pod, draw uint64) (left []*corev1.Pod, err error) {
	for before := len(waiting) + 1; len(waiting) > 0 && len(waiting) < before; {
		before = len(waiting)
		bindings, err := j.Bind(&oracle.World{Nodes: w.Nodes, Pods: w.Bound, Waiting: waiting}, w.Seed+draw)
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", w.Seed, err)
		}
		var rest []*corev1.Pod
		for i, b := range bindings {
			if b.Node == 0 {
				rest = append(rest, waiting[i])
				continue
			}
			waiting[i].Spec.NodeName, waiting[i].Status.Phase = w.Nodes[b.Node-1].Name, corev1.PodRunning
			w.Bound = append(w.Bound, waiting[i])
		}
		waiting = rest
	}
	return waiting, nil
}

// Verdict is what the agent says of one node.
type Verdict struct {
	Goes bool
	Rule string
	Why  string
}

// Ask asks the agent whether a node may go, with all others kept: because it is idle, or because an operator asked for it.
func (w *Shrinking) Ask(node string, requested bool) Verdict {
	s := store.FromObjects(store.Objects{Nodes: w.Nodes, Pods: w.Bound})
	s.Now = start.Add(time.Hour)
	g := cluster.NodeGroup{ID: "w", Max: 100, Target: len(w.Nodes), ReadAt: s.Now, Template: cluster.Template{Unknown: "not asked for"}}
	for _, n := range s.Nodes {
		g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(n.ProviderID), Phase: cluster.PhaseRunning, Member: true, Created: n.Created})
		switch {
		case n.Name != cluster.NodeName(node):
			n.Annotations = map[string]string{cluster.AnnotationKeep: "true"}
		case requested:
			n.Annotations = map[string]string{cluster.AnnotationRequested: "true"}
		}
		for i := range n.Pods {
			app := s.Classes[n.Pods[i].Class].Labels["app"]
			if _, has := w.Budgets[app]; has && n.Pods[i].Owner.Kind == "ReplicaSet" {
				n.Pods[i].Budgets = []string{"default/" + app}
			}
		}
	}
	for app, allowed := range w.Budgets {
		s.Budgets = append(s.Budgets, cluster.Budget{Key: "default/" + app, Allowed: allowed})
	}
	s.Groups = []cluster.NodeGroup{g}
	p := Policy
	p.ScaleDown, p.UtilizationThreshold, p.MaxDrainAtOnce, p.MaxEmptyAtOnce = true, 1, 10, 10
	got, _ := plan.Decide(s, decision.Memory{}, p)
	for _, a := range got.Actions {
		if c, ok := a.(decision.Cordon); ok && string(c.Node) == node {
			return Verdict{Goes: true, Rule: c.Rule, Why: c.Why}
		}
	}
	for _, h := range got.Held {
		if h.Kind == "node" && h.Name == node {
			return Verdict{Rule: h.Rule, Why: h.Why}
		}
	}
	return Verdict{Why: got.String()}
}

// Removal is what became of the pods of a node that was removed.
type Removal struct {
	Late   int            // pods that were bound only when the Node object was gone
	Left   int            // pods that kube-scheduler binds nowhere
	Stuck  int            // pods that no budget let go, so that the node could never go
	Before map[string]int // by workload with a hard spread over zones, the zones with its pods
	After  map[string]int
}

// Remove plays what happens: the node is cordoned, its pods are evicted as their budgets allow, kube-scheduler binds them, and when
// all have left, the Node object goes. It works on a copy. draw is one outcome of kube-scheduler's ties. roomy: the
// nodes are so large that room keeps no pod off them.
func (w *Shrinking) Remove(j *oracle.Judge, node string, draw uint64, roomy bool) (out Removal, err error) {
	c := &Shrinking{Seed: w.Seed}
	var evicted []*corev1.Pod
	for _, n := range w.Nodes {
		c.Nodes = append(c.Nodes, n.DeepCopy())
		if roomy {
			c.Nodes[len(c.Nodes)-1].Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1000")
		}
	}
	n := c.Nodes[slices.IndexFunc(c.Nodes, func(n *corev1.Node) bool { return n.Name == node })]
	n.Spec.Unschedulable = true
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: cluster.TaintToBeDeleted, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	for _, p := range w.Bound {
		p = p.DeepCopy()
		c.Bound = append(c.Bound, p)
		if p.Spec.NodeName == node && !strings.HasPrefix(p.Name, "ds-") {
			evicted = append(evicted, p)
		}
	}
	out.Before = c.zonesInUse()
	var waiting []*corev1.Pod
	for len(evicted) > 0 {
		down := map[string]int{}
		for _, p := range waiting {
			down[p.Labels["app"]]++
		}
		progress := false
		evicted = slices.DeleteFunc(evicted, func(p *corev1.Pod) bool {
			app := p.Labels["app"]
			if allowed, has := w.Budgets[app]; has && down[app] >= allowed {
				return false
			}
			down[app]++
			progress = true
			c.Bound = slices.DeleteFunc(c.Bound, func(o *corev1.Pod) bool { return o == p })
			again := p.DeepCopy()
			again.Spec.NodeName, again.Name = "", p.Name+"-again"
			again.UID = types.UID(again.Name)
			waiting = append(waiting, again)
			return true
		})
		if !progress {
			out.Stuck = len(evicted)
			return out, nil
		}
		if waiting, err = c.bind(j, waiting, draw); err != nil {
			return out, err
		}
	}
	out.Late = len(waiting)
	c.Nodes = slices.DeleteFunc(c.Nodes, func(n *corev1.Node) bool { return n.Name == node })
	c.Bound = slices.DeleteFunc(c.Bound, func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
	left, err := c.bind(j, waiting, draw)
	out.Left, out.After = len(left), c.zonesInUse()
	return out, err
}

// zonesInUse counts, by workload with a spread over zones that leaves no choice (maxSkew 1), the zones with pods that its constraint counts.
func (w *Shrinking) zonesInUse() map[string]int {
	zone, out, seen := map[string]string{}, map[string]int{}, map[string]bool{}
	for _, n := range w.Nodes {
		zone[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	hard := map[string]bool{}
	for _, p := range w.Bound {
		hard[p.Labels["app"]] = hard[p.Labels["app"]] || slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(t corev1.TopologySpreadConstraint) bool {
			return t.TopologyKey == corev1.LabelTopologyZone && t.MaxSkew == 1
		})
	}
	for _, p := range w.Bound {
		app := p.Labels["app"]
		if strings.HasPrefix(p.Name, "ds-") {
			delete(out, app)
			hard[app] = false // a DaemonSet's pods are in its zones too, and no drain moves these
		}
		if at := app + "/" + zone[p.Spec.NodeName]; hard[app] && !seen[at] {
			seen[at] = true
			out[app]++
		}
	}
	return out
}
