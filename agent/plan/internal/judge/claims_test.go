package judge

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// put binds pods of a class on a machine that a trial has added.
func (j *model) put(class, machine, n int) {
	for range n {
		j.sim.BindTo(class, j.nodes+machine)
	}
}

// sizes adds a class for each amount of cpu, with a pod that waits.
func (k *market) sizes(cpu ...int64) {
	for _, c := range cpu {
		k.waiting(1, c, 64)
	}
}

// TestKeepOnNew: which of the pods that kube-scheduler leaves have room on the new machines in another arrangement, by class and
// group (a, b). A machine has 4 cores.
func TestKeepOnNew(t *testing.T) {
	for name, c := range map[string]struct {
		classes  func(k *market)
		machines []int
		put      func(j *model)
		left     map[int]int
		want     string
	}{
		"a free machine":       {func(k *market) { k.sizes(1000) }, []int{1, 0}, nil, map[int]int{0: 3}, "map[0:[3 0]], left map[0:0]"},
		"more than it takes":   {func(k *market) { k.sizes(1000) }, []int{1, 0}, nil, map[int]int{0: 5}, "map[0:[4 0]], left map[0:1]"},
		"the second group":     {func(k *market) { k.sizes(1000) }, []int{0, 1}, nil, map[int]int{0: 3}, "map[0:[0 3]], left map[0:0]"},
		"no machine":           {func(k *market) { k.sizes(1000) }, []int{0, 0}, nil, map[int]int{0: 3}, "map[], left map[0:3]"},
		"too large":            {func(k *market) { k.sizes(5000) }, []int{1, 0}, nil, map[int]int{0: 1}, "map[], left map[0:1]"},
		"two together":         {func(k *market) { k.sizes(3000, 2000) }, []int{2, 0}, nil, map[int]int{0: 1, 1: 1}, "map[0:[1 0] 1:[1 0]], left map[0:0 1:0]"},
		"they stand otherwise": {func(k *market) { k.sizes(2000, 4000) }, []int{2, 0}, func(j *model) { j.put(0, 0, 1); j.put(0, 1, 1) }, map[int]int{1: 1}, "map[1:[1 0]], left map[1:0]"},
		"those that stand find no room otherwise": {func(k *market) { k.sizes(2000, 1500, 1000, 100) }, []int{2, 0}, func(j *model) {
			j.put(0, 0, 1)
			j.put(2, 0, 2)
			j.put(1, 1, 2)
			j.put(2, 1, 1)
		}, map[int]int{3: 1}, "map[], left map[3:1]"},
		"a smaller one has": {func(k *market) { k.sizes(5000, 500) }, []int{1, 0}, nil, map[int]int{0: 1, 1: 1}, "map[1:[1 0]], left map[0:1 1:0]"},
		"one on each host":  {func(k *market) { k.sizes(1000); apart(&k.s.Classes[0], hostLabel) }, []int{1, 0}, nil, map[int]int{0: 1}, "map[0:[1 0]], left map[0:0]"},
		"those do not move": {func(k *market) { k.sizes(2000, 4000); apart(&k.s.Classes[0], hostLabel) }, []int{2, 0}, func(j *model) { j.put(0, 0, 1); j.put(0, 1, 1) }, map[int]int{1: 1}, "map[], left map[1:1]"},
		"on two machines together": {func(k *market) {
			k.sizes(2500, 3000)
			apart(&k.s.Classes[0], hostLabel)
			apart(&k.s.Classes[1], hostLabel)
		}, []int{2, 0}, func(j *model) { j.put(0, 0, 1); j.put(0, 1, 1) }, map[int]int{1: 1}, "map[1:[1 0]], left map[1:0]"},
		"a group of its own": {func(k *market) { k.sizes(1000); k.s.Classes[0].NodeSelector = map[string]string{"pool": "b"} }, []int{1, 1}, nil, map[int]int{0: 1}, "map[0:[0 1]], left map[0:0]"},
		"its group is full": {func(k *market) {
			k.sizes(1000, 3500)
			k.s.Classes[0].NodeSelector = map[string]string{"pool": "b"}
			apart(&k.s.Classes[1], hostLabel)
		}, []int{1, 1},
			func(j *model) { j.put(1, 1, 1) }, map[int]int{0: 1}, "map[], left map[0:1]"},
		"a node has some": {func(k *market) {
			k.sizes(1000, 500)
			k.s.Nodes = []*cluster.Node{{Name: "n", Ready: cluster.StatusTrue, Allocatable: cluster.Resources{MilliCPU: 1000, Memory: 1 << 30, Pods: 9}}}
		}, []int{1, 0}, nil, map[int]int{0: 2}, "map[0:[2 0]], left map[0:0]"},
	} {
		k := newMarket()
		k.group("a", "z", 4000, 8192, 4)
		k.group("b", "z", 4000, 8192, 5)
		c.classes(k)
		j := k.model()
		j.addMachines(c.machines)
		if c.put != nil {
			c.put(j)
		}
		kept := j.keepOnNew(c.left)
		if got := fmt.Sprintf("%v, left %v", kept, c.left); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		if packed, _ := j.repack(map[int]int{}, j.nodes); name == "those do not move" && len(packed) > 0 {
			t.Errorf("%v are moved that depend on others", packed)
		}
	}
}

