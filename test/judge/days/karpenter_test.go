package days

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestKarpentersRule: what the rule makes of machines, worked out by hand. A small machine has 2 cores for 1, a large one 4 for 1.9, a
// huge one 8 for 3.7; a number is a pod's cores.
func TestKarpentersRule(t *testing.T) {
	for _, c := range []struct {
		name    string
		small   [][]float64
		large   [][]float64
		huge    [][]float64
		booting int // small ones
		want    float64
	}{
		{name: "empty ones go", small: [][]float64{{}, {2}}, large: [][]float64{{}}, want: 1},
		{name: "two that are half full are one", small: [][]float64{{1}, {1}}, want: 1},
		{name: "a large one is replaced by a small one", large: [][]float64{{2}}, want: 1},
		{name: "two full small ones are one large one", small: [][]float64{{2}, {2}}, want: 1.9},
		{name: "three of 1.5 are a small and a large one, of which no rule is better", small: [][]float64{{1.5}, {1.5}, {1.5}}, want: 2.9},
		{name: "four full small ones are one huge one", small: [][]float64{{2}, {2}, {2}, {2}}, want: 3.7},
		{name: "nothing is cheaper", large: [][]float64{{3}, {3.5}}, want: 3.7},
		{name: "a small one takes in what is on the large one", small: [][]float64{{1}}, large: [][]float64{{1}}, want: 1},
		{name: "a machine that has not joined stays and takes no pod", small: [][]float64{{1}}, booting: 1, want: 2},
		{name: "two dear ones in place of one are not looked for", huge: [][]float64{{2.5, 2.5}}, want: 3.7},
	} {
		w := &world{}
		w.clock.Now = begin
		for i, price := range []float64{1, 1.9, 3.7} {
			g := &group{NodeGroup: cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprint("g", i)), Price: price}}
			g.Template.Allocatable = cluster.Resources{MilliCPU: 2000 << i, Memory: 64 << 30, Pods: 100}
			w.groups = append(w.groups, g)
			for _, cores := range [][][]float64{c.small, c.large, c.huge}[i] {
				n := &node{ready: true}
				for _, x := range cores {
					w.serial++
					p := &pod{service: &service{Workload: &Workload{Milli: int64(x * 1000), MiB: 100}}, object: &corev1.Pod{}}
					p.object.UID = types.UID(fmt.Sprint(w.serial))
					n.pods = append(n.pods, p)
				}
				m := &machine{group: g, node: n}
				m.Created = begin.Add(-time.Duration(len(w.pods)) * time.Minute)
				g.machines = append(g.machines, m)
			}
		}
		for range c.booting {
			w.groups[0].machines = append(w.groups[0].machines, &machine{group: w.groups[0]})
		}
		if got := w.karpenter(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %.2f an hour, by hand %.2f", c.name, got, c.want)
		}
	}
}
