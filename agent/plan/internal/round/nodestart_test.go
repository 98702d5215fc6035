package round

import (
	"reflect"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func taint(key, effect string) cluster.Taint { return cluster.Taint{Key: key, Effect: effect} }

// all asks for everything that the templates of these tests promise.
var all = startNeedsOf([]cluster.PodClass{{NodeSelector: map[string]string{"late": "x", "pool": "a"}, Requests: cluster.Resources{EphemeralStorage: 1, Extended: map[string]int64{"gpu": 1}},
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
		got := newComing(&n, "", &tmpl, all, p)
		if !reflect.DeepEqual(got.Start, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got.Start, c.want)
		}
		if none := startNeedsOf(nil).Of(got.Start); len(none.Labels)+len(none.Resources)+len(none.Drivers) > 0 {
			t.Errorf("%s: %+v where no pod asks for anything", name, none)
		}
		soon := cluster.Node{Name: "n", Labels: got.Shape.Labels, Taints: got.Shape.Taints, OperatorTaints: n.OperatorTaints, Allocatable: got.Allocatable, VolumeLimits: got.VolumeLimits}
		if left := newComing(&soon, "", &tmpl, all, p).Start; !left.Empty() {
			t.Errorf("%s: what it soon is still differs: %+v", name, left)
		}
	}
	tmpl.Labels[labelInstanceType] = "large"
	n := whole()
	n.Labels[labelInstanceType], n.Allocatable.Extended = "small", map[string]int64{"gpu": 2}
	if got := newComing(&n, "", &tmpl, all, p).Start; !got.Empty() {
		t.Errorf("fewer devices on a machine of another type: %+v", got)
	}
	tmpl.Unknown = "no launch template"
	n.Labels, n.Taints = nil, []cluster.Taint{taint("a", "NoSchedule"), taint("node.kubernetes.io/not-ready", "NoSchedule")}
	if got := newComing(&n, "", &tmpl, all, p).Start; len(got.Taints) != 1 || len(got.Labels) != 0 {
		t.Errorf("without a template: %+v, want the taint that Kubernetes takes off", got)
	}
}

// lastingTaints leaves out the taints of a start, and those that the operator names.
func TestLasting(t *testing.T) {
	p := &decision.Policy{StartupTaints: []string{"named"}, StatusTaints: []string{"sick"}}
	got := lastingTaints([]cluster.Taint{taint("team", "NoSchedule"), taint("named", "NoSchedule"), taint("sick", "NoSchedule"), taint("node.kubernetes.io/not-ready", "NoSchedule")}, p)
	if !reflect.DeepEqual(got, []cluster.Taint{taint("team", "NoSchedule")}) {
		t.Errorf("%v", got)
	}
}

// The zone of a machine is known before its Node has the labels of it.
func TestZoneLabelsThatComeLate(t *testing.T) {
	tmpl := cluster.Template{Zones: []string{"a", "b"}, ZoneLabels: []string{"late"}, Allocatable: cluster.Resources{MilliCPU: 1, Memory: 1, Pods: 1}}
	n := cluster.Node{Labels: map[string]string{}, Allocatable: tmpl.Allocatable}
	got := newComing(&n, "b", &tmpl, all, &decision.Policy{})
	if !reflect.DeepEqual(got.Start.Labels, []string{"late"}) || got.Shape.Labels["late"] != "b" {
		t.Errorf("%+v, soon %v", got.Start, got.Shape.Labels)
	}
	n.Labels["late"] = "b"
	if got := newComing(&n, "b", &tmpl, all, &decision.Policy{}); !got.Start.Empty() {
		t.Errorf("%+v", got.Start)
	}
}

// TestWhatSomePodNeeds: a node is starting only for what some pod asks for.
func TestWhatSomePodNeeds(t *testing.T) {
	tmpl := cluster.Template{Labels: map[string]string{"pool": "a", labelHostname: "h", labelInstanceType: "large"}, ZoneLabels: []string{"pool", "zone"},
		Allocatable: cluster.Resources{MilliCPU: 1, Memory: 1, Pods: 1, EphemeralStorage: 100, Extended: map[string]int64{"gpu": 4}}}
	pool := cluster.PodClass{NodeSelector: map[string]string{"pool": "a"}}
	gpu := cluster.PodClass{Requests: cluster.Resources{Extended: map[string]int64{"gpu": 1}}}
	for name, c := range map[string]struct {
		pod       cluster.PodClass
		zone      string
		ownType   string
		gpus      int64
		templates string // its type in the template
		want      decision.Start
	}{
		"no disk":                            {cluster.PodClass{}, "", "large", 4, "large", decision.Start{}},
		"a disk":                             {cluster.PodClass{Requests: cluster.Resources{EphemeralStorage: 1}}, "", "large", 4, "large", decision.Start{Resources: map[string]int64{decision.EphemeralStorage: 100}}},
		"one pod per node":                   {cluster.PodClass{PodAntiAffinity: []cluster.PodTerm{{TopologyKey: labelHostname}}}, "", "large", 4, "large", decision.Start{}},
		"a label that tells the zone":        {pool, "b", "large", 4, "large", decision.Start{Labels: []string{"pool"}}},
		"a zone label":                       {cluster.PodClass{NodeSelector: map[string]string{"zone": "b"}}, "b", "large", 4, "large", decision.Start{Labels: []string{"zone"}}},
		"a zone label, and no zone is known": {cluster.PodClass{NodeSelector: map[string]string{"zone": "b"}}, "", "large", 4, "large", decision.Start{}},
		"all devices":                        {gpu, "", "large", 4, "large", decision.Start{}},
		"some devices of one type":           {gpu, "", "large", 2, "large", decision.Start{Resources: map[string]int64{"gpu": 4}}},
		"some devices of another type":       {gpu, "", "small", 2, "large", decision.Start{}},
		"no device of another type":          {gpu, "", "small", 0, "large", decision.Start{Resources: map[string]int64{"gpu": 4}}},
		"some devices, and no type is shown": {gpu, "", "", 2, "large", decision.Start{Resources: map[string]int64{"gpu": 4}}},
		"some devices, and no type is known": {gpu, "", "large", 2, "", decision.Start{Resources: map[string]int64{"gpu": 4}}},
	} {
		n := cluster.Node{Labels: map[string]string{labelInstanceType: c.ownType}, Allocatable: cluster.Resources{MilliCPU: 1, Memory: 1, Pods: 1, Extended: map[string]int64{"gpu": c.gpus}}}
		tmpl.Labels[labelInstanceType] = c.templates
		if got := newComing(&n, c.zone, &tmpl, startNeedsOf([]cluster.PodClass{c.pod}), &decision.Policy{}).Start; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestWhatItSoonIs: the room that pods count on while a node is starting.
func TestWhatItSoonIs(t *testing.T) {
	promised := cluster.Resources{MilliCPU: 4000, Memory: 400, Pods: 110}
	for name, c := range map[string]struct {
		own     cluster.Resources
		unknown string
		want    int64 // CPU
	}{
		"its own":             {cluster.Resources{MilliCPU: 1000, Memory: 100, Pods: 10}, "", 1000},
		"no CPU":              {cluster.Resources{Memory: 100, Pods: 10}, "", 4000},
		"no memory":           {cluster.Resources{MilliCPU: 1000, Pods: 10}, "", 4000},
		"no pods":             {cluster.Resources{MilliCPU: 1000, Memory: 100}, "", 4000},
		"nothing is promised": {cluster.Resources{MilliCPU: 1000, Memory: 100}, "no launch template", 1000},
	} {
		n := cluster.Node{Name: "n", Allocatable: c.own, Taints: []cluster.Taint{taint("node.kubernetes.io/disk-pressure", "NoSchedule"), taint("team", "NoSchedule")}}
		tmpl := cluster.Template{Allocatable: promised, Unknown: c.unknown, Taints: n.Taints[1:]}
		got := newComing(&n, "", &tmpl, all, &decision.Policy{})
		if got.Allocatable.MilliCPU != c.want {
			t.Errorf("%s: %+v", name, got.Allocatable)
		}
		if !reflect.DeepEqual(got.Shape.Taints, n.Taints[1:]) {
			t.Errorf("%s: taints %v, want none that a start takes off", name, got.Shape.Taints)
		}
	}
}

// TestComingIsKept: the comparison is made anew when the zone, the template or what pods ask for has changed, and the words when the end has.
func TestComingIsKept(t *testing.T) {
	tmpl, needs := cluster.Template{Labels: map[string]string{"pool": "a"}, Allocatable: cluster.Resources{MilliCPU: 1}}, startNeedsOf([]cluster.PodClass{{NodeSelector: map[string]string{"pool": "a"}}})
	c := newComing(&cluster.Node{}, "a", &tmpl, needs, &decision.Policy{})
	other := tmpl
	other.Labels = map[string]string{"pool": "a", "more": "x"}
	for name, x := range map[string]struct{ same, want bool }{
		"the same":       {c.Of("a", &tmpl, needs), true},
		"another zone":   {c.Of("b", &tmpl, needs), false},
		"other labels":   {c.Of("a", &other, needs), false},
		"other pods ask": {c.Of("a", &tmpl, startNeedsOf(nil)), false},
	} {
		if x.same != x.want {
			t.Errorf("%s: kept %v", name, x.same)
		}
	}
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for _, until := range []time.Time{at, at, at.Add(time.Hour)} {
		want := "starting: the label pool has not come yet; pods count on it as on a machine that is coming, until " + until.Format(time.RFC3339)
		if got := c.WordsUntil(until); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
