package binpack

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// items are of sizes of two dimensions, each with so many pods, that may go on every open bin and on fresh ones.
func items(open int, of ...[3]int64) (list []Item) {
	var on Bins
	for b := range open {
		on.Add(b)
	}
	for _, x := range of {
		l := NewItem([]int64{x[0], x[1]})
		l.Count, l.Fresh, l.On = int(x[2]), true, on
		list = append(list, l)
	}
	return list
}

// told writes an answer as text: the open bins by number, then the fresh ones, each with pods by item, and what is left.
func told(k *Packing) string {
	var out []string
	parts := func(list []Portion) string {
		s := ""
		for _, x := range list {
			s += fmt.Sprintf(" %d of %d", x.N, x.Item)
		}
		return s
	}
	for _, f := range k.Open {
		out = append(out, fmt.Sprintf("open %d:%s", f.Bin, parts(f.Portions)))
	}
	for _, f := range k.Fresh {
		out = append(out, fmt.Sprintf("%d times%s", f.Times, parts(f.Portions)))
	}
	if k.Unplaced() > 0 {
		out = append(out, fmt.Sprint("left ", k.Left))
	}
	return strings.Join(out, "; ")
}

// TestVectors: how many items fit into a room, of which a dimension may be overcommitted.
func TestVectors(t *testing.T) {
	for _, c := range []struct {
		room, size []int64
		want       int
	}{
		{[]int64{10, 10}, []int64{3, 4}, 2}, {[]int64{9, 10}, []int64{3, 0}, 3}, {[]int64{2, 10}, []int64{3, 0}, 0}, {[]int64{3, 0}, []int64{3, 0}, 1},
		{[]int64{-7, 10}, []int64{3, 4}, 0}, {[]int64{-7, 10}, []int64{0, 4}, 2}, {[]int64{0, 0}, []int64{0, 0}, math.MaxInt32},
	} {
		l := NewItem(c.size)
		if MaxFit(c.room, c.size) != c.want || l.MaxFit(c.room) != c.want || Fits(c.room, c.size) != (c.want > 0) || l.Fits(c.room) != (c.want > 0) {
			t.Errorf("%v into %v: %d, %d, fits %v, %v; want %d", c.size, c.room, MaxFit(c.room, c.size), l.MaxFit(c.room), Fits(c.room, c.size), l.Fits(c.room), c.want)
		}
	}
}

// TestLowerBound: of fresh bins of 10 and 10.
func TestLowerBound(t *testing.T) {
	few := func(p *Problem) { p.Items[0].Fresh = false }
	for name, c := range map[string]struct {
		open  [][]int64
		items [][3]int64
		but   func(*Problem)
		want  int
		from1 string // LowerBoundFrom(1)
	}{
		"a dimension":                       {nil, [][3]int64{{2, 1, 12}}, nil, 3, "2 by 1"},
		"the other dimension":               {nil, [][3]int64{{1, 3, 9}}, nil, 3, "3 by 1"},
		"pods that take half a bin":         {nil, [][3]int64{{5, 0, 4}}, nil, 2, "0 by 0"},
		"pods that take more":               {nil, [][3]int64{{6, 0, 2}, {7, 0, 2}}, nil, 4, "0 by 0"},
		"pods of which two fit and no more": {nil, [][3]int64{{4, 0, 5}}, nil, 3, "0 by 0"},
		"of which the last bin is full":     {nil, [][3]int64{{4, 0, 6}}, nil, 3, "0 by 0"},
		"a pod that fits nowhere":           {nil, [][3]int64{{11, 0, 1}}, nil, 2, "0 by 0"},
		"pods that go on no fresh bin":      {nil, [][3]int64{{2, 2, 12}, {1, 1, 5}}, few, 1, "1 by 1"},
		"room in an open bin":               {[][]int64{{8, 10}}, [][3]int64{{2, 2, 9}}, nil, 1, "2 by 1"},
		"room for all in an open bin":       {[][]int64{{8, 10}}, [][3]int64{{4, 2, 2}}, nil, 0, "1 by 1"},
		"an open bin that is overcommitted": {[][]int64{{-5, 10}}, [][3]int64{{2, 1, 12}}, nil, 3, "2 by 1"},
		"a dimension that bins do not have": {nil, [][3]int64{{2, 3, 12}}, func(p *Problem) { p.Empty[1] = 0 }, 12, "0 by 0"},
		"no fresh bins":                     {nil, [][3]int64{{2, 1, 12}}, func(p *Problem) { p.Empty = nil }, 0, "0 by 0"},
	} {
		p := &Problem{Items: items(len(c.open), c.items...), Open: c.open, Empty: []int64{10, 10}, Limit: 100}
		if c.but != nil {
			c.but(p)
		}
		need, dimension := 0, 0
		if p.Empty != nil {
			need, dimension = p.LowerBoundFrom(1)
		}
		if got := p.LowerBound(); got != c.want || fmt.Sprintf("%d by %d", need, dimension) != c.from1 {
			t.Errorf("%s: %d; from dimension 1 on %d by %d", name, got, need, dimension)
		}
	}
	three := &Problem{Items: []Item{{Size: []int64{1, 4, 4}, Count: 5, Fresh: true}}, Empty: []int64{10, 10, 10}}
	if need, dimension := ready(three).LowerBoundFrom(1); need != 2 || dimension != 1 {
		t.Errorf("of two dimensions that need as many bins: %d by %d", need, dimension)
	}
}

