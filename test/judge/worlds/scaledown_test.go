package worlds

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

var shrinking = flag.Int("shrinking", 300, "how many worlds TestScaleDownUnderSpread draws")

// scaleDownDraws is how many outcomes of kube-scheduler's ties a removal is played with.
const scaleDownDraws = 3

// TestScaleDownUnderSpread asks the agent of each node of drawn worlds whether it may go, and plays its removal with kube-scheduler's own
// framework: cordon, evictions as budgets allow, the end of the Node object. Of a node that goes every pod is bound in the end, but for one
// in 200 that kube-scheduler's scores leave without room (that is no matter of spread); of one that topology spread alone keeps, some pod
// is not, whatever kube-scheduler's ties, but for one in 100; and no idle node takes a zone from a workload with it.
func TestScaleDownUnderSpread(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	first := *firstSeed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	counts := map[string]int{}
	for seed := first; seed < first+uint64(*shrinking); seed++ {
		w, err := DrawShrinking(j, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range w.Nodes {
			var draws []Removal
			for draw := range uint64(scaleDownDraws) {
				r, err := w.Remove(j, n.Name, draw, false)
				if err == nil && r.Left > 0 && w.Ask(n.Name, true).Goes {
					if r, err = w.Remove(j, n.Name, draw, true); r.Left == 0 {
						counts["draws in which kube-scheduler's scores leave no room"]++
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				draws = append(draws, r)
			}
			for _, requested := range []bool{true, false} {
				v := w.Ask(n.Name, requested)
				switch words := judgeRemoval(v, draws, requested, counts); {
				case words == "":
				case strings.HasPrefix(words, needlessly):
					counts[needlessly]++
					t.Logf("seed %d, node %s, requested %v: %s\n%s: %s", seed, n.Name, requested, words, v.Rule, v.Why)
				default:
					t.Errorf("seed %d, node %s, requested %v: %s\n%s: %s\n%+v", seed, n.Name, requested, words, v.Rule, v.Why, draws)
				}
			}
		}
	}
	t.Logf("first seed %d: %v", first, counts)
	if scores := counts["draws in which kube-scheduler's scores leave no room"]; scores*200 > counts["goes"]+counts["goes, with pods that wait"] {
		t.Errorf("%d draws in which pods have no room after kube-scheduler's scores: more than one in 200", scores)
	}
	if n := counts[needlessly]; n*100 > counts["kept by spread"]+counts["kept by a budget"] {
		t.Errorf("%d nodes stay needlessly: more than one in 100", n)
	}
	for _, some := range []string{"goes", "goes, with pods that wait", "kept by spread", "kept by a budget", "kept for a zone"} {
		if counts[some] == 0 {
			t.Errorf("no node %s: the worlds show nothing", some)
		}
	}
}

// needlessly begins the words of a node that stays and could go: the relocation's first fit ended where kube-scheduler's scores did not.
const needlessly = "needlessly: "

// judgeRemoval compares what the agent says with what happens; empty: they agree.
func judgeRemoval(v Verdict, draws []Removal, requested bool, counts map[string]int) string {
	if v.Goes && !requested && !slices.ContainsFunc(draws, func(r Removal) bool { return !lost(r) }) { // a tie of kube-scheduler's is nobody's wish
		return "it goes, and a zone with it"
	}
	fails := func(r Removal) bool { return r.Left > 0 || r.Stuck > 0 }
	switch {
	case v.Goes && slices.ContainsFunc(draws, fails):
		return "it goes, and its pods do not find a place"
	case v.Rule == decision.RuleBlocked && strings.Contains(v.Why, "would not end") && !slices.ContainsFunc(draws, func(r Removal) bool { return r.Stuck > 0 }):
		return needlessly + "it stays for a budget that would let it go"
	case v.Rule == decision.RuleNoRoom && strings.Contains(v.Why, "its topology spread keeps it off") && !slices.ContainsFunc(draws, fails):
		return needlessly + "it stays for topology spread, and its pods find a place"
	}
	switch {
	case v.Goes && draws[0].Late > 0:
		counts["goes, with pods that wait"]++
	case v.Goes:
		counts["goes"]++
	case v.Rule == decision.RuleBlocked:
		counts["kept by a budget"]++
	case strings.Contains(v.Why, "redundancy"):
		counts["kept for a zone"]++
	case strings.Contains(v.Why, "topology spread"):
		counts["kept by spread"]++
	default:
		counts[v.Rule]++
	}
	return ""
}

// lost tells whether a workload has pods in fewer zones than before.
func lost(r Removal) bool {
	for app, n := range r.Before {
		if r.After[app] < n {
			return true
		}
	}
	return false
}
