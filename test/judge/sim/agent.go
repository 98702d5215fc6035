package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// The agent's own rhythm: AUTOSCALER_SCALER_QUIET, _CAP, _CALM and _IDLE, and how
// often it reads the cloud, with their defaults.
const (
	quiet = 200 * time.Millisecond
	most  = 800 * time.Millisecond
	calm  = 2 * time.Second
	idle  = 30 * time.Second
	fast  = 2 * time.Second
	slow  = 30 * time.Second
)

// agent is the loop of observe, decide and act in simulated time: the same debounce,
// the same memory, the same outcomes, the same checks before an action.
type agent struct {
	memory   decision.Memory
	outcomes []cluster.Outcome
	groups   []cluster.NodeGroup // as last read
	readAt   time.Time
	busy     bool
	said     map[string]bool // what was held in the last round

	until, settled, first time.Time
	turn                  int       // of the due round; a later wish takes its place
	decided               time.Time // the moment of the last snapshot
	acting                bool
}

func (a *agent) start(w *world) {
	a.until = w.clock.Now
	w.every(time.Second, func() { // the cloud's facts come at two paces
		pace := slow
		if a.busy {
			pace = fast
		}
		if w.clock.Now.Sub(a.readAt) >= pace {
			a.read(w)
		}
	})
	a.arm(w)
	if w.opt.Restart > 0 {
		a.restarts(w)
	}
}

func (a *agent) restarts(w *world) {
	w.after(time.Duration(w.r.ExpFloat64()*float64(w.opt.Restart)), func() {
		w.log("agent: restarts with an empty memory")
		a.memory, a.outcomes = decision.Memory{}, nil
		w.starts.forget()
		w.report.Restarts++
		a.soon(w)
		a.restarts(w)
	})
}

// read takes the cloud's facts. A read now and then shows the moment before, as reads
// of a cloud may.
func (a *agent) read(w *world) {
	w.report.Reads++
	a.readAt = w.clock.Now
	changed := len(a.groups) == 0
	old := a.groups
	a.groups = make([]cluster.NodeGroup, len(w.pools))
	for i, p := range w.pools {
		g := p.NodeGroup
		g.ReadAt = w.clock.Now
		g.Failures = slices.Clone(p.failures)
		for _, m := range p.machines {
			g.Instances = append(g.Instances, m.Instance)
		}
		changed = changed || g.Target != old[i].Target || len(g.Instances) != len(old[i].Instances) || len(g.Failures) != len(old[i].Failures)
		for k := 0; !changed && k < len(g.Instances); k++ {
			changed = g.Instances[k].Phase != old[i].Instances[k].Phase || g.Instances[k].ID != old[i].Instances[k].ID
		}
		a.groups[i] = g
	}
	if changed {
		a.soon(w)
	}
}

// cloudMoved is told when the cloud has something new; the agent sees it by its reads.
func (a *agent) cloudMoved(*world) {}

// soon and later are the urgencies of the world's events.
func (a *agent) soon(w *world) {
	if a.first.IsZero() {
		a.first = w.clock.Now
	}
	a.settled = earliest(w.clock.Now.Add(quiet), a.first.Add(most))
	a.arm(w)
}

func (a *agent) later(w *world) {
	if t := w.clock.Now.Add(calm); t.Before(a.until) {
		a.until = t
		a.arm(w)
	}
}

// arm sets the time of the next round.
func (a *agent) arm(w *world) {
	due := a.until
	if !a.settled.IsZero() {
		due = earliest(due, a.settled)
	}
	a.turn++
	turn := a.turn
	w.at(due, func() {
		if turn == a.turn && !a.acting {
			a.round(w)
		}
	})
}

