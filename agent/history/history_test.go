package history

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a snapshot with one group of so many machines and so many pending pods.
func world(at time.Time, machines, pending int) *cluster.Snapshot {
	s := &cluster.Snapshot{Now: at, Groups: []cluster.NodeGroup{{ID: "g", Min: 1, Max: 9, Target: machines + 1, Price: 0.5}}}
	for range machines {
		s.Groups[0].Instances = append(s.Groups[0].Instances, cluster.Instance{Member: true})
		s.Nodes = append(s.Nodes, &cluster.Node{Ready: cluster.StatusTrue})
	}
	s.Groups[0].Instances = append(s.Groups[0].Instances, cluster.Instance{}) // gone, and no member
	for range pending {
		s.Pods = append(s.Pods, cluster.Pod{Unschedulable: cluster.At(at)})
	}
	return s
}

// TestADay: the last sample of each step stands with the most pods that were pending, a
// gap is a gap, and what is older than a day is forgotten, groups included.
func TestADay(t *testing.T) {
	var h History
	if v := h.View(noon); len(v.Pending) != Steps || v.Pending[0] != -1 || v.Price != nil || len(v.Groups) != 0 {
		t.Errorf("empty: %+v", v)
	}
	h.Look(world(noon.Add(-10*time.Minute), 2, 0))
	if h.Due(noon.Add(-10*time.Minute+59*time.Second)) || !h.Due(noon.Add(-9*time.Minute)) {
		t.Error("a sample is due where there is one, or the other way round")
	}
	h.Look(world(noon, 3, 7))
	h.Look(world(noon.Add(time.Minute), 4, 1))
	h.Look(world(noon.Add(-time.Hour), 9, 9)) // the clock was set back
	v := h.View(noon.Add(time.Minute))
	end := Steps - 1
	if v.Pending[end] != 7 || v.Ready[end] != 4 || v.Price[end] != 2 || v.Pending[end-1] != -1 || v.Ready[end-2] != 2 || v.Ready[end-12] != -1 {
		t.Errorf("pending %v, ready %v, price %v", v.Pending[end-3:], v.Ready[end-3:], v.Price[end-3:])
	}
	g := v.Groups[0]
	if g.Name != "g" || g.Machines[end] != 4 || g.Target[end] != 5 || g.Min[end] != 1 || g.Max[end] != 9 || g.Machines[end-1] != -1 || g.Machines[end-2] != 2 {
		t.Errorf("%+v", g)
	}
	if want := v.Start.Add(time.Duration(end) * Step); !want.Equal(noon) {
		t.Errorf("the newest sample is of %s", want)
	}
	if hour := v.Hour; len(hour.Pending) != FineSteps || hour.Pending[FineSteps-1] != 1 || hour.Pending[FineSteps-2] != 7 || hour.Pending[FineSteps-3] != -1 || hour.Groups[0].Machines[FineSteps-12] != 2 {
		t.Errorf("the hour: %+v", hour)
	}
	later := &cluster.Snapshot{Now: noon.Add(24 * time.Hour)}
	h.Look(later)
	v = h.View(later.Now)
	if len(v.Groups) != 0 || len(h.day.groups)+len(h.hour.groups) != 0 || v.Pending[0] != -1 || v.Pending[end] != 0 {
		t.Errorf("a day later: %d groups, pending %v", len(h.day.groups), v.Pending)
	}
}

