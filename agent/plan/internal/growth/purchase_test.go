package growth

import (
	"fmt"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// bounded is a round with one group for each size and maximum, of machines of two cores, and a limit of all cores; 0: none. A
// negative maximum is that of a paused group.
func bounded(cores int64, sizes, most []int) *round.State {
	return oneGroup(func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) {
		machine := s.Groups[0].Template
		s.Groups, s.Nodes, p.MaxCoresTotal = nil, nil, cores
		for i := range sizes {
			g := cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprint("g", i)), Max: most[i], Target: sizes[i], ReadAt: now, Template: machine}
			if g.Max < 0 {
				g.Max, g.Pause = -g.Max, &cluster.Pause{}
			}
			s.Groups = append(s.Groups, g)
		}
	})
}

// TestAllows: the maximum of each group and the limits of the whole cluster hold for a purchase, and asking changes nothing.
func TestAllows(t *testing.T) {
	for name, c := range map[string]struct {
		cores    int64
		purchase []int
		want     bool
	}{
		"nothing":                   {0, []int{0, 0}, true},
		"up to both maxima":         {0, []int{3, 2}, true},
		"above the first":           {0, []int{4, 0}, false},
		"above the second":          {0, []int{0, 3}, false},
		"up to the cluster's limit": {8, []int{1, 1}, true},
		"above it together":         {8, []int{2, 1}, false},
		"above it with the second":  {8, []int{0, 3}, false},
	} {
		w := bounded(c.cores, []int{1, 1}, []int{4, 3})
		for range 2 {
			if got := Allows(w, c.purchase); got != c.want {
				t.Errorf("%s: %v", name, got)
			}
		}
		if w.Groups[0].Grow+w.Groups[1].Grow != 0 {
			t.Errorf("%s: the groups grow now", name)
		}
	}
}

// TestBeside: what a group may add beside a purchase.
func TestBeside(t *testing.T) {
	for name, c := range map[string]struct {
		cores    int64
		purchase []int
		want     int
	}{
		"nothing yet":               {0, []int{0, 0}, 3},
		"some of its own":           {0, []int{2, 0}, 1},
		"some of another":           {0, []int{0, 2}, 3},
		"the cluster's limit":       {8, []int{0, 0}, 2},
		"another takes of that":     {8, []int{0, 1}, 1},
		"and the whole of it, even": {8, []int{0, 2}, 0},
	} {
		w := bounded(c.cores, []int{1, 1}, []int{4, 3})
		for range 2 {
			if got := Beside(w, c.purchase, 0); got != c.want {
				t.Errorf("%s: %d, want %d", name, got, c.want)
			}
		}
	}
}

// TestShare: machines go to the smallest groups of a set first, and no group above its maximum.
func TestShare(t *testing.T) {
	for name, c := range map[string]struct {
		sizes, most []int
		n           int
		want        []int
	}{
		"evenly":                {[]int{0, 0, 0}, []int{9, 9, 9}, 6, []int{2, 2, 2}},
		"the first gets more":   {[]int{0, 0, 0}, []int{9, 9, 9}, 7, []int{3, 2, 2}},
		"the smallest first":    {[]int{3, 0, 1}, []int{9, 9, 9}, 5, []int{0, 3, 2}},
		"up to a maximum":       {[]int{0, 0, 0}, []int{1, 9, 9}, 6, []int{1, 3, 2}},
		"just all maxima":       {[]int{0, 1, 0}, []int{1, 2, 2}, 4, []int{1, 1, 2}},
		"more than all maxima":  {[]int{0, 1, 0}, []int{1, 2, 2}, 5, nil},
		"one that is paused":    {[]int{0, 0, 0}, []int{-9, 9, 9}, 3, []int{0, 2, 1}},
		"none":                  {[]int{1, 0}, []int{9, 9}, 0, []int{0, 0}},
		"beyond its own growth": {[]int{8, 0}, []int{9, 3}, 4, []int{1, 3}},
	} {
		w := bounded(0, c.sizes, c.most)
		x, set := make([]int, len(c.sizes)), make([]int, len(c.sizes))
		for g := range set {
			set[g] = g
		}
		if ok := Share(w, x, set, c.n); ok != (c.want != nil) || ok && !slices.Equal(x, c.want) {
			t.Errorf("%s: %v, %v", name, x, ok)
		}
	}
}