// snapshot is what the agent sees.
func (a *agent) snapshot(w *world) cluster.Snapshot {
	s := cluster.Snapshot{Now: w.clock.Now, Groups: slices.Clone(a.groups), Classes: w.classes, DaemonSets: w.daemons, Outcomes: a.outcomes}
	byName := make(map[cluster.NodeName]*cluster.Node, len(w.nodes))
	for _, n := range w.nodes {
		shown := n.Node
		byName[n.Name] = &shown
		s.Nodes = append(s.Nodes, &shown)
	}
	for _, p := range w.pods {
		if n := byName[p.Node]; n != nil {
			n.Pods = append(n.Pods, p.Pod)
		} else {
			s.Pods = append(s.Pods, p.Pod)
		}
	}
	for _, n := range s.Nodes {
		slices.SortFunc(n.Pods, func(a, b cluster.Pod) int { return strings.Compare(string(a.Key), string(b.Key)) })
	}
	for _, v := range w.services {
		if v.budget {
			s.Budgets = append(s.Budgets, cluster.Budget{Key: v.budgetKey(), Allowed: v.allowed(w.clock.Now)})
		}
		if missing := v.want - w.count(v); missing > 0 && !v.job {
			s.Controllers = append(s.Controllers, cluster.Controller{Owner: cluster.Owner{Kind: "ReplicaSet", Name: v.name, UID: cluster.UID("rs-" + v.name)},
				Key: cluster.PodKey("default/" + v.name), Missing: missing})
		}
	}
	w.starts.correct(&s)
	return s
}

func (a *agent) round(w *world) {
	a.first, a.settled = time.Time{}, time.Time{}
	if len(a.groups) == 0 {
		a.until = w.clock.Now.Add(time.Second)
		a.arm(w)
		return
	}
	s := a.snapshot(w)
	a.outcomes, a.decided = nil, s.Now
	start := time.Now()
	p, memory := plan.Decide(s, a.memory, w.policy)
	w.report.Rounds++
	w.report.Deciding += time.Since(start)
	if w.opt.Check != nil {
		w.opt.Check(s, a.memory, w.policy, p)
	}
	a.memory = memory
	w.report.held(w, p)
	a.tell(w, p.Held)
	a.busy = len(p.Actions) > 0 || a.unsettled(w)
	a.until = w.clock.Now.Add(idle)
	if len(p.Actions) > 0 {
		a.until = w.clock.Now.Add(calm)
	}
	if !p.Wake.IsZero() {
		a.until = earliest(a.until, later(p.Wake, w.clock.Now.Add(quiet)))
	}
	if len(p.Actions) == 0 {
		a.arm(w)
		return
	}
	a.acting = true
	w.after(w.between(80*time.Millisecond, 500*time.Millisecond), func() { // calls take their time
		a.acting = false
		a.act(w, p)
		a.read(w)
		a.arm(w)
	})
}

// tell logs what is held about pods and groups, as the journal does: once while it is so.
func (a *agent) tell(w *world, held []decision.Held) {
	if w.opt.Log == nil {
		return
	}
	said := map[string]bool{}
	for _, h := range held {
		if h.Kind == "node" {
			continue
		}
		line := h.String()
		if said[line] = true; !a.said[line] {
			w.log("agent: %s", line)
		}
	}
	a.said = said
}

