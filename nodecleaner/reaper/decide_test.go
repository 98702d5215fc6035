package reaper

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
	return Policy{SightInterval: time.Minute, SentGrace: time.Minute, Grace: 10 * time.Minute, KnownFor: time.Hour,
		MaxShare: 0.2, MassHold: 10 * time.Minute, FreezeFor: 5 * time.Minute, UnledgeredEvery: 10 * time.Second,
		BreakErrors: 5, BreakWithin: 10 * time.Minute, DetachFor: 6 * time.Minute, Silence: 2 * time.Minute}
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
	last   Input                     // of the last decision, with what was read for it
	// byID is what the cloud says by ID of instances that no group lists; of others it says
	// what the list says, and knows nothing else.
	byID map[cluster.InstanceID]cluster.Existence
	asks int // questions so far
	// renewed are the stamps of the Leases.
	renewed map[cluster.NodeName]time.Time
}

// answer is what the cloud says of one instance by its ID.
func (w *world) answer(id cluster.InstanceID) cluster.Testimony {
	if said, ok := w.byID[id]; ok {
		return cluster.Testimony{Existence: said, Why: "as the test has it"}
	}
	if w.in.ReadProblem != "" {
		return cluster.Testimony{Why: w.in.ReadProblem}
	}
	for _, g := range w.in.Groups {
		for _, i := range g.Instances {
			switch {
			case machine(string(i.ID)) != machine(string(id)):
			case i.Phase == cluster.PhaseGone:
				return cluster.Testimony{Existence: cluster.InstanceTerminated}
			case i.Phase == cluster.PhaseUnknown:
				return cluster.Testimony{Why: "no state"}
			default:
				return cluster.Testimony{Existence: cluster.InstanceExists, Why: string(i.Phase)}
			}
		}
	}
	return cluster.Testimony{Existence: cluster.InstanceNotFound}
}

// decide asks for what the plan wants, as the service does.
func (w *world) decide() {
	w.last = w.in
	w.last.Nodes = slices.Clone(w.in.Nodes)
	for range 2 {
		w.plan, _ = Decide(w.last, w.memory, w.policy)
		if w.last.Outage != "" || len(w.plan.Ask)+len(w.plan.Leases) == 0 {
			break
		}
		if len(w.plan.Ask) > 0 && w.last.Answers == nil {
			w.asks++
			w.last.Answers, w.last.AskedAt = map[cluster.InstanceID]cluster.Testimony{}, w.in.Now
			for _, id := range w.plan.Ask {
				w.last.Answers[id] = w.answer(id)
			}
		}
		w.last.Leases = map[cluster.NodeName]Lease{}
		for _, n := range w.in.Nodes {
			if slices.Contains(w.plan.Leases, n.Name) {
				w.last.Leases[n.Name] = Lease{Renewed: w.renewed[n.Name]}
			}
		}
	}
	w.plan, w.memory = Decide(w.last, w.memory, w.policy)
}

func id(n int) cluster.InstanceID { return cluster.InstanceID(fmt.Sprintf("aws:///z/i-%02d", n)) }

func newWorld() *world {
	w := &world{policy: defaults(), fenced: map[cluster.UID]time.Time{}, byID: map[cluster.InstanceID]cluster.Existence{}, renewed: map[cluster.NodeName]time.Time{}}
	w.in.Now = noon
	group := cluster.NodeGroup{ID: "workers", Target: 10, ReadAt: noon}
	for n := range 10 {
		group.Instances = append(group.Instances, cluster.Instance{ID: id(n), Phase: cluster.PhaseRunning, Member: true,
			Created: noon.Add(-2 * time.Hour), Zone: []string{"a", "b"}[n%2], NodeNames: []string{fmt.Sprintf("n%02d", n)}})
		w.in.Nodes = append(w.in.Nodes, cluster.Node{Name: cluster.NodeName(fmt.Sprintf("n%02d", n)), UID: cluster.UID(fmt.Sprintf("u%02d", n)),
			ProviderID: string(id(n)), Created: noon.Add(-2 * time.Hour), Ready: cluster.StatusTrue, ReadySince: noon.Add(-time.Hour),
			Addresses: []string{fmt.Sprintf("10.0.0.%d", n)}}) // the cloud of this world tells none
	}
	w.in.Groups = []cluster.NodeGroup{group}
	w.step()
	return w
}

