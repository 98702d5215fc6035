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

// TestToldVolumeLimits: a resource of a group's template tells the limit of a driver, until nodes do.
func TestToldVolumeLimits(t *testing.T) {
	promised := map[string]int64{"attachable-volumes-csi-ebs.csi.aws.com": 25, "example.com/fpga": 1}
	group := cluster.NodeGroup{ID: "w", Instances: []cluster.Instance{{ID: "i-1", Member: true}},
		Template: cluster.Template{Spec: "s", VolumeLimits: map[string]int64{"a": 3}, Capacity: cluster.Resources{Extended: promised}, Allocatable: cluster.Resources{Extended: promised}}}
	now := time.Unix(100000, 0)
	groups, _ := Correct([]cluster.NodeGroup{group}, Evidence{}, map[string]Correction{}, now)
	got := groups[0].Template
	if want := map[string]int64{"a": 3, "ebs.csi.aws.com": 25}; !maps.Equal(got.VolumeLimits, want) {
		t.Errorf("the template has the limits %v, want %v", got.VolumeLimits, want)
	}
	for _, r := range []cluster.Resources{got.Capacity, got.Allocatable} {
		if !maps.Equal(r.Extended, map[string]int64{"example.com/fpga": 1}) {
			t.Errorf("the template promises %v", r.Extended)
		}
	}
	if len(promised) != 2 || len(group.Template.VolumeLimits) != 1 {
		t.Error("the group that was given is changed")
	}
	node := &cluster.Node{Name: "n", ProviderID: "i-1", Ready: cluster.StatusTrue, Created: now.Add(-time.Hour), ReadySince: now.Add(-time.Hour),
		Allocatable: cluster.Resources{MilliCPU: 1, Memory: 1, Pods: 1}, VolumeLimits: map[string]int64{"ebs.csi.aws.com": 24}}
	groups, _ = Correct([]cluster.NodeGroup{group}, Evidence{Nodes: []*cluster.Node{node}, Specs: map[cluster.InstanceID]string{"i-1": "s"}}, map[string]Correction{}, now)
	if got := groups[0].Template.VolumeLimits["ebs.csi.aws.com"]; got != 24 {
		t.Errorf("with a node that shows 24, the template has %d", got)
	}
}
