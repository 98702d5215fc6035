package exchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// show writes exchanges as "out n>in m": so many machines of a group go and so many of another come.
func show(list []Exchange) string {
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprintf("%d %d>%d %d", e.Out, e.N, e.In, e.M))
	}
	return strings.Join(out, ", ")
}

// TestSaving: which exchanges are tried, what saves most first.
func TestSaving(t *testing.T) {
	for name, c := range map[string]struct {
		cost     []float64
		groups   []int
		machines []int
		want     string
	}{
		"one group":                      {[]float64{1}, []int{0}, []int{5}, "0 3>0 0, 0 2>0 0, 0 1>0 0"},
		"a group that may not be bought": {[]float64{1, 2}, []int{0}, []int{0, 1}, "1 3>1 0, 1 3>0 1, 1 2>1 0, 0 3>0 0, 1 2>0 1, 0 2>0 0, 1 1>1 0, 0 1>0 0, 1 1>0 1"},
		"and has no machines":            {[]float64{1, 2}, []int{0}, []int{1, 0}, "0 3>0 0, 0 2>0 0, 0 1>0 0"},
	} {
		if got := show(Saving(c.cost, c.groups, c.machines)); got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

// TestSavingFor: of two groups that cost so much, the machines of the first that go for some of the second.
func TestSavingFor(t *testing.T) {
	for name, c := range map[string]struct {
		cost []float64
		want string
	}{
		"as dear":                   {[]float64{1, 1}, "0 3>1 1, 0 2>1 1"},
		"cheaper by no amount":      {[]float64{2e-9, 1e-9}, "0 3>1 1, 0 2>1 1"},
		"half":                      {[]float64{2, 1}, "0 3>1 1, 0 2>1 1, 0 1>1 1"},
		"double":                    {[]float64{1, 2}, "0 4>1 1, 0 3>1 1"},
		"two and a half times":      {[]float64{2, 5}, "0 4>1 1, 0 3>1 1"},
		"two fifths":                {[]float64{5, 2}, "0 3>1 1, 0 2>1 1, 0 1>1 1, 0 1>1 2"},
		"just three cost less":      {[]float64{3.5, 1}, "0 3>1 1, 0 2>1 1, 0 1>1 1, 0 1>1 2, 0 1>1 3"},
		"more than three cost less": {[]float64{10, 1}, "0 3>1 1, 0 2>1 1, 0 1>1 1, 0 1>1 2"},
	} {
		list := slices.DeleteFunc(Saving(c.cost, []int{0, 1}, []int{9, 0}), func(e Exchange) bool { return e.Out != 0 || e.In == 0 })
		if got := show(list); got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

// TestEqual: which exchanges change nothing of the cost, the largest first.
func TestEqual(t *testing.T) {
	for name, c := range map[string]struct {
		cost     []float64
		machines []int
		want     string
	}{
		"as dear":                               {[]float64{1, 1}, []int{5, 0}, "0 5>1 5, 0 3>1 3, 1 3>0 3, 0 2>1 2, 1 2>0 2, 0 1>1 1, 1 1>0 1"},
		"two for three":                         {[]float64{3, 2}, []int{4, 0}, "0 4>1 6, 1 3>0 2, 0 2>1 3"},
		"less than one machine of a dear group": {[]float64{1, 8}, []int{1, 0}, "0 8>1 1, 1 3>0 24, 1 2>0 16, 1 1>0 8"},
		"equal but for noise":                   {[]float64{1e9, 1e9 - 1}, []int{1, 0}, "0 3>1 3, 0 2>1 2, 0 1>1 1"},
		"more than noise":                       {[]float64{1e9, 1e9 - 3}, []int{1, 0}, ""},
	} {
		list := Equal(c.cost, []int{0, 1}, c.machines)
		if got := show(list); got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}
