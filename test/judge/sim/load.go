package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// birth says why a pod came to be.
type birth int

const (
	demanded birth = iota // its service grew, or a job was submitted
	moved                 // one was evicted by the agent
	lost                  // one went with a machine that was taken away
)

// pod is a pod and what the simulation knows about it.
type pod struct {
	cluster.Pod
	service *service // nil: a pod of a DaemonSet
	birth   birth
	boundAt time.Time
	held    bool      // the agent said why it waits, and the reason was not that room is there or coming
	tries   int       // of the scheduler
	retry   time.Time // not tried again before
	gone    bool

	overtaken time.Time // when another pod last took room that this one could have had
}

func (p *pod) waiting() bool { return p.Node == "" && p.Deleting.IsZero() && !p.gone }

// service is a Deployment, or a Job whose pods come one by one and finish.
type service struct {
	name     string
	class    int
	job      bool
	want     int // replicas
	live     []*pod
	owed     []birth // why the next missing pods are missing, oldest first
	making   bool
	budget   bool // has a PodDisruptionBudget of a quarter
	grace    time.Duration
	unsafe   bool // safe-to-evict=false
	priority int32
}

// deployment adds a service; its pods come when scale is called.
func (w *world) deployment(name string, milli, mib int64, change func(*cluster.PodClass, *service)) *service {
	s := &service{name: name, grace: 30 * time.Second}
	c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": name},
		Requests: cluster.Resources{MilliCPU: milli, Memory: mib << 20, Pods: 1}}
	if change != nil {
		change(&c, s)
	}
	c.Priority = s.priority
	s.class = len(w.classes)
	w.classes = append(w.classes, c)
	w.services = append(w.services, s)
	return s
}

// budgetKey is the name of a service's PodDisruptionBudget.
func (s *service) budgetKey() string { return "default/" + s.name }

// allowed is how many pods of the service may be disrupted now.
func (s *service) allowed(now time.Time) int {
	healthy := 0
	for _, p := range s.live {
		if p.Node != "" && p.Deleting.IsZero() && now.Sub(p.boundAt) >= startup {
			healthy++
		}
	}
	return max(healthy-(s.want-(s.want+3)/4), 0)
}

// startup is how long a bound pod takes to be healthy for its budget.
const startup = 10 * time.Second

// scale sets the replicas of a service and lets its controller work.
func (w *world) scale(s *service, replicas int) {
	replicas = max(replicas, 0)
	for n := s.want; n < replicas; n++ {
		s.owed = append(s.owed, demanded)
	}
	s.want = replicas
	w.reconcile(s, 1)
}

// reconcile makes missing pods in batches that double, as the ReplicaSet controller
// does, and removes those that are too many.
func (w *world) reconcile(s *service, batch int) {
	if s.making && batch == 1 {
		return
	}
	s.making = false
	missing := s.want - w.count(s)
	if missing <= 0 {
		s.owed = nil
		w.shrink(s, -missing)
		return
	}
	for range min(missing, batch) {
		why := demanded
		if n := len(s.owed); n > 0 {
			why, s.owed = s.owed[n-1], s.owed[:n-1]
		}
		w.create(s, why)
	}
	if missing > batch {
		s.making = true
		w.after(100*time.Millisecond, func() { w.reconcile(s, min(2*batch, 32)) })
	}
}

func (w *world) count(s *service) int {
	n := 0
	for _, p := range s.live {
		if p.Deleting.IsZero() && !p.Finished {
			n++
		}
	}
	return n
}

