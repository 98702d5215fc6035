package worlds

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/yardstick"
)

var (
	firstSeed   = flag.Uint64("seed", 1, "seed of the first world; 1 to 60 are those of development")
	count       = flag.Int("worlds", 6, "how many worlds TestWorlds plays")
	mixes       = flag.Int("mixes", 12, "how many mixes TestMixes plays")
	rules       = flag.Bool("rules", true, "let the simple rules play too")
	peers       = flag.String("peers", "", "programs that play too, separated by commas; see Question")
	constrained = flag.Bool("constrained", false, "TestWorlds plays the worlds of TestOddWorlds")
	unpriced    = flag.Bool("unpriced", false, "do not tell the agent the prices; the rules know them")
)

var judgeProgram string

func TestMain(m *testing.M) {
	if os.Getenv(peerMode) != "" {
		os.Exit(answer())
	}
	flag.Parse()
	os.Exit(oracle.WithJudge(func(program string) int {
		judgeProgram = program
		return m.Run()
	}))
}

// tally sums up what one buyer did.
type tally struct {
	first, left, stuck, claimed, refused, lost, rounds, waves, dearer int
	logs                                                              float64 // of our price by its
	priced                                                            int
	took                                                              []time.Duration
}

// TestWorlds plays drawn worlds and prints what each buyer paid. It fails where the engine
// leaves pods that a rule helps, and where it claims a machine for a pod that kube-scheduler's filters keep off it.
func TestWorlds(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	names, buyers := []string{"ours", "cluster autoscaler", "karpenter"}, []buyer{Ours, ClusterAutoscaler, Karpenter}
	if !*rules {
		names, buyers = names[:1], buyers[:1]
	}
	for program := range strings.SplitSeq(*peers, ",") {
		if program == "" {
			continue
		}
		p, err := StartPeer(t.Context(), program)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		names, buyers = append(names, filepath.Base(program)), append(buyers, p.Buy)
	}
	all := make([]tally, len(buyers))
	draw := Draw
	if *constrained {
		draw = DrawOdd
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(*count); seed++ {
		w := draw(seed)
		var line strings.Builder
		fmt.Fprintf(&line, "seed %d: %d pods, %d classes, %d tied, %d groups, %d nodes, %d waves", seed, w.Pods(), w.Classes, len(w.Tie), len(w.Groups), len(w.Nodes), len(w.Waves))
		results := make([]Result, len(buyers))
		for i, buy := range buyers {
			w := draw(seed)
			w.Unpriced = *unpriced
			if results[i], err = Play(j, w, buy); err != nil {
				t.Fatal(err)
			}
			r := &results[i]
			fmt.Fprintf(&line, "\n  %-18s price %8.3f, %3d machines, %d rounds, %d of %d left after the first, %d in the end, slowest decision %s %s",
				names[i], r.Price, r.Machines, r.Rounds, r.LeftFirst, r.First, r.Left, r.Slowest.Round(time.Millisecond/10), r.Said)
			all[i].add(&results[0], r, len(w.Waves))
		}
		t.Log(line.String())
		if results[0].Refused > 0 {
			t.Errorf("seed %d: %d of %d claims are refused", seed, results[0].Refused, results[0].Claimed)
		}
		for i := range results[1:] {
			if results[i+1].Left < results[0].Left {
				t.Errorf("seed %d: %d pods left, %s leaves %d", seed, results[0].Left, names[i+1], results[i+1].Left)
			}
		}
	}
	for i := range all {
		t.Logf("%-18s %s", names[i], all[i].String())
	}
}

func (a *tally) add(ours, r *Result, waves int) {
	a.first, a.left, a.stuck, a.lost, a.rounds = a.first+r.First, a.left+r.LeftFirst, a.stuck+r.Stuck, a.lost+r.Left, a.rounds+r.Rounds
	a.claimed, a.refused = a.claimed+r.Claimed, a.refused+r.Refused
	if r.Rounds > 0 {
		a.waves += waves
	}
	a.took = append(a.took, r.Slowest)
	if ours.Price > 0 && r.Price > 0 && r.Left <= ours.Left {
		a.priced++
		a.logs += math.Log(ours.Price / r.Price)
		if ours.Price > r.Price*1.01 {
			a.dearer++
		}
	}
}

func (a *tally) String() string {
	slices.Sort(a.took)
	return fmt.Sprintf("%d of %d pods left after the first purchase (%.2f %%; %.2f %% without those that no purchase of their wave helped), %d in the end; %d of %d claims refused; %d purchases in %d waves (%.2f); ours costs %.3f of it (geometric mean of %d), dearer by more than 1 %% in %d; slowest decision: median %s, maximum %s",
		a.left, a.first, 100*float64(a.left)/float64(max(a.first, 1)), 100*float64(a.left-a.stuck)/float64(max(a.first-a.stuck, 1)), a.lost, a.refused, a.claimed, a.rounds, a.waves, float64(a.rounds)/float64(max(a.waves, 1)),
		math.Exp(a.logs/float64(max(a.priced, 1))), a.priced, a.dearer, a.took[len(a.took)/2].Round(time.Millisecond/10), a.took[len(a.took)-1].Round(time.Millisecond/10))
}

// TestFoundWorlds: after the first purchase kube-scheduler leaves nobody in the worlds in
// which it once did.
func TestFoundWorlds(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	worlds := map[string]*World{"spread beside anti-affinity": foundSpread()}
	for _, seed := range []uint64{9, 11, 27} { // it left 26, 20 and 3 pods
		worlds[fmt.Sprint("seed ", seed)] = kept(t, fmt.Sprint(seed))
	}
	for name, w := range worlds {
		r, err := Play(j, w, Ours)
		if err != nil {
			t.Fatal(err)
		}
		if r.Rounds != 1 || r.Left > 0 {
			t.Errorf("%s: %d purchases, %d of %d pods left after the first, %d in the end: %s", name, r.Rounds, r.LeftFirst, r.First, r.Left, r.Said)
		}
	}
}

// TestFoundClaims: a purchase claims no machine for a pod that kube-scheduler's filters keep off it, in the worlds in which it once did
// (for 24, 11, 27 and 16 pods; in 100741 for one that had room only beside pods that it had given that room to). In 73140, a claim is refused in one order of binding and allowed in another. The machines that such pods lack are part of the purchase, so that fewer pods are left after it (7 and 18,
// where it was 10 and 27; 3 of 75335 since the search keeps steps for the expanders after the first one, which other worlds do not show). One board in place of
// the judge leaves 34 of 1,034 in 65033, where it was 7, and 6 in 100741, where it was 4; drawn worlds leave as many as before (issue 54).
func TestFoundClaims(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for seed, most := range map[uint64]int{65033: 34, 65691: 26, 65734: 18, 73140: 26, 75335: 3, 100741: 6} {
		if r, err := Play(j, kept(t, fmt.Sprint(seed)), Ours); err != nil {
			t.Fatal(err)
		} else if r.Refused > 0 || r.Claimed == 0 || r.LeftFirst > most {
			t.Errorf("seed %d: %d of %d claims are refused, %d pods are left, at most %d are right: %s", seed, r.Refused, r.Claimed, r.LeftFirst, most, r.Said)
		}
	}
}

// TestFoundKeepsOff: pods that keep off the machines of others do not make a purchase dear. It cost 1.2 to 2.3 times what Cluster
// Autoscaler's rule pays, so that they need no second purchase; it costs 1.17 times as much on one board where 12 keep off 8.
func TestFoundKeepsOff(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, n := range [][2]int{{12, 8}, {40, 30}, {8, 20}, {100, 60}} {
		var price [2]float64
		for i, buy := range []buyer{Ours, ClusterAutoscaler} {
			r, err := Play(j, foundKeepsOff(n[0], n[1]), buy)
			if err != nil {
				t.Fatal(err)
			}
			if price[i] = r.Price; r.Left > 0 || r.Refused > 0 {
				t.Errorf("%d and %d pods: %d are left, %d claims are refused: %s", n[0], n[1], r.Left, r.Refused, r.Said)
			}
		}
		if price[0] > 1.17*price[1] {
			t.Errorf("%d and %d pods cost %.2f, %.2f by Cluster Autoscaler's rule", n[0], n[1], price[0], price[1])
		}
	}
}

// TestPurchasesAreWhole: pods that a spread lets in one after the other get one purchase a
// wave. It once was one or two machines at a time, fourteen times.
func TestPurchasesAreWhole(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	w := kept(t, "14005")
	r, err := Play(j, w, Ours)
	if err != nil {
		t.Fatal(err)
	}
	if r.Rounds > len(w.Waves) || r.Left > 0 {
		t.Errorf("%d purchases in %d waves, %d pods left in the end: %s", r.Rounds, len(w.Waves), r.Left, r.Said)
	}
}

// TestPools plays a pool of 40 machine types in three zones: 120 groups, more than are bound one by one before the dearer ones are left out.
func TestPools(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	all := make([]tally, 3)
	for seed := *firstSeed; seed < *firstSeed+uint64(*mixes); seed++ {
		var results [3]Result
		for i, buy := range []buyer{Ours, ClusterAutoscaler, Karpenter} {
			if results[i], err = Play(j, ofMix(yardstick.GeneratePool(seed, 300)), buy); err != nil {
				t.Fatal(err)
			}
			all[i].add(&results[0], &results[i], 1)
		}
		t.Logf("seed %d: price %.3f in %d rounds (%d left), Cluster Autoscaler's rule %.3f in %d, Karpenter's %.3f in %d; %s", seed, results[0].Price, results[0].Rounds, results[0].Left, results[1].Price, results[1].Rounds, results[2].Price, results[2].Rounds, results[0].Slowest)
	}
	for i, name := range []string{"ours", "cluster autoscaler", "karpenter"} {
		t.Logf("%-18s %s", name, &all[i])
	}
}

// TestMixes plays the mixes of package yardstick, where all pods are of one second and
// kube-scheduler takes class after class: nobody is left, and few mixes cost more than by a
// simple rule that helps as many.
func TestMixes(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	all, dearer := make([]tally, 3), 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*mixes); seed++ {
		var results [3]Result
		for i, buy := range []buyer{Ours, ClusterAutoscaler, Karpenter} {
			if results[i], err = Play(j, ofMix(yardstick.Generate(seed, 300)), buy); err != nil {
				t.Fatal(err)
			}
			all[i].add(&results[0], &results[i], 1)
		}
		ours, above := &results[0], false
		for i := range results {
			r := &results[i]
			if i > 0 && ours.Left > r.Left {
				t.Errorf("seed %d: %d pods have no place in the end, %d by a simple rule", seed, ours.Left, r.Left)
			}
			above = above || ours.Left == r.Left && ours.Price > 1.01*r.Price
		}
		if above {
			dearer++
			t.Logf("seed %d: price %.3f in %d rounds, Cluster Autoscaler's rule %.3f in %d, Karpenter's %.3f in %d", seed, ours.Price, ours.Rounds, results[1].Price, results[1].Rounds, results[2].Price, results[2].Rounds)
		}
	}
	for i, name := range []string{"ours", "cluster autoscaler", "karpenter"} {
		t.Logf("%-18s %s", name, &all[i])
	}
	if dearer*10 > *mixes {
		t.Errorf("%d of %d mixes cost more than by a simple rule (seed %d)", dearer, *mixes, *firstSeed)
	}
}
