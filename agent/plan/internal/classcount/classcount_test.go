package classcount

import (
	"slices"
	"testing"
)

// TestCounter: each class once, in the order of naming or in the order that is asked for, and anew each time.
func TestCounter(t *testing.T) {
	falling := func(a, b int32) int { return int(b - a) }
	var c Counter
	if got := c.Take(nil); len(got) > 0 {
		t.Errorf("nothing was counted: %v", got)
	}
	for name, x := range map[string]struct {
		add   []Count
		order func(a, b int32) int
		want  []Count
	}{
		"in the order of naming":    {[]Count{{3, 1}, {0, 2}, {3, 4}}, nil, []Count{{3, 5}, {0, 2}}},
		"in an order":               {[]Count{{1, 1}, {0, 2}, {2, 4}}, falling, []Count{{2, 4}, {1, 1}, {0, 2}}},
		"a class without pods":      {[]Count{{0, 0}, {1, 1}}, nil, []Count{{0, 0}, {1, 1}}},
		"a class behind all so far": {[]Count{{90, 1}, {91, 1}, {90, 1}}, nil, []Count{{90, 2}, {91, 1}}},
		"nothing":                   {nil, nil, nil},
	} {
		for range 2 {
			for _, a := range x.add {
				c.Add(int(a.Class), int(a.N))
			}
			if got := c.Take(x.order); !slices.Equal(got, x.want) {
				t.Errorf("%s: %v, want %v", name, got, x.want)
			}
		}
	}
}

// TestAnswersStay: an answer keeps its counts however many follow.
func TestAnswersStay(t *testing.T) {
	var c Counter
	var answers [][]Count
	for n := range 3 * countsAtOnce {
		c.Add(n%7, n)
		answers = append(answers, c.Take(nil))
	}
	for class := range countsAtOnce + 1 {
		c.Add(class, class)
	}
	if most := c.Take(nil); len(most) != countsAtOnce+1 || most[countsAtOnce] != (Count{countsAtOnce, countsAtOnce}) {
		t.Errorf("%d counts at once, the last %v", len(most), most[len(most)-1])
	}
	for n, got := range answers {
		if !slices.Equal(got, []Count{{int32(n % 7), int32(n)}}) {
			t.Fatalf("answer %d became %v", n, got)
		}
	}
}