// TestRoom: whether each class fits by itself, and whether the open bins are too few for all.
func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		open       [][]int64
		items      [][3]int64
		fresh      int
		each, none bool
	}{
		"as many as there are":         {[][]int64{{4, 4}}, [][3]int64{{2, 2, 2}}, 0, true, false},
		"one more":                     {[][]int64{{4, 4}}, [][3]int64{{2, 2, 3}}, 0, false, true},
		"with a fresh bin":             {[][]int64{{4, 4}}, [][3]int64{{2, 2, 7}}, 1, true, true},
		"and one more":                 {[][]int64{{4, 4}}, [][3]int64{{2, 2, 8}}, 1, false, true},
		"each by itself":               {[][]int64{{4, 4}}, [][3]int64{{2, 0, 2}, {3, 0, 1}}, 0, true, true},
		"in pieces that are too small": {[][]int64{{4, 4}, {4, 4}}, [][3]int64{{3, 3, 1}, {5, 1, 1}}, 0, false, true},
		"the second class is large":    {[][]int64{{4, 4}, {4, 4}}, [][3]int64{{1, 1, 1}, {5, 1, 1}}, 0, false, true},
	} {
		p := &Problem{Items: items(len(c.open), c.items...), Open: c.open, Empty: []int64{10, 10}}
		if each, none := p.EachFits(c.fresh), p.Infeasible(); each != c.each || none != c.none {
			t.Errorf("%s: each fits %v, infeasible %v", name, each, none)
		}
	}
}

