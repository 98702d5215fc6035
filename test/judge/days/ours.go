package days

import (
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// The agent's own rhythm: AUTOSCALER_SCALER_QUIET, _CAP, _CALM and _IDLE with their defaults.
const (
	quiet = 200 * time.Millisecond
	most  = 800 * time.Millisecond
	calm  = 2 * time.Second
	idle  = 30 * time.Second
)

// agent is the loop of observe, decide and act in simulated time, with the engine's memory kept.
type agent struct {
	policy   decision.Policy
	unpriced bool // AUTOSCALER_PRICES=typed, and none is typed
	engine   plan.Engine
	memory   decision.Memory
	outcomes []cluster.Outcome

	until, settled, first time.Time
	turn                  int // of the round that is due; a later wish takes its place
	acting                bool
}

// Ours is the agent's engine with a policy.
func Ours(name string, policy decision.Policy, unpriced bool) Scaler {
	return Scaler{Name: name, make: func(w *world) (scaler, error) {
		w.store = store.New([]string{"default-scheduler"})
		return &agent{policy: policy, unpriced: unpriced}, nil
	}}
}

func (a *agent) start(w *world) {
	a.until = w.clock.Now.Add(calm)
	a.arm(w)
}

// came: the agent reads the cloud every two seconds while machines come or go.
func (a *agent) came(w *world) {
	w.clock.After(w.between(time.Millisecond, 2*time.Second), func() { a.moved(w, store.Soon) })
}

func (a *agent) moved(w *world, u store.Urgency) {
	now := w.clock.Now
	switch u {
	case store.Soon:
		if a.first.IsZero() {
			a.first = now
		}
		a.settled = earliest(now.Add(quiet), a.first.Add(most))
	case store.Later:
		t := now.Add(calm)
		if !t.Before(a.until) {
			return
		}
		a.until = t
	default:
		return
	}
	a.arm(w)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// arm sets the time of the next round.
func (a *agent) arm(w *world) {
	due := a.until
	if !a.settled.IsZero() {
		due = earliest(due, a.settled)
	}
	a.turn++
	turn := a.turn
	w.clock.At(due, func() {
		if turn == a.turn && !a.acting {
			a.round(w)
		}
	})
}

// snapshot is what the agent sees.
func (a *agent) snapshot(w *world) cluster.Snapshot {
	s, _, _ := w.store.Snapshot(-1)
	s.Now, s.Outcomes = w.clock.Now, a.outcomes
	for _, g := range w.groups {
		shown := g.NodeGroup
		shown.ReadAt = w.clock.Now
		if a.unpriced {
			shown.Price, shown.PriceSource = 0, ""
		}
		for _, m := range g.machines {
			shown.Instances = append(shown.Instances, m.Instance)
		}
		s.Groups = append(s.Groups, shown)
	}
	return s
}

func (a *agent) round(w *world) {
	a.first, a.settled = time.Time{}, time.Time{}
	s := a.snapshot(w)
	a.outcomes = nil
	before := usage()
	p, memory := a.engine.Decide(s, a.memory, a.policy)
	w.report.decided(w, usage()-before)
	a.memory = memory
	a.until = w.clock.Now.Add(idle)
	if len(p.Actions) > 0 {
		a.until = w.clock.Now.Add(calm)
	}
	if !p.Wake.IsZero() {
		wake := p.Wake
		if least := w.clock.Now.Add(quiet); wake.Before(least) {
			wake = least
		}
		a.until = earliest(a.until, wake)
	}
	if len(p.Actions) == 0 {
		a.arm(w)
		return
	}
	a.acting = true
	w.clock.After(w.between(80*time.Millisecond, 500*time.Millisecond), func() { // calls take their time
		a.acting = false
		for _, x := range p.Actions {
			a.act(w, x)
		}
		a.arm(w)
	})
}

// act carries an action out, with the checks of agent/act, and remembers what became of it.
func (a *agent) act(w *world, x decision.Action) {
	o := cluster.Outcome{At: w.clock.Now}
	var err error
	switch x := x.(type) {
	case decision.Grow:
		o.Action, o.Group, o.From, o.To = "grow", x.Group, x.From, x.To
		if g := w.group(x.Group); g.Target != x.From {
			err = &refusal{"conflict", fmt.Sprintf("target is %d, not %d", g.Target, x.From)}
		} else {
			w.grow(g, x.To, fmt.Sprintf("for %d pods [%s] %s", len(x.Pods)+x.Expected, x.Rule, x.Why), x.Pods, x.Rule == decision.RuleConsolidate)
		}
	case decision.Cordon:
		w.log(fmt.Sprintf("%s %s", w.clock.Now.Format("15:04:05"), x))
		a.mark(w, x.Node, true)
		if n := w.node(string(x.Node)); n != nil {
			n.machine.dear = x.Rule == decision.RuleConsolidate
		}
		return
	case decision.Uncordon:
		w.log(fmt.Sprintf("%s %s", w.clock.Now.Format("15:04:05"), x))
		a.mark(w, x.Node, false)
		return
	case decision.SoftTaint:
		if n := w.node(string(x.Node)); n != nil {
			w.soften(n, !x.Off)
		}
		return
	case decision.Evict:
		o.Action, o.Node, o.Pod = "evict", x.Node, x.Pod
		if err = a.evict(w, x); err == nil {
			return
		}
	case decision.Terminate:
		o.Action, o.Group, o.Instance, o.Node = "terminate", x.Group, x.Instance, x.Node
		err = a.terminate(w, x)
	}
	if r, ok := err.(*refusal); ok {
		o.Kind, o.Error = r.kind, r.text
		w.log(fmt.Sprintf("%s %s: %s", w.clock.Now.Format("15:04:05"), x, r.text))
	}
	a.outcomes = append(a.outcomes, o)
}

func (a *agent) mark(w *world, name cluster.NodeName, on bool) {
	if n := w.node(string(name)); n != nil {
		w.mark(n, on)
	}
}

func (a *agent) evict(w *world, x decision.Evict) error {
	i := slices.IndexFunc(w.pods, func(p *pod) bool { return string(p.object.UID) == string(x.UID) })
	if i < 0 {
		return nil
	}
	return w.evict(w.pods[i])
}

func (a *agent) terminate(w *world, x decision.Terminate) error {
	g := w.group(x.Group)
	i := slices.IndexFunc(g.machines, func(m *machine) bool { return m.ID == x.Instance })
	if i < 0 {
		return nil
	}
	return w.terminate(g.machines[i], fmt.Sprintf("[%s] %s", x.Rule, x.Why))
}
