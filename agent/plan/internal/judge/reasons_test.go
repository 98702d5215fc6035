package judge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// fragmented is a market in which kube-scheduler puts two small pods on a machine each, so that a large one has room on none of two.
func fragmented(change func(k *market)) *model {
	k := newMarket()
	k.group("a", "z", 4000, 8192, 4)
	k.group("b", "z", 4000, 8192, 5)
	k.waiting(2, 1000, 64).Priority = 1
	k.waiting(1, 4000, 64)
	change(k)
	return k.model()
}

// TestLeaves: how many pods kube-scheduler leaves that have room by size on the machines of a purchase.
func TestLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		change func(k *market)
		x      []int
		want   int
	}{
		"a machine more than by size": {func(*market) {}, []int{3, 0}, 0},
		"as by size":                  {func(*market) {}, []int{2, 0}, 1},
		"of two groups":               {func(*market) {}, []int{1, 1}, 1},
		"less than by size":           {func(*market) {}, []int{1, 0}, 0},
		"one is too large":            {func(k *market) { k.waiting(1, 9000, 64) }, []int{2, 0}, 1},
		"a small one has no room":     {func(k *market) { k.waiting(4, 1500, 64) }, []int{2, 0}, 0},
		"it keeps off others":         {func(k *market) { apart(&k.s.Classes[1], hostLabel) }, []int{2, 0}, 0},
		"headroom is left too": {func(k *market) {
			k.p.Headroom = []cluster.Headroom{{Name: "spare", Count: 1, Piece: cluster.PodClass{Requests: cluster.Resources{MilliCPU: 4000}}}}
		}, []int{2, 0}, 1},
	} {
		j := fragmented(c.change)
		before := j.sim.Nodes()
		if got := j.leaves(c.x); got != c.want || j.sim.Nodes() != before {
			t.Errorf("%s: %d, on %d nodes afterwards", name, got, j.sim.Nodes())
		}
	}
}

// TestReasons: the reason of a purchase tells, for each group (a, b), which machines it buys beyond those that the size of the pods needs, and which pods it may leave.
func TestReasons(t *testing.T) {
	const less, left = "less", "leave"
	for name, c := range map[string]struct {
		x     []int
		left  int
		steps int // that are left; -1: enough
		want  string
	}{
		"nothing is bought":             {[]int{0, 0}, 2, -1, ", "},
		"a machine more than by size":   {[]int{3, 0}, 0, -1, "less 1 pod, "},
		"of two groups":                 {[]int{2, 1}, 0, -1, "less 1 pod, less 1 pod"},
		"of the second":                 {[]int{0, 3}, 0, -1, ", less 1 pod"},
		"two more than by size":         {[]int{4, 0}, 0, -1, ", "},
		"no machine of the second":      {[]int{2, 0}, 0, -1, ", "},
		"pods may be left":              {[]int{4, 0}, 2, -1, "leave 2 pods, "},
		"of the first that is bought":   {[]int{0, 4}, 2, -1, ", leave 2 pods"},
		"both":                          {[]int{3, 0}, 1, -1, "leave 1 pod, "},
		"both, of two groups":           {[]int{2, 1}, 1, -1, "leave 1 pod, less 1 pod"},
		"there are no steps":            {[]int{2, 1}, 1, -2, ", "},
		"there are steps for one group": {[]int{2, 1}, 0, 0, "less 1 pod, "},
	} {
		j := fragmented(func(*market) {})
		j.sim.Steps = 9
		switch {
		case c.steps == -2:
			j.most = j.sim.Steps - 1
		case c.steps >= 0:
			j.most = j.sim.Steps + c.steps
		}
		var got []string
		for _, r := range j.reasons(c.x, c.left) {
			_, pods, _ := strings.Cut(r, "leave ")
			pods, _, _ = strings.Cut(pods, " at first")
			switch {
			case strings.HasPrefix(r, "by size alone one machine less would do"):
				r = less + " " + pods
			case strings.HasPrefix(r, "kube-scheduler may leave"):
				r = left + " " + pods
			}
			got = append(got, r)
		}
		if is := strings.Join(got, ", "); is != c.want {
			t.Errorf("%s: %s", name, fmt.Sprint(is))
		}
	}
}
