package reaper

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestDoubt (E7): two Nodes of one provider ID are doubted while both are there, also
// where the cloud names the instance as one of them; a doubt is kept with its first
// reason, and goes with its Node.
func TestDoubt(t *testing.T) {
	w := newWorld()
	w.node(1).ProviderID = string(id(0))
	w.node(0).Addresses = []string{"10.0.0.1"}
	w.record(0, func(r *Record) { r.Known = "10.0.0.1 n00" })
	w.memory.Doubts = map[cluster.UID]string{"u09": "gone", "u05": "the first reason"}
	w.record(5, func(r *Record) { r.Gone = noon.Add(-time.Hour) })
	w.in.Nodes = slices.DeleteFunc(w.in.Nodes, func(n cluster.Node) bool { return n.Name == "n09" })
	x := w.moment()
	for n, want := range map[int]string{0: "which of them is the instance", 1: "which of them is the instance", 2: "", 5: "the first reason"} {
		agree(t, string(w.node(n).Name), x.doubt(*w.node(n)), want)
	}
	if doubts := x.memory.Doubts; len(doubts) != 2 || doubts["u05"] != "the first reason" || doubts["u01"] == "" {
		t.Errorf("kept: %v, want n01's and n05's", doubts)
	}
}

// TestContradiction (E7): each fact against a provider ID, and the conditions that lift it.
func TestContradiction(t *testing.T) {
	const ended, long, stranger = "had ended: its", "was Ready long after", "neither the name nor any address"
	at := func(gone, created time.Duration) func(*world) {
		return func(w *world) {
			w.record(0, func(r *Record) { r.Gone = noon.Add(gone) })
			w.node(0).Created = noon.Add(created)
		}
	}
	also := func(first func(*world), more func(*world)) func(*world) { return func(w *world) { first(w); more(w) } }
	older := at(-6*time.Minute, -time.Hour)
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"nothing":                {func(*world) {}, ""},
		"no provider ID":         {func(w *world) { w.node(0).ProviderID = "" }, ""},
		"not in the ledger":      {func(w *world) { w.node(0).ProviderID = "aws:///z/i-foreign" }, ""},
		"shared":                 {func(w *world) { w.node(1).ProviderID = string(id(0)) }, "carried the same provider ID"},
		"another machine's name": {func(w *world) { w.called("10.0.0.9 n09", "10.0.0.1") }, stranger},
		"named by the cloud":     {also(older, func(w *world) { w.called("10.0.0.1 n00", "10.0.0.1") }), ""},
		"made after the end":     {at(-time.Minute, -time.Minute+1), ended},
		"made after it with its name and address, which the cloud gave to the next machine": {
			also(at(-time.Minute, -time.Second), func(w *world) { w.called("10.0.0.1 n00", "10.0.0.1") }), ended},
		"restored, without a kubelet": {also(at(-time.Minute, -time.Second), func(w *world) {
			w.lose(0)
			w.called("10.0.0.1 n00", "")
			w.node(0).Addresses = nil
		}), ""},
		"restored, a kubelet wrote it": {also(at(-time.Minute, -time.Second), func(w *world) {
			w.lose(0)
			w.called("10.0.0.1 n00", "10.0.0.2")
		}), ended},
		"made at the end":                {at(-time.Minute, -time.Minute), ""},
		"Ready for a while after it":     {at(-5*time.Minute, -time.Hour), ""},
		"Ready long after it":            {at(-5*time.Minute-1, -time.Hour), long},
		"not Ready long after it":        {also(older, func(w *world) { w.lose(0) }), ""},
		"long after it, in an outage":    {also(older, func(w *world) { w.in.Outage = "no answer" }), ""},
		"long after it, while all holds": {also(older, func(w *world) { w.memory.FrozenUntil, w.memory.FrozenWhy = noon.Add(time.Minute), "no answer" }), ""},
	} {
		w := newWorld()
		c.change(w)
		agree(t, name, w.moment().contradiction(*w.node(0)), c.want)
	}
	w := newWorld()
	older(w)
	x := w.moment()
	x.in.Outage = "no answer" // before the freeze that it brings
	agree(t, "outage without freeze", x.contradiction(*w.node(0)), "")
}

