package template

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// fixture is one group with one machine of the current template, and its node.
type fixture struct {
	node        cluster.Node
	gone        bool
	firstSeen   map[cluster.NodeName]FirstSeen
	corrections map[string]Correction
	now         time.Time
	advice      string
	labels      map[string]string // of the template

	promised cluster.Resources // allocatable of the template
}

func newFixture() *fixture {
	now := time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)
	c := &fixture{corrections: map[string]Correction{}, firstSeen: map[cluster.NodeName]FirstSeen{}, now: now}
	c.node = cluster.Node{Name: "n", UID: "1", ProviderID: "i", Ready: cluster.StatusTrue, ReadySince: now,
		Labels:      map[string]string{"pool": "batch", "tier": "web"},
		Allocatable: cluster.Resources{MilliCPU: 3800, Memory: 13 << 30, Pods: 110}}
	c.promised = cluster.Resources{MilliCPU: 3800, Memory: 14 << 30, Pods: 110}
	c.labels = map[string]string{"pool": "batch", "tier": "web", labelInstanceType: "m5.xlarge"}
	c.node.Labels[labelInstanceType] = "m5.xlarge"
	return c
}

func (c *fixture) template() cluster.Template {
	g := cluster.NodeGroup{ID: "g", Instances: []cluster.Instance{{ID: "i", Member: true}}, Template: cluster.Template{Spec: "v1",
		Labels:      c.labels,
		Allocatable: c.promised}}
	var nodes []*cluster.Node
	if c.gone {
		g.Instances = nil
	} else {
		nodes = []*cluster.Node{&c.node}
	}
	groups, advice := Correct([]cluster.NodeGroup{g}, Evidence{Nodes: nodes, Specs: map[cluster.InstanceID]string{"i": "v1"}, FirstSeen: c.firstSeen}, c.corrections, c.now)
	c.advice = advice["g"]
	return groups[0].Template
}

