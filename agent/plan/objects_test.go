package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
)

// objects are API objects, and one group of machines of 3.8 cores and 14 GiB.
type objects struct {
	store.Objects
	group cluster.NodeGroup
}

func newObjects() *objects {
	room := cluster.Resources{MilliCPU: 3800, Memory: 14 << 30, Pods: 110}
	return &objects{group: cluster.NodeGroup{ID: "w", Max: 10, ReadAt: t0, Template: cluster.Template{Spec: "m", Capacity: room, Allocatable: room}}}
}

func requests(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("256Mi")}}
}

func (o *objects) node(name string) *corev1.Node {
	have := corev1.ResourceList{"cpu": resource.MustParse("3800m"), "memory": resource.MustParse("14Gi"), "pods": resource.MustParse("110")}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(t0.Add(-2 * time.Hour)), Labels: map[string]string{"kubernetes.io/hostname": name}}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-" + name},
		Status: corev1.NodeStatus{Capacity: have, Allocatable: have, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(t0.Add(-2 * time.Hour))}}}}
	o.Nodes = append(o.Nodes, n)
	o.group.Instances = append(o.group.Instances, cluster.Instance{ID: cluster.InstanceID(n.Spec.ProviderID), Phase: cluster.PhaseRunning, Member: true, Created: n.CreationTimestamp.Time})
	o.group.Target++
	return n
}

// pod adds a pod; owner is a kind with its API version before it, "apps/v1 ReplicaSet". Without a node kube-scheduler has found none.
func (o *objects) pod(name, node, cpu, owner string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(t0.Add(-time.Hour)), Labels: map[string]string{"app": name}},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: requests(cpu)}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	if version, kind, ok := strings.Cut(owner, " "); ok {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID("of-" + name), Controller: new(true)}}
	}
	if node == "" {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(t0)}}}
	}
	o.Pods = append(o.Pods, p)
	return p
}

// decide is the plan for the objects, as the agent makes it from the API server's.
func (o *objects) decide(p decision.Policy) (cluster.Snapshot, decision.Plan) {
	s := store.FromObjects(o.Objects)
	s.Now, s.Groups = t0, []cluster.NodeGroup{o.group}
	plan, _ := Decide(s, decision.Memory{}, p)
	return s, plan
}

// held is what a plan holds of something, with the rule.
func held(plan decision.Plan, kind, name string) string {
	var out []string
	for _, h := range plan.Held {
		if h.Kind == kind && h.Name == name {
			out = append(out, "["+h.Rule+"] "+h.Why)
		}
	}
	return strings.Join(out, "; ")
}

// boughtOf is how many machines and pods a plan buys for.
func boughtOf(plan decision.Plan) (machines, pods int) {
	for _, a := range plan.Actions {
		if g, ok := a.(decision.Grow); ok {
			machines, pods = machines+g.To-g.From, pods+len(g.Pods)+g.Expected
		}
	}
	return machines, pods
}

const replicaSet = "apps/v1 ReplicaSet"

// template is a controller's template whose pods ask for so much.
func template(cpu string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: requests(cpu)}}}}
}