// TestPassingWitnesses (E7): what speaks against a Node as long as it is so, after the end of its instance.
func TestPassingWitnesses(t *testing.T) {
	const boot, machineID, beat, cert, older = "boot ID is", "machine ID is", "a kubelet reported", "got a client certificate", "was made before instance"
	over := func(change func(*world, *cluster.Node, *Record)) func(*world) {
		return func(w *world) {
			w.called("10.0.0.1 n00", "10.0.0.1") // the cloud gave the instance the Node's name and address
			w.vanish(0)
			w.record(0, func(r *Record) {
				r.Gone, r.MachineID, r.BootID, r.Beat = noon.Add(-10*time.Minute), "m", "b", noon
				n := w.node(0)
				n.MachineID, n.BootID, n.Heartbeat = "m", "b", noon
				change(w, n, r)
			})
		}
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"the same machine":          {over(func(*world, *cluster.Node, *Record) {}), ""},
		"another boot ID":           {over(func(_ *world, n *cluster.Node, _ *Record) { n.BootID = "c" }), boot},
		"another boot ID, listed":   {func(w *world) { w.node(0).BootID = "c"; w.record(0, func(r *Record) { r.BootID = "b" }) }, ""},
		"another boot ID, absent":   {over(func(_ *world, n *cluster.Node, r *Record) { n.BootID, r.Absent, r.Gone = "c", r.Gone, time.Time{} }), boot},
		"nobody knew the machine":   {over(func(_ *world, _ *cluster.Node, r *Record) { r.BootID = "" }), "no agent has seen on which machine"},
		"no kubelet wrote the Node": {over(func(_ *world, n *cluster.Node, _ *Record) { n.BootID, n.MachineID = "", "" }), ""},
		"another machine ID":        {over(func(_ *world, n *cluster.Node, _ *Record) { n.MachineID = "o" }), machineID},
		"a later heartbeat":         {over(func(_ *world, n *cluster.Node, _ *Record) { n.Heartbeat = noon.Add(1) }), beat},
		"an earlier one":            {over(func(_ *world, n *cluster.Node, _ *Record) { n.Heartbeat = noon.Add(-1) }), ""},
		"a certificate":             {over(func(w *world, n *cluster.Node, _ *Record) { w.certified(noon.Add(-5*time.Minute + 1)) }), cert},
		"a certificate of before":   {over(func(w *world, n *cluster.Node, _ *Record) { w.certified(noon.Add(-5 * time.Minute)) }), ""},
		"older than the instance": {over(func(w *world, n *cluster.Node, r *Record) {
			w.lose(0)
			r.Known, r.Launched = "", n.Created.Add(ghostFor+1)
		}), older},
		"older by the clocks alone": {over(func(w *world, n *cluster.Node, r *Record) {
			w.lose(0)
			r.Known, r.Launched = "", n.Created.Add(ghostFor)
		}), ""},
		"older, but of its name (a stop)": {over(func(_ *world, n *cluster.Node, r *Record) { r.Launched = n.Created.Add(time.Hour) }), ""},
	} {
		w := newWorld()
		c.change(w)
		agree(t, name, w.moment().doubt(*w.node(0)), c.want)
	}
}

// certified sets when a certificate for n00 was asked for.
func (w *world) certified(at time.Time) {
	w.in.Certified = map[cluster.NodeName]time.Time{"n00": at}
}

// called sets the names and addresses of n00's instance, and the address of its Node.
func (w *world) called(known, address string) {
	w.record(0, func(r *Record) { r.Known = known })
	w.node(0).Addresses = []string{address}
}

// TestNamesAndAddresses (E7): the instance is the Node's if a name and an address agree; it is
// another machine's if both sides have names and addresses and none agrees.
func TestNamesAndAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		known     string
		addresses []string
		is, isNot bool
	}{
		"both in common":            {"10.0.0.1 n00", []string{"10.0.0.1"}, true, false},
		"the name in common":        {"10.0.0.9 n00", []string{"10.0.0.1"}, false, false},
		"an address in common":      {"10.0.0.1 n09", []string{"fd00::1", "10.0.0.1"}, false, false},
		"nothing in common":         {"10.0.0.9 n09", []string{"10.0.0.1"}, false, true},
		"nothing, its name first":   {"a fd00::9", []string{"10.0.0.1"}, false, true},
		"no address is told":        {"n09", []string{"10.0.0.1"}, false, false},
		"no name is told":           {"10.0.0.9", []string{"10.0.0.1"}, false, false},
		"nothing is told":           {"", []string{"10.0.0.1"}, false, false},
		"the Node tells no address": {"10.0.0.9 n09", nil, false, false},
	} {
		n, r := cluster.Node{Name: "N00.example.org", Addresses: c.addresses}, Record{Known: c.known}
		if is, isNot := known(n, r), stranger(nil, n, r) != ""; is != c.is || isNot != c.isNot {
			t.Errorf("%s: the same %t, another %t; want %t, %t", name, is, isNot, c.is, c.isNot)
		}
	}
}

