package days

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
)

// Cluster Autoscaler's defaults of 21 August 2026 (pkg/config/flags).
const (
	scanInterval      = 10 * time.Second
	caNewPod          = 2 * time.Second // unschedulablePodTimeBuffer: a burst younger than this waits for one more loop
	caUnneeded        = 10 * time.Minute
	caThreshold       = 0.5
	caAfterAdd        = 10 * time.Minute
	caAfterFailure    = 3 * time.Minute
	caRecheck         = 5 * time.Minute // unremovable-node-recheck-timeout
	caParallel        = 10              // max-scale-down-parallelism
	caDrains          = 1               // max-drain-parallelism
	caSoftTaints      = 10
	caAfterTaint      = 5 * time.Second
	caEvictRetry      = 10 * time.Second
	caEvictFor        = 2 * time.Minute
	caWaitGone        = 5 * time.Second
	caGraceAndAllowed = 10*time.Minute + 30*time.Second
)

// autoscaler is the model of Cluster Autoscaler: StaticAutoscaler.RunOnce every ten seconds, with
// the estimator, least-waste, the planner of scale-down and its actuator.
type autoscaler struct {
	unneeded    map[*node]time.Time // since when
	unremovable map[*node]time.Time // until when it is not looked at
	going       map[*node]bool      // being deleted; true: it is drained
	lastUp      time.Time
	lastFailure time.Time
	last        int // where the last search for a node ended
}

// ClusterAutoscaler is the model of Cluster Autoscaler's rules.
func ClusterAutoscaler(name string) Scaler {
	return Scaler{Name: name, make: func(*world) (scaler, error) {
		return &autoscaler{unneeded: map[*node]time.Time{}, unremovable: map[*node]time.Time{}, going: map[*node]bool{}}, nil
	}}
}

func (*autoscaler) moved(*world, store.Urgency) {}
func (*autoscaler) came(*world)                 {}

func (a *autoscaler) start(w *world) {
	w.clock.After(scanInterval, func() {
		before := usage()
		a.scan(w)
		w.report.decided(w, usage()-before)
		a.start(w)
	})
}

// size is cpu, memory and pods.
type size [3]int64

func sizeOf(r cluster.Resources) size { return size{r.MilliCPU, r.Memory, r.Pods} }

func (s *service) size() size { return size{s.Milli, s.MiB << 20, 1} }

func (s *size) take(o size) bool {
	if s[0] < o[0] || s[1] < o[1] || s[2] < o[2] {
		return false
	}
	for i := range s {
		s[i] -= o[i]
	}
	return true
}

// room is what is left of a node, real or upcoming.
type room struct {
	node *node // nil: upcoming
	left size
}

func (n *node) room() *room {
	r := &room{node: n, left: sizeOf(n.machine.group.Template.Allocatable)}
	for _, p := range n.pods {
		r.left.take(p.service.size())
	}
	return r
}

// rooms are the snapshot: nodes that are not on their way out, and upcoming ones.
func (a *autoscaler) rooms(w *world) (out []*room) {
	for _, n := range w.nodes {
		if _, going := a.going[n]; n.ready && !going && n.machine.ended.IsZero() && !n.object.Spec.Unschedulable {
			out = append(out, n.room())
		}
	}
	for _, g := range w.groups {
		upcoming := g.Target
		for _, m := range g.machines {
			if m.ended.IsZero() && m.node != nil && m.node.ready {
				upcoming--
			}
		}
		for range upcoming {
			out = append(out, &room{left: sizeOf(g.Template.Allocatable)})
		}
	}
	return out
}

// place puts a pod onto the first node that takes it, from where the last search ended.
func (a *autoscaler) place(rooms []*room, s size, may func(*room) bool) *room {
	for i := range rooms {
		k := (a.last + i) % len(rooms)
		if r := rooms[k]; (may == nil || may(r)) && r.left.take(s) {
			a.last = k
			return r
		}
	}
	return nil
}

// scan is one RunOnce.
func (a *autoscaler) scan(w *world) {
	now := w.clock.Now
	var waiting []*pod
	for _, p := range w.pods { // the pods of a node that is being drained count as unschedulable
		if p.node == nil && p.tried || p.node != nil && a.going[p.node] && !p.deleting {
			waiting = append(waiting, p)
		}
	}
	rooms := a.rooms(w)
	waiting = slices.DeleteFunc(waiting, func(p *pod) bool { return a.place(rooms, p.service.size(), nil) != nil })
	if len(waiting) > 0 {
		if !slices.ContainsFunc(waiting, func(p *pod) bool { return now.Sub(p.object.CreationTimestamp.Time) >= caNewPod }) {
			return // a burst that has just begun: it waits one loop for more of it, and nothing is removed in this one
		}
		if a.scaleUp(w, waiting) {
			a.lastUp = now
			a.update(w, rooms)
			return
		}
	}
	a.update(w, rooms)
	if now.Before(a.lastUp.Add(caAfterAdd)) || now.Before(a.lastFailure.Add(caAfterFailure)) {
		return
	}
	if a.scaleDown(w) == 0 {
		a.softTaints(w)
	}
}