// A group of which the provider has no template is what its nodes show, whenever they came; without any it stays unknown.
func TestTemplateByNodes(t *testing.T) {
	n := cluster.Node{Name: "n", UID: "1", ProviderID: "i", Ready: cluster.StatusTrue, Labels: map[string]string{labelInstanceType: "big", "kubernetes.io/hostname": "n"},
		Capacity: cluster.Resources{MilliCPU: 4000, Memory: 16 << 30, Pods: 110}, Allocatable: cluster.Resources{MilliCPU: 3800, Memory: 15 << 30, Pods: 110}}
	known := map[string]Correction{}
	template := func(nodes ...*cluster.Node) cluster.Template {
		g := cluster.NodeGroup{ID: "g", Instances: []cluster.Instance{{ID: "i", Member: true}}, Template: cluster.Template{Spec: "g", Unknown: "none", ByNodes: true}}
		seen := Evidence{Nodes: nodes, FirstSeen: map[cluster.NodeName]FirstSeen{"n": {UID: "1", Labels: n.Labels}}}
		groups, _ := Correct([]cluster.NodeGroup{g}, seen, known, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
		return groups[0].Template
	}
	if got := template(); got.Unknown == "" {
		t.Errorf("without a node: %+v", got)
	}
	for _, nodes := range [][]*cluster.Node{{&n}, nil} { // and when it has gone
		got := template(nodes...)
		if got.Unknown != "" || got.Allocatable.MilliCPU != 3800 || !reflect.DeepEqual(got.Labels, map[string]string{labelInstanceType: "big"}) {
			t.Errorf("of %d nodes: %+v", len(nodes), got)
		}
	}
}

// A group that is empty again promises what its machines had, for a day: otherwise a
// machine would be bought and deleted for the same pod without end.
func TestCorrectionOutlivesTheNode(t *testing.T) {
	c := newFixture()
	if got := c.template().Allocatable.Memory; got != 13<<30 {
		t.Fatalf("corrected to %d", got)
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
// still come, and a node without a heartbeat shows nothing.
func TestCorrectionByAStartingNode(t *testing.T) {
	c := newFixture()
	c.node.Ready, c.node.Labels = cluster.StatusFalse, map[string]string{}
	c.node.Allocatable.Extended = map[string]int64{"nvidia.com/gpu": 0}
	c.promised.EphemeralStorage, c.promised.Extended = 80<<30, map[string]int64{"nvidia.com/gpu": 2}
	got := c.template()
	if got.Allocatable.Memory != 13<<30 || got.Allocatable.EphemeralStorage != 80<<30 || got.Allocatable.Extended["nvidia.com/gpu"] != 2 {
		t.Errorf("corrected to %+v, want the node's memory, and the disk and the GPUs of the template", got.Allocatable)
	}
	if len(got.Labels) != 3 || c.advice != "" {
		t.Errorf("labels %v, advice %q: a starting node may still gain them", got.Labels, c.advice)
	}
	c.gone = true
	if got := c.template().Allocatable.Memory; got != 13<<30 {
		t.Errorf("with the node gone: %d", got)
	}
	silent, blank := newFixture(), newFixture()
	silent.node.Ready = cluster.StatusUnknown
	blank.node.Ready, blank.node.Allocatable.Memory = cluster.StatusFalse, 0
	for name, c := range map[string]*fixture{"silent": silent, "blank": blank} {
		if got := c.template().Allocatable.Memory; got != 14<<30 || len(c.corrections) != 0 {
			t.Errorf("a %s node changed the template to %d", name, got)
		}
	}
}

// A label that a tag promises and no node has cannot be bought.
func TestCorrectionOfLabels(t *testing.T) {
	c := newFixture()
	c.node.Labels = map[string]string{"pool": "other"}
	if got := c.template().Labels; len(got) != 0 {
		t.Errorf("labels %v, want none of the labels that the node lacks", got)
	}
	if !strings.Contains(c.advice, "pool=batch") || !strings.Contains(c.advice, "--label") {
		t.Errorf("the advice is %q", c.advice)
	}
	c.labels["topology.ebs.csi.aws.com/zone"], c.labels["topology.kubernetes.io/zone"] = "a", "a"
	if c.template(); strings.Contains(c.advice, "ebs") || !strings.Contains(c.advice, "kubernetes.io/zone") {
		t.Errorf("the advice is %q: no cluster has to have the EBS CSI driver", c.advice)
	}
	delete(c.labels, "topology.kubernetes.io/zone")
	delete(c.labels, "topology.ebs.csi.aws.com/zone")
	c.node.Labels = map[string]string{"pool": "batch", "tier": "web"} // a controller was late
	if got := c.template().Labels; len(got) != 2 {
		t.Errorf("labels %v, want both", got)
	}
	c.firstSeen["n"] = FirstSeen{UID: "1", Labels: c.node.Labels}
	c.node.Labels = nil // removed later
	if got := c.template().Labels; len(got) != 2 {
		t.Errorf("labels %v, want both: the node registered with them", got)
	}
}

// A taint that nodes register with is the group's, one that came later is not.
func TestCorrectionOfTaints(t *testing.T) {
	c := newFixture()
	team := cluster.Taint{Key: "team", Value: "x", Effect: "NoSchedule"}
	c.node.Taints = []cluster.Taint{team}
	if got := c.template().Taints; len(got) != 0 {
		t.Errorf("taints %v of a node that was not first seen young", got)
	}
	c.firstSeen["n"] = FirstSeen{UID: "1", Taints: c.node.Taints}
	if got := c.template().Taints; !reflect.DeepEqual(got, []cluster.Taint{team}) {
		t.Errorf("taints %v, want %v", got, team)
	}
	c.gone = true
	if got := c.template().Taints; len(got) != 1 {
		t.Errorf("taints %v of a group whose nodes have gone", got)
	}
}

// Labels that the template does not promise are the group's when two nodes share them, or one that registered with them.
func TestCorrectionByExtraLabels(t *testing.T) {
	one := cluster.Node{Name: "one", UID: "1", Labels: map[string]string{"disk": "ssd", "serial": "1", "topology.kubernetes.io/zone": "a", "pool": "x"}}
	two := cluster.Node{Labels: map[string]string{"disk": "ssd", "serial": "2", "topology.kubernetes.io/zone": "a", "pool": "x"}}
	template := &cluster.Template{Labels: map[string]string{"pool": "batch"}}
	var own []string
	firstSeen := map[cluster.NodeName]FirstSeen{}
	sharedLabels := func(known map[string]string, nodes ...*cluster.Node) (out map[string]string) {
		r := readyNodes{template: template, known: &Correction{ExtraLabels: known, OwnLabels: own}, nodes: nodes, firstSeen: firstSeen}
		out, own = r.sharedLabels()
		return out
	}
	if got := sharedLabels(nil, &one); len(got) != 0 {
		t.Errorf("one node showed %v", got)
	}
	disk := map[string]string{"disk": "ssd"}
	if got := sharedLabels(nil, &one, &two); !reflect.DeepEqual(got, disk) {
		t.Errorf("two nodes showed %v, want %v", got, disk)
	}
	if got := sharedLabels(disk, &two); !reflect.DeepEqual(got, disk) {
		t.Errorf("the one that is left showed %v, want %v", got, disk)
	}
	firstSeen["one"] = FirstSeen{UID: "1", Labels: map[string]string{"disk": "ssd", "serial": "1", "topology.kubernetes.io/zone": "a"}}
	if got := sharedLabels(nil, &one); len(got) != 2 || got["serial"] != "1" || len(own) != 0 {
		t.Errorf("the one that registered with its labels showed %v", got)
	}
	for range 2 {
		if got := sharedLabels(map[string]string{"serial": "1"}, &two, &one); !reflect.DeepEqual(got, disk) || !slices.Equal(own, []string{"serial"}) {
			t.Errorf("both showed %v, and %v are of one alone", got, own)
		}
		if got := sharedLabels(nil, &one); !reflect.DeepEqual(got, disk) || !slices.Equal(own, []string{"serial"}) {
			t.Errorf("the one that is left showed %v, and %v are of one alone", got, own)
		}
	}
}

// In a group of several types the next machine may be smaller than the ones seen.
func TestCorrectionOfSeveralTypes(t *testing.T) {
	c := newFixture()
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
		{ProviderID: "new", Ready: cluster.StatusTrue, Allocatable: cluster.Resources{MilliCPU: 1800, Memory: 6 << 30, Pods: 110, Extended: computed.Extended}},
		{ProviderID: "newer", Ready: cluster.StatusFalse, Allocatable: cluster.Resources{MilliCPU: 7, Memory: 7}},
	}
	corrected := func() cluster.Resources {
		groups, _ := Correct([]cluster.NodeGroup{group}, Evidence{Nodes: nodes, Specs: specs}, map[string]Correction{}, time.Now())
		return groups[0].Template.Allocatable
	}
	got := corrected()
	if got.MilliCPU != 1800 || got.Memory != 6<<30 || got.Pods != 110 || got.Extended["nvidia.com/gpu"] != 1 {
		t.Errorf("corrected to %+v", got)
	}
	group.Template.Spec = "v2"
	if got := corrected(); got.MilliCPU != 1900 {
		t.Errorf("a node that is not Ready changed %+v", got)
	}
}

// TestMemoryOfNodesThatWereThere: an agent that has just been installed knows of no machine by which template it was
// launched; the memory of the group's instance type is what its nodes have.
func TestMemoryOfNodesThatWereThere(t *testing.T) {
	const gi = int64(1) << 30
	kind := map[string]string{labelInstanceType: "m5.large"}
	node := func(name string, capacity int64, kind map[string]string, ready cluster.Status) *cluster.Node {
		return &cluster.Node{Name: cluster.NodeName(name), ProviderID: name, Ready: ready, Labels: kind, Capacity: cluster.Resources{MilliCPU: 2000, Memory: capacity}, Allocatable: cluster.Resources{MilliCPU: 2000, Memory: capacity / 2}}
	}
	for name, c := range map[string]struct {
		nodes []*cluster.Node
		specs map[cluster.InstanceID]string
		types map[string]string // of the template
		want  int64             // allocatable, of 7 promised of 8
	}{
		"less":                       {nodes: []*cluster.Node{node("a", 7*gi, kind, cluster.StatusTrue)}, types: kind, want: 6 * gi},
		"more":                       {nodes: []*cluster.Node{node("a", 9*gi, kind, cluster.StatusTrue)}, types: kind, want: 8 * gi},
		"the least of two":           {nodes: []*cluster.Node{node("a", 9*gi, kind, cluster.StatusTrue), node("b", 6*gi, kind, cluster.StatusTrue)}, types: kind, want: 5 * gi},
		"another type":               {nodes: []*cluster.Node{node("a", 6*gi, map[string]string{labelInstanceType: "m5.xlarge"}, cluster.StatusTrue)}, types: kind, want: 7 * gi},
		"a Node without a type":      {nodes: []*cluster.Node{node("a", 6*gi, nil, cluster.StatusTrue)}, types: kind, want: 7 * gi},
		"a group of several types":   {nodes: []*cluster.Node{node("a", 6*gi, kind, cluster.StatusTrue)}, want: 7 * gi},
		"not Ready":                  {nodes: []*cluster.Node{node("a", 6*gi, kind, cluster.StatusFalse)}, types: kind, want: 7 * gi},
		"by an older template":       {nodes: []*cluster.Node{node("a", 6*gi, kind, cluster.StatusTrue)}, specs: map[cluster.InstanceID]string{"a": "v0"}, types: kind, want: 7 * gi},
		"beside one of the template": {nodes: []*cluster.Node{node("a", 6*gi, kind, cluster.StatusTrue), node("b", 8*gi, kind, cluster.StatusTrue)}, specs: map[cluster.InstanceID]string{"b": "v1"}, types: kind, want: 4 * gi},
		"absurd":                     {nodes: []*cluster.Node{node("a", 1, kind, cluster.StatusTrue)}, types: kind, want: 7 * gi},
	} {
		g := cluster.NodeGroup{ID: "g", Template: cluster.Template{Spec: "v1", Labels: c.types,
			Capacity: cluster.Resources{MilliCPU: 2000, Memory: 8 * gi}, Allocatable: cluster.Resources{MilliCPU: 2000, Memory: 7 * gi}}}
		for _, n := range c.nodes {
			g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(n.ProviderID), Member: true})
		}
		groups, _ := Correct([]cluster.NodeGroup{g}, Evidence{Nodes: c.nodes, Specs: c.specs}, map[string]Correction{}, time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
		if got := groups[0].Template.Allocatable.Memory; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestUnlikelySizes: a node whose capacity is far from its template's, or whose allocatable is more than its capacity, shrinks no
// template, and is named.
func TestUnlikelySizes(t *testing.T) {
	const cpu, memory = 4000, 16 << 30
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		capacity, allocatable cluster.Resources
		says                  string
	}{
		"as promised":            {cluster.Resources{MilliCPU: cpu, Memory: memory}, cluster.Resources{MilliCPU: cpu, Memory: 13 << 30, Pods: 110}, ""},
		"a sixteenth":            {cluster.Resources{MilliCPU: cpu, Memory: memory / 16}, cluster.Resources{MilliCPU: cpu, Memory: 1 << 29, Pods: 110}, ""},
		"less than that":         {cluster.Resources{MilliCPU: cpu, Memory: memory/16 - 1}, cluster.Resources{MilliCPU: cpu, Memory: 1 << 29, Pods: 110}, "the memory of node n is "},
		"one byte":               {cluster.Resources{MilliCPU: cpu, Memory: 1}, cluster.Resources{MilliCPU: cpu, Memory: 1, Pods: 110}, "the memory of node n is 1, which is not between"},
		"very many cores":        {cluster.Resources{MilliCPU: 17 * cpu, Memory: memory}, cluster.Resources{MilliCPU: cpu, Memory: 13 << 30, Pods: 110}, "the CPU (in thousandths) of node n is 68000"},
		"more than the capacity": {cluster.Resources{MilliCPU: cpu, Memory: memory}, cluster.Resources{MilliCPU: cpu, Memory: memory + 1, Pods: 110}, "the allocatable memory of node n is"},
	} {
		n := &cluster.Node{Name: "n", UID: "1", ProviderID: "i", Ready: cluster.StatusTrue, ReadySince: now, Capacity: c.capacity, Allocatable: c.allocatable}
		g := cluster.NodeGroup{ID: "g", Instances: []cluster.Instance{{ID: "i", Member: true}}, Template: cluster.Template{Spec: "v1",
			Capacity: cluster.Resources{MilliCPU: cpu, Memory: memory, Pods: 110}, Allocatable: cluster.Resources{MilliCPU: cpu, Memory: 14 << 30, Pods: 110}}}
		groups, advice := Correct([]cluster.NodeGroup{g}, Evidence{Nodes: []*cluster.Node{n}, Specs: map[cluster.InstanceID]string{"i": "v1"}, FirstSeen: map[cluster.NodeName]FirstSeen{}}, map[string]Correction{}, now)
		if got := groups[0].Template.Allocatable.Memory; (got == 14<<30) != (c.says != "") || !strings.HasPrefix(advice["g"], c.says) || c.says == "" && advice["g"] != "" {
			t.Errorf("%s: the template has %d; %q, want %q", name, got, advice["g"], c.says)
		}
	}
}
