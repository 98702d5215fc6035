package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// scheduler binds pods as kube-scheduler does: one at a time, by priority and then by
// age, to the node with the largest share left free (LeastAllocated) of those without a soft taint, ties by chance.
// It keeps its own sums of what is on a node, in plain arithmetic, so that it does not
// share a mistake of the engine's.
type scheduler struct {
	planned bool

	ties  *fit.State // of this pass: what the filters F7 to F12 see; nil: no class is tied
	index map[*node]int
}

// kick asks for a pass over the waiting pods, a moment from now.
func (s *scheduler) kick(w *world) {
	if s.planned {
		return
	}
	s.planned = true
	w.after(w.between(5*time.Millisecond, 60*time.Millisecond), func() {
		s.planned = false
		s.pass(w)
	})
}

// flush is kick after something that may help pods which did not fit.
func (s *scheduler) flush(w *world) {
	for _, p := range w.pods {
		if p.waiting() {
			s.kick(w)
			return
		}
	}
}

func (s *scheduler) pass(w *world) {
	var queue []*pod
	for _, p := range w.pods {
		if p.waiting() {
			queue = append(queue, p)
		}
	}
	// Pods that are backed off are popped when nothing else is there to do.
	off := func(p *pod) int {
		if !w.opt.ByAge && p.retry.After(w.clock.Now) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(queue, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(off(a), off(b)), cmp.Compare(w.classes[b.Class].Priority, w.classes[a.Class].Priority), cmp.Compare(a.Created, b.Created))
	})
	s.tie(w)
	for i, p := range queue {
		if n := s.choose(w, p.Class); n != nil {
			s.overtake(w, n, p, queue[i+1:])
			s.bind(w, n, p)
			continue
		}
		p.retry = w.clock.Now.Add(min(time.Second<<min(p.tries, 4), 10*time.Second))
		p.tries++
		if p.Unschedulable.IsZero() {
			p.Unschedulable = cluster.At(w.clock.Now)
			w.agent.soon(w)
		}
	}
}

func (s *scheduler) bind(w *world, n *node, p *pod) {
	p.Node, p.Unschedulable, p.boundAt = n.Name, 0, w.clock.Now
	s.place(w, n, p)
	if s.ties != nil {
		s.ties.Put(p.Class, s.index[n], 1)
	}
	w.report.waited(w, p, false)
	w.agent.later(w)
}

// tie brings what looks at other pods up to date, where any class asks for that.
func (s *scheduler) tie(w *world) {
	s.ties = nil
	if !slices.ContainsFunc(w.classes, func(c cluster.PodClass) bool { return len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread) > 0 }) {
		return
	}
	s.ties, s.index = fit.NewState(w.classes, nil), make(map[*node]int, len(w.nodes))
	for _, n := range w.nodes {
		i := s.ties.AddNode(&fit.NodeInfo{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable}, nil)
		s.index[n] = i
		for _, p := range n.pods {
			switch {
			case p.Finished:
			case p.Deleting.IsZero():
				s.ties.Put(p.Class, i, 1)
			default:
				s.ties.PutTerminating(p.Class, i, 1)
			}
		}
	}
}

// overtake notes for the pods that wait behind p that p takes the room that they could
// have had: whatever was bought for them, they need another machine now.
func (s *scheduler) overtake(w *world, n *node, p *pod, behind []*pod) {
	known := map[int]bool{}
	for _, q := range behind {
		taken, ok := known[q.Class]
		if !ok {
			taken = s.fits(w, n, q.Class, nil) && !s.fits(w, n, q.Class, p)
			known[q.Class] = taken
		}
		if taken {
			q.overtaken = w.clock.Now
		}
	}
}

// fits tells whether a node has room for one more of a class, beside another pod.
func (s *scheduler) fits(w *world, n *node, class int, beside *pod) bool {
	left := n.Allocatable.Sub(n.used).Sub(w.classes[class].Requests)
	if beside != nil {
		left = left.Sub(w.classes[beside.Class].Requests)
	}
	for _, v := range left.Extended {
		if v < 0 {
			return false
		}
	}
	return left.MilliCPU >= 0 && left.Memory >= 0 && left.Pods >= 0
}

// choose is filter and score.
func (s *scheduler) choose(w *world, class int) *node {
	c := &w.classes[class]
	var best []*node
	most := math.Inf(-1)
	for _, n := range w.nodes {
		shape := fit.NodeInfo{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable}
		if n.Ready != cluster.StatusTrue || !fit.Passes(c, &shape) {
			continue
		}
		if !s.fits(w, n, class, nil) || s.ties != nil && !s.ties.Passes(class, s.index[n]) {
			continue
		}
		left := n.Allocatable.Sub(n.used).Sub(c.Requests)
		score := float64(left.MilliCPU)/float64(n.Allocatable.MilliCPU) + float64(left.Memory)/float64(n.Allocatable.Memory)
		if avoided(c, n) {
			score -= preferNoSchedule
		}
		switch {
		case score > most:
			most, best = score, []*node{n}
		case score == most:
			best = append(best, n)
		}
	}
	if len(best) == 0 {
		return nil
	}
	return best[w.r.IntN(len(best))]
}

// preferNoSchedule is what kube-scheduler's TaintToleration, of weight 3, takes off beside two scores of weight a half.
const preferNoSchedule = 6

// avoided tells a node with a taint PreferNoSchedule that a class does not tolerate.
func avoided(c *cluster.PodClass, n *node) bool {
	return slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool {
		return t.Effect == "PreferNoSchedule" && !slices.ContainsFunc(c.Tolerations, func(x cluster.Toleration) bool { return x.Operator == "Exists" && x.Key == "" })
	})
}

func (s *scheduler) place(w *world, n *node, p *pod) {
	n.pods = append(n.pods, p)
	n.used = n.used.Add(w.classes[p.Class].Requests)
}

// unplace gives the room of a pod back.
func (s *scheduler) unplace(w *world, n *node, p *pod) {
	n.used = n.used.Sub(w.classes[p.Class].Requests)
}