// TestResizedInPlace: the successor of a pod that was resized down asks what its controller's template asks, and the pod takes no more
// room on its node than it does now (kubernetes-sigs/karpenter PR 3037).
func TestResizedInPlace(t *testing.T) {
	const noRoom = "[D7] pod default/web has room nowhere else"
	for name, c := range map[string]struct {
		change func(o *objects, p *corev1.Pod)
		stays  bool
	}{
		"resized down": {func(*objects, *corev1.Pod) {}, true},
		"of a StatefulSet": {func(o *objects, p *corev1.Pod) {
			o.StatefulSets, o.ReplicaSets = []*appsv1.StatefulSet{{ObjectMeta: o.ReplicaSets[0].ObjectMeta, Spec: appsv1.StatefulSetSpec{Template: template("3")}}}, nil
		}, true},
		"of a Job": {func(o *objects, p *corev1.Pod) {
			o.Jobs, o.ReplicaSets = []*batchv1.Job{{ObjectMeta: o.ReplicaSets[0].ObjectMeta, Spec: batchv1.JobSpec{Template: template("3")}}}, nil
		}, true},
		"the template limits": {func(o *objects, _ *corev1.Pod) {
			c := &o.ReplicaSets[0].Spec.Template.Spec.Containers[0].Resources
			c.Limits, c.Requests = c.Requests, nil
		}, true},
		"two containers": {func(o *objects, _ *corev1.Pod) {
			s := &o.ReplicaSets[0].Spec.Template.Spec
			s.Containers[0].Resources = requests("1500m")
			s.Containers = append(s.Containers, s.Containers[0])
		}, true},
		"its memory": {func(o *objects, _ *corev1.Pod) {
			o.ReplicaSets[0].Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("14Gi")}
		}, true},
		"resized up":                       {func(o *objects, _ *corev1.Pod) { o.ReplicaSets[0].Spec.Template = template("100m") }, false},
		"made smaller":                     {func(_ *objects, p *corev1.Pod) { p.Generation = 1 }, false},
		"resized, as the API server tells": {func(_ *objects, p *corev1.Pod) { p.Generation = 2 }, true},
		"of another":                       {func(o *objects, p *corev1.Pod) { p.OwnerReferences[0].UID = "x" }, false},
		"without a template":               {func(o *objects, _ *corev1.Pod) { o.ReplicaSets = nil }, false},
	} {
		o := newObjects()
		o.node("n0")
		o.node("n1")
		o.pod("big", "n1", "2500m", replicaSet)
		web := o.pod("web", "n0", "200m", replicaSet)
		o.ReplicaSets = []*appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "of-web"}, Spec: appsv1.ReplicaSetSpec{Template: template("3")}}}
		c.change(o, web)
		_, plan := o.decide(policy())
		if got := held(plan, "node", "n0"); (got == noRoom) != c.stays || !c.stays && !strings.HasPrefix(got, "[D3]") {
			t.Errorf("%s: %s", name, got)
		}
		o.pod("new", "", "3500m", replicaSet)
		if _, plan = o.decide(policy()); held(plan, "pod", "default/new") == "" || len(plan.Actions) > 0 {
			t.Errorf("%s: the room beside the pod is not seen: %s", name, plan)
		}
	}
}