// unsettled tells that machines are coming or going.
func (a *agent) unsettled(w *world) bool {
	for _, p := range w.pools {
		ready := 0
		for _, m := range p.machines {
			if m.Phase == cluster.PhaseDeleting {
				return true
			}
			if m.node != nil && m.node.Ready == cluster.StatusTrue {
				ready++
			}
		}
		if ready != p.Target {
			return true
		}
	}
	return slices.ContainsFunc(w.nodes, (*node).marked)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// act carries a plan out, with the checks of agent/act.
func (a *agent) act(w *world, p decision.Plan) {
	for _, x := range p.Actions {
		w.log("agent: %s", x)
		switch x := x.(type) {
		case decision.Grow:
			a.grow(w, x)
		case decision.Cordon:
			a.mark(w, x.Node, true)
		case decision.Uncordon:
			w.report.TookBack++
			a.mark(w, x.Node, false)
		case decision.SoftTaint:
			a.soften(w, x)
		case decision.Evict:
			a.evict(w, x)
		case decision.Terminate:
			a.terminate(w, x)
		}
	}
}

func (a *agent) did(w *world, o cluster.Outcome, kind, text string) {
	o.At, o.Kind, o.Error = w.clock.Now, kind, text
	if text != "" {
		w.log("agent: %s %s%s: %s", o.Action, o.Group, o.Node, text)
	}
	a.outcomes = append(a.outcomes, o)
}

func (a *agent) grow(w *world, x decision.Grow) {
	i := slices.IndexFunc(w.pools, func(p *pool) bool { return p.ID == x.Group })
	p := w.pools[i]
	o := cluster.Outcome{Action: "grow", Group: x.Group, From: x.From, To: x.To}
	w.report.Grows++
	switch {
	case p.Target != x.From:
		a.did(w, o, "conflict", fmt.Sprintf("target is %d, not %d", p.Target, x.From))
	case x.To > p.Max:
		a.did(w, o, "invalid", fmt.Sprintf("above the maximum of %d", p.Max))
	default:
		w.report.bought(w, p, x)
		p.Target = x.To
		w.fulfil(p)
		a.did(w, o, "", "")
	}
}

func (a *agent) mark(w *world, name cluster.NodeName, on bool) {
	n := w.byName[name]
	if n == nil {
		return
	}
	n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t.Key == cluster.TaintToBeDeleted })
	n.Unschedulable, n.Annotations = on, nil
	if on {
		n.Taints = append(n.Taints, cluster.Taint{Key: cluster.TaintToBeDeleted, Value: fmt.Sprint(w.clock.Now.Unix()), Effect: "NoSchedule"})
		n.Annotations = map[string]string{cluster.AnnotationCordoned: "true"}
	} else {
		w.scheduler.flush(w)
	}
	a.soon(w)
}

// soften puts the soft taint on a node or takes it off. The scheduler here takes the
// first node that has room, so that the taint changes nothing but the Snapshot.
func (a *agent) soften(w *world, x decision.SoftTaint) {
	n := w.byName[x.Node]
	if n == nil {
		return
	}
	n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t.Key == cluster.TaintDeletionCandidate })
	if !x.Off {
		n.Taints = append(n.Taints, cluster.Taint{Key: cluster.TaintDeletionCandidate, Value: fmt.Sprint(w.clock.Now.Unix()), Effect: "PreferNoSchedule"})
	}
	a.soon(w)
}

func (a *agent) evict(w *world, x decision.Evict) {
	for _, p := range w.pods {
		if p.UID != x.UID || p.Node != x.Node || !p.Deleting.IsZero() {
			continue
		}
		if s := p.service; s != nil && s.budget && s.allowed(w.clock.Now) < 1 {
			a.did(w, cluster.Outcome{Action: "evict", Node: x.Node, Pod: x.Pod}, "TooManyRequests", "the budget allows no disruption")
			return
		}
		w.evicted(p)
		return
	}
}

func (a *agent) terminate(w *world, x decision.Terminate) {
	i := slices.IndexFunc(w.pools, func(p *pool) bool { return p.ID == x.Group })
	p := w.pools[i]
	o := cluster.Outcome{Action: "terminate", Group: x.Group, Instance: x.Instance, Node: x.Node}
	k := slices.IndexFunc(p.machines, func(m *machine) bool { return m.ID == x.Instance && m.Member && m.ended.IsZero() })
	if k < 0 {
		a.did(w, o, "", "") // gone already: idempotent
		return
	}
	m := p.machines[k]
	if n := m.node; n != nil {
		for _, q := range n.pods {
			if q.service != nil && !q.Finished && q.Deleting.IsZero() {
				a.did(w, o, "conflict", fmt.Sprintf("pod %s has come to node %s", q.Key, n.Name))
				return
			}
		}
	}
	if p.Target <= p.Min {
		a.did(w, o, "invalid", "the group is at its minimum")
		return
	}
	w.report.sent(m, a.decided)
	w.terminate(m)
	a.did(w, o, "", "")
}