// TestStraysAsked (E7): the conditions for a question about a Ready Node's instance that no
// group lists.
func TestStraysAsked(t *testing.T) {
	absent := func(since, asked time.Duration) func(*world) {
		return func(w *world) {
			w.record(0, func(r *Record) { r.Absent, r.Strayed = noon.Add(-since), noon.Add(-asked) })
		}
	}
	also := func(more func(*world)) func(*world) {
		return func(w *world) { absent(time.Hour, time.Hour)(w); more(w) }
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   bool
	}{
		"absent for long":            {absent(time.Hour, time.Hour), true},
		"absent for long enough":     {absent(5*time.Minute, time.Hour), true},
		"absent for too short":       {absent(5*time.Minute-1, time.Hour), false},
		"asked long enough ago":      {absent(time.Hour, 5*time.Minute), true},
		"asked lately":               {absent(time.Hour, 5*time.Minute-1), false},
		"not absent":                 {also(func(w *world) { w.record(0, func(r *Record) { r.Absent = time.Time{} }) }), false},
		"not Ready":                  {also(func(w *world) { w.lose(0) }), false},
		"doubted already":            {also(func(w *world) { w.memory.Doubts = map[cluster.UID]string{"u00": "two machines"} }), false},
		"while deletions are frozen": {also(func(w *world) { w.memory.FrozenUntil, w.memory.FrozenWhy = noon.Add(time.Minute), "no answer" }), false},
		"in an outage":               {also(func(w *world) { w.in.Outage = "no answer" }), false},
	} {
		w := newWorld()
		c.change(w)
		wanted := map[cluster.InstanceID]bool{}
		if w.moment().askStrays(wanted); wanted[id(0)] != c.want || len(wanted) > 0 != c.want {
			t.Errorf("%s: %v, want %t", name, wanted, c.want)
		}
		if c.want && len(wanted) < 2 {
			t.Errorf("%s: no canary is asked for with it", name)
		}
	}
	w := newWorld()
	absent(time.Hour, time.Hour)(w)
	x := w.moment()
	x.in.Outage = "no answer" // before the freeze that it brings
	wanted := map[cluster.InstanceID]bool{}
	if x.askStrays(wanted); len(wanted) > 0 {
		t.Errorf("asked in an outage: %v", wanted)
	}
}

// TestStraysHeard (E7): the answers that are stored about a Ready Node whose instance no
// group lists; only a second answer, long after the first, is a doubt.
func TestStraysHeard(t *testing.T) {
	asked := noon.Add(time.Second)
	const lost, exists = cluster.InstanceNotFound, cluster.InstanceExists
	for name, c := range map[string]struct {
		said            cluster.Existence
		change          func(*world)
		strayed, missed time.Time // the record's Strayed and Lost
		doubt           string
	}{
		"it exists":             {exists, nil, asked, time.Time{}, ""},
		"not found once":        {lost, nil, asked, asked, ""},
		"not found again, soon": {lost, missed(asked.Add(1 - ghostFor)), asked, asked.Add(1 - ghostFor), ""},
		"not found again":       {lost, missed(asked.Add(-ghostFor)), asked, asked.Add(-ghostFor), "its provider ID is not its own"},
		"found again":           {exists, missed(noon.Add(-time.Hour)), asked, time.Time{}, ""},
		"not Ready any more":    {lost, func(w *world) { missed(noon.Add(-time.Hour))(w); w.lose(0) }, time.Time{}, time.Time{}, ""},
		"not asked for":         {lost, func(w *world) { delete(w.in.Answers, id(0)) }, time.Time{}, time.Time{}, ""},
		"listed":                {lost, func(w *world) { w.record(0, func(r *Record) { r.Absent = time.Time{} }) }, time.Time{}, time.Time{}, ""},
		"heard already": {exists, func(w *world) {
			w.record(0, func(r *Record) { r.Strayed, r.Lost = asked, noon })
		}, asked, noon, ""},
		"doubted already": {lost, func(w *world) {
			missed(noon.Add(-time.Hour))(w)
			w.memory.Doubts = map[cluster.UID]string{"u00": "the first reason"}
		}, asked, noon.Add(-time.Hour), "the first reason"},
	} {
		w := newWorld()
		w.record(0, func(r *Record) { r.Absent = noon.Add(-time.Hour) })
		w.answers(c.said, exists)
		if c.change != nil {
			c.change(w)
		}
		x := w.moment()
		if r := x.memory.Seen[id(0)]; !r.Strayed.Equal(c.strayed) || !r.Lost.Equal(c.missed) {
			t.Errorf("%s: asked %s, lost since %s; want %s, %s", name, r.Strayed, r.Lost, c.strayed, c.missed)
		}
		agree(t, name, x.memory.Doubts["u00"], c.doubt)
	}
}

