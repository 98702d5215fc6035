package binpack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// exact is the optimum by plain branch and bound over single pods: every pod goes
// into each open bin, each distinct used fresh bin, or one new fresh bin. It shares
// nothing with the packer but the problem.
type exact struct {
	p     *Problem
	pods  []int
	best  int
	steps int
}

func optimum(p *Problem, upper int) (int, bool) {
	e := &exact{p: p, best: upper}
	for i := range p.Items {
		for range p.Items[i].Count {
			e.pods = append(e.pods, i)
		}
	}
	slices.SortStableFunc(e.pods, func(a, b int) int { return slices.Compare(p.Items[b].Size, p.Items[a].Size) })
	var rooms [][]int64
	for _, b := range p.Open {
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
	for j := range e.p.Empty { // volume bound
		var want, have int64
		for _, i := range e.pods[at:] {
			want += e.p.Items[i].Size[j]
		}
		for _, r := range rooms {
			have += max(r[j], 0)
		}
		if want > have && e.p.Empty[j] > 0 && fresh+int((want-have+e.p.Empty[j]-1)/e.p.Empty[j]) >= e.best {
			return
		}
	}
	size := e.p.Items[e.pods[at]].Size
	for b := range rooms {
		twin := slices.ContainsFunc(rooms[:b], func(r []int64) bool { return slices.Equal(r, rooms[b]) })
		if MaxFit(rooms[b], size) == 0 || twin {
			continue
		}
		Sub(rooms[b], size, 1)
		e.place(at+1, rooms, fresh)
		Sub(rooms[b], size, -1)
	}
	room := slices.Clone(e.p.Empty)
	Sub(room, size, 1)
	e.place(at+1, append(slices.Clip(rooms), room), fresh+1)
}

func someProblem(r *rand.Rand) *Problem {
	p := &Problem{Empty: []int64{2000, 4096, 1 << 40, 20}, Limit: 1000}
	for range r.IntN(3) {
		p.Open = append(p.Open, []int64{r.Int64N(2000), r.Int64N(4096), 1 << 40, r.Int64N(10)})
	}
	for range 1 + r.IntN(5) {
		var on Bins
		for b := range p.Open {
			on.Add(b)
		}
		p.Items = append(p.Items, Item{Size: []int64{100 + r.Int64N(18)*100, 100 + r.Int64N(30)*128, 0, 1}, Count: 1 + r.IntN(5), Fresh: true, On: on})
	}
	return p
}

// verify holds an answer against its problem.
func verify(t *testing.T, p *Problem, k *Packing) {
	t.Helper()
	got := make([]int, len(p.Items))
	put := func(room []int64, parts []Portion, times int) {
		room = slices.Clone(room)
		for _, x := range parts {
			got[x.Item] += x.N * times
			if MaxFit(room, p.Items[x.Item].Size) < x.N {
				t.Fatalf("overfull: %v", parts)
			}
			Sub(room, p.Items[x.Item].Size, x.N)
		}
	}
	bins := 0
	for _, f := range k.Open {
		put(p.Open[f.Bin], f.Portions, 1)
	}
	for _, f := range k.Fresh {
		put(p.Empty, f.Portions, f.Times)
		bins += f.Times
	}
	for i := range got {
		if got[i]+k.Left[i] != p.Items[i].Count {
			t.Fatalf("load %d: placed %d, left %d of %d", i, got[i], k.Left[i], p.Items[i].Count)
		}
	}
	if bins != k.Bins || bins > p.Limit {
		t.Fatalf("bins %d, says %d, limit %d", bins, k.Bins, p.Limit)
	}
}

// TestPackIsNearlyOptimal: a few orders find the optimum of nearly all small problems, and are one bin above it at most.
func TestPackIsNearlyOptimal(t *testing.T) {
	seed, times := drawn.Seed(t), drawn.Times(t)
	r := rand.New(rand.NewPCG(seed, 0))
	proven, off, mixes := 0, 0, 400*times
	if testing.Short() {
		mixes = 60
	}
	for range mixes {
		p := someProblem(r)
		k := Pack(ready(p))
		verify(t, p, &k)
		if k.Unplaced() > 0 {
			t.Fatal("pods are left without a limit")
		}
		best, done := optimum(p, k.Bins)
		if !done && best == k.Bins {
			continue
		}
		proven++
		if best < k.Bins {
			off++
			t.Logf("%d machines, %d would do: %s", k.Bins, best, describe(p))
		}
		if best+1 < k.Bins {
			t.Errorf("%d machines, %d would do: %s", k.Bins, best, describe(p))
		}
	}
	t.Logf("%d of %d proven mixes are optimal", proven-off, proven)
	if off*50 > proven {
		t.Errorf("%d of %d mixes are not packed into the fewest machines", off, proven)
	}
}

func describe(p *Problem) string {
	s := fmt.Sprint("open ", p.Open)
	for _, l := range p.Items {
		s += fmt.Sprintf(" %dx%v", l.Count, l.Size)
	}
	return s
}

func TestPackWithinLimit(t *testing.T) {
	seed, times := drawn.Seed(t), drawn.Times(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 * times {
		p := someProblem(r)
		p.Limit = r.IntN(3)
		k := Pack(ready(p))
		verify(t, p, &k)
	}
}

// TestDimensionOverAsked: a dimension of which daemons ask for more than a machine has, and pods for nothing,
// changes no bound and no answer.
func TestDimensionOverAsked(t *testing.T) {
	seed, times := drawn.Seed(t), drawn.Times(t)
	r := rand.New(rand.NewPCG(seed, 9))
	for range 300 * times {
		p := someProblem(r)
		over := *p
		over.Empty = slices.Clone(p.Empty)
		over.Empty[2] = -1
		if got, want := ready(&over).LowerBound(), ready(p).LowerBound(); got != want {
			t.Fatalf("bound %d, want %d: %s", got, want, describe(p))
		}
		got, want := Pack(ready(&over)), Pack(p)
		if verify(t, &over, &got); got.Bins != want.Bins {
			t.Fatalf("%d bins, want %d: %s", got.Bins, want.Bins, describe(p))
		}
	}
}

// TestPackOfLargeMixes packs mixes of hundreds of pods: each into no more machines than Cluster Autoscaler's order, and
// all together into few more than the lower bounds, which count cpu and memory by themselves.
func TestPackOfLargeMixes(t *testing.T) {
	seed, times := drawn.Seed(t), drawn.Times(t)
	r := rand.New(rand.NewPCG(seed, 0))
	bins, bound := 0, 0
	for range 200 * times {
		p := &Problem{Empty: []int64{2000, 4096, 1 << 40, 110}, Limit: 10_000}
		for range 2 + r.IntN(20) {
			p.Items = append(p.Items, Item{Size: []int64{50 + r.Int64N(30)*50, 64 + r.Int64N(40)*64, 0, 1}, Count: 1 + r.IntN(40), Fresh: true})
		}
		k := Pack(ready(p))
		verify(t, p, &k)
		if theirs := p.FirstFit(p.Order(ByPair)); k.Bins > theirs.Bins {
			t.Errorf("%d machines, %d in Cluster Autoscaler's order: %s", k.Bins, theirs.Bins, describe(p))
		}
		bins, bound = bins+k.Bins, bound+p.LowerBound()
	}
	if t.Logf("%d machines, bounds %d", bins, bound); bins*100 > bound*112 {
		t.Errorf("%d machines are more than 12 %% above the bounds, %d", bins, bound)
	}
}

// TestPackHostSpread: all pods are placed, no machine is too full, and of each class that is spread over hosts no machine
// has more than the skew beyond any other.
func TestPackHostSpread(t *testing.T) {
	seed, times := drawn.Seed(t), drawn.Times(t)
	r := rand.New(rand.NewPCG(seed, 3))
	answers := 0
	for range 300 * times {
		p := &Problem{Empty: []int64{16000, 64 << 10, 1 << 40, 110}, Limit: 10_000}
		lv := &HostSpread{}
		for c := range 1 + r.IntN(6) {
			l := Item{Size: []int64{50 + r.Int64N(30)*50, 64 + r.Int64N(40)*64, 0, 1}, Count: 1 + r.IntN(400), Fresh: true}
			for range c {
				l.Size = append(l.Size, 0)
			}
			if r.IntN(4) > 0 {
				l.Size = append(l.Size, 1)
				lv.Dims, lv.Most = append(lv.Dims, 4+c), append(lv.Most, math.MaxInt)
			} else {
				l.Size = append(l.Size, 0)
			}
			p.Empty = append(p.Empty, 1+r.Int64N(3))
			p.Items = append(p.Items, l)
		}
		for i := range p.Items {
			for len(p.Items[i].Size) < len(p.Empty) {
				p.Items[i].Size = append(p.Items[i].Size, 0)
			}
		}
		k, ok := ready(p).PackHostSpread(lv, math.MaxInt)
		if !ok {
			continue
		}
		answers++
		wide := *p
		wide.Empty = slices.Clone(p.Empty)
		for _, j := range lv.Dims {
			wide.Empty[j] = math.MaxInt32
			least, most := int64(math.MaxInt64), int64(0)
			for _, f := range k.Fresh {
				n := int64(0)
				for _, x := range f.Portions {
					n += int64(x.N) * p.Items[x.Item].Size[j]
				}
				least, most = min(least, n), max(most, n)
			}
			if most-least > p.Empty[j] {
				t.Fatalf("one machine has %d pods and another %d, the skew is %d: %s", most, least, p.Empty[j], describe(p))
			}
		}
		if verify(t, &wide, &k); k.Unplaced() > 0 {
			t.Fatalf("%d pods are left: %s", k.Unplaced(), describe(p))
		}
	}
	if t.Logf("%d answers", answers); answers < 50*times {
		t.Errorf("only %d answers", answers)
	}
}

// ready returns a drawn problem whose sizes stand.
func ready(p *Problem) *Problem {
	for i := range p.Items {
		p.Items[i].Amounts = NewItem(p.Items[i].Size).Amounts
	}
	return p
}
