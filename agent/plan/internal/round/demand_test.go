package round

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// waiting adds a pod of the class that kube-scheduler has called Unschedulable.
func (l *ledger) waiting(key cluster.PodKey, class int) *cluster.Pod {
	l.s.Pods = append(l.s.Pods, cluster.Pod{Key: key, Class: class, Unschedulable: cluster.At(l.s.Now), Created: cluster.At(l.ago(time.Minute))})
	return &l.s.Pods[len(l.s.Pods)-1]
}

// of makes a controller the owner of a pod.
func of(pod *cluster.Pod, controller cluster.UID) *cluster.Pod {
	pod.Owner = &cluster.Owner{Kind: "ReplicaSet", UID: controller}
	return pod
}

func (l *ledger) missing(controller cluster.UID, n int) {
	l.s.Controllers = append(l.s.Controllers, cluster.Controller{Owner: cluster.Owner{UID: controller}, Missing: n})
}

// wants tells the demands of a round, and what is held.
func (w *State) wants() string {
	var out []string
	for i := range w.Demands {
		k := &w.Demands[i]
		text := fmt.Sprintf("%s: %d of class %d %v", k.Name(), k.Count(), k.Class, k.Keys)
		if k.Owner != "" {
			text += " by " + string(k.Owner)
		}
		if !k.Buys {
			text += " waits"
		}
		out = append(out, text)
	}
	if w.Unjudged {
		out = append(out, "unjudged")
	}
	for _, h := range w.Plan.Held {
		out = append(out, fmt.Sprintf("[%s] %s %d %s", h.Rule, h.Name, h.Count, h.Why))
	}
	if !w.Plan.Wake.IsZero() {
		out = append(out, "wake in "+w.Plan.Wake.Sub(w.Now).String())
	}
	return strings.Join(out, "; ")
}