// TestQuota: pods that do not exist are bought for only while their controller makes them
// (kubernetes-sigs/cluster-autoscaler#71, kubernetes/autoscaler#8580).
func TestQuota(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "j", UID: "of-j"}
	job := func(active int32) func(*objects) {
		return func(o *objects) {
			o.Jobs = []*batchv1.Job{{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: new(int32(50)), Completions: new(int32(50))}, Status: batchv1.JobStatus{Active: active}}}
		}
	}
	set := func(replicas int32) func(*objects) {
		return func(o *objects) {
			o.StatefulSets = []*appsv1.StatefulSet{{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(50)), PodManagementPolicy: appsv1.ParallelPodManagement}, Status: appsv1.StatefulSetStatus{Replicas: replicas}}}
		}
	}
	rs := func(replicas int32, failure ...appsv1.ReplicaSetCondition) func(*objects) {
		return func(o *objects) {
			o.ReplicaSets = []*appsv1.ReplicaSet{{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(50))}, Status: appsv1.ReplicaSetStatus{Replicas: replicas, Conditions: failure}}}
		}
	}
	// quota is one with this status; nil: it is not counted yet.
	quota := func(hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) func(*objects) {
		return func(o *objects) {
			job(0)(o)
			o.Jobs[0].Spec.Template = template("1")
			o.Quotas = append(o.Quotas, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("q", len(o.Quotas))},
				Spec: corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}})
		}
	}
	list := func(name corev1.ResourceName, n string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(n)}
	}
	for name, c := range map[string]struct {
		put   func(*objects)
		owner string
		pods  int
	}{
		"two pods may exist, before the Job's first status": {quota(list("pods", "2"), list("pods", "2")), "batch/v1 Job", 2},
		"five objects":                  {quota(list("count/pods", "5"), list("count/pods", "2")), "batch/v1 Job", 5},
		"so many cores":                 {quota(list("requests.cpu", "7500m"), list("requests.cpu", "2")), "batch/v1 Job", 7},
		"so much memory":                {quota(list("memory", "1Gi"), list("memory", "512Mi")), "batch/v1 Job", 4},
		"more are there than it allows": {quota(list("pods", "1"), list("pods", "2")), "batch/v1 Job", 2},
		"the smallest of two quotas": {func(o *objects) {
			quota(list("pods", "9"), list("pods", "2"))(o)
			quota(list("pods", "4"), list("pods", "2"))(o)
		}, "batch/v1 Job", 4},
		"two Jobs share what is left": {func(o *objects) {
			quota(list("pods", "8"), list("pods", "3"))(o)
			o.pod("k-1", "", "1", "batch/v1 Job").OwnerReferences[0].UID = "of-k"
			other := o.Jobs[0].DeepCopy()
			other.Name, other.UID = "k", "of-k"
			o.Jobs = append(o.Jobs, other)
		}, "batch/v1 Job", 8},
		"a quota that is not counted yet": {quota(list("pods", "2"), nil), "batch/v1 Job", 50},
		"a quota of best effort":          {quota(list("pods", "2"), list("pods", "2"), corev1.ResourceQuotaScopeBestEffort), "batch/v1 Job", 50},
		"a quota of another kind":         {quota(list("services", "2"), list("services", "2")), "batch/v1 Job", 50},
		"a quota of another namespace":    {func(o *objects) { quota(list("pods", "2"), list("pods", "2"))(o); o.Quotas[0].Namespace = "other" }, "batch/v1 Job", 50},
		"a quota of a StatefulSet in its first pass": {func(o *objects) {
			quota(list("pods", "2"), list("pods", "2"))(o)
			o.Jobs = nil
			set(0)(o)
		}, "apps/v1 StatefulSet", 2},
		"a quota of a ReplicaSet in its first pass": {func(o *objects) {
			quota(list("pods", "3"), list("pods", "2"))(o)
			o.Jobs = nil
			rs(0)(o)
		}, replicaSet, 3},
		"a Job of which two pods may exist":                {job(2), "batch/v1 Job", 2},
		"a Job in its first pass":                          {job(0), "batch/v1 Job", 50},
		"a Job whose pods one was told to go":              {job(3), "batch/v1 Job", 50},
		"a Job that makes more after its quota was raised": {job(1), "batch/v1 Job", 50},
		"a StatefulSet of which two pods may exist":        {set(2), "apps/v1 StatefulSet", 2},
		"a StatefulSet in its first pass":                  {set(0), "apps/v1 StatefulSet", 50},
		"a ReplicaSet that says so":                        {rs(0, appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}), replicaSet, 2},
		"a ReplicaSet whose condition is gone":             {rs(2), replicaSet, 2},
		"a ReplicaSet in its first pass":                   {rs(0), replicaSet, 50},
	} {
		o := newObjects()
		o.group.Max = 99
		for _, name := range []string{"j-1", "j-2"} {
			o.pod(name, "", "1", c.owner).OwnerReferences[0].UID = "of-j"
		}
		c.put(o)
		if _, plan := o.decide(policy()); func() int { _, pods := boughtOf(plan); return pods }() != c.pods {
			t.Errorf("%s: %s", name, plan)
		}
	}
}

