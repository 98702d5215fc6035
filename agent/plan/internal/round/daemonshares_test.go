package round

import (
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// place is a pod of the only DaemonSet on a node of a group.
type place struct {
	group                int
	cpu                  int64
	generation, revision string // labels
}

// world has one DaemonSet with a template of 10m and two groups.
func world(ds cluster.DaemonSet, known []decision.DaemonPods, places ...place) (*DaemonShares, *fit.Dimensions) {
	ds.UID = "ds"
	s := &cluster.Snapshot{Classes: []cluster.PodClass{{Requests: cluster.Resources{MilliCPU: 10, Pods: 1}, HostPorts: []cluster.HostPort{{Port: 9100}}}}, DaemonSets: []cluster.DaemonSet{ds}}
	var pods iter.Seq2[int, DaemonPod] = func(yield func(int, DaemonPod) bool) {
		for i, p := range places {
			yield(p.group, DaemonPod{Owner: "ds", Class: int32(i + 1)})
		}
		yield(0, DaemonPod{Owner: "another", Class: 0})
	}
	for _, p := range places {
		labels := map[string]string{}
		if p.generation != "" {
			labels[cluster.LabelTemplateGeneration] = p.generation
		}
		if p.revision != "" {
			labels[cluster.LabelRevisionHash] = p.revision
		}
		s.Classes = append(s.Classes, cluster.PodClass{Labels: labels, Requests: cluster.Resources{MilliCPU: p.cpu, Memory: 1000 - p.cpu, Pods: 1}, HostPorts: []cluster.HostPort{{Port: 9100}}})
	}
	return collectDaemons(s, []cluster.GroupID{"a", "b"}, known, pods), fit.NewDimensions(s.Classes)
}

// TestRequests: which pods say what a DaemonSet takes of a machine of group a.
func TestRequests(t *testing.T) {
	known := func(g cluster.GroupID, cpu int64, revision string) decision.DaemonPods {
		return decision.DaemonPods{Group: g, DaemonSet: "ds", Revision: revision, Requests: cluster.Resources{MilliCPU: cpu, Pods: 1}}
	}
	rolling, settled := cluster.DaemonSet{Revision: "2"}, cluster.DaemonSet{Revision: "2", Settled: true}
	for name, c := range map[string]struct {
		ds     cluster.DaemonSet
		known  []decision.DaemonPods
		pods   []place
		cpu    int64
		source decision.DaemonSource
	}{
		"no pod":                        {settled, nil, nil, 10, decision.DaemonTemplate},
		"a pod of the group":            {settled, nil, []place{{0, 100, "2", "x"}, {1, 900, "2", "x"}}, 100, decision.DaemonOnGroup},
		"it requests less":              {settled, nil, []place{{0, 5, "2", "x"}}, 5, decision.DaemonOnGroup},
		"the largest of the group":      {settled, nil, []place{{0, 100, "2", "x"}, {0, 300, "2", "x"}}, 300, decision.DaemonOnGroup},
		"elsewhere":                     {settled, nil, []place{{1, 100, "2", "x"}, {-1, 300, "2", "x"}}, 300, decision.DaemonElsewhere},
		"an earlier revision":           {rolling, nil, []place{{0, 100, "1", "x"}}, 10, decision.DaemonTemplate},
		"the current one of two":        {rolling, nil, []place{{0, 300, "1", "x"}, {1, 100, "2", "y"}}, 100, decision.DaemonElsewhere},
		"an undone change":              {rolling, nil, []place{{0, 300, "1", "x"}, {1, 100, "2", "x"}}, 300, decision.DaemonOnGroup},
		"an undone change, all updated": {settled, nil, []place{{0, 300, "1", "x"}}, 300, decision.DaemonOnGroup},
		"an earlier one without a hash": {rolling, nil, []place{{0, 300, "1", ""}, {1, 100, "2", ""}}, 100, decision.DaemonElsewhere},
		"no revision of the template":   {cluster.DaemonSet{}, nil, []place{{0, 300, "1", "x"}}, 300, decision.DaemonOnGroup},
		"no revision is known":          {cluster.DaemonSet{}, nil, []place{{0, 300, "", ""}}, 300, decision.DaemonOnGroup},
		"remembered":                    {settled, []decision.DaemonPods{known("a", 200, "2")}, []place{{1, 900, "2", "x"}}, 200, decision.DaemonRemembered},
		"remembered of another group":   {settled, []decision.DaemonPods{known("b", 200, "2")}, nil, 200, decision.DaemonRemembered},
		"of an earlier revision":        {settled, []decision.DaemonPods{known("a", 200, "1")}, nil, 10, decision.DaemonTemplate},
		"the pods are newer":            {settled, []decision.DaemonPods{known("a", 200, "2")}, []place{{0, 100, "2", "x"}}, 100, decision.DaemonOnGroup},
	} {
		e, d := world(c.ds, c.known, c.pods...)
		got, source := e.Requests(0, 0)
		v := e.Vector(0, 0, d)
		if got.MilliCPU != c.cpu || source != c.source || v[0] != c.cpu || v[len(v)-1] != 1 {
			t.Errorf("%s: %+v by %s, vector %v; want %dm by %s and the port", name, got, source, v, c.cpu, c.source)
		}
	}
}

// The largest of each resource counts: one pod has most of the CPU, the other most of the memory.
func TestLargestOfEachResource(t *testing.T) {
	e, d := world(cluster.DaemonSet{}, nil, place{0, 100, "", ""}, place{0, 300, "", ""})
	if got, _ := e.Requests(0, 0); got.MilliCPU != 300 || got.Memory != 900 {
		t.Errorf("%+v", got)
	}
	if v := e.Vector(0, 0, d); v[0] != 300 || v[1] != 900 {
		t.Errorf("vector %v", v)
	}
	if d.Class(1)[0] != 100 || d.Class(2)[1] != 700 {
		t.Error("a class's own vector was written to")
	}
}

// TestRemember: only what differs from the template is remembered, and for a day.
func TestRemember(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	reached := func(at time.Time) bool { return !at.After(now) }
	ds := cluster.DaemonSet{Revision: "2", Settled: true}
	e, d := world(ds, nil, place{0, 100, "2", "x"})
	first := e.Remember(d, now, reached)
	want := []decision.DaemonPods{{Group: "a", DaemonSet: "ds", Revision: "2", Requests: cluster.Resources{MilliCPU: 100, Memory: 900, Pods: 1}, Seen: now}}
	if !reflect.DeepEqual(first, want) {
		t.Fatalf("%+v, want %+v", first, want)
	}
	now = now.Add(timeStep - 1)
	e, d = world(ds, first, place{0, 100, "2", "x"})
	if again := e.Remember(d, now, reached); !reflect.DeepEqual(again, first) {
		t.Errorf("within the hour: %+v", again)
	}
	now = now.Add(lifetime - timeStep)
	e, d = world(ds, first)
	if gone := e.Remember(d, now, reached); !reflect.DeepEqual(gone, first) {
		t.Errorf("without a pod: %+v", gone)
	}
	now = now.Add(1)
	if late := e.Remember(d, now, reached); late != nil {
		t.Errorf("a day later: %+v", late)
	}
	late := collectDaemons(&cluster.Snapshot{Now: now, Classes: e.classes, DaemonSets: e.sets}, e.groups, first, func(func(int, DaemonPod) bool) {})
	if _, source := late.Requests(0, 0); source != decision.DaemonTemplate {
		t.Errorf("a day later: by %s", source)
	}
	e, d = world(ds, first, place{0, 10, "2", "x"})
	if got := e.Remember(d, now, reached); len(got) != 1 || got[0].Requests.Memory != 990 {
		t.Errorf("other requests: %+v", got)
	}
}

// TestOfNoGroup: nodes of no group show what pods elsewhere and the template say.
func TestOfNoGroup(t *testing.T) {
	for name, c := range map[string]struct {
		pods   []place
		cpu    int64
		source decision.DaemonSource
	}{
		"no pod":               {nil, 10, decision.DaemonTemplate},
		"a pod of a group":     {[]place{{0, 300, "", ""}}, 300, decision.DaemonElsewhere},
		"a pod on such a node": {[]place{{-1, 300, "", ""}}, 300, decision.DaemonElsewhere},
	} {
		e, d := world(cluster.DaemonSet{}, nil, c.pods...)
		if got, source := e.Requests(-1, 0); got.MilliCPU != c.cpu || source != c.source || e.Vector(-1, 0, d)[0] != c.cpu {
			t.Errorf("%s: %+v by %s", name, got, source)
		}
	}
}

// TestRememberAgain: what is remembered is renewed once an hour, and at once where the pods request something else; pods that
// request what the template says are not remembered.
func TestRememberAgain(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	template := cluster.Resources{MilliCPU: 10, Pods: 1}
	known := decision.DaemonPods{Group: "a", DaemonSet: "ds", Requests: cluster.Resources{MilliCPU: 100, Pods: 1}}
	for name, c := range map[string]struct {
		requests cluster.Resources
		age      time.Duration // of what is remembered
		renewed  bool
		count    int
	}{
		"the same within the hour":  {known.Requests, timeStep - 1, false, 1},
		"the same after the hour":   {known.Requests, timeStep, true, 1},
		"others within the hour":    {cluster.Resources{MilliCPU: 200, Pods: 1}, time.Minute, true, 1},
		"those of the template":     {template, time.Minute, false, 0},
		"no less than the template": {cluster.Resources{MilliCPU: 11, Pods: 1}, time.Minute, true, 1},
	} {
		known.Seen = now.Add(-c.age)
		s := cluster.Snapshot{Now: now, DaemonSets: []cluster.DaemonSet{{UID: "ds"}},
			Classes: []cluster.PodClass{{Requests: template}, {Requests: c.requests, Labels: map[string]string{"app": "x"}}}}
		e := collectDaemons(&s, []cluster.GroupID{"a"}, []decision.DaemonPods{known}, func(yield func(int, DaemonPod) bool) { yield(0, DaemonPod{Owner: "ds", Class: 1}) })
		got := e.Remember(fit.NewDimensions(s.Classes), now, func(at time.Time) bool { return !at.After(now) })
		if len(got) != c.count || c.count > 0 && (got[0].Seen.Equal(now) != c.renewed || !got[0].Requests.Equal(c.requests)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestMeantFor: the node whose name alone a pod's affinity lets it on.
func TestMeantFor(t *testing.T) {
	field := func(key string, values ...string) cluster.Requirement {
		return cluster.Requirement{Key: key, Operator: "In", Values: values}
	}
	for name, c := range map[string]struct {
		fields []cluster.Requirement
		want   cluster.NodeName
	}{
		"none":             {nil, ""},
		"one name":         {[]cluster.Requirement{field("metadata.name", "n")}, "n"},
		"two names":        {[]cluster.Requirement{field("metadata.name", "n", "m")}, ""},
		"no name":          {[]cluster.Requirement{field("metadata.name")}, ""},
		"another field":    {[]cluster.Requirement{field("metadata.uid", "n")}, ""},
		"behind the field": {[]cluster.Requirement{field("metadata.uid", "u"), field("metadata.name", "n")}, "n"},
	} {
		if got := MeantFor(&cluster.PodClass{Affinity: []cluster.NodeTerm{{}, {Fields: c.fields}}}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
