package nodestart

import (
	"reflect"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func taint(key, effect string) cluster.Taint { return cluster.Taint{Key: key, Effect: effect} }

// all asks for everything that the templates of these tests promise.
var all = NeedsOf([]cluster.PodClass{{NodeSelector: map[string]string{"late": "x", "pool": "a"}, Requests: cluster.Resources{EphemeralStorage: 1, Extended: map[string]int64{"gpu": 1}},
	Volumes: []cluster.Volume{{Driver: "ebs"}}}})

func TestWhatIsPassing(t *testing.T) {
	tmpl := cluster.Template{Labels: map[string]string{"late": "x", "pool": "a", labelHostname: "h"}, Taints: []cluster.Taint{taint("team", "NoSchedule")},
		Allocatable: cluster.Resources{MilliCPU: 4000, Memory: 1, Pods: 110, EphemeralStorage: 100, Extended: map[string]int64{"gpu": 4}}, VolumeLimits: map[string]int64{"ebs": 25}}
	p := &decision.Policy{StartupTaints: []string{"named"}, StatusTaints: []string{"sick"}}
	whole := func() cluster.Node {
		return cluster.Node{Name: "n", Labels: map[string]string{"late": "x", "pool": "a"}, Taints: []cluster.Taint{taint("team", "NoSchedule")}, Allocatable: tmpl.Allocatable, VolumeLimits: tmpl.VolumeLimits}
	}
	for name, c := range map[string]struct {
		change func(*cluster.Node)
		want   decision.Start
	}{
		"nothing": {func(*cluster.Node) {}, decision.Start{}},
		"taints that the template does not have, by name": {func(n *cluster.Node) {
			n.Taints = append(n.Taints, taint("b", "NoExecute"), taint("a", "NoSchedule"), taint("soft", "PreferNoSchedule"))
		}, decision.Start{Taints: []cluster.Taint{taint("a", "NoSchedule"), taint("b", "NoExecute")}}},
		"a person's taint, one that tells a state, and those of conditions": {func(n *cluster.Node) {
			n.OperatorTaints = []cluster.Taint{taint("mine", "NoSchedule")}
			n.Taints = append(n.Taints, taint("mine", "NoSchedule"), taint("sick", "NoSchedule"), taint("status-taint.cluster-autoscaler.kubernetes.io/x", "NoSchedule"),
				taint("node.kubernetes.io/disk-pressure", "NoSchedule"), taint(cluster.TaintToBeDeleted, "NoSchedule"), taint(cluster.TaintOutOfService, "NoExecute"))
		}, decision.Start{}},
		"a named taint, whoever set it": {func(n *cluster.Node) {
			n.OperatorTaints = []cluster.Taint{taint("named", "NoSchedule")}
			n.Taints = append(n.Taints, taint("named", "NoSchedule"))
		}, decision.Start{Taints: []cluster.Taint{taint("named", "NoSchedule")}}},
		"a label, but none with another value": {func(n *cluster.Node) { n.Labels = map[string]string{"pool": "b"} }, decision.Start{Labels: []string{"late"}}},
		"some of the devices":                  {func(n *cluster.Node) { n.Allocatable.Extended = map[string]int64{"gpu": 2} }, decision.Start{Resources: map[string]int64{"gpu": 4}}},
		"fewer devices on another type": {func(n *cluster.Node) {
			n.Labels[labelInstanceType], n.Allocatable.Extended = "small", map[string]int64{"gpu": 2}
		}, decision.Start{Resources: map[string]int64{"gpu": 4}}},
		"the disk and the driver": {func(n *cluster.Node) { n.Allocatable.EphemeralStorage, n.VolumeLimits = 0, nil }, decision.Start{Resources: map[string]int64{"ephemeral-storage": 100}, Drivers: []string{"ebs"}}},
	} {
		n := whole()
		c.change(&n)
		got := New(&n, "", &tmpl, all, p)
		if !reflect.DeepEqual(got.Start, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got.Start, c.want)
		}
		if none := NeedsOf(nil).Of(got.Start); len(none.Labels)+len(none.Resources)+len(none.Drivers) > 0 {
			t.Errorf("%s: %+v where no pod asks for anything", name, none)
		}
		soon := cluster.Node{Name: "n", Labels: got.Shape.Labels, Taints: got.Shape.Taints, OperatorTaints: n.OperatorTaints, Allocatable: got.Allocatable, VolumeLimits: got.VolumeLimits}
		if left := New(&soon, "", &tmpl, all, p).Start; !left.Empty() {
			t.Errorf("%s: what it soon is still differs: %+v", name, left)
		}
	}
	tmpl.Labels[labelInstanceType] = "large"
	n := whole()
	n.Labels[labelInstanceType], n.Allocatable.Extended = "small", map[string]int64{"gpu": 2}
	if got := New(&n, "", &tmpl, all, p).Start; !got.Empty() {
		t.Errorf("fewer devices on a machine of another type: %+v", got)
	}
	tmpl.Unknown = "no launch template"
	n.Labels, n.Taints = nil, []cluster.Taint{taint("a", "NoSchedule"), taint("node.kubernetes.io/not-ready", "NoSchedule")}
	if got := New(&n, "", &tmpl, all, p).Start; len(got.Taints) != 1 || len(got.Labels) != 0 {
		t.Errorf("without a template: %+v, want the taint that Kubernetes takes off", got)
	}
}

// Lasting leaves out the taints of a start, and those that the operator names.
func TestLasting(t *testing.T) {
	p := &decision.Policy{StartupTaints: []string{"named"}, StatusTaints: []string{"sick"}}
	got := Lasting([]cluster.Taint{taint("team", "NoSchedule"), taint("named", "NoSchedule"), taint("sick", "NoSchedule"), taint("node.kubernetes.io/not-ready", "NoSchedule")}, p)
	if !reflect.DeepEqual(got, []cluster.Taint{taint("team", "NoSchedule")}) {
		t.Errorf("%v", got)
	}
}

// The zone of a machine is known before its Node has the labels of it.
func TestZoneLabelsThatComeLate(t *testing.T) {
	tmpl := cluster.Template{Zones: []string{"a", "b"}, ZoneLabels: []string{"late"}, Allocatable: cluster.Resources{MilliCPU: 1, Memory: 1, Pods: 1}}
	n := cluster.Node{Labels: map[string]string{}, Allocatable: tmpl.Allocatable}
	got := New(&n, "b", &tmpl, all, &decision.Policy{})
	if !reflect.DeepEqual(got.Start.Labels, []string{"late"}) || got.Shape.Labels["late"] != "b" {
		t.Errorf("%+v, soon %v", got.Start, got.Shape.Labels)
	}
	n.Labels["late"] = "b"
	if got := New(&n, "b", &tmpl, all, &decision.Policy{}); !got.Start.Empty() {
		t.Errorf("%+v", got.Start)
	}
}
