package template

import (
	"maps"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestVolumeLimitsOfATemplate(t *testing.T) {
	now := time.Unix(100000, 0)
	node := func(age time.Duration, limits map[string]int64) *cluster.Node {
		return &cluster.Node{VolumeLimits: limits, Created: now.Add(-age)}
	}
	for name, c := range map[string]struct {
		known map[string]int64
		nodes []*cluster.Node
		want  map[string]int64
	}{
		"none":                               {nil, []*cluster.Node{node(time.Hour, nil)}, nil},
		"the smallest of several":            {nil, []*cluster.Node{node(time.Hour, map[string]int64{"a": 5, "b": 1}), node(time.Hour, map[string]int64{"a": 4})}, map[string]int64{"a": 4, "b": 1}},
		"a young node removes nothing":       {map[string]int64{"a": 5}, []*cluster.Node{node(time.Second, nil)}, map[string]int64{"a": 5}},
		"but what it shows holds":            {map[string]int64{"a": 5, "b": 2}, []*cluster.Node{node(time.Second, map[string]int64{"a": 6})}, map[string]int64{"a": 6, "b": 2}},
		"a driver that is gone is forgotten": {map[string]int64{"a": 5}, []*cluster.Node{node(time.Hour, nil)}, nil},
	} {
		r := readyNodes{known: &Correction{VolumeLimits: c.known}, nodes: c.nodes, youngAfter: now.Add(-15 * time.Minute)}
		if got := r.leastLimits(nil); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	l := Correction{VolumeLimits: map[string]int64{"a": 5}, Allocatable: cluster.Resources{MilliCPU: 1, Memory: 1}}
	var template cluster.Template
	if l.apply(&template); template.VolumeLimits["a"] != 5 {
		t.Errorf("the template has %v", template.VolumeLimits)
	}
}
