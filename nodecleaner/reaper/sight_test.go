package reaper

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestLedger: what a whole read lists is remembered with its first and its newest sight,
// its launch and its zone; stale reads teach nothing, older ones take nothing back.
func TestLedger(t *testing.T) {
	w := newWorld()
	r := w.memory.Seen[id(0)]
	if r != (Record{Group: "workers", Zone: "a", First: noon, Last: noon, Launched: noon.Add(-2 * time.Hour), Known: "n00"}) {
		t.Fatalf("first sight: %+v", r)
	}
	w.in.Sent = []cluster.InstanceID{id(0), "aws:///z/i-unheard-of"}
	w.pass(10 * time.Second)
	w.in.Sent = nil
	first := &w.in.Groups[0].Instances[0]
	first.Zone, first.Created = "", noon // a poorer listing
	w.phase(0, cluster.PhaseDeleting)    // so that the ledger keeps it as removed by a scale-down
	w.in.Groups[0].ReadAt = noon.Add(30 * time.Second)
	w.in.Now = noon.Add(30 * time.Second)
	w.step()
	r = w.memory.Seen[id(0)]
	want := Record{Group: "workers", Zone: "a", First: noon, Last: noon.Add(30 * time.Second), Launched: noon.Add(-2 * time.Hour), Sent: true, Ended: true, Leaving: true, Known: "n00"}
	if r != want {
		t.Errorf("later: %+v, want %+v", r, want)
	}
	first.Created = time.Time{}
	w.in.Groups[0].ReadAt = noon.Add(20 * time.Second)
	w.step()
	if r = w.memory.Seen[id(0)]; r != want {
		t.Errorf("an older read changes the ledger: %+v", r)
	}
	w.in.Groups[0].ReadAt = noon.Add(40 * time.Second)
	first.Created = noon.Add(-3 * time.Hour)
	w.step()
	if r = w.memory.Seen[id(0)]; !r.Launched.Equal(noon.Add(-3 * time.Hour)) {
		t.Errorf("the earliest launch time counts: %+v", r)
	}
	first.Created = time.Time{}
	w.in.Groups[0].ReadAt = noon.Add(50 * time.Second)
	w.step()
	if r = w.memory.Seen[id(0)]; !r.Launched.Equal(noon.Add(-3 * time.Hour)) {
		t.Errorf("a listing without a launch time takes it away: %+v", r)
	}
	if _, there := w.memory.Seen["aws:///z/i-unheard-of"]; there || len(w.memory.Seen) != 10 {
		t.Errorf("the ledger has what no read listed: %d entries", len(w.memory.Seen))
	}
	w.memory = Memory{}
	w.in.Groups[0].Stale = "throttled"
	if w.step(); len(w.memory.Seen) != 0 {
		t.Errorf("a stale read taught %d instances", len(w.memory.Seen))
	}
}