// TestGoneController: a pod whose controller was deleted while the agent watched is made by nobody any more, as Cluster Autoscaler has it.
func TestGoneController(t *testing.T) {
	o := newObjects()
	o.node("n0")
	o.node("n1")
	busy, web := o.pod("busy", "n1", "2500m", replicaSet), o.pod("web", "n0", "200m", replicaSet)
	st := store.New([]string{corev1.DefaultSchedulerName})
	for _, n := range o.Nodes {
		st.PutNode(n)
	}
	st.PutReplicaSet(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "of-web"}})
	st.PutPod(busy)
	st.PutPod(web)
	var e Engine
	look := func() string {
		s, _, _ := st.Snapshot(-1)
		s.Now, s.Groups = t0, []cluster.NodeGroup{o.group}
		plan, _ := e.Decide(s, decision.Memory{}, policy())
		return held(plan, "node", "n0")
	}
	if got := look(); !strings.HasPrefix(got, "[D3]") {
		t.Errorf("before: %s", got)
	}
	st.DeleteController("of-web")
	if got := look(); got != "[D6] pod default/web is of ReplicaSet web, which is gone and does not make it again" {
		t.Errorf("after: %s", got)
	}
	leaving := web.DeepCopy()
	leaving.DeletionTimestamp = new(metav1.NewTime(t0.Add(20 * time.Second)))
	st.PutPod(leaving)
	if s, _, _ := st.Snapshot(-1); len(s.GoneControllers) > 0 {
		t.Errorf("the pod is told to go, and %v is still known as gone", s.GoneControllers)
	}
	st.DeletePod("default/web", "n0")
	if got := look(); !strings.HasPrefix(got, "[D3]") {
		t.Errorf("without the pod: %s", got)
	}
	st.PutPod(web)
	if got := look(); !strings.HasPrefix(got, "[D3]") {
		t.Errorf("a controller that was never seen: %s", got)
	}
}

// TestOwnNode: a DaemonSet's pod that kube-scheduler does not place brings no machine, and the plan and explain say what keeps it off
// the node that it was made for. The room that is kept there for the pod itself does not.
func TestOwnNode(t *testing.T) {
	on := func(p *corev1.Pod, node string) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	}
	const daemonSet = "apps/v1 DaemonSet"
	for name, c := range map[string]struct {
		change func(o *objects, p *corev1.Pod)
		why    string
	}{
		"no room":                      {func(o *objects, _ *corev1.Pod) { o.pod("big", "n0", "3500m", replicaSet) }, "node n0, for which it was made, has no room for it: Insufficient cpu"},
		"no place":                     {func(o *objects, _ *corev1.Pod) { o.Nodes[0].Status.Allocatable["pods"] = resource.MustParse("0") }, "node n0, for which it was made, has no room for it: Too many pods"},
		"another is made for the room": {func(o *objects, _ *corev1.Pod) { on(o.pod("e", "", "3500m", daemonSet), "n0") }, "node n0, for which it was made, has room for it: kubectl describe pod has the scheduler's reason"},
		"room":                         {func(*objects, *corev1.Pod) {}, "node n0, for which it was made, has room for it: kubectl describe pod has the scheduler's reason"},
		"its own room":                 {func(o *objects, _ *corev1.Pod) { o.pod("big", "n0", "3300m", replicaSet) }, "node n0, for which it was made, has room for it: kubectl describe pod has the scheduler's reason"},
		"no node":                      {func(_ *objects, p *corev1.Pod) { on(p, "gone") }, "there is no node gone, for which it was made"},
		"a taint": {func(o *objects, _ *corev1.Pod) {
			o.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		}, "node n0, for which it was made, does not take it: node(s) had untolerated taint {a: }"},
		"a node that it does not name": {func(_ *objects, p *corev1.Pod) { p.Spec.Affinity = nil }, "it belongs to one node and does not name it: kubectl describe pod has the scheduler's reason"},
		"nominated": {func(o *objects, p *corev1.Pod) {
			o.pod("big", "n0", "3500m", replicaSet)
			p.Status.NominatedNodeName = "n0"
		}, "node n0, for which it was made, has no room for it: Insufficient cpu"},
		"another controller's, by the annotation": {func(o *objects, p *corev1.Pod) {
			o.DaemonSets, p.OwnerReferences[0].Kind = nil, "Fleet"
			p.Annotations = map[string]string{cluster.AnnotationDaemonPod: "true"}
			o.pod("big", "n0", "3500m", replicaSet)
		}, "node n0, for which it was made, has no room for it: Insufficient cpu"},
		"not judged yet": {func(_ *objects, p *corev1.Pod) { p.Status.Conditions = nil }, ""},
		"being deleted":  {func(_ *objects, p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(t0.Add(20 * time.Second))) }, ""},
		"gated":          {func(_ *objects, p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} }, ""},
	} {
		o := newObjects()
		o.node("n0")
		p := o.pod("d", "", "500m", daemonSet)
		on(p, "n0")
		o.DaemonSets = []*appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d", UID: "of-d"}, Spec: appsv1.DaemonSetSpec{Template: template("500m")}}}
		c.change(o, p)
		s, plan := o.decide(policy())
		want := ""
		if c.why != "" {
			want = "[U31] " + c.why
		}
		if got := held(plan, "pod", "default/d"); got != want {
			t.Errorf("%s: %s", name, got)
		}
		if bought, _ := boughtOf(plan); bought > 0 {
			t.Errorf("%s: %d machines are bought", name, bought)
		}
		x := Explain(s, decision.Memory{}, policy(), decision.Query{Kind: "pod", Name: "default/d"})
		if c.why != "" && (!strings.HasPrefix(x.Summary, c.why+"; it belongs to one node") || len(x.Verdicts) != 1 || x.Verdicts[0].Rule != decision.RuleOwnNode) || c.why == "" && len(x.Verdicts) > 0 {
			t.Errorf("%s: explain says %s; %+v", name, x.Summary, x.Verdicts)
		}
	}
}

