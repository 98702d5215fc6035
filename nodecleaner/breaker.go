package nodecleaner

import (
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file holds rule B, the breakers. They stand before every deletion and name
// themselves. It is as pure as decide.go.

// freeze is B3: after an outage of our own view (the API server was away, this
// agent did not lead or did not run, the clock jumped) nothing is deleted for a
// while. It returns why, while it lasts.
func (m *Memory) freeze(in Input, p Policy) string {
	silent := !m.LastRound.IsZero() && in.Now.Sub(m.LastRound) > p.Silence
	back := !m.LastRound.IsZero() && in.Now.Before(m.LastRound)
	switch {
	case in.Outage != "":
		m.FrozenUntil = in.Now.Add(p.FreezeFor)
	case silent || back:
		m.FrozenUntil = in.Now.Add(p.FreezeFor)
		// What was remembered of the Nodes is from before: start their timers again.
		for name, w := range m.Watch {
			m.Watch[name] = Watch{UID: w.UID, ProviderID: w.ProviderID, Since: in.Now, LookAt: in.Now}
		}
	}
	if back {
		// A freeze by a clock that was ahead must not last for ever.
		m.LastUnledgered, m.MassSince = time.Time{}, time.Time{}
	}
	if in.Now.Before(m.FrozenUntil) {
		if in.Outage != "" {
			return in.Outage
		}
		return "the agent has been blind"
	}
	return ""
}

// breakers turns Nodes that are proven gone into deletions, or holds them.
func (m *Memory) breakers(in Input, p Policy, frozen string, dead []candidate, nodes []cluster.Node, plan *Plan) {
	if frozen != "" {
		dead = m.thaw(in, frozen, dead, plan)
	}
	managed, down, unledgered := 0, 0, 0
	for _, n := range nodes {
		r, ours := m.Seen[cluster.InstanceID(n.ProviderID)]
		if !ours || n.ControlPlane {
			continue
		}
		managed++
		if n.Ready != cluster.StatusTrue && !r.Sent {
			down++
		}
	}
	for _, c := range dead {
		if !c.sent {
			unledgered++
		}
	}
	why := m.mass(in, p, managed, down, unledgered, plan)
	for _, c := range dead {
		m.release(in, p, c, why, plan)
	}
}

// thaw holds what a freeze holds. A freeze doubts what was seen of the Nodes; that
// the cloud lists a machine as terminated, twice since the outage ended, and that the
// scaler itself had sent it away, owes nothing to that: such Nodes go.
func (m *Memory) thaw(in Input, frozen string, dead []candidate, plan *Plan) (certain []candidate) {
	held := false
	for _, c := range dead {
		if c.sent && c.watch.Positive && in.Outage == "" {
			certain = append(certain, c)
			continue
		}
		held = true
		plan.hold(c.node, "B3", "frozen: "+frozen)
	}
	if held {
		plan.open(fmt.Sprintf("B3: nothing is deleted until %s: %s", m.FrozenUntil.UTC().Format(time.RFC3339), frozen))
		plan.soon(m.FrozenUntil)
	}
	return certain
}

// mass is B2 (too many gone at once) and B4 (too many not Ready at once) for Nodes
// that nobody sent away. Terminated instances are let go after MassHold, absent ones
// only when an operator acts or the rest comes back.
func (m *Memory) mass(in Input, p Policy, managed, down, unledgered int, plan *Plan) string {
	most := max(1, int(p.MaxShare*float64(managed)))
	why := ""
	switch {
	case unledgered > most:
		why = fmt.Sprintf("B2: %d of %d managed Nodes are gone at once and nobody sent them away, more than %d", unledgered, managed, most)
	case unledgered > 0 && down >= 3 && float64(down) >= 0.55*float64(managed):
		why = fmt.Sprintf("B4: %d of %d managed Nodes are not Ready at once", down, managed)
	}
	if why == "" {
		m.MassSince = time.Time{}
		return ""
	}
	if m.MassSince.IsZero() {
		m.MassSince = in.Now
	}
	plan.open(why)
	return why
}

// release decides on one proven candidate, given an open mass breaker.
func (m *Memory) release(in Input, p Policy, c candidate, mass string, plan *Plan) {
	if !c.sent && mass != "" {
		until := m.MassSince.Add(p.MassHold)
		if !c.watch.Positive || in.Now.Before(until) {
			rule, text, _ := strings.Cut(mass, ": ")
			plan.hold(c.node, rule, text)
			if c.watch.Positive {
				plan.soon(until)
			}
			return
		}
	}
	if !c.sent {
		if next := m.LastUnledgered.Add(p.UnledgeredEvery); in.Now.Before(next) {
			plan.hold(c.node, "B5", fmt.Sprintf("one such Node every %s", p.UnledgeredEvery))
			plan.soon(next)
			return
		}
		m.LastUnledgered = in.Now
	}
	rule, proof := "G4", "absent from two whole reads"
	if c.watch.Positive {
		rule, proof = "G3", "terminated in two reads"
	}
	plan.Delete = append(plan.Delete, Deletion{Node: c.node.Name, UID: c.node.UID, ProviderID: c.node.ProviderID, Group: c.group, Rule: rule,
		Why: fmt.Sprintf("instance %s is gone: %s, %s and %s", c.node.ProviderID, proof,
			c.watch.First.UTC().Format(time.RFC3339), c.watch.Last.UTC().Format(time.RFC3339)),
		Ledgered: c.sent})
}

func (p *Plan) open(breaker string) { p.Breakers = append(p.Breakers, breaker) }
