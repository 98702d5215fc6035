package growth

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// neverGrows is a value of Policy.ReplaceHaltedGrowth.
const neverGrows = "never"

// HoldHalted keeps groups from growing of which the rollout of the present source is halted: their next machines would be of that source.
// Where pods wait that no other group takes, such a group grows all the same, unless the operator wants it never. It costs G for each class
// of pods that waits, where there is such a group.
func HoldHalted(w *round.State) {
	var halted []int
	for i := range w.Groups {
		if why := haltOf(w, &w.Groups[i]); why != "" && w.Groups[i].CanGrow() {
			halted = append(halted, i)
			w.Groups[i].Growth = decision.GrowthLimit{Rule: decision.RuleHalted, Why: "its next machine would be of the source of which the rollout is halted: " + why}
		}
	}
	for _, i := range halted {
		g := &w.Groups[i]
		if k := onlyHere(w, i); k >= 0 && w.Policy.ReplaceHaltedGrowth != neverGrows {
			g.Growth = decision.GrowthLimit{}
			w.Held("group", string(g.ID), decision.RuleHalted, "it may grow by machines of the source of which the rollout is halted: no other group takes pod %s", w.Demands[k].Keys[0])
		} else if len(w.Demands) > 0 {
			w.Held("group", string(g.ID), decision.RuleHalted, "it does not grow: %s", g.Growth.Why)
		}
	}
}

// haltOf says why the rollout of a group's present source is halted, as the last round left it; empty: it is not.
func haltOf(w *round.State, g *round.Group) string {
	for _, list := range [][]decision.Halt{w.Memory.Halts, w.Policy.Halts} {
		for _, h := range list {
			if h.Group == g.ID && len(g.Template.Source) > 0 && h.Source == g.Template.Source.Digest() && w.Policy.Rollouts[g.ID].Resumed != h.Source {
				return h.Why
			}
		}
	}
	return ""
}

// onlyHere is the first demand that a group takes and no group that can grow; -1: there is none.
func onlyHere(w *round.State, here int) int {
	takes := func(class, g int) bool {
		empty, shape := w.Template(&w.Groups[g])
		return w.Takes(class, g, shape) && binpack.Fits(empty, w.Dimensions.Class(class))
	}
	for k := range w.Demands {
		d := &w.Demands[k]
		if len(d.Keys) == 0 || !takes(d.Class, here) {
			continue
		}
		elsewhere := false
		for o := range w.Groups {
			elsewhere = elsewhere || o != here && w.Groups[o].CanGrow() && takes(d.Class, o)
		}
		if !elsewhere {
			return k
		}
	}
	return -1
}