// missed sets the time since which the cloud has not found n00's instance.
func missed(since time.Time) func(*world) {
	return func(w *world) { w.record(0, func(r *Record) { r.Lost = since }) }
}

// TestStraysTeachNothing (E7): an answer about an instance that is not in the ledger adds no
// record.
func TestStraysTeachNothing(t *testing.T) {
	for _, ready := range []bool{true, false} {
		w := newWorld()
		w.node(0).ProviderID = "aws:///z/i-foreign"
		if !ready {
			w.lose(0)
		}
		w.answers(cluster.InstanceNotFound, cluster.InstanceNotFound)
		if _, there := w.moment().memory.Seen["aws:///z/i-foreign"]; there {
			t.Errorf("Ready %t: the ledger has it", ready)
		}
	}
}

// TestLost (E7): the answers that are evidence against a Ready Node's provider ID.
func TestLost(t *testing.T) {
	answered := noon.Add(time.Second)
	for name, c := range map[string]struct {
		said, others   cluster.Existence
		outage, frozen string
		since          time.Time
		want           time.Time
	}{
		"not found":              {said: cluster.InstanceNotFound, others: cluster.InstanceExists, want: answered},
		"terminated":             {said: cluster.InstanceTerminated, others: cluster.InstanceExists, want: answered},
		"not found again":        {said: cluster.InstanceNotFound, others: cluster.InstanceExists, since: noon, want: noon},
		"it exists":              {said: cluster.InstanceExists, others: cluster.InstanceExists, since: noon},
		"unknown":                {others: cluster.InstanceExists, since: noon},
		"no other is found":      {said: cluster.InstanceNotFound, others: cluster.InstanceNotFound},
		"of no other it is said": {said: cluster.InstanceNotFound},
		"in an outage":           {said: cluster.InstanceNotFound, others: cluster.InstanceExists, outage: "no answer"},
		"in a freeze":            {said: cluster.InstanceNotFound, others: cluster.InstanceExists, frozen: "no answer"},
	} {
		w := newWorld()
		w.answers(c.said, c.others)
		x := w.moment()
		x.in.Outage, x.frozen = c.outage, c.frozen
		if got := x.lost(*w.node(0), Record{Lost: c.since}, c.said); !got.Equal(c.want) {
			t.Errorf("%s: since %s, want %s", name, got, c.want)
		}
	}
}

// TestOthersLive (E7, B1): most canaries have to be found, and the Node asked about is none.
func TestOthersLive(t *testing.T) {
	for _, c := range []struct {
		found, missed string // canaries, by number
		want          bool
	}{
		{"12", "34", false}, {"123", "4", true}, {"", "", false}, {"1", "", true}, {"", "1", false}, {"1", "0", true},
	} {
		w := newWorld()
		w.in.Nodes = w.in.Nodes[:5]
		w.in.Answers = map[cluster.InstanceID]cluster.Testimony{}
		for n := range 5 {
			switch digit := string(rune('0' + n)); {
			case strings.Contains(c.found, digit):
				w.in.Answers[id(n)] = cluster.Testimony{Existence: cluster.InstanceExists}
			case strings.Contains(c.missed, digit):
				w.in.Answers[id(n)] = cluster.Testimony{Existence: cluster.InstanceNotFound}
			}
		}
		if got := w.moment().othersLive(*w.node(0), Record{}); got != c.want {
			t.Errorf("found %q, not found %q: %t", c.found, c.missed, got)
		}
	}
}
