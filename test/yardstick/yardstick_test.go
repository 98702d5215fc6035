package yardstick

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

func policy(expander string) plan.Policy {
	return plan.Policy{Expander: expander, ExpendablePodsCutoff: -10, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute,
		BackoffInitial: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour, FreshFor: time.Minute, EnforceMin: true}
}

// verdict is one mix under all rules.
type verdict struct {
	m                        *Mix
	ours, ca, karp, lower    float64
	upper                    float64 // of the cheapest purchase that is known
	oursLeft, caLeft, kaLeft int
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
	v.oursLeft, v.caLeft, v.kaLeft = ours.Left, ca.Left, karp.Left
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

func TestPurchases(t *testing.T) {
	seed, count, most := uint64(1), 500, 300
	if s, err := strconv.ParseUint(os.Getenv("YARDSTICK_SEED"), 10, 64); err == nil {
		seed = s
	}
	if n, err := strconv.Atoi(os.Getenv("YARDSTICK_COUNT")); err == nil {
		count = n
	}
	t.Logf("seeds %d to %d", seed, seed+uint64(count)-1)
	var gap []float64
	beyond, unknown, aboveCA, aboveKarpenter, unhelped := 0, 0, 0, 0, 0
	for k := range count {
		v := judge(seed+uint64(k), most)
		words := fmt.Sprintf("%s: ours %.3f, Cluster Autoscaler %.3f, Karpenter %.3f, at least %.3f, at most %.3f (%s; bound %s)", v.m, v.ours, v.ca, v.karp, v.lower, v.upper, v.took.Round(time.Millisecond), v.boundTook.Round(time.Millisecond))
		if v.oursLeft > min(v.caLeft, v.kaLeft) {
			unhelped++
			t.Logf("UNHELPED %d (others %d, %d) %s", v.oursLeft, v.caLeft, v.kaLeft, words)
			continue
		}
		g := v.ours/v.lower - 1
		gap = append(gap, g)
		switch {
		case v.oursLeft > 0:
		case v.ours <= 1.03*v.lower+1e-6:
		case v.ours > 1.03*v.upper:
			beyond++
			t.Logf("BEYOND 3%%: %s", words)
		default:
			unknown++
		}
		if v.caLeft <= v.oursLeft && v.ours > v.ca+1e-6 {
			aboveCA++
			t.Logf("ABOVE CA %s", words)
		}
		if v.kaLeft <= v.oursLeft && v.ours > v.karp+1e-6 {
			aboveKarpenter++
			t.Logf("ABOVE KARPENTER %s", words)
		}
	}
	slices.Sort(gap)
	q := func(x float64) float64 { return 100 * gap[min(int(x*float64(len(gap))), len(gap)-1)] }
	t.Logf("over the lower bound: half %.2f%%, p90 %.2f%%, p99 %.2f%%, most %.2f%%; %d beyond 3%% of the optimum, %d not told; above Cluster Autoscaler %d, above Karpenter %d, left more pods %d; of %d",
		q(0.5), q(0.9), q(0.99), q(1), beyond, unknown, aboveCA, aboveKarpenter, unhelped, count)
}
