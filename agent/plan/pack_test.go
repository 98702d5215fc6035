package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// exact is the optimum by plain branch and bound over single pods: every pod goes
// into each open bin, each distinct used fresh bin, or one new fresh bin. It shares
// nothing with the packer but the problem.
type exact struct {
	p     *problem
	pods  []int
	best  int
	steps int
}

func optimum(p *problem, upper int) (int, bool) {
	e := &exact{p: p, best: upper}
	for i := range p.items {
		for range p.items[i].count {
			e.pods = append(e.pods, i)
		}
	}
	slices.SortStableFunc(e.pods, func(a, b int) int { return slices.Compare(p.items[b].size, p.items[a].size) })
	var rooms [][]int64
	for _, b := range p.open {
		rooms = append(rooms, slices.Clone(b))
	}
	e.place(0, rooms, 0)
	return e.best, e.steps < 3_000_000
}

func (e *exact) place(at int, rooms [][]int64, fresh int) {
	if e.steps++; e.steps > 3_000_000 || fresh >= e.best {
		return
	}
	if at == len(e.pods) {
		e.best = fresh
		return
	}
	for j := range e.p.empty { // volume bound
		var want, have int64
		for _, i := range e.pods[at:] {
			want += e.p.items[i].size[j]
		}
		for _, r := range rooms {
			have += max(r[j], 0)
		}
		if want > have && e.p.empty[j] > 0 && fresh+int((want-have+e.p.empty[j]-1)/e.p.empty[j]) >= e.best {
			return
		}
	}
	size := e.p.items[e.pods[at]].size
	for b := range rooms {
		twin := slices.ContainsFunc(rooms[:b], func(r []int64) bool { return slices.Equal(r, rooms[b]) })
		if fit.MaxFit(rooms[b], size) == 0 || twin {
			continue
		}
		fit.Sub(rooms[b], size, 1)
		e.place(at+1, rooms, fresh)
		fit.Sub(rooms[b], size, -1)
	}
	room := slices.Clone(e.p.empty)
	fit.Sub(room, size, 1)
	e.place(at+1, append(slices.Clip(rooms), room), fresh+1)
}

func someProblem(r *rand.Rand) *problem {
	p := &problem{empty: []int64{2000, 4096, 1 << 40, 20}, limit: 1000}
	for range r.IntN(3) {
		p.open = append(p.open, []int64{r.Int64N(2000), r.Int64N(4096), 1 << 40, r.Int64N(10)})
	}
	for range 1 + r.IntN(5) {
		on := make([]bool, len(p.open))
		for i := range on {
			on[i] = true
		}
		p.items = append(p.items, item{size: []int64{100 + r.Int64N(18)*100, 100 + r.Int64N(30)*128, 0, 1}, count: 1 + r.IntN(5), fresh: true, on: on})
	}
	return p
}

// verify holds an answer against its problem.
func verify(t *testing.T, p *problem, k *packing) {
	t.Helper()
	got := make([]int, len(p.items))
	put := func(room []int64, parts []portion, times int) {
		room = slices.Clone(room)
		for _, x := range parts {
			got[x.item] += x.n * times
			if fit.MaxFit(room, p.items[x.item].size) < x.n {
				t.Fatalf("overfull: %v", parts)
			}
			fit.Sub(room, p.items[x.item].size, x.n)
		}
	}
	bins := 0
	for b := range p.open {
		put(p.open[b], k.open[b], 1)
	}
	for _, f := range k.fresh {
		put(p.empty, f.portions, f.times)
		bins += f.times
	}
	for i := range got {
		if got[i]+k.left[i] != p.items[i].count {
			t.Fatalf("load %d: placed %d, left %d of %d", i, got[i], k.left[i], p.items[i].count)
		}
	}
	if bins != k.bins || bins > p.limit {
		t.Fatalf("bins %d, says %d, limit %d", bins, k.bins, p.limit)
	}
}

func TestPackIsOptimal(t *testing.T) {
	seed, times := drawn(t)
	r := rand.New(rand.NewPCG(seed, 0))
	proven, off, mixes := 0, 0, 400*times
	if testing.Short() {
		mixes = 60
	}
	for range mixes {
		p := someProblem(r)
		k := pack(p)
		verify(t, p, &k)
		if k.unplaced() > 0 {
			t.Fatal("pods are left without a limit")
		}
		best, done := optimum(p, k.bins)
		if !done && best == k.bins {
			continue
		}
		proven++
		if best < k.bins {
			off++
			t.Logf("%d machines, %d would do: %s", k.bins, best, describe(p))
		}
	}
	t.Logf("%d of %d proven mixes are optimal", proven-off, proven)
	if off > 0 {
		t.Errorf("%d of %d mixes are not packed into the fewest machines", off, proven)
	}
}

func describe(p *problem) string {
	s := fmt.Sprint("open ", p.open)
	for _, l := range p.items {
		s += fmt.Sprintf(" %dx%v", l.count, l.size)
	}
	return s
}

func TestPackWithinLimit(t *testing.T) {
	seed, times := drawn(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 * times {
		p := someProblem(r)
		p.limit = r.IntN(3)
		k := pack(p)
		verify(t, p, &k)
	}
}

// TestPackMeetsTheBound packs mixes of hundreds of pods, too large for plain branch
// and bound: the linear program's bound proves the answer.
func TestPackMeetsTheBound(t *testing.T) {
	seed, times := drawn(t)
	r := rand.New(rand.NewPCG(seed, 0))
	above, n := 0, 200*times
	for range n {
		p := &problem{empty: []int64{2000, 4096, 1 << 40, 110}, limit: 10_000}
		for range 2 + r.IntN(20) {
			p.items = append(p.items, item{size: []int64{50 + r.Int64N(30)*50, 64 + r.Int64N(40)*64, 0, 1}, count: 1 + r.IntN(40), fresh: true, on: []bool{}})
		}
		k := pack(p)
		verify(t, p, &k)
		_, least, _ := p.columnGeneration(&k)
		if least = max(least, p.lowerBound()); k.bins > least {
			above++
			t.Logf("%d machines, bound %d: %s", k.bins, least, describe(p))
		}
	}
	if above > n/50 {
		t.Errorf("%d of %d mixes are above their bound", above, n)
	}
}
