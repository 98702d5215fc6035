package round

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// reserved notes that a pod, or so many pods that a controller has still to make, count on the group.
func (l *ledger) reserved(group cluster.GroupID, key cluster.PodKey, missing int) {
	if key != "" {
		l.m.Reservations = append(l.m.Reservations, decision.Reservation{Group: group, Pods: []cluster.PodKey{key}})
	}
	if missing > 0 {
		Set(&l.m.ReservedMissing, MissingPodsKey(group, "web"), missing)
	}
}

// TestOrphanedUpcoming: how many machines of the group are coming of which the memory does not say which pods they were bought for.
func TestOrphanedUpcoming(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ledger)
		want   string
	}{
		"none":          {func(*ledger) {}, "map[]"},
		"one is coming": {func(l *ledger) { l.machine("3", time.Minute) }, "map[w:1]"},
		"one in place of one that is ended": {func(l *ledger) {
			l.machine("3", time.Minute)
			l.g().Instances[0].Interruption = &cluster.Interruption{}
		}, "map[]"},
		"fewer than are ended":             {func(l *ledger) { l.g().Instances[0].Interruption = &cluster.Interruption{} }, "map[]"},
		"one has joined, and is not Ready": {func(l *ledger) { l.s.Nodes[0].Ready, l.s.Nodes[0].Created = cluster.StatusFalse, l.s.Now }, "map[w:1]"},
		"one is not Ready any more":        {func(l *ledger) { l.s.Nodes[0].Ready = cluster.StatusFalse }, "map[]"},
		"one that lacks a label":           {func(l *ledger) { l.starting(l.s.Nodes[0]) }, "map[]"},
		"one with a taint of the start": {func(l *ledger) {
			l.starting(l.s.Nodes[0])
			l.s.Nodes[0].Labels, l.s.Nodes[0].Taints = map[string]string{"late": "yes"}, []cluster.Taint{{Key: "start", Effect: "NoSchedule"}}
			l.s.Classes = []cluster.PodClass{{}}
		}, "map[w:1]"},
		"both kinds": {func(l *ledger) {
			l.machine("3", time.Minute)
			l.s.Nodes[0].Ready, l.s.Nodes[0].Created = cluster.StatusFalse, l.s.Now
		}, "map[w:2]"},
		"one was known": {func(l *ledger) {
			l.machine("3", time.Minute)
			l.machine("4", time.Minute)
			l.m.OrphanedUpcoming = map[cluster.GroupID]int{"w": 1}
		}, "map[w:1]"},
		"more were known":               {func(l *ledger) { l.machine("3", time.Minute); l.m.OrphanedUpcoming = map[cluster.GroupID]int{"w": 3} }, "map[w:1]"},
		"it was asked for":              {func(l *ledger) { l.machine("3", time.Minute); l.resized(time.Second, time.Time{}) }, "map[]"},
		"a pod counts on it":            {func(l *ledger) { l.machine("3", time.Minute); l.reserved("w", "a", 0) }, "map[]"},
		"a pod counts on another group": {func(l *ledger) { l.machine("3", time.Minute); l.reserved("b", "a", 0) }, "map[w:1]"},
		"it was known before it was asked for": {func(l *ledger) {
			l.machine("3", time.Minute)
			l.resized(time.Second, time.Time{})
			l.m.OrphanedUpcoming = map[cluster.GroupID]int{"w": 1}
		}, "map[w:1]"},
	} {
		l := newLedger()
		c.change(l)
		w := l.count()
		w.CountOrphanedUpcoming()
		if got := fmt.Sprint(w.Next.OrphanedUpcoming); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNewNodes: which nodes are upcoming or have just become of use.
func TestNewNodes(t *testing.T) {
	ready := func(n *cluster.Node, at time.Time) { n.ReadySince = at }
	for name, c := range map[string]struct {
		change func(*ledger)
		want   string
	}{
		"a machine comes":                 {func(l *ledger) { l.machine("3", time.Minute) }, "[]"},
		"a machine has just become Ready": {func(l *ledger) { ready(l.s.Nodes[0], l.ago(9*time.Second)) }, "[0]"},
		"a while ago":                     {func(l *ledger) { ready(l.s.Nodes[0], l.ago(10*time.Second)) }, "[]"},
		"a node of no group has": {func(l *ledger) {
			ready(l.s.Nodes[0], l.s.Now)
			l.foreign(l.s.Nodes[0])
			l.g().Instances[0].Phase = cluster.PhaseGone
			l.g().Target--
		}, "[0]"},
		"one is not Ready again": {func(l *ledger) {
			ready(l.s.Nodes[0], l.s.Now)
			l.s.Nodes[0].Ready = cluster.StatusFalse
		}, "[]"},
		"one has joined": {func(l *ledger) { l.s.Nodes[1].Ready, l.s.Nodes[1].Created = cluster.StatusFalse, l.s.Now }, "[1]"},
	} {
		l := newLedger()
		c.change(l)
		w := l.count()
		for range 2 {
			if got := fmt.Sprint(w.NewNodes()); got != c.want {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// TestCapacity: what all nodes have, and those of them that go.
func TestCapacity(t *testing.T) {
	l := newLedger()
	l.joined("3", time.Hour)
	l.p.GPUTotal = []decision.Bound{{Resource: "gpu"}}
	for i, n := range l.s.Nodes {
		n.Capacity = cluster.Resources{MilliCPU: int64(1) << i, Memory: int64(16) << i, Extended: map[string]int64{"gpu": int64(1) << i, "other": 1}}
	}
	l.s.Nodes[0].Deleting = true
	marked(l.s.Nodes[1], false)
	w := l.count()
	for range 2 {
		if all, going := w.Capacity(), w.CapacityRemoving(); all.MilliCPU != 7 || all.Memory != 7*16 || fmt.Sprint(all.Extended) != "map[gpu:7]" || going.MilliCPU != 3 || going.Memory != 3*16 {
			t.Errorf("%+v, of them %+v go", all, going)
		}
	}
	w.CountRemoval(&w.Nodes[2])
	if going := w.CapacityRemoving(); going.MilliCPU != 7 {
		t.Errorf("%+v go", going)
	}
}
