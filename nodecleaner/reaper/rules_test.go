package reaper

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// liveStories change the Node between the decision and its deletion. Package nodecleaner
// plays the same with objects of the API.
var liveStories = []struct {
	name   string
	change func(*cluster.Node)
	rule   string
}{
	{"N1 nothing changed", func(*cluster.Node) {}, ""},
	{"N1 another Node of the same name", func(n *cluster.Node) { n.UID = "another" }, "N1"},
	{"N2 another provider ID", func(n *cluster.Node) { n.ProviderID = "aws:///z/i-another" }, "N2"},
	{"N3 Ready again", func(n *cluster.Node) { n.Ready = cluster.StatusTrue }, "N3"},
	{"N3 kept", func(n *cluster.Node) { n.Annotations = map[string]string{cluster.AnnotationKeep: "true"} }, "N3"},
	{"N3 of the control plane", func(n *cluster.Node) { n.ControlPlane = true }, "N3"},
}

func TestRecheckByRule(t *testing.T) {
	for _, c := range liveStories {
		t.Run(c.name, func(t *testing.T) {
			n := cluster.Node{Name: "n", UID: "u", ProviderID: string(id(0))}
			d := Deletion{Node: n.Name, UID: n.UID, ProviderID: n.ProviderID, Rule: "G3"}
			c.change(&n)
			if rule, why := Recheck(n, d); rule != c.rule || (why == "") != (c.rule == "") {
				t.Errorf("held by %q (%s), want %q", rule, why, c.rule)
			}
		})
	}
}

// TestYoungAbsence (G0): the absence of a young instance is a read that lags, where the
// cloud goes on listing terminated ones; a positive answer is not doubted for its age.
func TestYoungAbsence(t *testing.T) {
	for name, c := range map[string]struct {
		sight observation
		said  cluster.Existence
		age   time.Duration
		sent  bool
		held  bool
	}{
		"absent and young":          {observation{state: gone}, cluster.InstanceNotFound, time.Hour - 1, false, true},
		"absent and old enough":     {observation{state: gone}, cluster.InstanceNotFound, time.Hour, false, false},
		"listed as terminated":      {observation{state: gone, positive: true}, cluster.InstanceNotFound, 0, false, false},
		"terminated when asked":     {observation{state: gone}, cluster.InstanceTerminated, 0, false, false},
		"removed by a scale-down":   {observation{state: gone}, cluster.InstanceNotFound, 0, true, false},
		"young and alive":           {observation{state: alive}, cluster.InstanceNotFound, 0, false, false},
		"nothing is known, and old": {observation{}, cluster.InstanceNotFound, 2 * time.Hour, false, true},
	} {
		x := &evaluation{in: Input{Now: noon}, policy: Policy{KnownFor: time.Hour},
			memory: Memory{Seen: map[cluster.InstanceID]Record{id(0): {Launched: noon.Add(-c.age), Sent: c.sent}}}}
		if why := isUnknown(&candidate{id: id(0), sight: c.sight, watch: Watch{Asked: Asked{Said: c.said}}}, x); (why != "") != c.held {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// TestCanaryOfTheLiving (B1): a spoilt answer holds only a Node whose instance the list
// gives up.
func TestCanaryOfTheLiving(t *testing.T) {
	spoilt := Watch{Asked: Asked{Rule: "B1", Why: "spoilt"}}
	for state, held := range map[state]bool{gone: true, alive: false, unknown: false} {
		if why := failsCanary(&candidate{sight: observation{state: state}, watch: spoilt}, nil); (why != "") != held {
			t.Errorf("state %d: %q", state, why)
		}
	}
}

// TestSecondSightInTime (G2): a sight exactly one interval after the first is the second.
func TestSecondSightInTime(t *testing.T) {
	x := &evaluation{policy: Policy{SightInterval: time.Minute}}
	for apart, held := range map[time.Duration]bool{time.Minute - 1: true, time.Minute: false} {
		if why := lacksSecondSight(&candidate{watch: Watch{First: noon, Last: noon.Add(apart)}}, x); (why != "") != held {
			t.Errorf("%s apart: %q", apart, why)
		}
	}
}

// TestVolumesAreFencedFirst (N4): the taint is asked for once, and the wait begins when
// the Node carries it.
func TestVolumesAreFencedFirst(t *testing.T) {
	x := &evaluation{in: Input{Now: noon, Attached: map[cluster.NodeName]int{"n": 1}}, policy: Policy{DetachFor: time.Minute}}
	for _, tainted := range []bool{false, true} {
		c := &candidate{node: cluster.Node{Name: "n"}, watch: Watch{Positive: true}}
		if tainted {
			c.node.Taints = []cluster.Taint{{Key: TaintOutOfService}}
		}
		if why := hasVolumes(c, x); why == "" || c.fence == tainted || c.watch.Fenced.IsZero() == tainted {
			t.Errorf("tainted %t: %q, fence %t, waits since %s", tainted, why, c.fence, c.watch.Fenced)
		}
	}
}

// TestUnreadLease (L2): what was not read is not taken for a Lease that stands still.
func TestUnreadLease(t *testing.T) {
	w := newWorld()
	w.lose(0)
	for _, read := range []bool{false, true} {
		in := w.in
		if in.Leases = nil; read {
			in.Leases = map[cluster.NodeName]Lease{w.node(0).Name: {}}
		}
		x := newMoment(in, w.memory, w.policy)
		if c := x.candidate(*w.node(0)); c.rule != "" || c.watch.Pulse.Still.IsZero() == read {
			t.Errorf("read %t: rule %q, %+v", read, c.rule, c.watch.Pulse)
		}
	}
}

// TestNeverSeen (E5): what makes an instance one of ours, and the words for each other case.
func TestNeverSeen(t *testing.T) {
	group := &cluster.NodeGroup{ID: "workers"}
	for name, c := range map[string]struct {
		known  bool
		record Record
		listed bool
		wrote  string // the annotation on the Node
		words  string // "": it is ours
	}{
		"in the ledger":                       {known: true, record: Record{Group: "workers"}},
		"in the ledger without a group":       {known: true, words: "was never seen in a managed node group"},
		"had ended when it was first seen":    {known: true, record: Record{Group: "workers", Late: true}, words: "had ended when this agent first saw it"},
		"had ended, listed by its group":      {known: true, record: Record{Group: "workers", Late: true}, listed: true, words: "had ended when"},
		"listed by a stale group":             {listed: true},
		"annotated, its group is not listed":  {wrote: "gone", words: "its group gone (annotation autoscaler-agent/group) is not among"},
		"annotated, and listed":               {wrote: "workers", listed: true},
		"ended, annotated":                    {record: Record{Group: "workers", Late: true}, wrote: "workers", words: "had ended when"},
		"neither ledger, list nor annotation": {words: "was never seen in a managed node group"},
	} {
		x := &evaluation{view: &view{instances: map[cluster.InstanceID]found{}}, memory: Memory{Seen: map[cluster.InstanceID]Record{id(0): c.record}}}
		if c.listed {
			x.view.instances[id(0)] = found{group: group}
		}
		n := cluster.Node{ProviderID: string(id(0))}
		if c.wrote != "" {
			n.Annotations = map[string]string{cluster.AnnotationGroup: c.wrote}
		}
		why := wasNeverSeen(&candidate{id: id(0), node: n, known: c.known}, x)
		if (why == "") != (c.words == "") || !strings.Contains(why, c.words) {
			t.Errorf("%s: %q, want %q", name, why, c.words)
		}
	}
}
