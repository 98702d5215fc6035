package packing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// TestOneDemandInClosedForm: a group that is weighed for one demand is worth what packing the demand on its machines says, and
// the groups are in the order of the expander.
func TestOneDemandInClosedForm(t *testing.T) {
	compared := 0
	for seed := range uint64(200) {
		v := drawnPacker(rand.New(rand.NewPCG(seed, 0x51))).NewSolver(false)
		if v.w.Topology == nil { // nothing is placed pod by pod
			continue
		}
		for i := range v.w.Demands {
			for _, g := range v.preferred(i) {
				empty, _ := v.w.Template(&v.w.Groups[g])
				l := *v.w.item(v.w.Demands[i].Class)
				l.Count, l.Fresh = v.Solution.Left[i], true
				p := &binpack.Problem{Empty: empty, Limit: v.own(g), Items: []binpack.Item{l}}
				if l.MaxFit(empty) == 0 { // it is placed by the rules alone
					continue
				}
				want := &option{Purchase: Purchase{group: g}, set: []int{g}, k: binpack.Pack(p), which: []int{i}}
				want.fresh = max(want.k.Bins-v.upcoming[g], 0)
				want.measure(p)
				v.addCosts(want, p)
				got := v.alone(i, g, l.MaxFit(empty), v.own(g))
				near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
				if got.fresh != want.fresh || got.pods != want.pods || got.left != want.left || !near(got.waste, want.waste) || !near(got.podValue, want.podValue) || !near(got.price, want.price) {
					t.Fatalf("seed %d, demand %d, group %d: %+v, packed %+v", seed, i, g, got, want)
				}
				compared++
			}
			order := v.preferred(i)
			for n := range order[:max(len(order)-1, 0)] {
				if v.better(&v.singles[slices.IndexFunc(v.singles, func(o option) bool { return o.group == order[n+1] })], &v.singles[slices.IndexFunc(v.singles, func(o option) bool { return o.group == order[n] })]) {
					t.Fatalf("seed %d, demand %d: group %d is before %d", seed, i, order[n], order[n+1])
				}
			}
		}
	}
	if t.Logf("%d groups for a demand", compared); compared < 1000 {
		t.Error("hardly any is compared: the worlds try nothing")
	}
}

// TestTakenBy: the list of what a group takes is what it takes one by one.
func TestTakenBy(t *testing.T) {
	for seed := range uint64(100) {
		v := drawnPacker(rand.New(rand.NewPCG(seed, 0x52))).NewSolver(false)
		for g := range v.w.Groups {
			for i := range v.w.Demands {
				if slices.Contains(v.w.TakenBy(g), i) != v.w.fits(i, g) {
					t.Fatalf("seed %d: demand %d and group %d", seed, i, g)
				}
			}
		}
	}
}
