package yardstick

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func policy(expander string) decision.Policy {
	return decision.Policy{Expander: expander, ExpendablePodsCutoff: -10, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute,
		BackoffInitial: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour, FreshFor: time.Minute, EnforceMin: true}
}

// verdict is one mix under all rules.
type verdict struct {
	m                        *Mix
	ours, ca, karp, lower    float64
	upper                    float64 // of the cheapest purchase that is known
	oursLeft, caLeft, kaLeft int
	caFallen                 int
	took, boundTook          time.Duration
}

func judge(seed uint64, most int) verdict {
	m := Generate(seed, most)
	v := verdict{m: m}
	expander := "price"
	if m.Equal {
		expander = "least-nodes"
	}
	start := time.Now()
	ours, _ := m.Ours(policy(expander))
	v.took = time.Since(start)
	ca, karp := m.ClusterAutoscaler(), m.Karpenter()
	v.ours, v.ca, v.karp = m.Price(ours), m.Price(ca), m.Price(karp)
	v.oursLeft, v.caLeft, v.kaLeft, v.caFallen = ours.Left, ca.Left, karp.Left, ca.Fallen
	start = time.Now()
	lower, best := m.Bound()
	v.boundTook = time.Since(start)
	v.lower, v.upper = lower, v.ours
	if m.Equal {
		v.lower = math.Ceil(lower - 1e-6)
	}
	if best.Left == 0 {
		v.upper = min(v.upper, m.Price(best))
	}
	return v
}

// TestPurchases holds plan.Decide's purchases against both rules and the bound. It
// looks at 60 mixes; YARDSTICK_COUNT=500 looks at as many as docs/performance.md
// reports, YARDSTICK_SEED at others. It prints what lies more than 3 % above a purchase that
// is known, or above a rule's.
func TestPurchases(t *testing.T) {
	seed, count, most := uint64(1), 60, 300
	if s, err := strconv.ParseUint(os.Getenv("YARDSTICK_SEED"), 10, 64); err == nil {
		seed = s
	}
	if n, err := strconv.Atoi(os.Getenv("YARDSTICK_COUNT")); err == nil {
		count = n
	}
	t.Logf("seeds %d to %d", seed, seed+uint64(count)-1)
	var free, tied tally
	for k := range count {
		v := judge(seed+uint64(k), most)
		x := &free
		if v.m.Tied() {
			x = &tied
		}
		for _, words := range x.add(&v) {
			t.Logf("%s %s", words, &v)
		}
		if (k+1)%50 == 0 || k+1 == count {
			t.Logf("%d mixes without ties: %s", free.mixes, &free)
			t.Logf("%d mixes with ties: %s", tied.mixes, &tied)
		}
	}
	// How machines are packed is not how kube-scheduler binds: a purchase that it leaves
	// nobody behind on may well be dearer than a packing (worlds.TestMixes closes the loop).
	// So only the mean is held against the rules. A judged purchase may leave a few pods to a second one where that is cheaper than
	// all at once: of 120 mixes (seeds 61 to 180) 3 or 4 do.
	for _, x := range []*tally{&free, &tied} {
		if x.unhelped*20 > x.mixes {
			t.Errorf("%d of %d purchases help fewer pods than a rule (seed %d)", x.unhelped, x.mixes, seed)
		}
		if x.ours > x.ca || x.ours > x.karpenter {
			t.Errorf("in the mean a rule buys for less (seed %d): %s", seed, x)
		}
	}
}

func (v *verdict) String() string {
	return fmt.Sprintf("%s: ours %.3f, Cluster Autoscaler %.3f, Karpenter %.3f, at least %.3f, at most %.3f; left %d, %d, %d (%s; bound %s)", v.m, v.ours, v.ca, v.karp, v.lower, v.upper,
		v.oursLeft, v.caLeft, v.kaLeft, v.took.Round(time.Millisecond), v.boundTook.Round(time.Millisecond))
}

// tally adds verdicts up.
type tally struct {
	mixes, beyond, unknown, aboveCA, aboveKarpenter, unhelped int

	fallen                     int // cheaper purchases of Cluster Autoscaler's that do not hold their pods
	gap                        []float64
	ours, ca, karpenter, lower float64
}

// add counts a verdict and says what is wrong with it.
func (x *tally) add(v *verdict) (wrong []string) {
	x.mixes++
	if v.oursLeft > min(v.caLeft, v.kaLeft) {
		x.unhelped++
		return []string{"LEAVES MORE PODS"}
	}
	switch {
	case v.oursLeft > 0:
	case v.ours <= 1.03*v.lower+1e-6:
		x.gap = append(x.gap, v.ours/v.lower-1)
	case v.ours > 1.03*v.upper:
		x.gap = append(x.gap, v.ours/v.lower-1)
		x.beyond++
		wrong = append(wrong, "BEYOND 3 %")
	default:
		x.gap = append(x.gap, v.ours/v.lower-1)
		x.unknown++
	}
	switch {
	case v.caLeft > v.oursLeft || v.ours <= v.ca+1e-6:
	case v.caFallen > 0: // ours have all been replayed with all machines there
		x.fallen++
		wrong = append(wrong, fmt.Sprintf("CLUSTER AUTOSCALER'S MACHINES DO NOT HOLD %d OF ITS PODS", v.caFallen))
	default:
		x.aboveCA++
		wrong = append(wrong, "ABOVE CLUSTER AUTOSCALER")
	}
	if v.kaLeft <= v.oursLeft && v.ours > v.karp+1e-6 {
		x.aboveKarpenter++
		wrong = append(wrong, "ABOVE KARPENTER")
	}
	if v.oursLeft+v.caLeft+v.kaLeft == 0 {
		x.ours, x.ca, x.karpenter, x.lower = x.ours+v.ours/v.lower, x.ca+v.ca/v.lower, x.karpenter+v.karp/v.lower, x.lower+1
	}
	return wrong
}

func (x *tally) String() string {
	if len(x.gap) == 0 || x.lower == 0 {
		return "none to tell"
	}
	gap := slices.Sorted(slices.Values(x.gap))
	q := func(p float64) float64 { return 100 * gap[min(int(p*float64(len(gap))), len(gap)-1)] }
	return fmt.Sprintf("over the lower bound half %.2f%%, p90 %.2f%%, p99 %.2f%%, most %.2f%%; in the mean ours %.3f, Cluster Autoscaler %.3f, Karpenter %.3f of it; %d within 3%%, %d not told, %d beyond 3%%; above Cluster Autoscaler %d (and %d that do not hold their pods), above Karpenter %d, left more pods %d",
		q(0.5), q(0.9), q(0.99), q(1), x.ours/x.lower, x.ca/x.lower, x.karpenter/x.lower, len(x.gap)-x.unknown-x.beyond, x.unknown, x.beyond, x.aboveCA, x.fallen, x.aboveKarpenter, x.unhelped)
}
