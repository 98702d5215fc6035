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
	ours   []cluster.NodeGroup       // while the cloud answers from another account
	fenced map[cluster.UID]time.Time // since when a Node is out of service
}

func id(n int) cluster.InstanceID { return cluster.InstanceID(fmt.Sprintf("aws:///z/i-%02d", n)) }

func newWorld() *world {
	w := &world{policy: defaults(), fenced: map[cluster.UID]time.Time{}}
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
	for _, d := range w.plan.Fence {
		w.fenced[d.UID] = w.in.Now
		for i := range w.in.Nodes {
			if w.in.Nodes[i].Name == d.Node {
				w.in.Nodes[i].Taints = append(w.in.Nodes[i].Taints, cluster.Taint{Key: taintOutOfService, Value: outOfServiceValue, Effect: "NoExecute"})
			}
		}
	}
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

func (w *world) launched(n int, at time.Time) {
	w.in.Groups[0].Instances[w.index(n)].Created = at
	w.memory.Seen = nil
	w.step()
}

// join adds an instance to the group.
func (w *world) join(i cluster.Instance) {
	w.in.Groups[0].Instances = append(w.in.Groups[0].Instances, i)
	w.in.Groups[0].Target++
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

// TestEveryRuleHasAStory: a rule without a test by its name is a rule that may be lost.
func TestEveryRuleHasAStory(t *testing.T) {
	told := map[string]bool{}
	for _, s := range stories {
		rule, _, _ := strings.Cut(s.name, " ")
		told[rule] = true
	}
	for _, s := range liveStories {
		rule, _, _ := strings.Cut(s.name, " ")
		told[rule] = true
	}
	seen := map[string]bool{}
	for _, r := range Rules() {
		if !told[r.ID] || r.Says == "" || seen[r.ID] {
			t.Errorf("rule %s (%q) has no story, no words, or stands twice in the list", r.ID, r.Says)
		}
		seen[r.ID] = true
	}
	for rule := range told {
		if !seen[rule] {
			t.Errorf("story of rule %s, which is not in the list", rule)
		}
	}
}
