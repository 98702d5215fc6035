package template

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// classroom is one group with one machine of the current template, and its node.
type classroom struct {
	node    cluster.Node
	gone    bool
	births  map[cluster.NodeName]FirstSeen
	lessons map[string]Correction
	now     time.Time
	words   string
	labels  map[string]string // of the template

	promised cluster.Resources // allocatable of the template
}

func newClassroom() *classroom {
	now := time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)
	c := &classroom{lessons: map[string]Correction{}, births: map[cluster.NodeName]FirstSeen{}, now: now}
	c.node = cluster.Node{Name: "n", UID: "1", ProviderID: "i", Ready: cluster.StatusTrue, ReadySince: now,
		Labels:      map[string]string{"pool": "batch", "tier": "web"},
		Allocatable: cluster.Resources{MilliCPU: 3800, Memory: 13 << 30, Pods: 110}}
	c.promised = cluster.Resources{MilliCPU: 3800, Memory: 14 << 30, Pods: 110}
	c.labels = map[string]string{"pool": "batch", "tier": "web", labelInstanceType: "m5.xlarge"}
	c.node.Labels[labelInstanceType] = "m5.xlarge"
	return c
}

func (c *classroom) template() cluster.Template {
	g := cluster.NodeGroup{ID: "g", Instances: []cluster.Instance{{ID: "i", Member: true}}, Template: cluster.Template{Spec: "v1",
		Labels:      c.labels,
		Allocatable: c.promised}}
	var nodes []*cluster.Node
	if c.gone {
		g.Instances = nil
	} else {
		nodes = []*cluster.Node{&c.node}
	}
	groups, words := Correct([]cluster.NodeGroup{g}, Evidence{Nodes: nodes, Specs: map[cluster.InstanceID]string{"i": "v1"}, FirstSeen: c.births}, c.lessons, c.now)
	c.words = words["g"]
	return groups[0].Template
}

// A group that is empty again promises what its machines had, for a day: otherwise a
// pod that fits only the computed size buys and loses a machine for ever.
func TestLessonOutlivesTheNode(t *testing.T) {
	c := newClassroom()
	if got := c.template().Allocatable.Memory; got != 13<<30 {
		t.Fatalf("learnt %d", got)
	}
	c.gone = true
	if got := c.template().Allocatable.Memory; got != 13<<30 {
		t.Errorf("with the node gone: %d", got)
	}
	c.now = c.now.Add(lifetime + timeStep)
	if got := c.template().Allocatable.Memory; got != 14<<30 {
		t.Errorf("a day later: %d", got)
	}
}

// A machine's sizes are known when it registers: a pod that does not fit it must not buy
// another of the same size while it starts. Its labels, taints and device plugins may
// still come, and a silent node teaches nothing.
func TestLessonOfAStartingNode(t *testing.T) {
	c := newClassroom()
	c.node.Ready, c.node.Labels = cluster.StatusFalse, map[string]string{}
	c.node.Allocatable.Extended = map[string]int64{"nvidia.com/gpu": 0}
	c.promised.EphemeralStorage, c.promised.Extended = 80<<30, map[string]int64{"nvidia.com/gpu": 2}
	got := c.template()
	if got.Allocatable.Memory != 13<<30 || got.Allocatable.EphemeralStorage != 80<<30 || got.Allocatable.Extended["nvidia.com/gpu"] != 2 {
		t.Errorf("learnt %+v, want the node's memory, and the disk and the GPUs of the template", got.Allocatable)
	}
	if len(got.Labels) != 3 || c.words != "" {
		t.Errorf("labels %v, told %q: a starting node may still gain them", got.Labels, c.words)
	}
	c.gone = true
	if got := c.template().Allocatable.Memory; got != 13<<30 {
		t.Errorf("with the node gone: %d", got)
	}
	silent, blank := newClassroom(), newClassroom()
	silent.node.Ready = cluster.StatusUnknown
	blank.node.Ready, blank.node.Allocatable.Memory = cluster.StatusFalse, 0
	for name, c := range map[string]*classroom{"silent": silent, "blank": blank} {
		if got := c.template().Allocatable.Memory; got != 14<<30 || len(c.lessons) != 0 {
			t.Errorf("a %s node taught %d", name, got)
		}
	}
}

// A label that a tag promises and no node has cannot be bought.
func TestLessonOfLabels(t *testing.T) {
	c := newClassroom()
	c.node.Labels = map[string]string{"pool": "other"}
	if got := c.template().Labels; len(got) != 0 {
		t.Errorf("labels %v, want none of those that the node lacks", got)
	}
	if !strings.Contains(c.words, "pool=batch") || !strings.Contains(c.words, "--label") {
		t.Errorf("the operator is told %q", c.words)
	}
	c.node.Labels = map[string]string{"pool": "batch", "tier": "web"} // a controller was late
	if got := c.template().Labels; len(got) != 2 {
		t.Errorf("labels %v, want both", got)
	}
	c.births["n"] = FirstSeen{UID: "1", Labels: c.node.Labels}
	c.node.Labels = nil // somebody took them away
	if got := c.template().Labels; len(got) != 2 {
		t.Errorf("labels %v, want both: the node was born with them", got)
	}
}