// unplaced are the pods of API objects that kube-scheduler has found no node for, or has failed to place.
func unplaced(o *objects) (out []*corev1.Pod) {
	for _, p := range o.Pods {
		unschedulable := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && slices.Contains([]string{corev1.PodReasonUnschedulable, corev1.PodReasonSchedulerError}, c.Reason)
		})
		if unschedulable && p.Spec.NodeName == "" && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodPending && len(p.Spec.SchedulingGates) == 0 {
			out = append(out, p)
		}
	}
	return out
}

// drawObjects draws API objects in which pods wait in every way.
func drawObjects(r *rand.Rand) (*objects, decision.Policy) {
	o, p := newObjects(), policy()
	if r.IntN(3) == 0 {
		o.group.Max = r.IntN(4)
	}
	if r.IntN(6) == 0 {
		o.group.Paused = "suspended"
	}
	if r.IntN(4) == 0 {
		p.NewPodDelay = 2 * time.Hour
	}
	nodes := []string{"gone", ""}
	for i := range r.IntN(5) {
		n := o.node(fmt.Sprint("n", i))
		nodes = append(nodes, n.Name, n.Name)
		switch r.IntN(6) {
		case 0:
			n.Spec.Unschedulable, n.Spec.Taints = true, []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		case 1:
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		case 2:
			n.Spec.Taints = []corev1.Taint{{Key: cluster.TaintToBeDeleted, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	kinds := []string{replicaSet, "apps/v1 StatefulSet", "batch/v1 Job", "apps/v1 DaemonSet", "argoproj.io/v1alpha1 Workflow", ""}
	for i := range 1 + r.IntN(14) {
		node := ""
		if r.IntN(2) == 0 {
			node = nodes[r.IntN(len(nodes))]
		}
		pod := o.pod(fmt.Sprint("p", i), node, []string{"100m", "1", "3", "3500m", "9"}[r.IntN(5)], kinds[r.IntN(len(kinds))])
		drawPod(r, pod, nodes)
	}
	return o, p
}

func drawPod(r *rand.Rand, pod *corev1.Pod, nodes []string) {
	if r.IntN(2) == 0 {
		pod.Labels["app"] = "same"
	}
	pod.Spec.Priority = new([]int32{0, 0, 0, 100, -5, -20}[r.IntN(6)])
	if pod.Spec.NodeName == "" && r.IntN(2) == 0 {
		pod.Status.NominatedNodeName = nodes[r.IntN(len(nodes))]
	}
	if r.IntN(8) == 0 {
		for i := range pod.Status.Conditions {
			pod.Status.Conditions[i].Reason, pod.Status.Conditions[i].Message = corev1.PodReasonSchedulerError, "running Reserve plugin"
		}
	}
	self := &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}}
	switch r.IntN(14) {
	case 0:
		pod.DeletionTimestamp = new(metav1.NewTime(t0.Add(20 * time.Second)))
	case 1:
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}}
	case 2:
		pod.Spec.SchedulerName = "other"
	case 3:
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "none"}}}}
	case 4:
		pod.Spec.NodeSelector = map[string]string{"none": "has"}
	case 5:
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	case 6:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname", LabelSelector: self}}}}
	case 7:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: self}}
	case 8:
		pod.Annotations = map[string]string{cluster.AnnotationScaleUpDelay: "3h"}
	case 9:
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: nodes[:1]}}}}}}}
	}
}

