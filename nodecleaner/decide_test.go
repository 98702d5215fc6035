package nodecleaner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func defaults() Policy {
	return Config{SightInterval: time.Minute, SentGrace: time.Minute, Grace: 10 * time.Minute, KnownFor: time.Hour,
		MaxShare: 0.2, MassHold: 10 * time.Minute, FreezeFor: 5 * time.Minute, UnledgeredEvery: 10 * time.Second,
		BreakErrors: 5, BreakWithin: 10 * time.Minute, DetachFor: 6 * time.Minute}.policy()
}

// world is a cluster of one group of ten that a test changes and lets time pass in.
type world struct {
	in     Input
	memory Memory
	policy Policy
	plan   Plan
	all    []Deletion
}

func id(n int) cluster.InstanceID { return cluster.InstanceID(fmt.Sprintf("aws:///z/i-%02d", n)) }

func newWorld() *world {
	w := &world{policy: defaults()}
	w.in.Now = noon
	group := cluster.NodeGroup{ID: "workers", Target: 10, ReadAt: noon}
	for n := range 10 {
		group.Instances = append(group.Instances, cluster.Instance{ID: id(n), Phase: cluster.PhaseRunning, Member: true,
			Created: noon.Add(-2 * time.Hour), Zone: []string{"a", "b"}[n%2], NodeNames: []string{fmt.Sprintf("n%02d", n)}})
		w.in.Nodes = append(w.in.Nodes, cluster.Node{Name: cluster.NodeName(fmt.Sprintf("n%02d", n)), UID: cluster.UID(fmt.Sprintf("u%02d", n)),
			ProviderID: string(id(n)), Created: noon.Add(-2 * time.Hour), Ready: cluster.StatusTrue, ReadySince: noon.Add(-time.Hour)})
	}
	w.in.Groups = []cluster.NodeGroup{group}
	w.step()
	return w
}

func (w *world) step() {
	w.plan, w.memory = Decide(w.in, w.memory, w.policy)
	w.all = append(w.all, w.plan.Delete...)
	for _, d := range w.plan.Delete {
		w.in.Nodes = slices.DeleteFunc(w.in.Nodes, func(n cluster.Node) bool { return n.Name == d.Node })
	}
}

// pass lets d go by in steps of ten seconds, with a new read of the cloud at each.
func (w *world) pass(d time.Duration) {
	for end := w.in.Now.Add(d); w.in.Now.Before(end); {
		w.in.Now = w.in.Now.Add(10 * time.Second)
		for g := range w.in.Groups {
			if w.in.Groups[g].Stale == "" {
				w.in.Groups[g].ReadAt = w.in.Now
			}
		}
		w.step()
	}
}

func (w *world) node(n int) *cluster.Node {
	for i := range w.in.Nodes {
		if w.in.Nodes[i].Name == cluster.NodeName(fmt.Sprintf("n%02d", n)) {
			return &w.in.Nodes[i]
		}
	}
	return nil
}

