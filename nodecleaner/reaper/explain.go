package reaper

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// The modes, as a Verdict names them.
const (
	ModeDelete  = "delete"
	ModeObserve = "observe"
)

// Verdict is the judgement of the rules about one Node. Its field names are stable; fields may be
// added.
type Verdict struct {
	// Rule is the rule that holds the Node, or the proof of its deletion if Deletes is set.
	// Empty: there is no such Node.
	Rule string `json:"rule"`
	Why  string `json:"why"`
	// Deletes tells that no rule holds the Node; Would tells that only mode observe or a
	// cloud controller manager holds it.
	Deletes bool   `json:"deletes,omitempty"`
	Would   bool   `json:"would,omitempty"`
	Mode    string `json:"mode"`
	// Checks are the rules in their order, up to the first that objects.
	Checks []Checked `json:"checks,omitempty"`
	// Facts are the facts on which the rules decided, in words.
	Facts []string `json:"facts,omitempty"`
	// Breakers are the open breakers.
	Breakers []string `json:"breakers,omitempty"`
}

// Checked is one rule's answer.
type Checked struct {
	Rule string `json:"rule"`
	OK   bool   `json:"ok"`
	Why  string `json:"why"` // the rule's condition, or its objection
}

// Explain returns the judgement of Decide about one Node, with every rule that was asked.
func Explain(in Input, m Memory, p Policy, name cluster.NodeName) Verdict {
	v := Verdict{Mode: ModeDelete}
	if p.Observe {
		v.Mode = ModeObserve
	}
	plan, next := Decide(in, m, p)
	for _, b := range plan.Breakers {
		v.Breakers = append(v.Breakers, b.Rule+": "+b.Why)
	}
	x := newMoment(in, m, p)
	for _, n := range x.nodes {
		if n.Name == name {
			v.trace(x.candidate(n), x, plan, next)
		}
	}
	return v
}

// trace asks the rules about one Node again; the breakers' answers come from the plan,
// which knows all Nodes.
func (v *Verdict) trace(c *candidate, x *evaluation, plan Plan, next Memory) {
	for _, d := range plan.Delete {
		if d.Node == c.node.Name {
			v.Rule, v.Why, v.Deletes = d.Rule, d.Why, true
		}
	}
	for _, h := range plan.Held {
		if h.Node == c.node.Name {
			v.Rule, v.Why, v.Would = h.Rule, h.Why, h.Would
		}
	}
	if v.Rule == "" {
		v.Rule, v.Why = c.rule, c.why // Ready Nodes are in no plan
	}
	lists := [][]check{eligibleChecks}
	if c.rule == "" {
		lists = append(lists, proofChecks, breakerChecks)
	}
	for _, list := range lists {
		for _, rule := range list {
			if rule.id == v.Rule {
				v.Checks = append(v.Checks, Checked{Rule: rule.id, Why: v.Why})
				v.facts(c, x, next)
				return
			}
			v.Checks = append(v.Checks, Checked{Rule: rule.id, OK: true, Why: rule.says})
		}
	}
	v.facts(c, x, next)
}

func (v *Verdict) facts(c *candidate, x *evaluation, next Memory) {
	add := func(format string, args ...any) { v.Facts = append(v.Facts, fmt.Sprintf(format, args...)) }
	if r, ok := next.Seen[c.id]; ok {
		sent := "no scale-down removed it"
		if r.Sent {
			sent = "a scale-down removed it"
		}
		add("ledger: instance %s of group %s, first seen %s, last listed %s; %s", c.node.ProviderID, r.Group, stamp(r.First), stamp(r.Last), sent)
	}
	if c.rule != "" {
		return
	}
	w, ok := next.Watch[c.node.Name]
	if !ok {
		return
	}
	add("not Ready since %s; last read of the cloud: %s", stamp(w.Since), c.sight.why)
	if !w.First.IsZero() {
		how := "absent"
		if w.Positive {
			how = "terminated"
		}
		add("seen %s first %s, last %s", how, stamp(w.First), stamp(w.Last))
	}
	if !w.Fenced.IsZero() {
		add("out of service since %s, %d volumes attached", stamp(w.Fenced), x.in.Attached[c.node.Name])
	}
	if a := w.Asked; !a.At.IsZero() {
		said := string(a.Said)
		if said == "" {
			said = "unknown"
		}
		add("asked for it by ID, the cloud said %s at %s (%s)", said, stamp(a.At), a.Why)
	}
	if !w.Pulse.Still.IsZero() {
		add("its Lease has stood still since %s, by this agent's clock", stamp(w.Pulse.Still))
	}
	if c.due.After(time.Time{}) {
		add("looked at again %s", stamp(c.due))
	}
}
