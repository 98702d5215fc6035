package template

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// startingWorld is a group whose machines have 15 minutes to become what they are to be.
type startingWorld struct {
	now       time.Time
	template  cluster.Template
	nodes     []*cluster.Node
	firstSeen map[cluster.NodeName]FirstSeen
	known     map[string]Correction
	advice    string // of the last correction
	provision time.Duration
	classes   []cluster.PodClass
}

func newStartingWorld() *startingWorld {
	return &startingWorld{now: time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC), firstSeen: map[cluster.NodeName]FirstSeen{}, known: map[string]Correction{}, provision: 15 * time.Minute,
		template: cluster.Template{Spec: "v1", Labels: map[string]string{"gpu": "T4"}, Allocatable: cluster.Resources{MilliCPU: 4000, Memory: 8 << 30, Pods: 110}}}
}

// joins adds a Ready node that the agent has seen from when it registered with these taints.
func (w *startingWorld) joins(name cluster.NodeName, taints ...cluster.Taint) *cluster.Node {
	n := &cluster.Node{Name: name, UID: cluster.UID(name), ProviderID: string(name), Created: w.now, Ready: cluster.StatusTrue, ReadySince: w.now,
		Taints: taints, Allocatable: w.template.Allocatable, Labels: map[string]string{}}
	w.firstSeen[name] = FirstSeen{UID: n.UID, Taints: taints}
	w.nodes = append(w.nodes, n)
	return n
}

func (w *startingWorld) corrected() cluster.Template {
	g := cluster.NodeGroup{ID: "g", Template: w.template}
	seen := Evidence{Nodes: w.nodes, Classes: w.classes, FirstSeen: w.firstSeen, Specs: map[cluster.InstanceID]string{}, ProvisionTime: w.provision}
	for _, n := range w.nodes {
		g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(n.ProviderID), Member: true})
		seen.Specs[cluster.InstanceID(n.ProviderID)] = "v1"
	}
	groups, advice := Correct([]cluster.NodeGroup{g}, seen, w.known, w.now)
	w.advice = advice["g"]
	return groups[0].Template
}

var agentNotReady = cluster.Taint{Key: "node.cilium.io/agent-not-ready", Value: "true", Effect: "NoExecute"}

// A template learns neither that a young node has a taint nor that it lacks a label; both are the
// template's when the node's time is over.
func TestYoungNodesTeachNothingThatMayPass(t *testing.T) {
	w := newStartingWorld()
	w.joins("a", agentNotReady)
	w.now = w.now.Add(14 * time.Minute)
	if got := w.corrected(); len(got.Taints) != 0 || got.Labels["gpu"] != "T4" {
		t.Errorf("after 14 minutes: taints %v, labels %v", got.Taints, got.Labels)
	}
	if until := ValidUntil(nil, Evidence{Nodes: w.nodes, ProvisionTime: 15 * time.Minute}, w.now); !until.Equal(w.nodes[0].Created.Add(15 * time.Minute)) {
		t.Errorf("the templates hold until %v", until)
	}
	w.now = w.now.Add(time.Minute)
	if got := w.corrected(); !reflect.DeepEqual(got.Taints, []cluster.Taint{agentNotReady}) || len(got.Labels) != 0 {
		t.Errorf("after 15 minutes: taints %v, labels %v", got.Taints, got.Labels)
	}
}

// One machine that never gets ready to be used does not close a group of which another is, a second
// one in a row does.
func TestTheNewestTwoNodesDecide(t *testing.T) {
	w := newStartingWorld()
	w.joins("good").Labels["gpu"] = "T4"
	w.now = w.now.Add(time.Hour)
	w.joins("bad", agentNotReady)
	w.now = w.now.Add(15 * time.Minute)
	if got := w.corrected(); len(got.Taints) != 0 || got.Labels["gpu"] != "T4" {
		t.Errorf("one of two: taints %v, labels %v", got.Taints, got.Labels)
	}
	w.joins("bad2", agentNotReady)
	w.now = w.now.Add(15 * time.Minute)
	if got := w.corrected(); len(got.Taints) != 1 || got.Labels["gpu"] != "" {
		t.Errorf("the newest two: taints %v, labels %v", got.Taints, got.Labels)
	}
	w.joins("good2").Labels["gpu"] = "T4"
	if got := w.corrected(); len(got.Taints) != 0 || got.Labels["gpu"] != "T4" {
		t.Errorf("a newer one is well: taints %v, labels %v", got.Taints, got.Labels)
	}
}