// TestMarks: equal actions of one round are one mark, failures are marks of their own, and
// each has its reason.
func TestMarks(t *testing.T) {
	var h History
	p := decision.Plan{Actions: []decision.Action{decision.Grow{Group: "g", Rule: "U3", Why: "3 pods"},
		decision.Terminate{Group: "g", Node: "a", Instance: "i-1", Rule: "D17", Why: "empty"}, decision.Terminate{Group: "g", Node: "b", Instance: "i-2", Rule: "D17", Why: "empty"}, decision.Cordon{Node: "c", Rule: "D1", Why: "unneeded"}}}
	at := noon.Add(-time.Hour)
	h.Acted(p, []cluster.Outcome{{Action: "grow", Group: "g", From: 1, To: 3, At: at}, {Action: "cordon", Node: "c", At: at}, {Action: "evict", Node: "c", At: at},
		{Action: "terminate", Group: "g", Node: "a", Instance: "i-1", At: at}, {Action: "terminate", Group: "g", Node: "b", Instance: "i-2", At: at},
		{Action: "terminate", Group: "g", Instance: "i-3", Error: "denied", At: at}})
	got, err := json.Marshal(h.View(noon).Marks)
	want := `[{"at":"2026-11-21T11:00:00Z","do":"grow","group":"g","count":1,"from":1,"to":3,"rule":"U3","why":"3 pods"},` +
		`{"at":"2026-11-21T11:00:00Z","do":"cordon","node":"c","count":1,"rule":"D1","why":"unneeded"},` +
		`{"at":"2026-11-21T11:00:00Z","do":"terminate","group":"g","node":"a","count":2,"rule":"D17","why":"empty","instances":"i-1 i-2"},` +
		`{"at":"2026-11-21T11:00:00Z","do":"terminate","group":"g","node":"i-3","count":1,"error":"denied","instances":"i-3"}]`
	if err != nil || string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var again History
	if err := again.Restore(h.Save(), noon); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"i-1": "D17", "i-2": "D17", "i-3": "", "i": "", "": ""} {
		if m, ok := again.Ended(id); m.Rule != want || ok != (want != "") {
			t.Errorf("%q was ended by %+v", id, m)
		}
	}
	if v := h.View(noon.Add(24 * time.Hour)); len(v.Marks) != 0 {
		t.Errorf("yesterday's: %+v", v.Marks)
	}
}

// TestMemoryIsBounded fills every bound and measures the heap.
func TestMemoryIsBounded(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	h := &History{}
	for round := range 2 * Steps {
		s := &cluster.Snapshot{Now: noon.Add(time.Duration(round) * Step)}
		for i := range 2 * maxGroups {
			s.Groups = append(s.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("group-%0200d", i)), Max: 1 << 20, Target: i})
		}
		h.Look(s)
		var p decision.Plan
		var outcomes []cluster.Outcome
		for i := range 4 { // 2,304 marks in all
			node := cluster.NodeName(fmt.Sprintf("%d-%s", i, strings.Repeat("n", 300)))
			p.Actions = append(p.Actions, decision.Cordon{Node: node, Rule: fmt.Sprintf("D%d", i), Why: strings.Repeat("ü", 300)})
			outcomes = append(outcomes, cluster.Outcome{Action: "cordon", Node: node, At: s.Now, Error: strings.Repeat(fmt.Sprint(i), 300)})
		}
		h.Acted(p, outcomes)
	}
	took := heap() - before
	v := h.View(noon.Add(time.Duration(2*Steps-1) * Step))
	if len(v.Groups) != maxGroups || len(v.Marks) != maxMarks || len(h.marks) != maxMarks {
		t.Errorf("%d groups, %d marks", len(v.Groups), len(v.Marks))
	}
	if m := v.Marks[0]; len(m.Why) > wordBytes || len(m.Error) > wordBytes || len(m.Node) > nameBytes || !strings.HasSuffix(m.Why, "ü…") {
		t.Errorf("not cut: %+v", m)
	}
	if v.Marks[0].At.After(v.Marks[len(v.Marks)-1].At) {
		t.Error("marks are not in order")
	}
	if g := v.Groups[0]; g.Max[Steps-1] != absent-1 {
		t.Errorf("a size that does not fit is %d", g.Max[Steps-1])
	}
	t.Logf("%d groups and %d marks take %d bytes", len(v.Groups), len(v.Marks), took)
	if took > 1_100_000 {
		t.Errorf("%d bytes", took)
	}
	runtime.KeepAlive(h)
}
