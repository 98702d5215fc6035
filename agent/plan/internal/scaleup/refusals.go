package scaleup

import (
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// refusalLists keeps equal lists of refusals once. Thousands of classes can be refused by hundreds of groups, mostly in
// the same words.
type refusalLists struct {
	byWords map[string]refusalList // the rules follow from the words
	list    []decision.Refusal     // scratch
	words   []byte                 // scratch
}

type refusalList struct {
	refusals []decision.Refusal
	words    string
}

// Refusals says for every group why it does not help a class; grown is how much each
// grows in this round.
func (w *Planner) Refusals(class int, grown []int) []decision.Refusal {
	return w.appendRefusals(nil, class, grown)
}

func (w *Planner) appendRefusals(out []decision.Refusal, class int, grown []int) []decision.Refusal {
	for i := range w.Groups {
		g := &w.Groups[i]
		rule, why := w.whyNot(g, class)
		if rule == "" {
			why = "could help, and does not grow in this round"
			if grown[i] > 0 {
				why = fmt.Sprintf("grows by %d in this round", grown[i])
			}
		}
		out = append(out, decision.Refusal{Name: string(g.ID), Rule: rule, Why: why})
	}
	return out
}

// sharedRefusals are the Refusals of a class and the same in one text. Neither may be changed.
func (w *Planner) sharedRefusals(class int, grown []int) (list []decision.Refusal, words string) {
	x := &w.refusals
	x.list = w.appendRefusals(x.list[:0], class, grown)
	x.words = appendWords(x.words[:0], x.list)
	shared, known := x.byWords[string(x.words)]
	if !known {
		if x.byWords == nil {
			x.byWords = map[string]refusalList{}
		}
		shared = refusalList{slices.Clone(x.list), string(x.words)}
		x.byWords[shared.words] = shared
	}
	return shared.refusals, shared.words
}

// appendWords says of every group by name why it does not help.
func appendWords(out []byte, refusals []decision.Refusal) []byte {
	if len(refusals) == 0 {
		return append(out, "there is no node group"...)
	}
	for i, r := range refusals {
		if i > 0 {
			out = append(out, "; "...)
		}
		out = append(out, "group "...)
		out = append(out, r.Name...)
		out = append(out, ": "...)
		out = append(out, r.Why...)
	}
	return out
}

// refusedAs says why a machine of a group with such labels does not take a class.
func (w *Planner) refusedAs(class int, g *round.Group, shape *fit.NodeInfo) (rule, words string) {
	if rule, words := fit.Refused(&w.Snapshot.Classes[class], shape); words != "" {
		return rule, words
	}
	if why := round.Nowhere(&w.Snapshot.Classes[class]); why != "" {
		return fit.RuleVolumeBinding, why
	}
	empty, _ := w.Template(g)
	if rule, words := w.Dimensions.Insufficient(empty, w.Dimensions.Class(class)); words != "" {
		return rule, words
	}
	state := w.buyer.Constraints
	if state == nil || !state.Constrained(class) {
		return "", ""
	}
	mark := state.Mark()
	defer state.Rollback(mark)
	rule, words = state.Refused(class, state.AddNode(shape, g.Template.VolumeLimits))
	if unknown := state.UnknownDomain(class, shape); words == "" && unknown != "" {
		return fit.RuleInterPod, "the group's template says nothing about " + unknown
	}
	return rule, words
}

// whyNot says why a group cannot be grown for a class; an empty rule means that it can.
func (w *Planner) whyNot(g *round.Group, class int) (rule, why string) {
	if g.Template.Unknown == "" {
		_, shape := w.Template(g)
		if rule, words := w.refusedAs(class, g, shape); words != "" {
			return rule, words + w.zonesToBlame(class, g, rule)
		}
	}
	limit := growth.Of(w.State, g, 1)
	return limit.Rule, limit.Why
}