// create makes one pod.
func (w *world) create(s *service, why birth) *pod {
	w.serial++
	p := &pod{service: s, birth: why}
	p.Pod = cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/%s-%06d", s.name, w.serial)), UID: cluster.UID(fmt.Sprint("pod-", w.serial)),
		Class: s.class, Created: cluster.At(w.clock.Now), GracePeriod: cluster.Seconds(s.grace / time.Second)}
	kind := "ReplicaSet"
	if s.job {
		kind = "Job"
	}
	p.Owner = &cluster.Owner{Kind: kind, Name: s.name, UID: cluster.UID("rs-" + s.name)}
	if s.unsafe {
		p.SafeToEvict = "false"
	}
	if s.budget {
		p.Budgets = []string{s.budgetKey()}
	}
	s.live = append(s.live, p)
	w.pods = append(w.pods, p)
	w.report.created++
	w.scheduler.kick(w)
	w.agent.later(w)
	return p
}

// shrink removes n pods: those that wait first, then the younger of those that share
// a node with most of their kind.
func (w *world) shrink(s *service, n int) {
	if n <= 0 {
		return
	}
	var live []*pod
	same := map[cluster.NodeName]int{}
	for _, p := range s.live {
		if p.Deleting.IsZero() && !p.Finished {
			live = append(live, p)
			same[p.Node]++
		}
	}
	slices.SortStableFunc(live, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(min(len(a.Node), 1), min(len(b.Node), 1)), cmp.Compare(same[b.Node], same[a.Node]), cmp.Compare(b.Created, a.Created))
	})
	for _, p := range live[:min(n, len(live))] {
		w.remove(p, w.between(time.Second, 6*time.Second))
	}
}

// job submits one pod that finishes after a time.
func (w *world) job(s *service, takes time.Duration) {
	s.want++
	p := w.create(s, demanded)
	w.runs(p, takes)
}

// runs lets a pod finish when it has been bound for that long; a job's pod that was
// evicted begins anew.
func (w *world) runs(p *pod, takes time.Duration) {
	var look func()
	look = func() {
		switch {
		case p.gone, !p.Deleting.IsZero():
			w.runs(w.create(p.service, w.lostOrMoved(p)), takes)
		case p.boundAt.IsZero():
			w.after(5*time.Second, look)
		case w.clock.Now.Sub(p.boundAt) < takes:
			w.at(earliest(p.boundAt.Add(takes), w.clock.Now.Add(20*time.Second)), look)
		default:
			p.Finished = true
			p.service.want--
			w.agent.later(w)
			w.scheduler.flush(w)
			w.after(10*time.Second, func() { w.drop(p) })
		}
	}
	w.after(time.Second, look)
}

func (w *world) lostOrMoved(p *pod) birth {
	if n := w.byName[p.Node]; n == nil || n.taken {
		return lost
	}
	return moved
}

// remove deletes a pod: it is gone after its own time to stop.
func (w *world) remove(p *pod, takes time.Duration) {
	if !p.Deleting.IsZero() || p.gone {
		return
	}
	if p.Node == "" {
		takes = 0
	}
	p.Deleting = cluster.At(w.clock.Now.Add(p.GracePeriod.Duration()))
	w.agent.later(w)
	w.after(takes, func() { w.drop(p) })
}

// drop takes a pod off the API.
func (w *world) drop(p *pod) {
	if p.gone {
		return
	}
	p.gone = true
	if p.Node == "" && !p.Unschedulable.IsZero() {
		w.report.waited(w, p, true)
	}
	drop := func(x *pod) bool { return x == p }
	w.pods = slices.DeleteFunc(w.pods, drop)
	if s := p.service; s != nil {
		s.live = slices.DeleteFunc(s.live, drop)
	}
	n := w.byName[p.Node]
	if n != nil {
		n.pods = slices.DeleteFunc(n.pods, drop)
		w.scheduler.unplace(w, n, p)
	}
	w.scheduler.flush(w)
	if n != nil && n.marked() {
		w.agent.soon(w)
	} else {
		w.agent.later(w)
	}
}

// evicted is what the Eviction API does, and what the pod's controller does then.
func (w *world) evicted(p *pod) {
	w.report.Evictions++
	s := p.service
	w.remove(p, w.between(time.Second, 8*time.Second))
	if s != nil && !s.job {
		s.owed = append(s.owed, moved)
		w.reconcile(s, 1)
	}
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
