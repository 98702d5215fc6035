package reaper

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// evaluation is the world as it is now, before any rule is asked.
func (w *world) moment() *evaluation { return newMoment(w.in, w.memory, w.policy) }

// absent is the candidate of a Node whose instance the newest list does not have.
func (w *world) absent(n int) *candidate {
	return &candidate{node: *w.node(n), id: machine(w.node(n).ProviderID), watch: Watch{Since: noon}, sight: observation{state: gone}}
}

// answers has the cloud give one answer for n00's instance and another for all others.
func (w *world) answers(said, others cluster.Existence) {
	w.in.Answers, w.in.AskedAt = map[cluster.InstanceID]cluster.Testimony{}, noon.Add(time.Second)
	for _, n := range w.in.Nodes {
		w.in.Answers[cluster.InstanceID(n.ProviderID)] = cluster.Testimony{Existence: others}
	}
	w.in.Answers[id(0)] = cluster.Testimony{Existence: said}
}

// record changes the ledger's record of an instance.
func (w *world) record(n int, change func(*Record)) {
	r := w.memory.Seen[id(n)]
	change(&r)
	w.memory.Seen[id(n)] = r
}

// agree compares an objection with the words that a test wants in it; "" is no objection.
func agree(t *testing.T, name, why, want string) {
	t.Helper()
	if (why == "") != (want == "") || !strings.Contains(why, want) {
		t.Errorf("%s: %q, want %q", name, why, want)
	}
}