func (w *world) step() {
	w.decide()
	w.all = append(w.all, w.plan.Delete...)
	for _, d := range w.plan.Fence {
		w.fenced[d.UID] = w.in.Now
		for i := range w.in.Nodes {
			if w.in.Nodes[i].Name == d.Node {
				w.in.Nodes[i].Taints = append(w.in.Nodes[i].Taints, cluster.Taint{Key: TaintOutOfService, Value: OutOfServiceValue, Effect: "NoExecute"})
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

// madeAgain makes the Node of a machine that has ended again, under another UID, and lets two hours pass.
func (w *world) madeAgain(n int) {
	w.lose(n)
	w.pass(10 * time.Second)
	node := w.node(n)
	node.Created, node.UID = w.in.Now.Add(time.Second), "again"
	w.pass(2 * time.Hour)
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
	w.in.Groups[0].Instances[w.index(n)].Created, w.node(n).Created = at, at
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
			for _, h := range w.plan.Held {
				named := slices.ContainsFunc(w.plan.Breakers, func(b Breaker) bool { return b.Rule == h.Rule })
				if want := h.Rule[0] == 'B' && h.Rule != "B5"; named != want {
					t.Errorf("%s is held by %s; breakers %v", h.Node, h.Rule, w.plan.Breakers)
				}
			}
			for _, b := range w.plan.Breakers {
				if !slices.ContainsFunc(w.plan.Held, func(h Held) bool { return h.Rule == b.Rule }) {
					t.Errorf("breaker %v holds nothing", b)
				}
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

// TestOneReadIsOneSight: deciding again on the same read changes nothing, and a read
// from before the Node was lost says nothing about it.
func TestOneReadIsOneSight(t *testing.T) {
	w := newWorld()
	w.lose(0)
	w.pass(10 * time.Second)
	before := w.memory.Watch["n00"]
	w.in.Now = w.in.Now.Add(5 * time.Second)
	w.step()
	if after := w.memory.Watch["n00"]; after != before || after.Alive != 1 {
		t.Errorf("the same read counts twice:\n%+v\n%+v", before, after)
	}
	w = newWorld()
	w.phase(0, cluster.PhaseGone)
	w.in.Now = noon.Add(30 * time.Second) // the read is of noon
	w.lose(0)
	w.step()
	if !w.memory.Watch["n00"].First.IsZero() {
		t.Errorf("a read from before the loss is a sight: %+v", w.memory.Watch["n00"])
	}
}

// TestReadsAskedFor: the second sight is asked for at its time whatever reads come
// between, and reads are not asked for without end while something else holds the Node.
func TestReadsAskedFor(t *testing.T) {
	w := newWorld()
	w.lose(0)
	w.vanish(0)
	w.pass(10 * time.Second)
	first := w.in.Now
	w.pass(30 * time.Second)
	if want := first.Add(time.Minute); !w.plan.ReadSince.Equal(want) {
		t.Errorf("the second sight is asked for at %s, want %s", w.plan.ReadSince, want)
	}
	w.pass(5 * time.Minute) // L1 holds
	if wait := w.plan.ReadSince.Sub(w.in.Now); wait <= 0 || wait > time.Minute {
		t.Errorf("the next read is asked for in %s", wait)
	}
	if due := noon.Add(10 * time.Minute); !w.plan.Due.Equal(due) {
		t.Errorf("due %s, want the end of the grace, %s", w.plan.Due, due)
	}
}

// TestMassIsLookedAtAgain: a mass breaker comes back to terminated instances when its
// hold is over; to absent ones it needs not come back.
func TestMassIsLookedAtAgain(t *testing.T) {
	for _, c := range []struct {
		die  func(w *world, n int)
		wait time.Duration
		due  bool
	}{
		{func(w *world, n int) { w.phase(n, cluster.PhaseGone) }, 2 * time.Minute, true},
		{func(w *world, n int) { w.vanish(n) }, 12 * time.Minute, false},
	} {
		w := newWorld()
		w.policy.MassHold = 30 * time.Minute
		for n := range 3 {
			w.lose(n)
			c.die(w, n)
		}
		w.pass(c.wait)
		if due := w.memory.MassSince.Add(w.policy.MassHold); w.held(0) != "B2" || w.plan.Due.Equal(due) != c.due {
			t.Errorf("held by %s, due %s, the hold ends %s", w.held(0), w.plan.Due, due)
		}
	}
}

// TestTheEarliestWishCounts: of several Nodes the one that may change first sets the time
// of the next look, whatever their order.
func TestTheEarliestWishCounts(t *testing.T) {
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		w := newWorld()
		w.lose(order[0])
		w.vanish(order[0])
		w.pass(3 * time.Minute)
		w.lose(order[1]) // this one's instance lives: it is in no hurry
		w.lose(order[2])
		w.vanish(order[2])
		w.pass(2 * time.Minute)
		if due := noon.Add(10 * time.Minute); !w.plan.Due.Equal(due) {
			t.Errorf("order %v: due %s, want %s: %+v", order, w.plan.Due, due, w.plan.Held)
		}
		var want time.Time
		for _, watch := range w.memory.Watch {
			if want.IsZero() || watch.LookAt.Before(want) {
				want = watch.LookAt
			}
		}
		if !w.plan.ReadSince.Equal(want) {
			t.Errorf("order %v: read since %s, want %s", order, w.plan.ReadSince, want)
		}
	}
}

// TestWake: the earliest wish for a read counts.
func TestWake(t *testing.T) {
	var p Plan
	for _, at := range []time.Duration{2, 1, 3} {
		p.wake(noon.Add(at * time.Minute))
	}
	if !p.ReadSince.Equal(noon.Add(time.Minute)) {
		t.Errorf("read since %s", p.ReadSince)
	}
}

// TestUnknownSaysWhy: nothing is known, and it is said why.
func TestUnknownSaysWhy(t *testing.T) {
	w := newWorld()
	w.lose(0)
	w.in.Groups, w.in.ReadProblem = nil, "403"
	w.in.Now = w.in.Now.Add(time.Minute)
	if w.step(); w.held(0) != "G0" || !strings.Contains(w.plan.Held[0].Why, "403") {
		t.Errorf("held %+v", w.plan.Held)
	}
	w = newWorld()
	w.lose(0)
	for n := range 6 {
		w.vanish(n)
	}
	if w.pass(10 * time.Second); w.held(0) != "B1" || !strings.Contains(w.plan.Held[0].Why, "Ready Node n01") {
		t.Errorf("the first that is missing is not named: %+v", w.plan.Held)
	}
}

// TestSeveralGroups: an instance that is listed twice is as alive as its best listing; a
// listing is as old as its oldest part; the first of several reasons is said; all this
// whatever the order.
func TestSeveralGroups(t *testing.T) {
	second := func(phase cluster.Phase, member bool) func(*world) {
		return func(w *world) {
			w.in.Groups = append(w.in.Groups, cluster.NodeGroup{ID: "zz", ReadAt: w.in.Now,
				Instances: []cluster.Instance{{ID: id(0), Phase: phase, Member: member, Created: noon.Add(-time.Hour)}}})
		}
	}
	for _, c := range []struct {
		name  string
		play  func(*world)
		rule  string
		words string
	}{
		{"gone and running", second(cluster.PhaseRunning, false), "G1", "(running)"},
		{"gone and stopped", second(cluster.PhaseStopped, true), "G1", "(stopped)"},
		{"gone and a member", second(cluster.PhaseGone, true), "G1", "(gone)"},
		{"gone twice", second(cluster.PhaseGone, false), "G2", "is terminated"},
		{"stale twice", func(w *world) {
			w.vanish(0)
			second(cluster.PhaseGone, false)(w)
			w.in.Groups[1].Instances = nil
			w.in.Groups[0].Stale, w.in.Groups[1].Stale = "zebra", "ant"
		}, "G0", "ant"},
		{"read at different times", func(w *world) {
			w.vanish(0)
			second(cluster.PhaseGone, false)(w)
			w.in.Groups[1].Instances, w.in.Groups[1].ReadAt = nil, noon.Add(-time.Second)
		}, "G2", "has not been read"},
	} {
		for _, reversed := range []bool{false, true} {
			w := newWorld()
			w.phase(0, cluster.PhaseGone)
			w.lose(0)
			w.in.Now = w.in.Now.Add(10 * time.Second)
			w.in.Groups[0].ReadAt = w.in.Now
			if c.play(w); reversed {
				slices.Reverse(w.in.Groups)
			}
			if w.step(); w.held(0) != c.rule || !strings.Contains(w.plan.Held[0].Why, c.words) {
				t.Errorf("%s, reversed %t: %+v", c.name, reversed, w.plan.Held)
			}
		}
	}
}

// TestWords: the proof is in the words that people read.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		story func(*world)
		words []string
		not   string
	}{
		{func(w *world) { w.phase(0, cluster.PhaseGone) }, []string{"instance aws:///z/i-00 is gone", "terminated in two reads"}, "its name"},
		{func(w *world) { w.vanish(0) }, []string{"absent from two whole reads"}, "its name"},
		{func(w *world) { w.vanish(0); w.in.Wanted = []cluster.NodeName{"n00"} }, []string{"absent from two whole reads", "a new instance has its name"}, "terminated"},
	} {
		w := newWorld()
		w.lose(0)
		c.story(w)
		w.pass(15 * time.Minute)
		if len(w.all) != 1 || w.all[0].Group != "workers" {
			t.Fatalf("deleted %+v", w.all)
		}
		for _, words := range c.words {
			if !strings.Contains(w.all[0].Why, words) || strings.Contains(w.all[0].Why, c.not) {
				t.Errorf("%q: want %q and not %q", w.all[0].Why, words, c.not)
			}
		}
	}
}
