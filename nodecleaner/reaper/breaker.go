package reaper

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds the state of the breakers (B), which are asked before every deletion.

// freeze is B3: after an interruption of our own view (the API server was away, this agent
// did not lead or did not run, the clock jumped) nothing is deleted for FreezeFor.
func (x *evaluation) freeze() {
	m, in, p := &x.memory, x.in, x.policy
	silent := !m.LastRound.IsZero() && in.Now.Sub(m.LastRound) > p.Silence
	back := in.Now.Before(m.LastRound)
	switch {
	case in.Outage != "":
		m.FrozenUntil, m.FrozenWhy = in.Now.Add(p.FreezeFor), in.Outage
	case silent || back:
		m.FrozenUntil, m.FrozenWhy = in.Now.Add(p.FreezeFor), "nobody watched between "+stamp(m.LastRound)+" and "+stamp(in.Now)
		// The timers of the Nodes are from before the interruption: start them again.
		for name, w := range m.Watch {
			m.Watch[name] = Watch{UID: w.UID, ProviderID: w.ProviderID, Since: in.Now, LookAt: in.Now, Fenced: w.Fenced}
		}
	}
	if back {
		// A freeze by a clock that was ahead must not last for ever.
		m.LastUnledgered, m.MassSince, m.CloudUntil, m.Unledgered, m.Errors = time.Time{}, time.Time{}, time.Time{}, nil, nil
	}
	if !in.Now.Before(m.FrozenUntil) {
		return
	}
	x.frozenUntil, x.frozen = m.FrozenUntil, m.FrozenWhy
}

// countErrors is B6: after several failed reads within BreakWithin the cloud's next answers
// are not trusted. Rounds come at irregular times, so reads that fail within one
// UnknownLook count as one.
func (x *evaluation) countErrors() {
	m, in, p := &x.memory, x.in, x.policy
	failed := in.ReadProblem != "" || slices.ContainsFunc(in.Groups, func(g cluster.NodeGroup) bool { return g.Stale != "" })
	if n := len(m.Errors); failed && (n == 0 || in.Now.Sub(m.Errors[n-1]) >= p.UnknownLook()) {
		m.Errors = append(m.Errors, in.Now)
	}
	m.Errors = slices.DeleteFunc(m.Errors, func(t time.Time) bool { return in.Now.Sub(t) > p.BreakWithin })
	if over := len(m.Errors) - max(p.BreakErrors, 1); over > 0 {
		m.Errors = m.Errors[over:]
	}
	if p.BreakErrors > 0 && len(m.Errors) >= p.BreakErrors {
		m.CloudUntil = m.Errors[len(m.Errors)-1].Add(p.FreezeFor)
	}
	if in.Now.Before(m.CloudUntil) {
		x.cloudUntil, x.cloudFrozen = m.CloudUntil, fmt.Sprintf("%d reads of the cloud failed within %s", len(m.Errors), p.BreakWithin)
	}
}

// census counts for B2 (too many Nodes gone at once) and B4 (too many Nodes of a zone not
// Ready at once); Nodes that were removed by a scale-down do not count. B2 counts each Node whose instance
// was seen gone once, and the deletions of the last MassHold: Nodes that die one by one are
// a mass failure, too.
func (x *evaluation) census(watch map[cluster.NodeName]Watch) {
	m := &x.memory
	m.Unledgered = slices.DeleteFunc(m.Unledgered, func(t time.Time) bool { return x.in.Now.Sub(t) > x.policy.MassHold })
	managed, unledgered := len(m.Unledgered), len(m.Unledgered)
	type zone struct{ all, down int }
	zones := map[string]zone{}
	for _, n := range x.nodes {
		r, ours := m.Seen[machine(n.ProviderID)]
		if !ours || n.ControlPlane {
			continue
		}
		managed++
		z := zones[x.zone(n, r)]
		z.all++
		if n.Ready != cluster.StatusTrue && !r.Sent {
			z.down++
			if !watch[n.Name].First.IsZero() {
				unledgered++
			}
		}
		zones[x.zone(n, r)] = z
	}
	if most := max(1, int(x.policy.MaxShare*float64(managed))); unledgered > most {
		x.mass = fmt.Sprintf("%d of %d managed Nodes are gone at once and no scale-down removed them, more than %d", unledgered, managed, most)
	}
	for name, z := range zones {
		if z.down >= 3 && float64(z.down) >= 0.55*float64(z.all) {
			x.zones[name] = fmt.Sprintf("%d of %d managed Nodes of zone %q are not Ready at once", z.down, z.all, name)
		}
	}
	if x.mass == "" && len(x.zones) == 0 {
		m.MassSince = time.Time{}
	} else if m.MassSince.IsZero() {
		m.MassSince = x.in.Now
	}
}