// everyPodIsTold: each pod that waits has a purchase or a reason in the plan. A reason names the first pod of a class, and how many of
// the class it speaks of.
func everyPodIsTold(t *testing.T, o *objects, p decision.Policy) {
	t.Helper()
	s, plan := o.decide(p)
	class := map[string]int{}
	for i := range s.Pods {
		class[string(s.Pods[i].Key)] = s.Pods[i].Class
	}
	nominated, ownNode := map[string]bool{}, map[string]bool{}
	told, oneByOne := map[int]int{}, map[string]int{} // by class, and by the rules that hold pods of several classes together
	for _, a := range plan.Actions {
		if g, ok := a.(decision.Grow); ok {
			for _, key := range g.Pods {
				told[class[string(key)]]++
			}
		}
	}
	for _, h := range plan.Held {
		switch {
		case h.Kind != "pod":
		case h.Rule == decision.RuleOwnNode:
			ownNode[h.Name] = true
		case h.Rule == decision.RuleExpendable, h.Rule == decision.RuleNewPod:
			oneByOne[h.Rule] += h.Count
		case strings.HasPrefix(h.Why, "the scheduler has nominated it"):
			nominated[h.Name] = slices.ContainsFunc(o.Nodes, func(n *corev1.Node) bool { return strings.Contains(h.Why, "for node "+n.Name+": ") })
		default:
			told[class[h.Name]] += h.Count
		}
	}
	for _, pod := range unplaced(o) {
		key := pod.Namespace + "/" + pod.Name
		ref := metav1.GetControllerOf(pod)
		switch {
		case ref != nil && ref.Kind == "DaemonSet":
			if !ownNode[key] {
				t.Fatalf("pod %s belongs to one node, and the plan says\n%s", key, plan)
			}
		case ownNode[key]:
			t.Fatalf("pod %s belongs to no node, and the plan says so\n%s", key, plan)
		case nominated[key]:
		case *pod.Spec.Priority < p.ExpendablePodsCutoff && oneByOne[decision.RuleExpendable] > 0:
			oneByOne[decision.RuleExpendable]--
		case (p.NewPodDelay > time.Hour || pod.Annotations[cluster.AnnotationScaleUpDelay] != "") && oneByOne[decision.RuleNewPod] > 0:
			oneByOne[decision.RuleNewPod]--
		case told[class[key]] > 0:
			told[class[key]]--
		default:
			t.Fatalf("pod %s waits, and the plan has no word of it\n%s%+v\n%+v", key, plan, pod.Spec, pod.Status)
		}
	}
}

// TestEveryPodIsTold draws worlds of API objects; FuzzObjects looks for more.
func TestEveryPodIsTold(t *testing.T) {
	n, waiting := uint64(3000), 0
	if testing.Short() {
		n = 500
	}
	for seed := range n {
		o, p := drawObjects(rand.New(rand.NewPCG(seed, 53)))
		waiting += len(unplaced(o))
		t.Run("", func(t *testing.T) { everyPodIsTold(t, o, p) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if waiting < int(n) {
		t.Errorf("%d pods wait in %d worlds: the test shows little", waiting, n)
	}
}

func FuzzObjects(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		o, p := drawObjects(rand.New(rand.NewPCG(a, b)))
		everyPodIsTold(t, o, p)
		s, _ := o.decide(p)
		check(t, s, decision.Memory{}, p, a^b)
	})
}
