package worlds

import (
	"flag"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

var spreadWorlds = flag.Int("spread", 60, "how many worlds TestSpreadWorlds plays")

// TestSpreadWorlds plays worlds with zone spread, nodes with room and equal groups: at most one machine in 100 more is bought than
// the fewest with which kube-scheduler leaves no more pods, and none in the round after a purchase. Each third world is played by another
// expander too. Packings that no search corrects may have four in 100 more.
func TestSpreadWorlds(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var all, byOthers fewestTally
	others := []string{"least-nodes", "most-pods", "random", "price", "priority"}
	for seed := *firstSeed; seed < *firstSeed+uint64(*spreadWorlds); seed++ {
		all.play(t, j, seed, "")
		if seed%3 == 0 {
			byOthers.play(t, j, seed, others[seed/3%uint64(len(others))])
		}
	}
	all.check(t, "the default expander", 1)
	byOthers.check(t, "other expanders", 4)
}

// fewestTally sums up how many machines were bought and how many would do.
type fewestTally struct{ worlds, more, bought, fewest, purchases, left int }

// play plays the world of a seed. It fails where machines would help a pod that is left in the end, and where the round after a purchase buys
// again.
func (a *fewestTally) play(t *testing.T, j *oracle.Judge, seed uint64, expander string) {
	draw := func() *World {
		w := DrawSpread(seed)
		w.Expander, w.Unpriced = expander, expander != "price"
		return w
	}
	w := draw()
	p := &player{w: w, judge: j, seed: seed, now: start, again: true}
	waiting, err := p.play(Ours)
	if err != nil {
		t.Fatal(err)
	}
	helpable, err := p.helpable(waiting)
	if err != nil {
		t.Fatal(err)
	}
	r := p.result
	if helpable > 0 || r.Again > 0 {
		t.Errorf("seed %d, expander %q: %d pods are left in the end, and machines would help %d of them; %d machines more in the round after a purchase: %s", seed, expander, r.Left, helpable, r.Again, r.Said)
	}
	n, best, err := fewest(j, draw, r.Machines, r.Left)
	if err != nil {
		t.Fatal(err)
	}
	a.worlds, a.bought, a.fewest, a.purchases, a.left = a.worlds+1, a.bought+r.Machines, a.fewest+n, a.purchases+r.Rounds, a.left+r.Left
	if r.Machines > n {
		a.more++
		t.Logf("seed %d, expander %q: %d pods, %d groups: %d machines, %d would do: %v; %d of %d left after the first purchase, %d in the end: %s", seed, expander, w.Pods(), len(w.Groups), r.Machines, n, best, r.LeftFirst, r.First, r.Left, r.Said)
	}
}

func (a *fewestTally) check(t *testing.T, name string, percent int) {
	t.Logf("%s: %d machines in %d purchases, %d would do; more than would do in %d of %d worlds (first seed %d); %d pods have no place", name, a.bought, a.purchases, a.fewest, a.more, a.worlds, *firstSeed, a.left)
	if a.fewest == 0 || (a.bought-a.fewest)*100 > a.fewest*percent {
		t.Errorf("%s: %d machines, and %d would do", name, a.bought, a.fewest)
	}
}