// Breakers lists the rules that a Plan may name as open breakers. B5 only spaces
// deletions out, and B1 is asked of each Node.
func Breakers() []string {
	var out []string
	for _, r := range Rules() {
		if r.Tells == Breaks {
			out = append(out, r.ID)
		}
	}
	return out
}

// name adds the open breakers to the plan, in the order of the rules. A breaker is open if
// it held a Node in this round.
func (x *evaluation) name(plan *Plan) {
	for _, rule := range Breakers() {
		if why := x.stopped[rule]; why != "" { // never B1
			plan.Breakers = append(plan.Breakers, Breaker{rule, why})
		}
	}
	for _, h := range plan.Held {
		if h.Rule == "B1" {
			plan.Breakers = append([]Breaker{{"B1", h.Why}}, plan.Breakers...)
			break
		}
	}
}

// mark plans the taint of a stopped instance (node.cloudprovider.kubernetes.io/shutdown), as
// a cloud controller manager would write it: a stopped machine's Node stays. Our taint is
// removed when the instance runs again.
func (x *evaluation) mark(c *candidate, plan *Plan) {
	f, here := x.view.instances[c.id]
	if c.rule != "" && c.rule != "L0" || !here || f.group.Stale != "" || x.in.Outage != "" || x.in.Coexist != "" || x.policy.Observe {
		return
	}
	n, ours := c.node, false
	for _, t := range n.Taints {
		ours = ours || t.Key == TaintShutdown && t.Value == ShutdownValue
	}
	switch {
	case n.Ready != cluster.StatusTrue && f.instance.Phase == cluster.PhaseStopped && !Carries(n, TaintShutdown):
		plan.Shutdown = append(plan.Shutdown, Mark{Node: n.Name, UID: n.UID, On: true})
	case ours && (n.Ready == cluster.StatusTrue || f.instance.Phase == cluster.PhaseRunning):
		plan.Shutdown = append(plan.Shutdown, Mark{Node: n.Name, UID: n.UID})
	}
}

// bootID is the form in which a boot ID is written on a Node.
var bootID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// claim plans the annotations that name the group of an existing instance, and the boot ID of its machine, on its Node. An
// instance that is not listed has PhaseUnknown.
func (x *evaluation) claim(c *candidate, plan *Plan) {
	f, boot := x.view.instances[c.id], x.memory.Seen[c.id].BootID
	if !bootID.MatchString(boot) {
		boot = "" // a kubelet writes it, and the admission policy takes no other form
	}
	exists := f.instance.Phase != cluster.PhaseGone && f.instance.Phase != cluster.PhaseUnknown
	if !exists || f.group.Stale != "" || x.in.Outage != "" || x.policy.Observe || c.node.Deleting || x.doubt(c.node) != "" ||
		c.node.Annotations[cluster.AnnotationGroup] == string(f.group.ID) && (boot == "" || c.node.Annotations[cluster.AnnotationBoot] == boot) {
		return
	}
	plan.Claims = append(plan.Claims, Claim{Node: c.node.Name, UID: c.node.UID, Group: f.group.ID, BootID: boot})
}
