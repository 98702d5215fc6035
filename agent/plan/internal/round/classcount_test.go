package round

import (
	"slices"
	"testing"
)

// TestClassCounter: each class once, in the order of naming or in the order that is asked for, and anew each time.
func TestClassCounter(t *testing.T) {
	falling := func(a, b int32) int { return int(b - a) }
	var c classCounter
	if got := c.Take(nil); len(got) > 0 {
		t.Errorf("nothing was counted: %v", got)
	}
	for name, x := range map[string]struct {
		add   []ClassCount
		order func(a, b int32) int
		want  []ClassCount
	}{
		"in the order of naming":    {[]ClassCount{{3, 1}, {0, 2}, {3, 4}}, nil, []ClassCount{{3, 5}, {0, 2}}},
		"in an order":               {[]ClassCount{{1, 1}, {0, 2}, {2, 4}}, falling, []ClassCount{{2, 4}, {1, 1}, {0, 2}}},
		"a class without pods":      {[]ClassCount{{0, 0}, {1, 1}}, nil, []ClassCount{{0, 0}, {1, 1}}},
		"a class behind all so far": {[]ClassCount{{90, 1}, {91, 1}, {90, 1}}, nil, []ClassCount{{90, 2}, {91, 1}}},
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
	var c classCounter
	var answers [][]ClassCount
	for n := range 3 * classCountsAtOnce {
		c.Add(n%7, n)
		answers = append(answers, c.Take(nil))
	}
	for class := range classCountsAtOnce + 1 {
		c.Add(class, class)
	}
	if most := c.Take(nil); len(most) != classCountsAtOnce+1 || most[classCountsAtOnce] != (ClassCount{classCountsAtOnce, classCountsAtOnce}) {
		t.Errorf("%d counts at once, the last %v", len(most), most[len(most)-1])
	}
	for n, got := range answers {
		if !slices.Equal(got, []ClassCount{{int32(n % 7), int32(n)}}) {
			t.Fatalf("answer %d became %v", n, got)
		}
	}
}
