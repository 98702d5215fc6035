package binpack

import (
	"math"
	"testing"
)

// TestHostSpreadAnswers: what each machine of 10 and 10 gets of pods that are spread over hosts, by a first dimension of a skew of 1
// and a second one of a skew of 2.
func TestHostSpreadAnswers(t *testing.T) {
	const first, second, both, none = 1, 2, 3, 0
	type class struct {
		cpu    int64
		count  int
		spread int
	}
	for name, c := range map[string]struct {
		classes []class
		below   int
		but     func(*Problem, *HostSpread)
		want    string
	}{
		"no spread":                            {[]class{{1, 10, none}}, 99, nil, "none"},
		"nothing says so":                      {[]class{{1, 10, first}}, 99, func(_ *Problem, lv *HostSpread) { lv.Dims = nil }, "none"},
		"one machine":                          {[]class{{1, 10, first}}, 99, nil, "1 times 10 of 0"},
		"as many as before":                    {[]class{{1, 10, first}}, 1, nil, "none"},
		"one less than before":                 {[]class{{1, 10, first}}, 2, nil, "1 times 10 of 0"},
		"no machine may come":                  {[]class{{1, 10, first}}, 99, func(p *Problem, _ *HostSpread) { p.Limit = 0 }, "none"},
		"one may":                              {[]class{{1, 10, first}}, 99, func(p *Problem, _ *HostSpread) { p.Limit = 1 }, "1 times 10 of 0"},
		"a skew of two":                        {[]class{{1, 25, second}}, 99, nil, "1 times 9 of 0; 2 times 8 of 0"},
		"a node that is there holds them back": {[]class{{1, 10, first}}, 99, func(_ *Problem, lv *HostSpread) { lv.Most[0] = 3 }, "1 times 4 of 0; 2 times 3 of 0"},
		"it holds the other class back":        {[]class{{1, 10, second}}, 99, func(_ *Problem, lv *HostSpread) { lv.Most[0] = 0 }, "1 times 10 of 0"},
		"pods beside them":                     {[]class{{1, 10, first}, {4, 5, none}}, 99, nil, "1 times 2 of 0 2 of 1; 2 times 3 of 0 1 of 1; 1 times 2 of 0 1 of 1"},
		"of two classes most of the larger":    {[]class{{0, 3, first}, {0, 7, first}, {10, 2, none}}, 99, nil, "1 times 2 of 0 3 of 1 1 of 2; 1 times 1 of 0 4 of 1 1 of 2"},
		"and of the larger that is said first": {[]class{{0, 7, first}, {0, 3, first}, {10, 2, none}}, 99, nil, "1 times 4 of 0 1 of 1 1 of 2; 1 times 3 of 0 2 of 1 1 of 2"},
		"of two that are as large the first":   {[]class{{0, 4, first}, {0, 4, first}, {10, 3, none}}, 99, nil, "1 times 2 of 0 1 of 1 1 of 2; 1 times 1 of 0 2 of 1 1 of 2; 1 times 1 of 0 1 of 1 1 of 2"},
		"classes of few pods":                  {[]class{{1, 1, first}, {1, 1, first}, {1, 1, first}, {10, 1, none}}, 99, nil, "none"},
		"of a size without pods":               {[]class{{10, 2, none}, {0, 6, first}}, 99, nil, "2 times 3 of 1 1 of 0"},
		"both spreads":                         {[]class{{1, 10, both}}, 99, nil, "none"},
		"each its own":                         {[]class{{1, 10, first}, {1, 8, second}}, 99, nil, "2 times 5 of 0 4 of 1"},
		"one of them is held back":             {[]class{{1, 10, first}, {1, 8, second}}, 99, func(_ *Problem, lv *HostSpread) { lv.Most[1] = 0 }, "2 times 2 of 0 2 of 1; 2 times 3 of 0 2 of 1"},
		"one of them is held back, and a node takes half": {[]class{{1, 10, first}, {1, 8, second}}, 99, func(p *Problem, lv *HostSpread) {
			lv.Most[1], p.Open = 0, [][]int64{{4, 4, 0, 9}}
			p.Items[1].On.Add(0)
		}, "open 0: 4 of 1; 2 times 2 of 0 1 of 1; 2 times 3 of 0 1 of 1"},
		"pods that go on a node only, told first": {[]class{{1, 4, first}, {1, 10, first}}, 99, func(p *Problem, _ *HostSpread) {
			p.Open, p.Items[0].Fresh = [][]int64{{4, 4, 9, 9}}, false
			p.Items[0].On.Add(0)
		}, "open 0: 4 of 0; 1 times 10 of 1"},
		"pods that go on a node only": {[]class{{1, 10, first}, {1, 4, first}}, 99, func(p *Problem, _ *HostSpread) {
			p.Open, p.Items[1].Fresh = [][]int64{{4, 4, 9, 9}}, false
			p.Items[1].On.Add(0)
		}, "open 0: 4 of 1; 1 times 10 of 0"},
		"full of what all have":            {[]class{{5, 2, first}, {0, 9, first}}, 99, nil, "1 times 2 of 0 9 of 1"},
		"pods that go on no fresh machine": {[]class{{1, 10, first}, {1, 50, first}}, 99, func(p *Problem, _ *HostSpread) { p.Items[1].Fresh = false }, "none"},
		"none of them are left":            {[]class{{1, 10, first}, {1, 0, first}}, 99, func(p *Problem, _ *HostSpread) { p.Items[1].Fresh = false }, "1 times 10 of 0"},
		"room on a node": {[]class{{5, 20, first}}, 99, func(p *Problem, _ *HostSpread) {
			p.Open = [][]int64{{100, 100, 9, 9}}
			p.Items[0].On.Add(0)
		}, "open 0: 6 of 0; 7 times 2 of 0"},
		"as many looks as there are": {[]class{{1, 10 * hostSpreadLooks, first}}, math.MaxInt, nil, "4000000 times 10 of 0"},
		"one more":                   {[]class{{1, 10*hostSpreadLooks + 10, first}}, math.MaxInt, nil, "none"},
	} {
		p := &Problem{Empty: []int64{10, 10, 1, 2}, Limit: math.MaxInt}
		for _, x := range c.classes {
			l := NewItem([]int64{x.cpu, 0, int64(x.spread & 1), int64(x.spread >> 1)})
			l.Count, l.Fresh = x.count, true
			p.Items = append(p.Items, l)
		}
		lv := &HostSpread{Dims: []int{2, 3}, Most: []int{math.MaxInt, math.MaxInt}}
		if c.but != nil {
			c.but(p, lv)
		}
		got := "none"
		if k, ok := p.PackHostSpread(lv, c.below); ok {
			got = told(&k)
			wide := *p
			wide.Empty = []int64{10, 10, math.MaxInt32, math.MaxInt32}
			verify(t, &wide, &k)
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if _, ok := (&Problem{Items: items(0, [3]int64{1, 1, 5}), Empty: []int64{10, 10}, Limit: 9}).PackHostSpread(nil, 9); ok {
		t.Error("an answer without a spread")
	}
}
