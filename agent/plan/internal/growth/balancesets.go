package growth

import (
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// JudgeBalance holds the groups that are left out of the set that they were put into. Where
// most groups of a set are alike the others are held; where no kind of machine is the most
// frequent one, as in a set of two, nothing tells which group is the odd one, and each group
// is held with the groups that differ from it.
// It costs the groups of a set times the kinds of machines among them.
func JudgeBalance(w *round.State) {
	sets := map[string][][]int{} // by set, its groups by kind
	for i := range w.Groups {
		if g := &w.Groups[i]; g.Balance != "" && g.Template.Unknown == "" {
			sets[g.Balance] = sortIn(w, sets[g.Balance], i)
		}
	}
	for set, kinds := range sets {
		most := mostFrequent(kinds)
		for k, kind := range kinds {
			others := kinds[max(most, 0)]
			if most < 0 {
				others = slices.Concat(slices.Delete(slices.Clone(kinds), k, k+1)...)
			}
			for _, i := range kind {
				if k != most {
					holdUnlike(w, i, others, set)
				}
			}
		}
	}
}

// sortIn adds a group to the first kind whose first group has machines like it.
func sortIn(w *round.State, kinds [][]int, i int) [][]int {
	for k := range kinds {
		if w.Unlike(kinds[k][0], i) == "" {
			kinds[k] = append(kinds[k], i)
			return kinds
		}
	}
	return append(kinds, []int{i})
}

// mostFrequent is the kind with the most groups; -1: two kinds have equally many.
func mostFrequent(kinds [][]int) int {
	most, tie := 0, false
	for k := 1; k < len(kinds); k++ {
		switch {
		case len(kinds[k]) > len(kinds[most]):
			most, tie = k, false
		case len(kinds[k]) == len(kinds[most]):
			tie = true
		}
	}
	if tie {
		return -1
	}
	return most
}

// holdUnlike holds a group that differs from others of its set, with the first difference.
func holdUnlike(w *round.State, i int, others []int, set string) {
	var names []string
	why := ""
	for _, o := range others {
		if difference := w.Unlike(o, i); difference != "" {
			names = append(names, string(w.Groups[o].ID))
			if why == "" {
				why = difference
			}
		}
	}
	if len(names) > 0 {
		w.Held("group", string(w.Groups[i].ID), decision.RuleBalance, "not balanced with %s of set %s: %s; put groups with like machines into a set",
			groupNames(names), strings.TrimSpace(set), why)
	}
}

// groupNames writes some groups as a person would: "groups a, b and c".
func groupNames(names []string) string {
	switch n := len(names); {
	case n == 1:
		return "group " + names[0]
	case n > maxNames:
		return "groups " + strings.Join(names[:maxNames], ", ") + " and others"
	default:
		return "groups " + cluster.InWords(names)
	}
}

// maxNames is how many names a sentence has at most.
const maxNames = 8
