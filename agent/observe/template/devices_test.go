package template

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func some(n int) *cluster.Devices {
	return &cluster.Devices{Devices: make([]cluster.Device, n)}
}

// TestDevicesOfATemplate: the next machine has what the settled node with the fewest has, and what is known while none is settled.
func TestDevicesOfATemplate(t *testing.T) {
	now := time.Unix(100000, 0)
	node := func(age time.Duration, d *cluster.Devices) *cluster.Node {
		return &cluster.Node{Devices: d, Created: now.Add(-age)}
	}
	updated := some(3)
	updated.Unready = "driver/pool"
	for name, c := range map[string]struct {
		known, told *cluster.Devices
		nodes       []*cluster.Node
		want        int // -1: nothing is known
	}{
		"no node":                                {nil, some(2), nil, -1},
		"the fewest":                             {nil, nil, []*cluster.Node{node(time.Hour, some(4)), node(time.Hour, some(3))}, 3},
		"a driver is away from one node":         {nil, nil, []*cluster.Node{node(time.Hour, some(4)), node(time.Hour, nil)}, 4},
		"it is away from all":                    {some(4), nil, []*cluster.Node{node(time.Hour, nil)}, 0},
		"none has what was told":                 {nil, some(2), []*cluster.Node{node(time.Hour, nil)}, 0},
		"none has any, and nobody said so":       {nil, nil, []*cluster.Node{node(time.Hour, nil)}, -1},
		"a young node has a part":                {some(4), nil, []*cluster.Node{node(time.Second, some(1))}, 4},
		"the first young node has them":          {nil, nil, []*cluster.Node{node(time.Second, some(4))}, 4},
		"a young node shows none yet":            {nil, some(2), []*cluster.Node{node(time.Second, nil)}, -1},
		"a pool that is being published is none": {some(4), nil, []*cluster.Node{node(time.Hour, updated), node(time.Hour, some(4))}, 4},
	} {
		r := readyNodes{known: &Correction{Devices: c.known}, template: &cluster.Template{Devices: c.told}, nodes: c.nodes, youngAfter: now.Add(-15 * time.Minute)}
		got := -1
		if d := r.fewestDevices(); d != nil {
			got = len(d.Devices)
		}
		if got != c.want {
			t.Errorf("%s: %d devices, want %d", name, got, c.want)
		}
	}
	d := free(&cluster.Devices{Devices: []cluster.Device{{Name: "d", Taken: true, Matches: []string{"s"}}}})
	if x := d.Devices[0]; x.Taken || x.Matches != nil || x.Name != "d" {
		t.Errorf("%+v", x)
	}
}

// TestDevicesAreNotForgotten: while ResourceSlices are not read, nodes say nothing of their devices.
func TestDevicesAreNotForgotten(t *testing.T) {
	now := time.Unix(100000, 0)
	node := &cluster.Node{Name: "n", ProviderID: "i-1", Ready: cluster.StatusTrue, Created: now.Add(-time.Hour), ReadySince: now.Add(-time.Hour), Allocatable: cluster.Resources{MilliCPU: 1, Memory: 1, Pods: 1}}
	for unread, want := range map[bool]int{true: 4, false: 0} {
		known := map[string]Correction{"s": {Devices: some(4), At: now}}
		groups, _ := Correct([]cluster.NodeGroup{{ID: "w", Instances: []cluster.Instance{{ID: "i-1", Member: true}}, Template: cluster.Template{Spec: "s"}}},
			Evidence{Nodes: []*cluster.Node{node}, Specs: map[cluster.InstanceID]string{"i-1": "s"}, NoDevices: unread}, known, now)
		if got := groups[0].Template.Devices; got == nil || len(got.Devices) != want || known["s"].Devices == nil || len(known["s"].Devices.Devices) != want {
			t.Errorf("not read %v: %+v, known %+v", unread, got, known["s"].Devices)
		}
	}
}
