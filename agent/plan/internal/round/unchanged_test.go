package round

import (
	"reflect"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// each has a field of each kind that a Snapshot may have.
type each struct {
	List    []int
	Map     map[string]int
	Pointer *int
	Func    func()
	Text    string
	Is      bool
	Int     int32
	Uint    uint8
	Float   float64
	Inner   struct{ A, B string }
	Any     any
}

// TestSame: two values are the same while each part of them is, and only what lies behind an equal address is believed unseen.
func TestSame(t *testing.T) {
	one, other := 1, 1
	base := each{List: []int{1, 2}, Map: map[string]int{"a": 1}, Pointer: &one, Text: "a", Is: true, Int: 1, Uint: 1, Float: 1, Inner: struct{ A, B string }{"a", "b"}}
	for name, c := range map[string]struct {
		field  string
		change func(*each)
		want   bool
	}{
		"as it is":                 {"List", func(*each) {}, true},
		"a copied list":            {"List", func(e *each) { e.List = []int{1, 2} }, false},
		"a shorter list":           {"List", func(e *each) { e.List = e.List[:1] }, false},
		"no list":                  {"List", func(e *each) { e.List = nil }, false},
		"the same map":             {"Map", func(*each) {}, true},
		"a copied map":             {"Map", func(e *each) { e.Map = map[string]int{"a": 1} }, false},
		"a larger map":             {"Map", func(e *each) { e.Map = map[string]int{"a": 1, "b": 2} }, false},
		"the same address":         {"Pointer", func(*each) {}, true},
		"another, equal behind it": {"Pointer", func(e *each) { e.Pointer = &other }, false},
		"no function":              {"Func", func(*each) {}, true},
		"a function":               {"Func", func(e *each) { e.Func = func() {} }, false},
		"the same text":            {"Text", func(e *each) { e.Text = string([]byte("a")) }, true},
		"another text":             {"Text", func(e *each) { e.Text = "b" }, false},
		"the same bool":            {"Is", func(*each) {}, true},
		"another bool":             {"Is", func(e *each) { e.Is = false }, false},
		"the same int":             {"Int", func(*each) {}, true},
		"another int":              {"Int", func(e *each) { e.Int = -1 }, false},
		"the same uint":            {"Uint", func(*each) {}, true},
		"another uint":             {"Uint", func(e *each) { e.Uint = 2 }, false},
		"the same float":           {"Float", func(*each) {}, true},
		"another float":            {"Float", func(e *each) { e.Float = 2 }, false},
		"the same struct":          {"Inner", func(*each) {}, true},
		"its first field":          {"Inner", func(e *each) { e.Inner.A = "x" }, false},
		"its last field":           {"Inner", func(e *each) { e.Inner.B = "x" }, false},
		"an interface is never":    {"Any", func(*each) {}, false},
	} {
		now := base
		c.change(&now)
		a, b := reflect.ValueOf(base).FieldByName(c.field), reflect.ValueOf(now).FieldByName(c.field)
		if got := identical(a, b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if empty, none := (each{List: []int{}}), (each{}); Same(&empty.List, &none.List) {
		t.Error("an empty list is none: the API tells them apart")
	}
	if a, b := make([]int, 0, 4), make([]int, 0, 4); !Same(&a, &b) {
		t.Error("two lists of nothing differ")
	}
	nothing, something := map[string]int{}, map[string]int{"a": 1}
	if none := map[string]int(nil); !Same(&nothing, &none) || Same(&nothing, &something) {
		t.Error("two maps of nothing differ, or one of something does not")
	}
}

// TestSamePolicy: a Policy is made anew for each round, and looked through.
func TestSamePolicy(t *testing.T) {
	policy := func(limit int64) *decision.Policy {
		return &decision.Policy{GPUTotal: []decision.Bound{{Resource: "gpu", Max: limit}}}
	}
	one := policy(1)
	if !SamePolicy(one, one) || !SamePolicy(one, policy(1)) || SamePolicy(one, policy(2)) {
		t.Error("policies are told apart by where they lie")
	}
}

// TestSameSnapshot: time and the moments of the clouds' reads are no change; all else that is another value is one.
func TestSameSnapshot(t *testing.T) {
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	base := cluster.Snapshot{Now: at, Nodes: []*cluster.Node{{Name: "n"}}, Groups: []cluster.NodeGroup{{ID: "a", ReadAt: at, NamesReadAt: at}, {ID: "b"}}}
	groups := func(s *cluster.Snapshot) { s.Groups = append([]cluster.NodeGroup(nil), s.Groups...) }
	for name, c := range map[string]struct {
		change func(*cluster.Snapshot)
		want   bool
	}{
		"nothing":       {func(*cluster.Snapshot) {}, true},
		"time":          {func(s *cluster.Snapshot) { s.Now = at.Add(time.Second) }, true},
		"a new list":    {groups, true},
		"a read":        {func(s *cluster.Snapshot) { groups(s); s.Groups[0].ReadAt = at.Add(time.Second) }, true},
		"read names":    {func(s *cluster.Snapshot) { groups(s); s.Groups[0].NamesReadAt = at.Add(time.Second) }, true},
		"a target":      {func(s *cluster.Snapshot) { groups(s); s.Groups[0].Target++ }, false},
		"a last target": {func(s *cluster.Snapshot) { groups(s); s.Groups[1].Target++ }, false},
		"a group less":  {func(s *cluster.Snapshot) { s.Groups = s.Groups[:1] }, false},
		"a group more":  {func(s *cluster.Snapshot) { groups(s); s.Groups = append(s.Groups, cluster.NodeGroup{ID: "c"}) }, false},
		"a node":        {func(s *cluster.Snapshot) { s.Nodes = []*cluster.Node{{Name: "n"}} }, false},
		"staleness":     {func(s *cluster.Snapshot) { s.Stale = "no answer" }, false},
	} {
		now := base
		c.change(&now)
		if got := SameSnapshot(&now, &base); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
