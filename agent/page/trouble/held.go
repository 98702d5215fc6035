package trouble

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	csr "github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// remedyOf is what an operator does about a rule, in words for a screen that shows the reason above.
func remedyOf(rule string) string {
	remedy := cmp.Or(decision.RuleByID(rule).Remedy, csr.RuleByID(rule).Remedy, reaper.RuleByID(rule).Remedy)
	return strings.ReplaceAll(remedy, "field WHY", "reason above")
}

// others are the reasons that have a title, one trouble for each title and rule.
func others(f Facts) (out []Trouble) {
	type key struct{ rule, kind string }
	names, first, pods := map[key][]string{}, map[key]decision.Held{}, map[key]int{}
	var order []key
	for _, h := range f.Held {
		if decision.RuleByID(h.Rule).Title == "" {
			continue
		}
		k := key{h.Rule, h.Kind}
		if len(names[k]) == 0 {
			order, first[k] = append(order, k), h
		}
		names[k] = append(names[k], h.Name)
		pods[k] += max(h.Count, 1)
	}
	slices.SortStableFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.rule[:1], b.rule[:1]), cmp.Compare(len(a.rule), len(b.rule)), cmp.Compare(a.rule, b.rule))
	})
	for _, k := range order {
		h := first[k]
		t := Trouble{What: decision.RuleByID(k.rule).Title, Cause: h.Name + ": " + h.Why, Rule: h.Rule, Remedy: remedyOf(h.Rule), Command: "autoscaler-agent explain " + h.Kind + " " + h.Name}
		what := named(h.Kind, names[k])
		if h.Kind == "pod" {
			what = "pod " + h.Name
			if n := pods[k]; n > 1 {
				what += " (and " + cluster.Plural(n-1, "more pod") + ")"
			}
		}
		if h.Kind == "cluster" {
			t.Cause, t.Command = h.Why, "autoscaler-agent plan"
		}
		t.What = capital(strings.ReplaceAll(t.What, "%s", what))
		out = append(out, t)
	}
	return out
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// unhelped are the pods that no group helps now (U5), told apart by what would help: a higher limit, a group that can
// grow again, or another group.
type unhelped struct{ limited, stuck, alone kind }

func podsOf(f Facts) (out unhelped) {
	for _, h := range f.Held {
		if h.Kind != "pod" || h.Rule != decision.RuleNoGroup {
			continue
		}
		switch rules := rulesOf(h); {
		case len(h.Groups) > 0 && rules[""]: // a group grows for them, and the rest waits for the next round
		case rules[decision.RuleMax] || rules[decision.RuleTotals]:
			out.limited.add(h, func(rule string) bool { return rule == decision.RuleMax || rule == decision.RuleTotals })
		case slices.ContainsFunc(slices.Collect(maps.Keys(rules)), ofGroup):
			out.stuck.add(h, ofGroup)
		default:
			out.alone.add(h, func(string) bool { return true })
		}
	}
	return out
}

func (u *unhelped) troubles() (out []Trouble) {
	limited, stuck, alone := u.limited, u.stuck, u.alone
	if limited.pods > 0 {
		t := limited.trouble()
		t.What = capital(named("group", limited.groups)) + be(limited.groups, " is at its limit, and ", " are at their limits, and ") + waits(limited.pods)
		t.Remedy = "Raise the maximum in the cloud or in groups.yaml, if the group is meant to be larger."
		if t.Rule == decision.RuleTotals {
			t.Remedy = remedyOf(t.Rule)
		}
		out = append(out, t)
	}
	if stuck.pods > 0 {
		t := stuck.trouble()
		t.What = capital(waits(stuck.pods)) + ", and " + named("group", stuck.groups) + " cannot grow now"
		out = append(out, t)
	}
	if alone.pods > 0 {
		t := alone.trouble()
		t.What = "No node group can serve " + cluster.Plural(alone.pods, "pod")
		out = append(out, t)
	}
	return out
}

func waits(n int) string {
	if n == 1 {
		return "1 pod waits"
	}
	return cluster.Plural(n, "pod") + " wait"
}

func be(list []string, one, many string) string {
	if len(slices.Compact(slices.Sorted(slices.Values(list)))) == 1 {
		return one
	}
	return many
}

// ofGroup tells a rule of a group's own state from one of the pod's shape.
func ofGroup(rule string) bool { return strings.HasPrefix(rule, "U") }

func rulesOf(h decision.Held) map[string]bool {
	out := map[string]bool{}
	for _, g := range h.Groups {
		out[g.Rule] = true
	}
	return out
}

// kind is pods that wait for the same kind of cause.
type kind struct {
	pods, classes int
	groups        []string // whose rule it is
	rules         map[string]int
	first         decision.Held
}

// only tells that no other rule decides.
func (k *kind) only(rules ...string) bool {
	for r := range k.rules {
		if !slices.Contains(rules, r) {
			return false
		}
	}
	return true
}

func (k *kind) add(h decision.Held, decides func(rule string) bool) {
	if k.classes == 0 {
		k.first, k.rules = h, map[string]int{}
	}
	k.classes++
	k.pods += max(h.Count, 1)
	for _, g := range h.Groups {
		if decides(g.Rule) {
			k.groups = append(k.groups, g.Name)
			k.rules[g.Rule]++
		}
	}
}

// trouble has the first pod's reasons, and the remedy of the rule that is named most often.
func (k *kind) trouble() Trouble {
	rule, most := "", 0
	for _, r := range slices.Sorted(maps.Keys(k.rules)) {
		if k.rules[r] > most {
			rule, most = r, k.rules[r]
		}
	}
	cause := k.first.Name
	if k.first.Count > 1 {
		cause += " and " + cluster.Plural(k.first.Count-1, "more pod")
	}
	cause += ": " + k.first.Why
	if k.classes > 1 {
		cause = cluster.Plural(k.classes, "kind") + " of pods, first " + cause
	}
	remedy := cmp.Or(remedyOf(rule), "Nothing: it passes by itself, as the reason above says.")
	if rule == "" {
		remedy = "Make a node group that can host such pods, or give the agent the name or tag of one that there is (autoscaler-agent check)."
	}
	return Trouble{Cause: cause, Rule: cmp.Or(rule, decision.RuleNoGroup), Remedy: remedy, Command: "autoscaler-agent explain pod " + k.first.Name}
}