// scaleUp asks the estimator for each group, and grows the one of the least waste.
func (a *autoscaler) scaleUp(w *world, waiting []*pod) bool {
	var best *group
	machines, least := 0, 0.0
	for _, g := range w.groups {
		n, waste := estimate(g, waiting)
		if n > 0 && (best == nil || waste < least) {
			best, machines, least = g, n, waste
		}
	}
	if best == nil {
		return false
	}
	w.grow(best, best.Target+machines, fmt.Sprintf("for %d pods", len(waiting)), nil, false)
	return true
}

// estimate is the bin-packing estimator: pods by falling share of the machine, each on the first
// new machine that takes it. Waste is what stays unused of cpu and memory.
func estimate(g *group, waiting []*pod) (machines int, waste float64) {
	all := sizeOf(g.Template.Allocatable)
	score := func(p *pod) float64 {
		s := p.service.size()
		return float64(s[0])/float64(all[0]) + float64(s[1])/float64(all[1])
	}
	pods := slices.Clone(waiting)
	slices.SortStableFunc(pods, func(x, y *pod) int { return cmp.Compare(score(y), score(x)) })
	var bins []size
	var cpu, memory int64
	for _, p := range pods {
		s := p.service.size()
		k := slices.IndexFunc(bins, func(b size) bool { return b.take(s) })
		if k < 0 {
			empty := all
			if !empty.take(s) {
				continue
			}
			k = len(bins)
			bins = append(bins, all)
		}
		bins[k].take(s)
		cpu, memory = cpu+s[0], memory+s[1]
	}
	if len(bins) == 0 {
		return 0, 0
	}
	have, n := g.Template.Capacity, float64(len(bins))
	return len(bins), 2 - float64(cpu)/(float64(have.MilliCPU)*n) - float64(memory)/(float64(have.Memory)*n)
}

// update is the planner's UpdateClusterState: which nodes are unneeded, and since when. What one
// removal moves is there for the next.
func (a *autoscaler) update(w *world, rooms []*room) {
	now := w.clock.Now
	real := slices.DeleteFunc(slices.Clone(rooms), func(r *room) bool { return r.node == nil })
	byNode := map[*node]*room{}
	for _, r := range real {
		byNode[r.node] = r
	}
	var candidates []*node
	for _, r := range real {
		if now.Before(a.unremovable[r.node]) {
			continue
		}
		if len(a.movable(r.node)) == 0 || utilization(r.node) < caThreshold {
			candidates = append(candidates, r.node)
		}
	}
	rank := func(n *node) int { // empty ones, those of the last loop, others
		if len(a.movable(n)) == 0 {
			return 0
		}
		if _, was := a.unneeded[n]; was {
			return 1
		}
		return 2
	}
	slices.SortStableFunc(candidates, func(x, y *node) int { return cmp.Compare(rank(x), rank(y)) })
	budgets := map[*service]int{}
	for _, s := range w.services {
		budgets[s] = s.allowed
	}
	next := map[*node]time.Time{}
	gone := map[*node]bool{}
	limit := len(a.unneeded) + 2*caParallel
	for _, n := range candidates {
		if len(next) >= limit {
			break
		}
		if !a.removable(n, real, gone, budgets) {
			a.unremovable[n] = now.Add(caRecheck)
			continue
		}
		gone[n] = true
		next[n] = now
		if since, was := a.unneeded[n]; was {
			next[n] = since
		}
	}
	a.unneeded = next
}

// movable are the pods that a drain would have to move.
func (*autoscaler) movable(n *node) (out []*pod) {
	for _, p := range n.pods {
		if !p.deleting {
			out = append(out, p)
		}
	}
	return out
}

func utilization(n *node) float64 {
	all := n.machine.group.Template.Allocatable
	var cpu, memory int64
	for _, p := range n.pods {
		s := p.service.size()
		cpu, memory = cpu+s[0], memory+s[1]
	}
	return max(float64(cpu)/float64(all.MilliCPU), float64(memory)/float64(all.Memory))
}

// removable simulates a removal: every pod finds a place on a node that stays, and a budget allows it.
func (a *autoscaler) removable(n *node, rooms []*room, gone map[*node]bool, budgets map[*service]int) bool {
	pods := a.movable(n)
	need := map[*service]int{}
	for _, p := range pods {
		if p.service.Budget {
			if need[p.service]++; budgets[p.service] < 1 {
				return false
			}
		}
	}
	type placed struct {
		r *room
		s size
	}
	var done []placed
	for _, p := range pods {
		s := p.service.size()
		r := a.place(rooms, s, func(r *room) bool { return r.node != n && !gone[r.node] })
		if r == nil {
			for _, d := range done {
				for i := range d.s {
					d.r.left[i] += d.s[i]
				}
			}
			return false
		}
		done = append(done, placed{r, s})
	}
	for s, k := range need {
		budgets[s] -= k
	}
	return true
}