func (w *world) lose(n int) {
	node := w.node(n)
	node.Ready, node.ReadySince = cluster.StatusUnknown, w.in.Now
	node.Taints = append(node.Taints, cluster.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"})
}

func (w *world) phase(n int, p cluster.Phase) {
	i := &w.in.Groups[0].Instances[w.index(n)]
	i.Phase, i.Member = p, p != cluster.PhaseGone
	if p == cluster.PhaseGone {
		w.in.Groups[0].Target--
	}
}

func (w *world) index(n int) int {
	return slices.IndexFunc(w.in.Groups[0].Instances, func(i cluster.Instance) bool { return i.ID == id(n) })
}

// vanish takes an instance out of the listing.
func (w *world) vanish(n int) {
	i := w.index(n)
	w.in.Groups[0].Instances = slices.Delete(w.in.Groups[0].Instances, i, i+1)
	w.in.Groups[0].Target--
}

func (w *world) held(n int) string {
	for _, h := range w.plan.Held {
		if h.Node == cluster.NodeName(fmt.Sprintf("n%02d", n)) {
			return h.Rule
		}
	}
	return ""
}

// story is a course of events and how it ends: the Nodes deleted, by rule ("n00:G3
// n01:G4"), and the rule that holds Node n00.
type story struct {
	name string // begins with the ID of the rule that it is about
	play func(*world)
	want string
	held string
}

var sentAway = cluster.Taint{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"}

var stories = []story{
	{"E1 control plane", func(w *world) {
		w.node(0).ControlPlane = true
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "E1"},
	{"E2 own node", func(w *world) {
		w.in.Own = []cluster.NodeName{"n00"}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "E2"},
	{"E3 annotation", func(w *world) {
		w.node(0).Annotations = map[string]string{cluster.AnnotationKeep: "true"}
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(time.Hour)
	}, "", "E3"},
	{"E4 no provider ID", func(w *world) { w.node(0).ProviderID = ""; w.lose(0); w.vanish(0); w.pass(time.Hour) }, "", "E4"},
	{"E5 never seen", func(w *world) { w.node(0).ProviderID = "aws:///z/i-foreign"; w.lose(0); w.vanish(0); w.pass(time.Hour) }, "", "E5"},
	{"G0 stale group", func(w *world) { w.lose(0); w.vanish(0); w.in.Groups[0].Stale = "throttled"; w.pass(time.Hour) }, "", "G0"},
	{"G0 stale group lists it as terminated", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.Groups[0].Stale = "throttled"
		w.pass(time.Hour)
	}, "", "G0"},
	{"G0 error", func(w *world) { w.lose(0); w.vanish(0); w.in.ReadProblem = "403"; w.pass(time.Hour) }, "", "G0"},
	{"G0 nothing listed", func(w *world) { w.lose(0); w.in.Groups = nil; w.pass(time.Hour) }, "", "G0"},
	{"G0 no state", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseUnknown); w.pass(time.Hour) }, "", "G0"},
	{"B1 wrong account", func(w *world) {
		w.lose(0)
		w.in.Groups = []cluster.NodeGroup{{ID: "other", Target: 1, ReadAt: noon, Instances: []cluster.Instance{{ID: "aws:///z/i-x", Phase: cluster.PhaseRunning, Member: true}}}}
		w.pass(time.Hour)
	}, "", "B1"},
	{"B1 empty group with a target", func(w *world) {
		for n := range 10 {
			w.lose(n)
		}
		w.in.Groups[0].Instances = nil
		w.pass(time.Hour)
	}, "", "B1"},
	{"G0 young and unknown to the ledger", func(w *world) {
		w.memory = Memory{}
		w.lose(0)
		w.vanish(0)
		w.node(0).Created = noon.Add(-time.Minute)
		w.node(0).Taints = append(w.node(0).Taints, sentAway)
		w.memory = Memory{}
		w.pass(10 * time.Second)
	}, "", "G2"},
	{"G1 stopped", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseStopped); w.pass(time.Hour) }, "", "G1"},
	{"G1 on its way out", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseDeleting); w.pass(time.Hour) }, "", "G1"},
	{"G1 running", func(w *world) { w.lose(0); w.pass(time.Hour) }, "", "G1"},
	{"G2 one sight", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseGone); w.pass(50 * time.Second) }, "", "G2"},
	{"G2 the same read twice", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(10 * time.Second)
		for range 30 {
			w.in.Now = w.in.Now.Add(10 * time.Second)
			w.step()
		}
	}, "", "G2"},
	{"G3 terminated", func(w *world) { w.lose(0); w.phase(0, cluster.PhaseGone); w.pass(80 * time.Second) }, "n00:G3", ""},
	{"G3 the seed's case", func(w *world) {
		w.node(0).Taints = append(w.node(0).Taints, sentAway)
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(80 * time.Second)
	}, "n00:G3", ""},
	{"G3 the taint stripped", func(w *world) {
		w.node(0).Taints = append(w.node(0).Taints, sentAway)
		w.pass(10 * time.Second)
		w.node(0).Taints = nil
		w.phase(0, cluster.PhaseGone)
		w.lose(0)
		w.pass(80 * time.Second)
	}, "n00:G3", ""},
	{"G3 group at zero", func(w *world) {
		for n := range 10 {
			w.node(n).Taints = append(w.node(n).Taints, sentAway)
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(80 * time.Second)
	}, "n00:G3 n01:G3 n02:G3 n03:G3 n04:G3 n05:G3 n06:G3 n07:G3 n08:G3 n09:G3", ""},
	{"G4 absent", func(w *world) { w.lose(0); w.vanish(0); w.pass(12 * time.Minute) }, "n00:G4", ""},
	{"G4 absent, sent away", func(w *world) {
		w.node(0).Taints = append(w.node(0).Taints, sentAway)
		w.lose(0)
		w.vanish(0)
		w.pass(90 * time.Second)
	}, "n00:G4", ""},
	{"G4 group at zero, absent", func(w *world) {
		for n := range 10 {
			w.node(n).Taints = append(w.node(n).Taints, sentAway)
			w.lose(n)
			w.vanish(n)
		}
		w.pass(2 * time.Minute)
	}, "n00:G4 n01:G4 n02:G4 n03:G4 n04:G4 n05:G4 n06:G4 n07:G4 n08:G4 n09:G4", ""},
	{"G4 comes back between", func(w *world) {
		w.lose(0)
		saved := slices.Clone(w.in.Groups[0].Instances)
		w.vanish(0)
		w.pass(30 * time.Second)
		w.in.Groups[0].Instances, w.in.Groups[0].Target = saved, 10
		w.pass(time.Hour)
	}, "", "G1"},
	{"G5 another Node of the same name", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(30 * time.Second)
		w.node(0).UID = "new"
		w.pass(40 * time.Second)
	}, "", "G2"},
	{"L1 Ready", func(w *world) { w.phase(0, cluster.PhaseGone); w.pass(time.Hour) }, "", ""},
	{"L1 not for long enough", func(w *world) { w.lose(0); w.vanish(0); w.pass(9 * time.Minute) }, "", "L1"},
	{"L2 its Lease is renewed", func(w *world) {
		w.lose(0)
		w.vanish(0)
		w.pass(5 * time.Minute)
		w.node(0).LeaseRenewed = w.in.Now
		w.pass(6 * time.Minute)
	}, "", "L2"},
	{"L3 no taint", func(w *world) { w.lose(0); w.node(0).Taints = nil; w.vanish(0); w.pass(time.Hour) }, "", "L3"},
	{"B2 three of ten vanish", func(w *world) {
		for n := range 3 {
			w.lose(n)
			w.vanish(n)
		}
		w.pass(time.Hour)
	}, "", "B2"},
	{"B2 three of ten are terminated", func(w *world) {
		for n := range 3 {
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(10 * time.Minute)
	}, "", "B2"},
	{"B2 goes by for the terminated", func(w *world) {
		for n := range 3 {
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(15 * time.Minute)
	}, "n00:G3 n01:G3 n02:G3", ""},
	{"B2 two of ten", func(w *world) {
		for n := range 2 {
			w.lose(n)
			w.phase(n, cluster.PhaseGone)
		}
		w.pass(2 * time.Minute)
	}, "n00:G3 n01:G3", ""},
	{"B3 outage", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.Outage = "the API server does not answer"
		w.pass(10 * time.Minute)
		w.in.Outage = ""
		w.pass(4 * time.Minute)
	}, "", "B3"},
	{"B3 spares what was sent away and is terminated", func(w *world) {
		w.lose(0)
		w.in.Sent = []cluster.InstanceID{cluster.InstanceID(w.in.Nodes[0].ProviderID)}
		w.phase(0, cluster.PhaseGone)
		w.in.Outage = "the API server does not answer"
		w.pass(10 * time.Minute)
		w.in.Outage = ""
		w.pass(3 * time.Minute)
	}, "n00:G3", ""},
	{"B3 holds what was sent away and is only absent", func(w *world) {
		w.lose(0)
		w.in.Sent = []cluster.InstanceID{cluster.InstanceID(w.in.Nodes[0].ProviderID)}
		w.vanish(0)
		w.in.Outage = "the API server does not answer"
		w.pass(10 * time.Minute)
		w.in.Outage = ""
		w.pass(4 * time.Minute)
	}, "", "B3"},
	{"B3 ends", func(w *world) {
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.in.Outage = "the API server does not answer"
		w.pass(10 * time.Minute)
		w.in.Outage = ""
		w.pass(6 * time.Minute)
	}, "n00:G3", ""},
	{"B3 the clock jumps", func(w *world) {
		w.lose(0)
		w.vanish(0)
		w.pass(30 * time.Second)
		w.in.Now = w.in.Now.Add(3 * time.Hour)
		w.pass(4 * time.Minute)
	}, "", "L1"},
	{"B4 most of a group is not Ready", func(w *world) {
		for n := range 6 {
			w.lose(n)
		}
		w.phase(0, cluster.PhaseGone)
		w.pass(5 * time.Minute)
	}, "", "B4"},
	{"B5 one after the other", func(w *world) {
		w.policy.UnledgeredEvery = time.Hour
		w.lose(0)
		w.phase(0, cluster.PhaseGone)
		w.pass(2 * time.Minute)
		w.lose(1)
		w.phase(1, cluster.PhaseGone)
		w.pass(30 * time.Minute)
	}, "n00:G3", ""},
}

// TestDecideByRule plays every story.
func TestDecideByRule(t *testing.T) {
	for _, c := range stories {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			c.play(w)
			var got []string
			for _, d := range w.all {
				got = append(got, string(d.Node)+":"+d.Rule)
			}
			slices.Sort(got)
			if s := strings.Join(got, " "); s != c.want || w.held(0) != c.held {
				t.Errorf("deleted %q, n00 held by %q; want %q and %q\nheld: %+v\nbreakers: %v", s, w.held(0), c.want, c.held, w.plan.Held, w.plan.Breakers)
			}
		})
	}
}

// TestEmptyMemory: a restart forgets, and nothing is deleted that would not be
// deleted by an agent that has watched.
func TestEmptyMemory(t *testing.T) {
	w := newWorld()
	w.lose(0)
	w.phase(0, cluster.PhaseGone)
	for range 20 {
		w.memory = Memory{}
		w.pass(10 * time.Second)
	}
	if len(w.all) > 0 {
		t.Errorf("deleted with an empty memory: %+v", w.all)
	}
}