// TestNextQuestion (G5): after an answer that proves the end the next question comes after
// the sight interval; after others the wait doubles, up to twice the interval.
func TestNextQuestion(t *testing.T) {
	p := Policy{SightInterval: time.Minute}
	for name, c := range map[string]struct {
		asked Asked
		want  time.Time
	}{
		"never asked": {Asked{}, time.Time{}},
		"terminated":  {Asked{At: noon, Said: cluster.InstanceTerminated}, noon.Add(time.Minute)},
		"not found":   {Asked{At: noon, Said: cluster.InstanceNotFound}, noon.Add(time.Minute)},
		"unclaimed":   {Asked{At: noon, Said: cluster.InstanceUnclaimed}, noon.Add(time.Minute)},
		"unknown":     {Asked{At: noon, Vain: 1}, noon.Add(20 * time.Second)},
		"it exists":   {Asked{At: noon, Said: cluster.InstanceExists, Vain: 2}, noon.Add(40 * time.Second)},
		"ever vain":   {Asked{At: noon, Vain: 99}, noon.Add(2 * time.Minute)},
	} {
		if got := c.asked.due(p); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestAnswers (G5, B1): each answer about an instance that its group does not list any more,
// and the judgement that is stored.
func TestAnswers(t *testing.T) {
	const exists, lost, unclaimed = cluster.InstanceExists, cluster.InstanceNotFound, cluster.InstanceUnclaimed
	later := func(_ *world, c *candidate) { c.node.ReadySince = noon.Add(time.Hour) }
	for name, c := range map[string]struct {
		said, others cluster.Existence
		change       func(*world, *candidate)
		want         Asked // At, First and Last aside
		words        string
	}{
		"not found":                             {lost, exists, nil, Asked{Said: lost}, ""},
		"not found, nor the canaries":           {lost, lost, nil, Asked{Rule: "B1", Vain: 1}, "Ready Node n01"},
		"not found, and listed as terminated":   {lost, lost, func(_ *world, c *candidate) { c.sight.positive = true }, Asked{Said: lost}, ""},
		"terminated":                            {cluster.InstanceTerminated, lost, nil, Asked{Said: cluster.InstanceTerminated}, ""},
		"exists":                                {exists, exists, nil, Asked{Said: exists, Vain: 1}, ""},
		"no answer that says anything":          {cluster.ExistenceUnknown, exists, nil, Asked{Vain: 1}, ""},
		"unclaimed":                             {unclaimed, exists, nil, Asked{Said: unclaimed}, ""},
		"unclaimed, and so are the canaries":    {unclaimed, unclaimed, nil, Asked{Rule: "B1", Vain: 1}, "Ready Node n01"},
		"unclaimed, a Ready Node's is unlisted": {unclaimed, exists, func(w *world, _ *candidate) { w.vanish(1) }, Asked{Rule: "B1", Vain: 1}, "does not list the instance of Ready Node n01"},
		"unclaimed, it was Ready without group": {unclaimed, exists, later, Asked{Vain: 1}, "was Ready when it left its group"},
	} {
		w := newWorld()
		w.lose(0)
		dead := w.absent(0)
		w.vanish(0)
		if c.change != nil {
			c.change(w, dead)
		}
		w.answers(c.said, c.others)
		dead.hear(w.moment())
		got := dead.watch.Asked
		if proof := c.want.Vain == 0; !got.At.Equal(w.in.AskedAt) || got.First.IsZero() == proof || got.Last.IsZero() == proof {
			t.Errorf("%s: at %s, first %s, last %s", name, got.At, got.First, got.Last)
		}
		agree(t, name, got.Why, c.words)
		if got.At, got.First, got.Last, got.Why = c.want.At, c.want.First, c.want.Last, ""; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestOldAnswers (G5): no answer, an answer from before the Node stopped being Ready, and
// one that was heard already change nothing.
func TestOldAnswers(t *testing.T) {
	before := Asked{At: noon, Said: cluster.InstanceNotFound, First: noon, Last: noon}
	for name, change := range map[string]func(*world, *candidate){
		"none for this instance":       func(w *world, _ *candidate) { delete(w.in.Answers, id(0)) },
		"from before it was not Ready": func(w *world, c *candidate) { c.watch.Since = w.in.AskedAt.Add(1) },
		"heard already":                func(w *world, _ *candidate) { w.in.AskedAt = noon },
	} {
		w := newWorld()
		c := w.absent(0)
		c.watch.Asked = before
		w.answers(cluster.InstanceExists, cluster.InstanceExists)
		change(w, c)
		if c.hear(w.moment()); c.watch.Asked != before {
			t.Errorf("%s: %+v", name, c.watch.Asked)
		}
	}
}

// TestUnclaimed (G5): the answer that no group has an instance proves its end only if the
// scaler ended it, the cloud listed it on its way out, or its Node fell silent with it.
func TestUnclaimed(t *testing.T) {
	const may = "it may live"
	for name, c := range map[string]struct {
		record Record
		since  time.Time // the Node is not Ready since
		want   string
	}{
		"ended by the scaler":       {Record{Last: noon, Ended: true}, noon.Add(time.Hour), ""},
		"on its way out":            {Record{Last: noon, Leaving: true}, noon.Add(time.Hour), ""},
		"silent with it":            {Record{Last: noon}, noon.Add(diesWithin - 1), ""},
		"Ready longer":              {Record{Last: noon}, noon.Add(diesWithin), may},
		"never listed, never Ready": {Record{}, time.Time{}, may},
	} {
		w := newWorld()
		w.memory.Seen[id(0)] = c.record
		w.vanish(0)
		dead := w.absent(0)
		dead.node.ReadySince = c.since
		agree(t, name, w.moment().unclaimed(dead), c.want)
	}
}

// TestMissing (B1): a list that lacks the instance of a Ready Node is no proof, unless that
// Node has reason to be missing.
func TestMissing(t *testing.T) {
	const lacks = "instance of Ready Node n01 either"
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"nothing is missing":                   {func(*world) {}, ""},
		"a Ready Node's":                       {func(w *world) { w.vanish(1) }, lacks},
		"one that was removed by a scale-down": {func(w *world) { w.vanish(1); w.in.Sent = []cluster.InstanceID{id(1)} }, ""},
		"of a Node not Ready":                  {func(w *world) { w.vanish(1); w.lose(1) }, ""},
		"of another cloud": {func(w *world) {
			w.node(1).ProviderID = "openstack:///one"
			w.memory.Seen["openstack:///one"] = Record{Group: "workers", Last: noon}
		}, ""},
		"not in the ledger": {func(w *world) { w.node(1).ProviderID = "aws:///z/i-foreign" }, ""},
		"never listed":      {func(w *world) { w.vanish(1); w.record(1, func(r *Record) { r.Last = time.Time{} }) }, ""},
		"for a day":         {func(w *world) { w.vanish(1); w.record(1, func(r *Record) { r.Last = noon.Add(-24 * time.Hour) }) }, lacks},
		"for longer":        {func(w *world) { w.vanish(1); w.record(1, func(r *Record) { r.Last = noon.Add(-24*time.Hour - 1) }) }, ""},
		"of a doubtful Node": {func(w *world) {
			w.vanish(1)
			w.memory.Doubts = map[cluster.UID]string{"u01": "two machines"}
		}, ""},
	} {
		w := newWorld()
		w.lose(0)
		w.vanish(0)
		c.change(w)
		agree(t, name, w.moment().missing(w.absent(0)), c.want)
	}
}

// TestCanariesUnheard (B1): without an answer about any canary nothing is proven, also
// where the Node could go if there were none.
func TestCanariesUnheard(t *testing.T) {
	w := newWorld()
	w.in.Sent = []cluster.InstanceID{id(0)}
	w.vanish(0)
	agree(t, "unheard", w.moment().canary(w.absent(0)), "has not confirmed the instance of any Ready Node")
	for n := range 10 {
		w.lose(n)
	}
	agree(t, "no canary", w.moment().canary(w.absent(0)), "")
}

// TestAlone (B1): without a Ready Node in its cloud only a Node goes that was removed by a scale-down,
// whose group is complete, and beside which none is missing that no scale-down removed.
func TestAlone(t *testing.T) {
	const silent = "no scale-down removed Node n01"
	account := func(own, other string) func(*world) {
		return func(w *world) {
			w.record(0, func(r *Record) { r.Declared, r.Ended, r.Account = true, true, own })
			w.record(1, func(r *Record) { r.Account = other })
			w.vanish(1)
		}
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"removed by a scale-down":                  {func(*world) {}, ""},
		"not removed by a scale-down":              {func(w *world) { w.record(0, func(r *Record) { r.Sent = false }) }, "the cloud lists no instance of a Ready Node: this may be"},
		"never listed":                             {func(w *world) { w.record(0, func(r *Record) { r.Last = time.Time{} }) }, "the cloud lists no instance of a Ready Node: this may be"},
		"declared, not ended":                      {func(w *world) { w.record(0, func(r *Record) { r.Declared = true }) }, "stands in a file"},
		"its group is not listed":                  {func(w *world) { w.record(0, func(r *Record) { r.Group = "past" }) }, "group past not complete"},
		"its group is not complete":                {func(w *world) { w.in.Groups[0].Target++ }, "group workers not complete"},
		"another is missing":                       {func(w *world) { w.vanish(1) }, silent},
		"another was removed by a scale-down, too": {func(w *world) { w.vanish(1); w.record(1, func(r *Record) { r.Sent = true }) }, ""},
		"another cloud's is missing":               {func(w *world) { w.vanish(1); w.node(1).ProviderID = "openstack:///one" }, ""},
		"a Node without provider ID":               {func(w *world) { w.vanish(1); w.node(1).ProviderID = "" }, ""},
		"an unknown one is missing":                {func(w *world) { w.node(1).ProviderID = "aws:///z/i-foreign" }, silent},
		"one of another account":                   {account("east", "west"), ""},
		"one of the same account":                  {account("east", "east"), silent},
		"unknown, so of any account":               {func(w *world) { account("east", "")(w); delete(w.memory.Seen, id(1)) }, silent},
		"known, and has none of them":              {account("east", ""), ""},
	} {
		w := newWorld()
		w.record(0, func(r *Record) { r.Sent = true })
		w.vanish(0)
		for n := range 10 {
			w.lose(n)
		}
		c.change(w)
		x := w.moment()
		agree(t, name, x.alone(w.absent(0), x.memory.Seen[id(0)]), c.want)
	}
}

// TestCanaries (B1): the Nodes that prove that the right cloud answered.
func TestCanaries(t *testing.T) {
	foreign := func(w *world) { w.vanish(1); w.node(1).ProviderID = "aws:///z/i-foreign" }
	declared := func(accounts ...string) func(*world) {
		return func(w *world) {
			foreign(w)
			w.node(1).ControlPlane = true
			for _, a := range accounts {
				w.in.Groups = append(w.in.Groups, cluster.NodeGroup{ID: cluster.GroupID(a), Declared: true, Quota: a, ReadAt: noon})
			}
		}
	}
	for name, c := range map[string]struct {
		change  func(*world)
		account string // of the instance that they vouch for
		want    bool   // n01 is one
	}{
		"managed":                             {func(*world) {}, "", true},
		"not Ready":                           {func(w *world) { w.lose(1) }, "", false},
		"without provider ID":                 {func(w *world) { w.node(1).ProviderID = "" }, "", false},
		"of another cloud":                    {func(w *world) { w.node(1).ProviderID, w.node(1).ControlPlane = "openstack:///one", true }, "", false},
		"doubtful":                            {func(w *world) { w.memory.Doubts = map[cluster.UID]string{"u01": "two machines"} }, "", false},
		"removed by a scale-down":             {func(w *world) { w.in.Sent = []cluster.InstanceID{id(1)} }, "", false},
		"had ended when it was first seen":    {func(w *world) { w.vanish(1); w.record(1, func(r *Record) { r.Late = true }) }, "", false},
		"not in the ledger":                   {foreign, "", false},
		"of the control plane":                {func(w *world) { foreign(w); w.node(1).ControlPlane = true }, "", true},
		"the agent's own":                     {func(w *world) { foreign(w); w.in.Own = []cluster.NodeName{"n01"} }, "", true},
		"of the control plane, one account":   {declared("east"), "east", true},
		"of the control plane, two accounts":  {declared("east", "west"), "east", false},
		"managed, of the same account":        {func(w *world) { w.vanish(1); w.record(1, func(r *Record) { r.Account = "east" }) }, "east", true},
		"managed, of another account":         {func(w *world) { w.vanish(1); w.record(1, func(r *Record) { r.Account = "west" }) }, "east", false},
		"managed, of the cloud's own account": {func(*world) {}, "east", false},
	} {
		w := newWorld()
		w.lose(0)
		w.in.Nodes = w.in.Nodes[:2]
		c.change(w)
		list := w.moment().canariesOf(id(0), Record{Account: c.account})
		if len(list) > 1 || slices.ContainsFunc(list, func(n cluster.Node) bool { return n.Name == "n01" }) != c.want {
			t.Errorf("%s: %+v, want %t", name, list, c.want)
		}
	}
}

// TestCanariesOfOneMoment (B1): the canaries are chosen once, so that a doubt raised by one
// Node's answer does not change the judgement of the next Node's answer.
func TestCanariesOfOneMoment(t *testing.T) {
	x := newWorld().moment()
	before := x.canariesOf(id(0), Record{})
	x.memory.Doubts["u01"] = "two machines"
	if after := x.canariesOf(id(0), Record{}); len(before) != canaries || !slices.EqualFunc(before, after, func(a, b cluster.Node) bool { return a.Name == b.Name }) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// TestQuestions (G5): the cloud is asked for instances that its list shows as gone, with
// their canaries, when the question is due, and never during an outage.
func TestQuestions(t *testing.T) {
	lately := Asked{At: noon.Add(-30 * time.Second), Said: cluster.InstanceNotFound}
	for name, c := range map[string]struct {
		change func(*candidate)
		outage string
		asks   int
		askAt  time.Time
	}{
		"gone":              {func(*candidate) {}, "", 1 + canaries, time.Time{}},
		"alive":             {func(c *candidate) { c.sight.state = alive }, "", 0, time.Time{}},
		"unknown":           {func(c *candidate) { c.sight.state = unknown }, "", 0, time.Time{}},
		"during an outage":  {func(*candidate) {}, "no answer", 0, time.Time{}},
		"asked lately":      {func(c *candidate) { c.watch.Asked = lately }, "", 0, noon.Add(30 * time.Second)},
		"a minute ago":      {func(c *candidate) { c.watch.Asked = lately; c.watch.Asked.At = noon.Add(-time.Minute) }, "", 1 + canaries, time.Time{}},
		"lately and outage": {func(c *candidate) { c.watch.Asked = lately }, "no answer", 0, time.Time{}},
	} {
		w := newWorld()
		w.lose(0)
		w.in.Outage = c.outage
		dead := w.absent(0)
		c.change(dead)
		var plan Plan
		w.moment().ask([]*candidate{dead}, &plan)
		if len(plan.Ask) != c.asks || slices.Contains(plan.Ask, id(0)) != (c.asks > 0) || !plan.AskAt.Equal(c.askAt) {
			t.Errorf("%s: asks %v, next %s", name, plan.Ask, plan.AskAt)
		}
	}
}

// TestNextQuestionOfMany (G5): the earliest question sets the time, in any order.
func TestNextQuestionOfMany(t *testing.T) {
	for _, ago := range [][]time.Duration{{10, 30, 20}, {30, 10, 20}, {20, 10, 30}} {
		w := newWorld()
		var list []*candidate
		for n, d := range ago {
			c := w.absent(n)
			c.watch.Asked = Asked{At: noon.Add(-d * time.Second), Said: cluster.InstanceNotFound}
			list = append(list, c)
		}
		var plan Plan
		if w.moment().ask(list, &plan); !plan.AskAt.Equal(noon.Add(30 * time.Second)) {
			t.Errorf("asked %v s ago: next %s", ago, plan.AskAt)
		}
	}
}

// TestLacksAnswer (G5): each way in which the answers prove nothing yet, in its own words.
func TestLacksAnswer(t *testing.T) {
	two := Asked{At: noon, Said: cluster.InstanceNotFound, First: noon.Add(-time.Minute), Last: noon, Why: "as it says"}
	for name, c := range map[string]struct {
		change func(*Asked)
		now    time.Duration
		want   string
	}{
		"twice":             {func(*Asked) {}, 0, ""},
		"never asked":       {func(a *Asked) { *a = Asked{} }, 0, "has not been asked for instance p by its ID yet"},
		"unknown":           {func(a *Asked) { a.Said = cluster.ExistenceUnknown }, 0, "it is not known whether instance p exists: as it says"},
		"once":              {func(a *Asked) { a.First = noon }, 0, "said once"},
		"twice too quickly": {func(a *Asked) { a.First = noon.Add(1 - time.Minute) }, 0, "said once"},
		"just fresh enough": {func(*Asked) {}, 2 * time.Minute, ""},
		"too old":           {func(*Asked) {}, 2*time.Minute + 1, "is of 2026-11-21T12:00:00Z"},
	} {
		asked := two
		c.change(&asked)
		x := &evaluation{in: Input{Now: noon.Add(c.now)}, policy: Policy{SightInterval: time.Minute}}
		agree(t, name, lacksAnswer(&candidate{node: cluster.Node{ProviderID: "p"}, watch: Watch{Asked: asked}}, x), c.want)
	}
}
