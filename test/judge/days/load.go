package days

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
)

// service is a workload and its controller.
type service struct {
	*Workload
	want, revision int
	live           []*pod
	set            *appsv1.ReplicaSet // of the revision
	allowed        int                // disruptions, by its budget; -1: it has none
}

// pod is a pod of a service.
type pod struct {
	object   *corev1.Pod
	service  *service
	revision int
	node     *node
	tried    bool // kube-scheduler found no place for it
	ready    bool
	deleting bool
	moved    bool          // made in place of an evicted one
	runs     time.Duration // a Job's
}

// demand is what people and their pipelines do to a workload.
func (w *world) demand(d *Demand) {
	s := w.services[d.Work]
	switch {
	case s.Job:
		w.create(s, d.Runs)
	case d.Roll:
		s.revision, s.set = s.revision+1, nil
		w.reconcile(s)
	default:
		s.want = d.Replicas
		w.reconcile(s)
	}
}

// reconcile is the Deployment's controller: it makes and deletes pods at once, and rolls with
// maxSurge and maxUnavailable of 25 %, the API's defaults.
func (w *world) reconcile(s *service) {
	if s.Job {
		return
	}
	var fresh, old []*pod
	available := 0
	for _, p := range s.live {
		switch {
		case p.deleting:
			continue
		case p.revision == s.revision:
			fresh = append(fresh, p)
		default:
			old = append(old, p)
		}
		if p.ready {
			available++
		}
	}
	surge, down := (s.want+3)/4, s.want/4
	if len(old) == 0 {
		surge = 0
	}
	for range min(s.want-len(fresh), s.want+surge-len(fresh)-len(old)) {
		w.create(s, 0)
	}
	w.shrink(fresh, len(fresh)-s.want)
	unready := func(p *pod) int {
		if p.ready {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(old, func(a, b *pod) int { return unready(a) - unready(b) })
	for _, p := range old {
		if p.ready {
			if available <= s.want-down {
				break
			}
			available--
		}
		w.remove(p)
	}
	w.budget(s)
}

// shrink removes n pods as the ReplicaSet's controller ranks them: those that wait, those that
// are not ready, those that share a node with most of their kind, the younger.
func (w *world) shrink(pods []*pod, n int) {
	if n <= 0 {
		return
	}
	same := map[*node]int{}
	for _, p := range pods {
		same[p.node]++
	}
	rank := func(p *pod) int {
		switch {
		case p.node == nil:
			return 0
		case !p.ready:
			return 1
		}
		return 2
	}
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(same[b.node], same[a.node]), b.object.CreationTimestamp.Compare(a.object.CreationTimestamp.Time))
	})
	for _, p := range pods[:n] {
		w.remove(p)
	}
}

// create makes one pod.
func (w *world) create(s *service, runs time.Duration) {
	kind := "ReplicaSet"
	if s.Job {
		kind = "Job"
	}
	hash := fmt.Sprintf("r%d", s.revision)
	labels := map[string]string{"app": s.Name, "pod-template-hash": hash}
	if s.set == nil {
		s.set = &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.Name + "-" + hash, UID: w.uid()}, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
		w.sets = slices.DeleteFunc(w.sets, func(x *appsv1.ReplicaSet) bool { return !w.owns(x) })
		w.sets = append(w.sets, s.set)
	}
	uid := w.uid()
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.Name + "-" + string(uid), UID: uid, Labels: labels, CreationTimestamp: metav1.Time{Time: w.clock.Now},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: s.set.Name, UID: s.set.UID, Controller: new(true)}}},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, TerminationGracePeriodSeconds: new(int64(30)), Containers: []corev1.Container{{Name: "c",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(s.Milli, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(s.MiB<<20, resource.BinarySI)}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	p := &pod{object: o, service: s, revision: s.revision, runs: runs, moved: w.evicting}
	s.live = append(s.live, p)
	w.pods = append(w.pods, p)
	w.putPod(p)
	w.kick(false)
}

// owns tells that a ReplicaSet has pods or may get some.
func (w *world) owns(set *appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(w.services, func(s *service) bool { return s.set == set }) ||
		slices.ContainsFunc(w.pods, func(p *pod) bool { return p.object.OwnerReferences[0].UID == set.UID })
}

func key(p *pod) cluster.PodKey { return cluster.PodKey("default/" + p.object.Name) }

// putPod tells the watchers of a pod.
func (w *world) putPod(p *pod) {
	u := store.Later
	if w.store != nil {
		stripped, err := convert.Strip(p.object.DeepCopy())
		if err != nil {
			w.failed = err
			return
		}
		u = w.store.PutPod(stripped.(*corev1.Pod))
	}
	w.scaler.moved(w, u)
}

// fail notes that kube-scheduler found no node for a pod.
func (w *world) fail(p *pod) {
	if p.tried {
		return
	}
	p.tried = true
	p.object.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.Time{Time: w.clock.Now}}}
	w.putPod(p)
}

// bind puts a pod on a node. It is Ready after a while, and a Job's pod ends when it has run.
func (w *world) bind(p *pod, n *node) {
	p.node, p.object.Spec.NodeName = n, n.object.Name
	p.object.Status.Phase, p.object.Status.Conditions = corev1.PodRunning, nil
	n.pods = append(n.pods, p)
	w.report.waited(w, p)
	w.putPod(p)
	w.clock.After(w.between(5*time.Second, 20*time.Second), func() {
		if !p.deleting {
			p.ready = true
			w.reconcile(p.service)
		}
	})
	if p.service.Job {
		w.clock.After(p.runs, func() {
			if !p.deleting {
				w.drop(p)
			}
		})
	}
}

// remove deletes a pod with its grace: what runs takes one to ten seconds to end.
func (w *world) remove(p *pod) {
	if p.deleting {
		return
	}
	p.deleting, p.ready = true, false
	if p.node == nil {
		w.report.waited(w, p)
		w.drop(p)
		return
	}
	p.object.DeletionTimestamp = &metav1.Time{Time: w.clock.Now.Add(30 * time.Second)}
	w.putPod(p)
	w.clock.After(w.between(time.Second, 10*time.Second), func() { w.drop(p) })
}

// drop ends a pod object.
func (w *world) drop(p *pod) {
	if !slices.Contains(p.service.live, p) {
		return
	}
	running := !p.deleting // it ended by itself, or with its machine
	same := func(x *pod) bool { return x == p }
	w.pods, p.service.live = slices.DeleteFunc(w.pods, same), slices.DeleteFunc(p.service.live, same)
	on := ""
	if p.node != nil {
		p.node.pods = slices.DeleteFunc(p.node.pods, same)
		on = p.node.object.Name
	}
	p.deleting = true
	u := store.Later
	if w.store != nil {
		u = w.store.DeletePod(key(p), cluster.NodeName(on))
	}
	w.scaler.moved(w, u)
	if p.node != nil && slices.ContainsFunc(w.pods, func(x *pod) bool { return x.tried && x.node == nil }) {
		w.kick(true)
	}
	if running {
		w.reconcile(p.service)
	}
}

// budget works out what the PodDisruptionBudget of a service allows.
func (w *world) budget(s *service) {
	if !s.Budget {
		return
	}
	ready := 0
	for _, p := range s.live {
		if p.ready {
			ready++
		}
	}
	allowed := max(ready-(s.want-(s.want+3)/4), 0)
	if allowed == s.allowed && s.allowed != 0 {
		return
	}
	s.allowed = allowed
	if w.store == nil {
		return
	}
	w.scaler.moved(w, w.store.PutBudget(s.disruptions()))
}