// TestGather: which pods want room, and for which of them a machine may be bought. Class 1 is larger than class 0, class 2 is the
// most important, class 3 is as large as class 0.
func TestGather(t *testing.T) {
	one := func(change func(*cluster.Pod)) func(*ledger) {
		return func(l *ledger) { change(of(l.waiting("a", 0), "rs")) }
	}
	unjudged := func(l *ledger, key cluster.PodKey, class int) { l.waiting(key, class).Unschedulable = 0 }
	const a = "a: 1 of class 0 [a]"
	const late = "; [U32] a 1 kube-scheduler has not judged it since it was made: does it run?"
	const ownNode = "[U31] a 1 it belongs to one node and does not name it: kubectl describe pod has the scheduler's reason"
	for name, c := range map[string]struct {
		change func(*ledger)
		want   string
	}{
		"a pod":                       {one(func(*cluster.Pod) {}), a},
		"a pod without a controller":  {func(l *ledger) { l.waiting("a", 0) }, a},
		"it is bound":                 {one(func(p *cluster.Pod) { p.Node = "n-9" }), ""},
		"it is nominated":             {one(func(p *cluster.Pod) { p.Nominated, p.Unschedulable = "n-1", 0 }), ""},
		"to a node that is gone":      {one(func(p *cluster.Pod) { p.Nominated = "n-9" }), a},
		"to a node that is too small": {one(func(p *cluster.Pod) { p.Nominated = "n-2" }), a},
		"it is told to go":            {one(func(p *cluster.Pod) { p.Deleting = p.Created }), ""},
		"it has ended":                {one(func(p *cluster.Pod) { p.Finished = true }), ""},
		"it is gated":                 {one(func(p *cluster.Pod) { p.Gated = true }), ""},
		"it is a static pod":          {one(func(p *cluster.Pod) { p.Mirror = true }), ""},
		"it is a DaemonSet's":         {one(func(p *cluster.Pod) { p.Owner.Kind = "DaemonSet" }), ownNode},
		"it says that it is like one": {one(func(p *cluster.Pod) { p.Wishes = &cluster.PodWishes{Daemon: true} }), ownNode},
		"like one, and of nobody": {func(l *ledger) {
			l.waiting("a", 0).Wishes = &cluster.PodWishes{Daemon: true}
			l.s.DaemonSets = []cluster.DaemonSet{{UID: "ds", Class: 0}}
		}, ownNode},
		"it wishes something else":   {one(func(p *cluster.Pod) { p.Wishes = &cluster.PodWishes{KeepFor: time.Hour} }), a},
		"the scheduler has not seen": {func(l *ledger) { unjudged(l, "a", 0) }, a + " waits" + late},
		"it has seen a sibling":      {func(l *ledger) { unjudged(l, "a", 0); l.waiting("b", 0); unjudged(l, "c", 0) }, "a: 3 of class 0 [a b c]"},
		"one of another class":       {func(l *ledger) { unjudged(l, "a", 0); l.waiting("b", 1) }, "b: 1 of class 1 [b]; " + a + " waits" + late},
		"names in no order":          {func(l *ledger) { l.waiting("b", 0); l.waiting("c", 0); l.waiting("a", 0) }, "a: 3 of class 0 [a b c]"},
		"the important first":        {func(l *ledger) { l.waiting("a", 0); l.waiting("b", 1); l.waiting("c", 2) }, "c: 1 of class 2 [c]; b: 1 of class 1 [b]; " + a},
		"of equal size by name":      {func(l *ledger) { l.waiting("b", 0); l.waiting("a", 3) }, "a: 1 of class 3 [a]; b: 1 of class 0 [b]"},
		"it does not matter":         {func(l *ledger) { l.p.ExpendablePodsCutoff = 1; l.waiting("a", 0); l.waiting("b", 2) }, "b: 1 of class 2 [b]; [U14] a 1 priority 0 is below the cutoff 1"},
		"it is young":                {func(l *ledger) { l.p.NewPodDelay = 2 * time.Minute; l.waiting("a", 0) }, a + " waits; [U15] a 1 younger than 2m0s; wake in 1m0s"},
		"it is old enough":           {func(l *ledger) { l.p.NewPodDelay = time.Minute; l.waiting("a", 0) }, a},
		"one is young": {func(l *ledger) {
			l.p.NewPodDelay = 2 * time.Minute
			l.waiting("a", 0)
			l.waiting("b", 0).Created = cluster.At(l.ago(time.Hour))
		}, "a: 1 of class 0 [a] waits; b: 1 of class 0 [b]; [U15] a 1 younger than 2m0s; wake in 1m0s"},
		"it wants to wait longer": {one(func(p *cluster.Pod) { p.Wishes = &cluster.PodWishes{ScaleUpDelay: time.Hour} }), a + " waits; [U15] a 1 younger than 1h0m0s; wake in 59m0s"},
		"it wants to wait less": {func(l *ledger) {
			l.p.NewPodDelay = 2 * time.Minute
			l.waiting("a", 0).Wishes = &cluster.PodWishes{ScaleUpDelay: time.Second}
		}, a + " waits; [U15] a 1 younger than 2m0s; wake in 1m0s"},
		"the clocks differ":            {func(l *ledger) { l.waiting("a", 0).Created = cluster.At(l.s.Now.Add(time.Minute)) }, a},
		"not understood, not yet seen": {func(l *ledger) { unjudged(l, "a", 4) }, "a: 1 of class 4 [a] waits; unjudged"},
		"not understood":               {func(l *ledger) { l.waiting("a", 4) }, "a: 1 of class 4 [a]"},
		"both kinds, one not yet seen": {func(l *ledger) { l.waiting("a", 4); unjudged(l, "b", 4) }, "a: 2 of class 4 [a b]; unjudged"},

		"pods are missing":          {func(l *ledger) { of(l.waiting("a", 0), "rs"); l.missing("rs", 3) }, "a: 4 of class 0 [a] by rs"},
		"of nobody who waits":       {func(l *ledger) { of(l.waiting("a", 0), "rs"); l.missing("db", 3) }, a + " by rs"},
		"of pods that are not seen": {func(l *ledger) { of(l.waiting("a", 0), "rs").Unschedulable = 0; l.missing("rs", 3) }, a + " waits" + late},
		"of pods that are seen, of another controller": {func(l *ledger) {
			of(l.waiting("a", 0), "rs").Unschedulable = 0
			of(l.waiting("b", 0), "db")
			l.missing("rs", 3)
		}, "a: 2 of class 0 [a b] by db"},
		"of pods without a controller": {func(l *ledger) { l.waiting("a", 0); l.missing("", 3) }, a},
		"of pods that do not matter":   {func(l *ledger) { l.p.ExpendablePodsCutoff = 1; of(l.waiting("a", 0), "rs"); l.missing("rs", 3) }, "[U14] a 1 priority 0 is below the cutoff 1"},
		"of pods that are young":       {func(l *ledger) { l.p.NewPodDelay = time.Hour; of(l.waiting("a", 0), "rs"); l.missing("rs", 3) }, a + " waits; [U15] a 1 younger than 1h0m0s; wake in 59m0s"},
		"of two controllers of one class": {func(l *ledger) {
			of(l.waiting("a", 0), "rs")
			of(l.waiting("b", 0), "db")
			l.missing("rs", 3)
			l.missing("db", 2)
		}, "a: 7 of class 0 [a b] by db"},
		"of the class of the youngest": {func(l *ledger) {
			of(l.waiting("a", 0), "rs")
			of(l.waiting("b", 1), "rs").Created++
			of(l.waiting("c", 3), "rs")
			l.missing("rs", 3)
		}, "b: 4 of class 1 [b] by rs; a: 1 of class 0 [a]; c: 1 of class 3 [c]"},
		"of the first of one second": {func(l *ledger) {
			of(l.waiting("b", 1), "rs")
			of(l.waiting("a", 0), "rs")
			of(l.waiting("c", 3), "rs")
			l.missing("rs", 3)
		}, "b: 1 of class 1 [b]; a: 4 of class 0 [a] by rs; c: 1 of class 3 [c]"},
		"room is kept for such": {func(l *ledger) { of(l.waiting("a", 0), "rs"); l.reserved("w", "", 1) }, a + " by rs"},
	} {
		l := newLedger()
		size := func(cpu int64) cluster.Resources { return cluster.Resources{MilliCPU: cpu, Pods: 1} }
		l.s.Classes = []cluster.PodClass{{Requests: size(1)}, {Requests: size(2)}, {Priority: 1}, {Requests: size(1), NodeSelector: map[string]string{"a": "b"}}, {NotUnderstood: []string{"magic"}}}
		l.s.Nodes[0].Allocatable = size(10)
		c.change(l)
		w := l.count()
		w.Plan.Held, w.Plan.Wake = nil, time.Time{}
		w.Gather()
		if got := w.wants(); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSortedByName: whether the pods that wait stand in the order of their names, of which purchases make use.
func TestSortedByName(t *testing.T) {
	l := newLedger()
	l.s.Classes = []cluster.PodClass{{}, {}}
	l.waiting("a", 0)
	l.waiting("b", 1)
	if w := l.count(); !w.Unbound.Sorted {
		t.Error("a and b are not in order")
	}
	l.waiting("aa", 0)
	if w := l.count(); w.Unbound.Sorted || len(w.Unbound.Waiting) != 3 {
		t.Error("a, b and aa are in order")
	}
}

// TestHoldUnknown: pods that cannot be judged are taken out, with the reason.
func TestHoldUnknown(t *testing.T) {
	l := newLedger()
	l.s.Classes = []cluster.PodClass{
		{},
		{NotUnderstood: []string{"magic"}},
		{NotUnderstood: []string{"constraints of 2 MB"}, TooLarge: true},
		{Volumes: []cluster.Volume{{}, {Refused: "the claim data is lost"}}},
		{Volumes: []cluster.Volume{{}}},
		{Volumes: []cluster.Volume{{Refused: "there is no claim"}}},
		{NotUnderstood: []string{"magic"}, Volumes: []cluster.Volume{{Refused: "the claim data is lost"}}},
	}
	for i := range l.s.Classes {
		l.waiting(cluster.PodKey(fmt.Sprint("p", i)), i)
		l.waiting(cluster.PodKey(fmt.Sprint("q", i)), i)
	}
	l.s.Classes = append(l.s.Classes, l.s.Classes[3], l.s.Classes[1])
	l.waiting("r7", 7).Unschedulable = 0
	l.waiting("r8", 8).Unschedulable = 0
	w := l.count()
	w.Plan.Held = nil
	w.Gather()
	w.HoldUnknown()
	var left, held []string
	for i := range w.Demands {
		left = append(left, w.Demands[i].Name())
	}
	for _, h := range w.Plan.Held {
		held = append(held, fmt.Sprintf("%s: %d pods of class %d: [%s] %s", h.Name, h.Count, h.Class, h.Rule, h.Why))
	}
	slices.Sort(left)
	slices.Sort(held)
	if fmt.Sprint(left) != "[p0 p4]" {
		t.Errorf("left are %v", left)
	}
	if got := strings.Join(held, "\n"); got != `p1: 2 pods of class 1: [U6] not judged: magic
p2: 2 pods of class 2: [U29] not judged, for their size: constraints of 2 MB
p3: 2 pods of class 3: [U25] the claim data is lost
p5: 2 pods of class 5: [U25] there is no claim
p6: 2 pods of class 6: [U6] not judged: magic
r7: 1 pods of class 7: [U32] kube-scheduler has not judged it since it was made: does it run?
r8: 1 pods of class 8: [U6] not judged: magic` {
		t.Errorf("held\n%s", got)
	}
}

func TestPods(t *testing.T) {
	if got := Pods(0) + ", " + Pods(1) + ", " + Pods(2); got != "0 pods, 1 pod, 2 pods" {
		t.Error(got)
	}
	k := Demand{Owner: "rs", Expected: 2}
	if k.Name() != "rs" || k.Count() != 2 {
		t.Errorf("%d pods by the name %s", k.Count(), k.Name())
	}
}