// What a node has shown for good is remembered although it went within two minutes: a label with another value at once, a
// taint when its time to start was over. A missing label and a taint that may pass are not.
func TestAShortLivedNodeIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		provision time.Duration
		labels    map[string]string
		taints    []cluster.Taint
		pool      string // of the template when the node has gone
		learned   int    // taints
	}{
		"another value":          {provision: 15 * time.Minute, labels: map[string]string{"gpu": "L4"}},
		"missing, may come":      {provision: 15 * time.Minute, pool: "T4"},
		"a taint that may pass":  {provision: 15 * time.Minute, labels: map[string]string{"gpu": "T4"}, taints: []cluster.Taint{agentNotReady}, pool: "T4"},
		"a taint after its time": {provision: 10 * time.Second, labels: map[string]string{"gpu": "T4"}, taints: []cluster.Taint{agentNotReady}, pool: "T4", learned: 1},
		"missing after its time": {provision: 10 * time.Second},
	} {
		w := newStartingWorld()
		w.provision = c.provision
		w.joins("a", c.taints...).Labels = c.labels
		w.now = w.now.Add(20 * time.Second)
		w.corrected()
		w.nodes = nil
		if got := w.corrected(); got.Labels["gpu"] != c.pool || len(got.Taints) != c.learned {
			t.Errorf("%s: labels %v, taints %v", name, got.Labels, got.Taints)
		}
	}
}

// What static pods take of each node is no room of the next machine, also when the nodes have gone; what one node alone has is.
func TestStaticPodsTakeRoom(t *testing.T) {
	w := newStartingWorld()
	w.classes = []cluster.PodClass{{Requests: cluster.Resources{MilliCPU: 100, Pods: 1}}, {Requests: cluster.Resources{MilliCPU: 500, Memory: 1 << 30, Pods: 1}}}
	expect := func(when string, cpu, pods int64) {
		t.Helper()
		if got := w.corrected().Allocatable; got.MilliCPU != cpu || got.Pods != pods {
			t.Errorf("%s: %dm and %d pods, want %dm and %d", when, got.MilliCPU, got.Pods, cpu, pods)
		}
	}
	a := w.joins("a")
	expect("before the kubelet has reported any", 4000, 110)
	a.Pods = []cluster.Pod{{Key: "kube-system/proxy-a", Mirror: true}, {Key: "kube-system/lb-a", Class: 1, Mirror: true}, {Key: "default/web", Class: 1}, {Key: "kube-system/old", Class: 1, Mirror: true, Finished: true}}
	expect("of the only node", 3400, 108)
	w.now = w.now.Add(time.Minute)
	w.joins("b").Pods = []cluster.Pod{{Key: "kube-system/proxy-b", Mirror: true}}
	expect("of both", 3900, 109)
	w.now = w.now.Add(time.Minute)
	w.joins("c")
	expect("beside one that has just joined", 3900, 109)
	w.nodes = nil
	expect("when the nodes have gone", 3900, 109)
}

// A person's taint is not learned, however long it stays.
func TestAPersonsTaintIsNoTemplates(t *testing.T) {
	w := newStartingWorld()
	n := w.joins("a", agentNotReady)
	n.OperatorTaints = n.Taints
	w.now = w.now.Add(time.Hour)
	if got := w.corrected(); len(got.Taints) != 0 {
		t.Errorf("taints %v", got.Taints)
	}
}