// TestLedgerForgets: an instance without a Node is forgotten after a day, one with a
// Node never; the taint of a scale-down is remembered when it is stripped, and forgotten
// when the Node lives on.
func TestLedgerForgets(t *testing.T) {
	w := newWorld()
	w.vanish(0)
	w.vanish(1)
	w.in.Nodes = w.in.Nodes[1:] // n00 has no Node any more, n01 has
	day := noon.Add(24 * time.Hour)
	for _, at := range []time.Time{day, day.Add(time.Second)} {
		w.in.Now, w.in.Groups[0].ReadAt = at, at
		w.step()
		if _, there := w.memory.Seen[id(0)]; there != at.Equal(day) {
			t.Errorf("at %s the ledger has it: %t", at, there)
		}
		if _, there := w.memory.Seen[id(1)]; !there {
			t.Errorf("at %s the instance of a Node is forgotten", at)
		}
	}
	w = newWorld()
	w.node(2).Taints = []cluster.Taint{sentAway}
	w.node(3).ProviderID, w.node(3).Taints = "", []cluster.Taint{sentAway}
	w.node(4).ProviderID, w.node(4).Taints = "aws:///z/i-before-us", []cluster.Taint{sentAway}
	w.node(5).ProviderID = "aws:///z/i-foreign" // terminating it is somebody's claim, listing it would be proof
	w.in.Sent = []cluster.InstanceID{"aws:///z/i-foreign"}
	w.pass(10 * time.Second)
	w.in.Sent = nil
	if _, there := w.memory.Seen["aws:///z/i-foreign"]; there {
		t.Error("the ledger has an instance that was never listed")
	}
	if _, there := w.memory.Seen[""]; there || !w.memory.Seen[id(2)].Sent || w.memory.Seen[id(2)].Group != "workers" {
		t.Errorf("%+v", w.memory.Seen)
	}
	if r, there := w.memory.Seen["aws:///z/i-before-us"]; there {
		t.Errorf("known by its taint alone: %+v", r)
	}
	w.node(2).Taints = nil
	w.node(2).Ready = cluster.StatusFalse
	if w.pass(10 * time.Second); !w.memory.Seen[id(2)].Sent {
		t.Error("a stripped taint is forgotten though the Node is not Ready")
	}
	w.node(2).Ready = cluster.StatusTrue
	w.phase(2, cluster.PhaseDeleting)
	if w.pass(10 * time.Second); !w.memory.Seen[id(2)].Sent {
		t.Error("a stripped taint is forgotten though the instance is leaving")
	}
	w.phase(2, cluster.PhaseRunning)
	w.in.Sent = []cluster.InstanceID{id(2)}
	if w.pass(10 * time.Second); !w.memory.Seen[id(2)].Sent {
		t.Error("the scaler says that it removed the instance, and the ledger forgets it")
	}
	w.in.Sent = nil
	if w.pass(10 * time.Second); w.memory.Seen[id(2)].Sent {
		t.Error("a scale-down that was taken back is remembered")
	}
}

// TestView: a cloud without a node group is an incomplete read, unless a read problem says
// so already, and only the accounts of declared groups are counted.
func TestView(t *testing.T) {
	declared := func(account string) cluster.NodeGroup {
		return cluster.NodeGroup{ID: cluster.GroupID("group-" + account), Quota: account, Declared: true}
	}
	found := cluster.NodeGroup{ID: "found", Quota: "other account"}
	for name, c := range map[string]struct {
		in       Input
		whole    string
		accounts int
	}{
		"no group":                  {whole: "the cloud lists no node group"},
		"no group for a problem":    {in: Input{ReadProblem: "throttled"}, whole: "throttled"},
		"a found group":             {in: Input{Groups: []cluster.NodeGroup{found}}},
		"a declared one beside it":  {in: Input{Groups: []cluster.NodeGroup{found, declared("a")}}, accounts: 1},
		"two accounts":              {in: Input{Groups: []cluster.NodeGroup{declared("a"), declared("b")}}, accounts: 2},
		"two groups of one account": {in: Input{Groups: []cluster.NodeGroup{declared("a"), {ID: "second", Quota: "a", Declared: true}}}, accounts: 1},
	} {
		if v := newView(c.in); v.whole != c.whole || v.accounts != c.accounts {
			t.Errorf("%s: %q, %d accounts; want %q, %d", name, v.whole, v.accounts, c.whole, c.accounts)
		}
	}
}

// TestLedgerDatesTheEnd: the first read that lists an instance as ended dates its end, a
// later one does not move the date, and an instance that runs again has none.
func TestLedgerDatesTheEnd(t *testing.T) {
	w := newWorld()
	read := func(after time.Duration, p cluster.Phase) Record {
		w.phase(0, p)
		w.in.Groups[0].ReadAt, w.in.Now = noon.Add(after), noon.Add(after)
		w.step()
		return w.memory.Seen[id(0)]
	}
	if r := read(10*time.Second, cluster.PhaseRunning); !r.Gone.IsZero() {
		t.Fatalf("a running instance ended at %s", r.Gone)
	}
	for _, after := range []time.Duration{20 * time.Second, 30 * time.Second} {
		if r := read(after, cluster.PhaseGone); !r.Gone.Equal(noon.Add(20*time.Second)) || !r.Leaving {
			t.Errorf("after %s: ended at %s, leaving %t", after, r.Gone, r.Leaving)
		}
	}
	if r := read(40*time.Second, cluster.PhaseRunning); !r.Gone.IsZero() || r.Leaving || r.Known != "n00" {
		t.Errorf("an instance that runs again ended at %s: %+v", r.Gone, r)
	}
}

