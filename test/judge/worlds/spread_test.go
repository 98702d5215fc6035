package worlds

import (
	"flag"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

var (
	spreadWorlds = flag.Int("spread", 30, "how many worlds TestSpreadWorlds plays")
	expander     = flag.String("expander", "", "the expander of TestSpreadWorlds; empty: the default one, and in each third world another")
)

// TestSpreadWorlds plays worlds with zone spread, nodes with room and equal groups: at most one machine in 100 more is bought than
// the fewest with which kube-scheduler leaves no more pods, by the default expander and by others.
func TestSpreadWorlds(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	bought, least, more, rounds, left := 0, 0, 0, 0, 0
	others := []string{"least-nodes", "most-pods", "random", "price", "priority"}
	for seed := *firstSeed; seed < *firstSeed+uint64(*spreadWorlds); seed++ {
		draw := func() *World {
			w := DrawSpread(seed)
			w.Expander = *expander
			if w.Expander == "" && seed%3 == 0 {
				w.Expander = others[seed/3%uint64(len(others))]
			}
			w.Unpriced = w.Expander != "price"
			return w
		}
		w := draw()
		r, helpable := playToEnd(t, j, w, 1)
		if helpable > 0 {
			t.Errorf("seed %d: %d pods are left in the end, and machines would help %d of them", seed, r.Left, helpable)
		}
		n, best, err := fewest(j, draw, r.Machines, r.Left)
		if err != nil {
			t.Fatal(err)
		}
		if bought, least, rounds, left = bought+r.Machines, least+n, rounds+r.Rounds, left+r.Left; r.Machines > n {
			more++
			t.Logf("seed %d, expander %q: %d pods, %d groups, %d nodes, %d waves: %d machines, %d would do: %v; %d rounds, %d left after the first, %d in the end: %s", seed, w.Expander, w.Pods(), len(w.Groups), len(w.Nodes), len(w.Waves), r.Machines, n, best, r.Rounds, r.LeftFirst, r.Left, r.Said)
		}
	}
	t.Logf("%d machines in %d purchases, %d would do; more than would do in %d of %d worlds (first seed %d); %d pods have no place", bought, rounds, least, more, *spreadWorlds, *firstSeed, left)
	if (bought-least)*100 > least {
		t.Errorf("%d machines, and %d would do", bought, least)
	}
}