// A taint that nodes register with is the group's, one that came later is not.
func TestLessonOfTaints(t *testing.T) {
	c := newClassroom()
	team := cluster.Taint{Key: "team", Value: "x", Effect: "NoSchedule"}
	c.node.Taints = []cluster.Taint{team}
	if got := c.template().Taints; len(got) != 0 {
		t.Errorf("taints %v of a node that nobody saw at its birth", got)
	}
	c.births["n"] = FirstSeen{UID: "1", Taints: c.node.Taints}
	if got := c.template().Taints; !reflect.DeepEqual(got, []cluster.Taint{team}) {
		t.Errorf("taints %v, want %v", got, team)
	}
	c.gone = true
	if got := c.template().Taints; len(got) != 0 {
		t.Errorf("a node that died young taught %v", got)
	}
	c.gone, c.now = false, c.now.Add(settleTime)
	c.template()
	c.gone = true
	if got := c.template().Taints; len(got) != 1 {
		t.Errorf("taints %v of a group whose nodes have gone", got)
	}
}

// Labels that nobody promised are the group's when two nodes share them.
func TestLessonOfExtraLabels(t *testing.T) {
	one := cluster.Node{Labels: map[string]string{"disk": "ssd", "serial": "1", "topology.kubernetes.io/zone": "a", "pool": "x"}}
	two := cluster.Node{Labels: map[string]string{"disk": "ssd", "serial": "2", "topology.kubernetes.io/zone": "a", "pool": "x"}}
	template := &cluster.Template{Labels: map[string]string{"pool": "batch"}}
	if got := sharedLabels(template, []*cluster.Node{&one}, nil); len(got) != 0 {
		t.Errorf("one node taught %v", got)
	}
	disk := map[string]string{"disk": "ssd"}
	if got := sharedLabels(template, []*cluster.Node{&one, &two}, nil); !reflect.DeepEqual(got, disk) {
		t.Errorf("two nodes taught %v, want %v", got, disk)
	}
	if got := sharedLabels(template, []*cluster.Node{&two}, disk); !reflect.DeepEqual(got, disk) {
		t.Errorf("the one that is left taught %v, want %v", got, disk)
	}
}

// In a group of several types the next machine may be smaller than those that came.
func TestLessonOfSeveralTypes(t *testing.T) {
	c := newClassroom()
	c.node.Allocatable.Memory = 28 << 30
	if got := c.template().Allocatable.Memory; got != 28<<30 {
		t.Errorf("one type: %d", got)
	}
	delete(c.labels, labelInstanceType)
	if got := c.template().Allocatable.Memory; got != 14<<30 {
		t.Errorf("several types: %d", got)
	}
}

func TestOnlyNodesOfTheSameSpecCorrectATemplate(t *testing.T) {
	computed := cluster.Resources{MilliCPU: 1900, Memory: 7 << 30, Pods: 110, Extended: map[string]int64{"nvidia.com/gpu": 1}}
	group := cluster.NodeGroup{ID: "g", Template: cluster.Template{Spec: "v1", Allocatable: computed},
		Instances: []cluster.Instance{{ID: "old", Member: true}, {ID: "new", Member: true}, {ID: "newer", Member: true}}}
	specs := map[cluster.InstanceID]string{"new": "v1", "newer": "v2"}
	nodes := []*cluster.Node{
		{ProviderID: "old", Ready: cluster.StatusTrue, Allocatable: cluster.Resources{MilliCPU: 1, Memory: 1}},
		{ProviderID: "new", Ready: cluster.StatusTrue, Allocatable: cluster.Resources{MilliCPU: 1800, Memory: 6 << 30, Pods: 110}},
		{ProviderID: "newer", Ready: cluster.StatusFalse, Allocatable: cluster.Resources{MilliCPU: 7, Memory: 7}},
	}
	learnt := func() cluster.Resources {
		groups, _ := Correct([]cluster.NodeGroup{group}, Evidence{Nodes: nodes, Specs: specs}, map[string]Correction{}, time.Now())
		return groups[0].Template.Allocatable
	}
	got := learnt()
	if got.MilliCPU != 1800 || got.Memory != 6<<30 || got.Pods != 110 || got.Extended["nvidia.com/gpu"] != 1 {
		t.Errorf("learnt %+v", got)
	}
	group.Template.Spec = "v2"
	if got := learnt(); got.MilliCPU != 1900 {
		t.Errorf("a node that is not Ready taught %+v", got)
	}
}