// TestOrders: which item goes first, by each order.
func TestOrders(t *testing.T) {
	for name, c := range map[string]struct {
		items [][3]int64
		open  [][]int64
		empty []int64
		want  string // by share, by pair, by scarcity, by priority
	}{
		"shares":                                             {[][3]int64{{6, 1, 1}, {5, 5, 1}, {1, 7, 1}}, nil, []int64{10, 10}, "[2 0 1] [1 2 0] [1 2 0] [1 0 2]"},
		"equal ones stay":                                    {[][3]int64{{5, 5, 1}, {5, 5, 1}, {5, 5, 1}}, nil, []int64{10, 10}, "[0 1 2] [0 1 2] [0 1 2] [0 1 2]"},
		"a whole bin each, the larger first":                 {[][3]int64{{10, 1, 1}, {10, 2, 1}, {9, 9, 1}}, nil, []int64{10, 10}, "[1 0 2] [2 1 0] [2 1 0] [2 0 1]"},
		"the second dimension is scarce":                     {[][3]int64{{9, 0, 1}, {0, 5, 9}, {1, 4, 9}}, nil, []int64{10, 10}, "[0 1 2] [0 1 2] [1 2 0] [2 1 0]"},
		"without fresh bins by the largest open one":         {[][3]int64{{3, 2, 1}, {2, 3, 1}}, [][]int64{{4, 20}, {6, 5}}, nil, "[0 1] [0 1] [0 1] [1 0]"},
		"a dimension that fresh bins lack, by the open ones": {[][3]int64{{3, 1, 1}, {2, 3, 1}}, [][]int64{{4, 5}}, []int64{10, 0}, "[1 0] [1 0] [1 0] [0 1]"},
		"a dimension that no bin has":                        {[][3]int64{{3, 9, 1}, {4, 1, 1}}, nil, []int64{10, 0}, "[1 0] [1 0] [1 0] [0 1]"},
		"one item":                                           {[][3]int64{{3, 9, 1}}, nil, []int64{10, 10}, "[0] [0] [0] [0]"},
	} {
		p := &Problem{Items: items(len(c.open), c.items...), Open: c.open, Empty: c.empty}
		if got := fmt.Sprint(p.Order(ByShare), p.Order(ByPair), p.Order(byScarcity), p.byPriority()); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	p := &Problem{Items: items(0, [3]int64{1, 1, 1}, [3]int64{9, 9, 1}, [3]int64{5, 5, 1}), Empty: []int64{10, 10}}
	if order := p.byClassPriority(); order != nil {
		t.Errorf("of one priority: %v", order)
	}
	p.Items[2].Prio = 1
	if got := fmt.Sprint(p.byClassPriority(), p.byPriority()); got != "[2 1 0] [2 0 1]" {
		t.Errorf("of two priorities: %s", got)
	}
}

// TestAnswers packs into bins of 10 and 10.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		open  [][]int64
		items [][3]int64
		limit int
		but   func(*Problem)
		want  string
	}{
		"nothing":                               {nil, nil, 9, nil, ""},
		"one class":                             {nil, [][3]int64{{3, 1, 7}}, 9, nil, "2 times 3 of 0; 1 times 1 of 0"},
		"small beside large":                    {nil, [][3]int64{{3, 3, 2}, {8, 8, 2}, {2, 2, 3}}, 9, nil, "2 times 1 of 1 1 of 2; 1 times 2 of 0 1 of 2"},
		"into the first of equal bins":          {nil, [][3]int64{{6, 6, 3}, {4, 4, 1}}, 9, nil, "1 times 1 of 0 1 of 1; 2 times 1 of 0"},
		"an uneven number":                      {nil, [][3]int64{{6, 6, 4}, {2, 2, 5}}, 9, nil, "2 times 1 of 0 2 of 1; 1 times 1 of 0 1 of 1; 1 times 1 of 0"},
		"of which the last has some":            {nil, [][3]int64{{6, 6, 2}, {2, 2, 3}}, 9, nil, "1 times 1 of 0 2 of 1; 1 times 1 of 0 1 of 1"},
		"a dimension that daemons have used up": {nil, [][3]int64{{0, 6, 1}, {0, 4, 1}}, 9, func(p *Problem) { p.Empty[0] = -1 }, "1 times 1 of 0 1 of 1"},
		"open bins first":                       {[][]int64{{10, 10}, {3, 3}}, [][3]int64{{3, 3, 5}}, 9, nil, "open 0: 3 of 0; open 1: 1 of 0; 1 times 1 of 0"},
		"two classes in one open bin":           {[][]int64{{10, 10}}, [][3]int64{{6, 6, 1}, {4, 4, 2}}, 9, nil, "open 0: 1 of 0 1 of 1; 1 times 1 of 1"},
		"only open bins":                        {[][]int64{{10, 10}}, [][3]int64{{6, 6, 1}, {3, 3, 3}}, 0, func(p *Problem) { p.Empty = nil }, "open 0: 3 of 1; left [1 0]"},
		"a class that no fresh bin takes":       {nil, [][3]int64{{3, 3, 2}, {2, 2, 1}}, 9, func(p *Problem) { p.Items[0].Fresh = false }, "1 times 1 of 1; left [2 0]"},
		"within a limit small ones first":       {nil, [][3]int64{{9, 9, 2}, {5, 5, 2}}, 1, nil, "1 times 2 of 1; left [2 0]"},
		"within a limit by priority":            {nil, [][3]int64{{9, 9, 2}, {5, 5, 2}}, 1, func(p *Problem) { p.Items[0].Prio = 1 }, "1 times 1 of 0; left [1 2]"},
		"headroom behind all pods":              {nil, [][3]int64{{6, 0, 2}, {4, 0, 3}}, 9, func(p *Problem) { p.Items[0].Prio = -1 }, "2 times 1 of 0 1 of 1; 1 times 1 of 1"},
		"fair shares":                           {nil, [][3]int64{{4, 1, 10}, {1, 4, 10}}, 99, nil, "5 times 2 of 0 2 of 1"},
	} {
		p := &Problem{Items: items(len(c.open), c.items...), Open: c.open, Empty: []int64{10, 10}, Limit: c.limit}
		if c.but != nil {
			c.but(p)
		}
		k := Pack(p)
		if len(p.Items) > 0 && p.Empty != nil {
			verify(t, p, &k)
		}
		if got := told(&k); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestFairShare: bins that take of each dimension only its share.
func TestFairShare(t *testing.T) {
	for name, c := range map[string]struct {
		items [][3]int64
		but   func(*Problem)
		want  string
	}{
		"two kinds":                         {[][3]int64{{4, 1, 10}, {1, 2, 10}}, nil, "[10 6] of 5"},
		"the largest pod fits":              {[][3]int64{{4, 1, 10}, {0, 9, 1}}, nil, "[10 9] of 4"},
		"one that goes on no fresh bin":     {[][3]int64{{4, 1, 10}, {1, 2, 10}}, func(p *Problem) { p.Items[1].Fresh = false }, "[10 3] of 4"},
		"one that fits nowhere":             {[][3]int64{{4, 1, 10}, {11, 2, 10}}, nil, "[10 3] of 4"},
		"a dimension that bins do not have": {[][3]int64{{4, 0, 10}}, func(p *Problem) { p.Empty[1] = 0 }, "[10 0] of 4"},
		"nothing is asked for":              {[][3]int64{{0, 0, 10}}, nil, "[10 10] of 0"},
	} {
		p := &Problem{Items: items(0, c.items...), Empty: []int64{10, 10}, Limit: 99}
		if c.but != nil {
			c.but(p)
		}
		share, n := p.fairShare(1)
		if got := fmt.Sprintf("%v of %d", share, n); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, c := range map[string]struct {
		items [][3]int64
		empty []int64
		want  string
	}{
		"no fresh bins":                      {[][3]int64{{4, 1, 10}}, nil, "none"},
		"one bin":                            {[][3]int64{{4, 1, 2}}, []int64{10, 10}, "none"},
		"each share is whole":                {[][3]int64{{5, 5, 8}}, []int64{10, 10}, "none"},
		"one that goes on no fresh bin":      {[][3]int64{{5, 1, 4}, {0, 3, -3}}, []int64{10, 10}, "2 times 2 of 0; left [0 3]"},
		"the rest goes where bins have room": {[][3]int64{{5, 1, 4}, {0, 3, 3}}, []int64{10, 10}, "1 times 2 of 0 2 of 1; 1 times 2 of 0 1 of 1"},
	} {
		p := &Problem{Items: items(0, c.items...), Empty: c.empty, Limit: 99}
		for i := range p.Items { // a count below zero is of a class that no fresh bin takes
			p.Items[i].Count, p.Items[i].Fresh = max(p.Items[i].Count, -p.Items[i].Count), p.Items[i].Count > 0
		}
		got := "none"
		if k, ok := p.packFairShare(1); ok {
			verify(t, p, &k)
			got = told(&k)
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestTwoSizes enlarges bins of 10 and 10 by 5 and 5 for the pods that are left of an answer.
func TestTwoSizes(t *testing.T) {
	for name, c := range map[string]struct {
		first, left [][3]int64 // of the answer, and what is left of it
		bins, limit int
		want        string
		large       int
	}{
		"a bin is enlarged":                 {[][3]int64{{8, 8, 2}}, [][3]int64{{4, 4, 1}}, 9, 9, "1 times 1 of 0 1 of 1; 1 times 1 of 0", 1},
		"as many as may be":                 {[][3]int64{{8, 8, 2}}, [][3]int64{{4, 4, 1}}, 9, 1, "1 times 1 of 0 1 of 1; 1 times 1 of 0", 1},
		"one enlarged bin takes several":    {[][3]int64{{4, 4, 4}}, [][3]int64{{3, 3, 2}}, 9, 9, "1 times 2 of 0 2 of 1; 1 times 2 of 0", 1},
		"two bins are enlarged":             {[][3]int64{{8, 8, 2}}, [][3]int64{{5, 5, 2}}, 9, 9, "1 times 1 of 0 1 of 1; 1 times 1 of 0 1 of 1", 2},
		"the last one that is opened first": {[][3]int64{{8, 8, 1}, {6, 6, 1}}, [][3]int64{{7, 7, 1}}, 9, 9, "1 times 1 of 1 1 of 2; 1 times 1 of 0", 1},
		"too few may be large":              {[][3]int64{{8, 8, 2}}, [][3]int64{{5, 5, 2}}, 9, 1, "none", 0},
		"a new large bin":                   {[][3]int64{{8, 8, 1}}, [][3]int64{{12, 12, 1}}, 2, 1, "1 times 1 of 1; 1 times 1 of 0", 1},
		"which is one too many":             {[][3]int64{{8, 8, 1}}, [][3]int64{{12, 12, 1}}, 1, 1, "none", 0},
		"of which none may be":              {[][3]int64{{8, 8, 1}}, [][3]int64{{12, 12, 1}}, 2, 0, "none", 0},
		"a pod that fits into no bin":       {[][3]int64{{8, 8, 1}}, [][3]int64{{16, 16, 1}}, 9, 9, "none", 0},
		"two in a new large bin":            {nil, [][3]int64{{7, 7, 3}}, 9, 9, "1 times 2 of 0; 1 times 1 of 0", 2},
	} {
		p := &Problem{Items: items(0, append(slices.Clone(c.first), c.left...)...), Empty: []int64{10, 10}, Limit: c.bins}
		var order, rest []int
		for i := range p.Items {
			if i < len(c.first) {
				order = append(order, i)
			} else {
				rest = append(rest, i)
			}
		}
		k := p.FirstFit(order)
		two, large := p.PackTwoSizes(&k, rest, []int64{5, 5}, c.limit)
		got := "none"
		if two != nil {
			got = told(two)
		}
		if got != c.want || large != c.large {
			t.Errorf("%s: %s, %d large", name, got, large)
		}
	}
}

// TestTries: which orders help, and from which number of looks on they are not tried. Items have their place as priority where it
// counts.
func TestTries(t *testing.T) {
	for name, c := range map[string]struct {
		items    [][3]int64
		priority bool
		times    int // so often the counts
		open     int // bins that nothing may go on
		limit    int // 0: none
		want     int // bins, divided by times
	}{
		"narrow shares":                           {[][3]int64{{5, 3, 2}, {1, 3, 4}}, false, 1, 0, 0, 2},
		"of many looks at open bins":              {[][3]int64{{5, 3, 2}, {1, 3, 4}}, false, 1, hugeOpenLooks / 2, 0, 2},
		"of too many looks at open bins":          {[][3]int64{{5, 3, 2}, {1, 3, 4}}, false, 1, hugeOpenLooks/2 + 1, 0, 3},
		"wide shares":                             {[][3]int64{{2, 9, 5}, {3, 3, 4}, {2, 4, 4}}, false, 1, 0, 0, 8},
		"the pair":                                {[][3]int64{{0, 5, 2}, {5, 2, 3}, {1, 5, 4}}, false, 1, 0, 0, 4},
		"the pair, also where looks are too many": {[][3]int64{{0, 5, 2}, {5, 2, 3}, {1, 5, 4}}, false, 1, hugeOpenLooks, 0, 4},
		"scarcity":                                {[][3]int64{{1, 5, 4}, {4, 1, 5}, {3, 3, 2}, {4, 4, 1}}, false, 1, 0, 0, 5},
		"not where looks are too many":            {[][3]int64{{1, 5, 4}, {4, 1, 5}, {3, 3, 2}, {4, 4, 1}}, false, 1, hugeOpenLooks, 0, 6},
		"one bin above is close enough":           {[][3]int64{{2, 5, 5}, {4, 2, 5}, {10, 10, 196}}, true, 1, 0, 0, 201},
		"of a hundred too":                        {[][3]int64{{2, 5, 5}, {4, 2, 5}, {10, 10, 96}}, true, 1, 0, 0, 101},
		"of fewer it is not":                      {[][3]int64{{2, 5, 5}, {4, 2, 5}, {10, 10, 95}}, true, 1, 0, 0, 99},
		"narrow shares within a limit":            {[][3]int64{{5, 3, 2}, {1, 3, 4}}, false, 1, 0, 2, 2},
		"the pair within a limit":                 {[][3]int64{{0, 5, 2}, {5, 2, 3}, {1, 5, 4}}, false, 1, 0, 4, 4},
		"priority":                                {[][3]int64{{2, 5, 5}, {4, 2, 5}}, true, 1, 0, 0, 4},
		"where all have the same":                 {[][3]int64{{2, 5, 5}, {4, 2, 5}}, false, 1, 0, 0, 5},
		"of many looks at fresh bins":             {[][3]int64{{2, 5, 5}, {4, 2, 5}}, true, hugeLooks / 10, 0, 0, 4},
		"of too many looks at fresh bins":         {[][3]int64{{2, 5, 5}, {4, 2, 5}}, true, hugeLooks/10 + 1, 0, 0, 5},
	} {
		p := &Problem{Items: items(0, c.items...), Open: make([][]int64, c.open), Empty: []int64{10, 10}, Limit: cmp.Or(c.limit, math.MaxInt)}
		for i := range p.Items {
			p.Items[i].Count *= c.times
			if c.priority {
				p.Items[i].Prio = int32(i)
			}
		}
		k := p.tryOrders(p.LowerBound())
		if got := (k.Bins + c.times - 1) / c.times; got != c.want || k.Unplaced() > 0 {
			t.Errorf("%s: %d bins for %d times the pods, %d left", name, k.Bins, c.times, k.Unplaced())
		}
	}
	ten := &Problem{Items: make([]Item, 10), Empty: []int64{10, 10}}
	for bound, want := range map[int]int{99: 99, 100: 101, largeLooks / 10: largeLooks/10 + largeLooks/1000, largeLooks/10 + 100: largeLooks/10 + 100 + largeLooks/500 + 2} {
		if got := ten.tolerance(bound); got != want {
			t.Errorf("%d bins are enough where %d are needed", got, bound)
		}
	}
	for _, c := range []struct {
		left, bins, than, by int
		want                 bool
	}{{0, 5, 1, 3, true}, {1, 3, 0, 5, false}, {1, 3, 1, 4, true}, {1, 4, 1, 4, false}} {
		a, b := Packing{Left: []int{c.left}, Bins: c.bins}, Packing{Left: []int{c.than}, Bins: c.by}
		if a.better(&b) != c.want {
			t.Errorf("%+v: better %v", c, !c.want)
		}
	}
}

// TestManyLooks: from so many looks on it is packed bin by bin, which is told by the order of what is in a bin.
func TestManyLooks(t *testing.T) {
	for n, want := range map[int]string{
		manyLooks / 2: "10000000 times 1 of 0 1 of 1", manyLooks/2 + 1: "10000001 times 1 of 1 1 of 0",
	} {
		p := &Problem{Items: items(0, [3]int64{0, 6, 0}, [3]int64{6, 0, 0}), Empty: []int64{10, 10}, Limit: math.MaxInt}
		p.Items[0].Count, p.Items[1].Count = n, n
		k := Pack(p)
		if got := told(&k); got != want {
			t.Errorf("%d of each: %s", n, got)
		}
	}
}

// TestBinByBinExactly: what each bin takes.
func TestBinByBinExactly(t *testing.T) {
	many := func(of [3]int64) (list [][3]int64) {
		for range missesPerBin + 1 {
			list = append(list, of)
		}
		return list
	}
	for name, c := range map[string]struct {
		items [][3]int64
		open  [][]int64
		mem   int64 // of a fresh bin
		want  string
	}{
		"what fits exactly":                    {[][3]int64{{6, 0, 1}, {5, 0, 1}, {4, 0, 1}}, nil, 10, "1 times 1 of 0 1 of 2; 1 times 1 of 1"},
		"of two dimensions the first":          {[][3]int64{{0, 5, 1}, {5, 0, 1}}, nil, 10, "1 times 1 of 1 1 of 0"},
		"of an item that asks of both as much": {[][3]int64{{0, 5, 1}, {5, 5, 1}}, nil, 10, "1 times 1 of 1 1 of 0"},
		"many that fit nowhere":                {append(many([3]int64{11, 0, 1}), [3]int64{1, 0, 1}), nil, 10, "1 times 1 of 129"},
		"many that have room already":          {append(many([3]int64{2, 0, 1}), [3]int64{1, 1, 1}), [][]int64{{258, 0}}, 10, "1 times 1 of 129"},
		"many that ask for what no bin has":    {append(many([3]int64{5, 1, 1}), [3]int64{1, 0, 1}), nil, 0, "1 times 1 of 129"},
	} {
		p := &Problem{Items: items(len(c.open), c.items...), Open: c.open, Empty: []int64{10, c.mem}, Limit: 99}
		k := p.packBinByBin()
		var fresh []string
		for _, x := range strings.Split(told(&k), "; ") {
			if strings.Contains(x, " times ") {
				fresh = append(fresh, x)
			}
		}
		if got := strings.Join(fresh, "; "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
