package worlds

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

var (
	odd    = flag.Int("odd", 12, "how many worlds TestOddWorlds plays")
	staged = flag.Int("staged", 8, "how many worlds TestMachinesJoinInStages plays")
)

// TestOddWorlds plays worlds whose pods have constraints that the simple rules do not know. It fails where the agent ends
// while a machine more would help a pod that is left.
func TestOddWorlds(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var all tally
	for seed := *firstSeed; seed < *firstSeed+uint64(*odd); seed++ {
		w := DrawOdd(seed)
		r, helpable := playToEnd(t, j, w, 1)
		t.Logf("seed %d: %d pods, %d classes, %d groups, %d nodes, %d waves: price %8.3f, %3d machines, %d rounds, %d of %d left after the first, %d in the end (%d stuck), slowest decision %s %s", seed, w.Pods(), w.Classes, len(w.Groups), len(w.Nodes), len(w.Waves), r.Price, r.Machines, r.Rounds, r.LeftFirst, r.First, r.Left, r.Stuck, r.Slowest.Round(time.Millisecond/10), r.Said)
		if helpable > 0 {
			t.Errorf("seed %d: %d pods are left in the end, and machines would help %d of them", seed, r.Left, helpable)
		}
		all.add(&r, &r, len(w.Waves))
	}
	t.Logf("ours: %s", all.String())
}

// playToEnd lets the agent play a world in which machines join in stages, and tells how many of the pods that are left machines would help.
func playToEnd(t *testing.T, j *oracle.Judge, w *World, stages int) (Result, int) {
	p := &player{w: w, judge: j, seed: w.Seed, now: start.Add(time.Minute), stages: stages}
	left, err := p.play(Ours)
	if err != nil {
		t.Fatal(err)
	}
	helpable, err := p.helpable(left)
	if err != nil {
		t.Fatal(err)
	}
	return p.result, helpable
}

// TestFoundOddWorlds: one purchase is enough in the worlds in which it once was not. In 27 the
// machines were bought that pods would fill the largest first, although kube-scheduler takes them in another order; in 3 pods
// wait for others that are later in the queue.
func TestFoundOddWorlds(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, seed := range []uint64{3, 27} {
		if r, helpable := playToEnd(t, j, kept(t, fmt.Sprint("odd-", seed)), 1); r.Rounds != 1 || helpable > 0 {
			t.Errorf("seed %d: %d purchases, %d of %d pods left after the first, %d in the end, of which machines would help %d: %s", seed, r.Rounds, r.LeftFirst, r.First, r.Left, helpable, r.Said)
		}
	}
}

// TestMachinesJoinInStages: while two thirds and then one third of the machines have still to join, kube-scheduler binds pods on
// those that are there in another way than was expected. Nearly nothing is bought for that: the machines that come have
// room for the others.
func TestMachinesJoinInStages(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	machines, early := 0, 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*staged); seed++ {
		r, helpable := playToEnd(t, j, Draw(seed), 3)
		if helpable > 0 {
			t.Errorf("seed %d: %d pods are left in the end, and machines would help %d of them", seed, r.Left, helpable)
		}
		t.Logf("seed %d: price %8.3f, %3d machines, %d of them bought before all had joined, %d purchases beside: %s", seed, r.Price, r.Machines, r.Early, r.Rounds, r.Said)
		machines, early = machines+r.Machines, early+r.Early
	}
	t.Logf("%d of %d machines were bought before all had joined", early, machines)
	if early*20 > machines {
		t.Errorf("%d of %d machines were bought while others of the purchase had still to join", early, machines)
	}
}
