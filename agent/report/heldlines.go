package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// logLine is one line of the journal about what a round did not do.
type logLine struct {
	text   string
	fields logrus.Fields
	detail bool // told elsewhere, or routine: for debug only
}

// heldClass are things that may share a line.
type heldClass struct{ kind, rule, why string }

// linesOf turns what is held into lines: things that are held for one reason share a line
// when they are many, and so do the reasons of one rule when those are many.
func linesOf(held []decision.Held) []logLine {
	var out []logLine
	many := map[heldClass][]decision.Held{}
	var order []heldClass
	for _, h := range held {
		c := heldClass{h.Kind, h.Rule, plain(ownReason(h))}
		if many[c] == nil {
			order = append(order, c)
		}
		many[c] = append(many[c], h)
	}
	lines := map[heldClass]int{} // by kind and rule
	left := map[heldClass][]decision.Held{}
	var crowded []heldClass
	for _, c := range order {
		all, list := heldClass{kind: c.kind, rule: c.rule}, many[c]
		need := 1
		if len(list) <= namedHeld {
			need = len(list)
		}
		switch {
		case lines[all]+need > reasonLines:
			if left[all] == nil {
				crowded = append(crowded, all)
			}
			left[all] = append(left[all], list...)
			continue
		case need < len(list):
			out = append(out, sharedLine(list, reason(list[0])))
		default:
			for _, h := range list {
				out = append(out, lineOf(h))
			}
		}
		lines[all] += need
	}
	for _, all := range crowded {
		list := left[all]
		if len(list) == 1 {
			out = append(out, lineOf(list[0]))
			continue
		}
		out = append(out, sharedLine(list, "reasons differ; of "+list[0].Name+": "+reason(list[0])))
	}
	return out
}

// lineOf is the line about one held thing.
func lineOf(h decision.Held) logLine {
	r := logLine{fields: logrus.Fields{"rule": h.Rule, "why": reason(h)}, detail: isDetail(h.Rule)}
	name := h.Name
	if h.Kind == "cluster" {
		name = ""
	} else {
		r.fields[h.Kind] = name
	}
	r.text = strings.TrimSpace(heldVerb(r.detail) + h.Kind + " " + name)
	if h.Count > 1 {
		r.text += fmt.Sprintf(" and %d more", h.Count-1)
	}
	return r
}

// sharedLine is one line about many. Its field has every name, so that the journal finds it
// by each.
func sharedLine(list []decision.Held, why string) logLine {
	first := list[0]
	names, count := make(Names, len(list)), 0
	for i, h := range list {
		names[i] = h.Name
		count += max(h.Count, 1)
	}
	r := logLine{fields: logrus.Fields{"rule": first.Rule, "why": why, first.Kind: names}, detail: isDetail(first.Rule)}
	r.text = fmt.Sprintf("%s%d %ss, %s and %d more", heldVerb(r.detail), count, first.Kind, first.Name, count-1)
	return r
}

func isDetail(rule string) bool {
	level := decision.RuleByID(rule).Level
	return level == decision.Debug || level == decision.Elsewhere
}

// heldVerb keeps "held" for what is held: a pod that will be scheduled is not.
func heldVerb(detail bool) string {
	if detail {
		return ""
	}
	return "held "
}

// Names are several names in one field of a log line: the journal gets each as a value of its
// own, a text the first few.
type Names []string

// String is the first names and how many more there are.
func (n Names) String() string {
	if len(n) <= namedHeld {
		return strings.Join(n, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(n[:namedHeld], ", "), len(n)-namedHeld)
}

// reason is why something is held, as a line says it. What many groups say is summed up, as
// kube-scheduler does with nodes: "31 groups: node(s) didn't match Pod's node affinity; 2
// groups: Insufficient cpu". A few groups are named.
func reason(h decision.Held) string {
	if len(h.Groups) <= namedHeld {
		return h.Why
	}
	type said struct {
		why    string
		groups []decision.Refusal
		differ bool // in their numbers
	}
	var reasons []*said
	at := map[string]*said{}
	for _, g := range h.Groups {
		key := plain(g.Why)
		if at[key] == nil {
			at[key] = &said{why: g.Why}
			reasons = append(reasons, at[key])
		}
		at[key].groups = append(at[key].groups, g)
		at[key].differ = at[key].differ || g.Why != at[key].why
	}
	slices.SortStableFunc(reasons, func(a, b *said) int { return cmp.Compare(len(b.groups), len(a.groups)) })
	var parts []string
	for i, r := range reasons {
		if i == reasonLines-1 && len(reasons) > reasonLines {
			rest := 0
			for _, r := range reasons[i:] {
				rest += len(r.groups)
			}
			parts = append(parts, fmt.Sprintf("%d groups: %d other reasons (autoscaler-agent explain %s %s)", rest, len(reasons)-i, h.Kind, h.Name))
			break
		}
		switch {
		case len(r.groups) == 1 || r.differ && len(r.groups) <= namedHeld:
			for _, g := range r.groups {
				parts = append(parts, "group "+g.Name+": "+g.Why)
			}
		case r.differ:
			parts = append(parts, fmt.Sprintf("%d groups, such as %s: %s", len(r.groups), r.groups[0].Name, r.why))
		default:
			parts = append(parts, fmt.Sprintf("%d groups: %s", len(r.groups), r.why))
		}
	}
	return strings.Join(parts, "; ")
}

// HeldText is a held thing as a line for people; Plan.String has the whole of it.
func HeldText(h decision.Held) string {
	h.Why = reason(h)
	return h.String()
}