// TestKeepReserved: pods that an earlier round counted on a machine that is upcoming go on counting on it, and no others.
func TestKeepReserved(t *testing.T) {
	for name, c := range map[string]struct {
		change func(k *market)
		left   map[int]int
		want   string
	}{
		"nothing is reserved": {func(k *market) { k.m.Reservations = nil }, map[int]int{0: 1}, "map[], left map[0:1]"},
		"one is":              {func(*market) {}, map[int]int{0: 1}, "map[0:[1 0]], left map[0:0]"},
		"others are not":      {func(*market) {}, map[int]int{0: 2, 1: 1}, "map[0:[1 0]], left map[0:1 1:1]"},
		"on both groups": {func(k *market) {
			k.s.Groups[1].Target = 1
			k.m.Reservations = append(k.m.Reservations, decision.Reservation{Group: "b", Pods: []cluster.PodKey{"p0-01"}})
		}, map[int]int{0: 2}, "map[0:[1 1]], left map[0:0]"},
		"a node is there too": {func(k *market) {
			k.s.Nodes = []*cluster.Node{{Name: "n", Ready: cluster.StatusTrue, Allocatable: cluster.Resources{MilliCPU: 500, Memory: 1 << 30, Pods: 9}}}
		}, map[int]int{0: 1}, "map[0:[1 0]], left map[0:0]"},
	} {
		k := newMarket()
		k.group("a", "z", 4000, 8192, 4).Target = 1
		k.group("b", "z", 4000, 8192, 5)
		k.waiting(2, 2500, 64)
		k.waiting(1, 100, 64)
		k.m.Reservations = []decision.Reservation{{Group: "a", Pods: []cluster.PodKey{"p0-00"}}}
		c.change(k)
		j := k.model()
		j.rollback(j.joined) // no pod is bound on them yet
		kept := j.keepReserved(c.left)
		if got := fmt.Sprintf("%v, left %v", kept, c.left); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestKeepHeadroom: pieces of headroom that new machines have room for are kept; pods are not.
func TestKeepHeadroom(t *testing.T) {
	k := newMarket()
	k.group("a", "z", 4000, 8192, 4)
	k.waiting(1, 1000, 64)
	k.p.Headroom = []cluster.Headroom{{Name: "spare", Count: 9, Piece: cluster.PodClass{Requests: cluster.Resources{MilliCPU: 1500}}}}
	j := k.model()
	j.addMachines([]int{1})
	left := map[int]int{0: 1, 1: 3}
	if kept := j.keepHeadroom(left); kept != 2 || fmt.Sprint(left) != "map[0:1 1:1]" {
		t.Errorf("%d are kept, left are %v", kept, left)
	}
	left = map[int]int{0: 1}
	if kept := j.keepHeadroom(left); kept != 0 || left[0] != 1 {
		t.Errorf("%d are kept, left are %v", kept, left)
	}
}

// TestArrangement: pods stay where the model has put them, unless another arrangement on the new machines has room for more.
func TestArrangement(t *testing.T) {
	build := func(more ...int64) *model {
		k := newMarket()
		k.group("a", "z", 4000, 8192, 4)
		k.s.Nodes = []*cluster.Node{{Name: "n", Ready: cluster.StatusTrue, Allocatable: cluster.Resources{MilliCPU: 300, Memory: 1 << 30, Pods: 9}}}
		k.waiting(2, 2000, 64)
		k.waiting(1, 300, 64) // on the node
		k.sizes(more...)
		for i := range more {
			if more[i] == 50 {
				apart(&k.s.Classes[2+i], hostLabel)
			}
		}
		j := k.model()
		j.addMachines([]int{2})
		j.put(0, 0, 1)
		j.put(0, 1, 1)
		return j
	}
	for name, c := range map[string]struct {
		more  []int64
		put   int // the class of a pod more on the first machine; 0: none
		stuck map[int]int
		want  string
	}{
		"all are placed":        {nil, 0, nil, "[{1 0 1} {0 1 1} {0 2 1}]"},
		"one is left":           {[]int64{4000}, 0, nil, "[{1 0 1} {2 1 1} {0 2 2}]"},
		"that nothing helps":    {[]int64{4000}, 0, map[int]int{2: 1}, "[{1 0 1} {0 1 1} {0 2 1}]"},
		"that keeps off others": {[]int64{50}, 0, nil, "[{1 0 1} {0 1 1} {0 2 1}]"},
		"that is too large":     {[]int64{5000}, 0, nil, "[{1 0 1} {0 1 1} {0 2 1}]"},
		"beside one that stays": {[]int64{3900, 50}, 3, nil, "[{1 0 1} {3 1 1} {2 1 1} {0 2 2}]"},
	} {
		j := build(c.more...)
		if c.put > 0 {
			j.put(c.put, 0, 1)
		}
		bound := j.placed(j.joined)
		var queue = bound[:0:0]
		for _, p := range bound {
			if p.Node > 0 {
				queue = append(queue, p)
			}
		}
		if got := fmt.Sprint(j.arrangement(queue, c.stuck)); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestArrangementOnUpcoming: pods that the model has put on a machine that is upcoming move only where that makes room for more, and
// those on a node that is there never.
func TestArrangementOnUpcoming(t *testing.T) {
	for _, c := range []struct {
		machines int
		want     string // node 0 is there, 1 is upcoming, the others are new
	}{
		{2, "[{1 0 1} {0 1 1} {2 2 1} {0 3 2}]"},
		{1, "[{1 0 1} {2 1 1} {0 2 2}]"},
	} {
		k := newMarket()
		k.group("a", "z", 4000, 8192, 4).Target = 1
		k.s.Nodes = []*cluster.Node{{Name: "n", Ready: cluster.StatusTrue, Allocatable: cluster.Resources{MilliCPU: 300, Memory: 1 << 30, Pods: 9}}}
		k.waiting(1+c.machines, 2000, 64)
		k.waiting(1, 300, 64)
		k.waiting(1, 4000, 64)
		k.m.Reservations = []decision.Reservation{{Group: "a", Pods: []cluster.PodKey{"p0-00"}}}
		j := k.model()
		j.rollback(j.joined)
		j.sim.BindTo(0, 1)
		j.addMachines([]int{c.machines})
		for i := range c.machines {
			j.put(0, i, 1)
		}
		j.lacking = []int{0, 0, 1}
		if got := fmt.Sprint(j.arrangement(nil, nil)); got != c.want {
			t.Errorf("%d new machines: %s", c.machines, got)
		}
	}
}