// TestLedgerRebuilt (E5): the annotation of an earlier leader makes a record where there is
// none and a group of its name is listed; a record that is there keeps its times.
func TestLedgerRebuilt(t *testing.T) {
	old := Record{Group: "workers", First: noon.Add(-time.Hour), Last: noon.Add(-time.Minute), Gone: noon.Add(-time.Minute)}
	late := old
	late.Late = true
	made := noon.Add(-2 * time.Hour) // the Node's creation
	for name, c := range map[string]struct {
		providerID, group string
		was, want         Record
	}{
		"nothing is known":      {"p", "workers", Record{}, Record{Group: "workers", First: made}},
		"of a declared group":   {"p", "declared", Record{}, Record{Group: "declared", First: made, Declared: true, Account: "east"}},
		"it had ended before":   {"p", "workers", late, old},
		"it is known":           {"p", "workers", old, old},
		"its group is not here": {"p", "past", late, late},
		"no annotation":         {"p", "", late, late},
		"no provider ID":        {"", "workers", Record{}, Record{}},
	} {
		m := Memory{Seen: map[cluster.InstanceID]Record{}}
		if c.was != (Record{}) {
			m.Seen[machine(c.providerID)] = c.was
		}
		v := newView(Input{Groups: []cluster.NodeGroup{{ID: "workers", Quota: "the cloud's own"}, {ID: "declared", Declared: true, Quota: "east"}}})
		n := cluster.Node{ProviderID: c.providerID, Created: made}
		if c.group != "" {
			n.Annotations = map[string]string{cluster.AnnotationGroup: c.group}
		}
		m.rebuild(n, machine(n.ProviderID), v)
		if got, there := m.Seen[machine(c.providerID)]; got != c.want || there != (c.want != Record{}) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestLedgerDatesAbsence (E7): the first whole read of its group without the instance
// dates its absence; a partial one does not, nor one without its group.
func TestLedgerDatesAbsence(t *testing.T) {
	before := noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		in   Input
		was  Record
		want time.Time
	}{
		"not listed":            {Input{Groups: []cluster.NodeGroup{{ID: "workers", ReadAt: noon}}}, Record{Group: "workers"}, noon},
		"not listed, again":     {Input{Groups: []cluster.NodeGroup{{ID: "workers", ReadAt: noon}}}, Record{Group: "workers", Absent: before}, before},
		"listed":                {Input{Groups: []cluster.NodeGroup{{ID: "workers", ReadAt: noon, Instances: []cluster.Instance{{ID: "p"}}}}}, Record{Group: "workers"}, time.Time{}},
		"a partial read":        {Input{ReadProblem: "throttled", Groups: []cluster.NodeGroup{{ID: "workers", ReadAt: noon}}}, Record{Group: "workers"}, time.Time{}},
		"its group is not here": {Input{Groups: []cluster.NodeGroup{{ID: "other", ReadAt: noon}}}, Record{Group: "workers"}, time.Time{}},
	} {
		m := Memory{Seen: map[cluster.InstanceID]Record{"p": c.was}}
		if m.miss("p", newView(c.in)); !m.Seen["p"].Absent.Equal(c.want) {
			t.Errorf("%s: absent since %s, want %s", name, m.Seen["p"].Absent, c.want)
		}
	}
}

// TestLedgerKeepsNames (E7): a listing without names and addresses takes none away, one
// with others replaces them.
func TestLedgerKeepsNames(t *testing.T) {
	w := newWorld()
	for n, c := range []struct {
		names []string
		want  string
	}{{nil, "n00"}, {[]string{"N00.example.org", "other"}, "n00 other"}} {
		w.in.Groups[0].Instances[0].NodeNames = c.names
		w.in.Groups[0].ReadAt = noon.Add(time.Duration(n+1) * time.Second)
		if got := w.moment().memory.Seen[id(0)].Known; got != c.want {
			t.Errorf("listed as %v: known as %q, want %q", c.names, got, c.want)
		}
	}
}