// A young node that has none or some of a device takes nothing from what others have shown, until
// its time is over. The same holds for a label that the nodes share and no tag promises.
func TestYoungNodesTakeNothingAway(t *testing.T) {
	w := newStartingWorld()
	for _, name := range []cluster.NodeName{"a", "b"} {
		n := w.joins(name)
		n.Labels["driver"], n.Allocatable.Extended = "5", map[string]int64{"gpu": 4}
	}
	w.now = w.now.Add(time.Hour)
	w.corrected()
	young := w.joins("c")
	for _, shows := range []map[string]int64{nil, {"gpu": 0}, {"gpu": 2}} {
		young.Allocatable.Extended = shows
		if got := w.corrected(); got.Allocatable.Extended["gpu"] != 4 || got.Labels["driver"] != "5" {
			t.Errorf("with a young node that shows %v: %v, labels %v", shows, got.Allocatable.Extended, got.Labels)
		}
	}
	nodes := w.nodes
	w.nodes = []*cluster.Node{young}
	young.Allocatable.Extended = map[string]int64{"gpu": 0}
	if got := w.corrected(); got.Allocatable.Extended["gpu"] != 4 || got.Labels["driver"] != "5" {
		t.Errorf("with the young node alone: %v, labels %v", got.Allocatable.Extended, got.Labels)
	}
	w.nodes, w.now = nodes, w.now.Add(15*time.Minute)
	if got := w.corrected(); got.Allocatable.Extended["gpu"] != 4 || got.Labels["driver"] != "" {
		t.Errorf("when its time is over: %v, labels %v", got.Allocatable.Extended, got.Labels)
	}
	w.joins("d")
	w.now = w.now.Add(15 * time.Minute)
	if got := w.corrected(); got.Allocatable.Extended["gpu"] != 0 {
		t.Errorf("when the newest two have none: %v", got.Allocatable.Extended)
	}
}

// A resource that the template promises and no node shows when its time to start is over is promised no more, also when
// the node is gone: a pod would get one machine after another. A node that shows it brings it back.
func TestAPromisedDeviceThatNeverComes(t *testing.T) {
	w := newStartingWorld()
	w.template.Allocatable.Extended = map[string]int64{"nvidia.com/gpu": 1, "example.com/nic": 2}
	n := w.joins("a")
	n.Allocatable.Extended = map[string]int64{"nvidia.com/mig-1g.5gb": 7, "example.com/nic": 1}
	if got := w.corrected().Allocatable.Extended; got["nvidia.com/gpu"] != 1 {
		t.Errorf("while it starts: %v", got)
	}
	w.now = w.now.Add(15 * time.Minute)
	want := map[string]int64{"nvidia.com/gpu": 0, "nvidia.com/mig-1g.5gb": 7, "example.com/nic": 1}
	for _, nodes := range [][]*cluster.Node{w.nodes, nil} {
		w.nodes = nodes
		if got := w.corrected().Allocatable.Extended; !reflect.DeepEqual(got, want) {
			t.Errorf("with %d nodes whose time is over: %v, want %v", len(nodes), got, want)
		}
		if !strings.Contains(w.advice, "promises nvidia.com/gpu: 1") || strings.Contains(w.advice, "nic") {
			t.Errorf("the advice is %q", w.advice)
		}
	}
	w.joins("b").Allocatable.Extended = map[string]int64{"nvidia.com/gpu": 1}
	if got := w.corrected().Allocatable.Extended["nvidia.com/gpu"]; got != 1 {
		t.Errorf("a newer node shows %d", got)
	}
}

// What was learned of taints that nodes registered with outlives a restart of the agent, which has
// not seen these nodes young.
func TestALearnedTaintOutlivesARestart(t *testing.T) {
	w := newStartingWorld()
	w.joins("a", agentNotReady)
	w.now = w.now.Add(time.Hour)
	w.corrected()
	w.firstSeen = map[cluster.NodeName]FirstSeen{}
	if got := w.corrected(); len(got.Taints) != 1 {
		t.Errorf("taints %v", got.Taints)
	}
	w.nodes[0].Taints = nil
	if got := w.corrected(); len(got.Taints) != 0 || len(w.known["v1"].Taints) != 0 {
		t.Errorf("taints %v, kept %v", got.Taints, w.known["v1"].Taints)
	}
}
