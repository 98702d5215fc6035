package reaper

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// declared is a world of two groups that stand in a file, each in a region of its own:
// workers has the ten machines, others one more, n10, which is Ready.
func declared() *world {
	w := newWorld()
	w.memory = Memory{}
	w.in.Nodes = append(w.in.Nodes, cluster.Node{Name: "n10", UID: "u10", ProviderID: string(id(10)), Created: noon.Add(-2 * time.Hour),
		Ready: cluster.StatusTrue, ReadySince: noon.Add(-time.Hour)})
	w.in.Groups[0].Declared, w.in.Groups[0].Quota = true, "cloud/east"
	w.in.Groups = append(w.in.Groups, cluster.NodeGroup{ID: "others", Target: 1, Declared: true, Quota: "cloud/west", ReadAt: noon,
		Instances: []cluster.Instance{{ID: id(10), Phase: cluster.PhaseRunning, Member: true, Created: noon.Add(-2 * time.Hour), Zone: "c", NodeNames: []string{"n10"}}}})
	w.step()
	return w
}

// sentAndLost: every machine of workers is silent, and the first was removed by a scale-down.
func (w *world) sentAndLost() {
	w.node(0).Taints = append(w.node(0).Taints, sentAway)
	w.step()
	for n := range 10 {
		w.lose(n)
	}
}

// TestDeclaredGroups (B1): that a read lists a group which stands in a file proves
// nothing, nor does a machine of another region. What a scale-down removed goes once a machine of
// its own region is Ready in the read; what the cloud says is terminated goes at once.
func TestDeclaredGroups(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		why    string // what holds n00; empty: it goes
	}{
		"an empty list": {func(w *world) { w.in.Groups[0].Instances, w.in.Groups[0].Target = nil, 0 }, "stands in a file, not in the cloud"},
		"another region in the file": {func(w *world) {
			w.in.Groups[0].Instances, w.in.Groups[0].Target, w.in.Groups[0].Quota = nil, 0, "cloud/west"
		}, "is declared in another cloud or region now"},
		"taken out of the file": {func(w *world) { w.in.Groups = w.in.Groups[1:] }, "is not among those that the cloud lists"},
		"taken out and put in": {func(w *world) {
			was := w.in.Groups
			w.in.Groups = w.in.Groups[1:]
			w.pass(30 * time.Minute)
			w.in.Groups = was
			w.vanish(0)
			w.node(1).Ready, w.node(1).Taints = cluster.StatusTrue, nil
		}, ""},
		"an empty list after our own call": {func(w *world) {
			w.in.Sent = []cluster.InstanceID{id(0)}
			w.step()
			w.in.Sent = nil // after an hour, or a restart
			w.in.Groups[0].Instances, w.in.Groups[0].Target = nil, 0
			w.in.Nodes = slices.DeleteFunc(w.in.Nodes, func(n cluster.Node) bool { return n.Name != "n00" && n.Name != "n10" })
		}, ""},
		"groups of the cloud's own need no account": {func(w *world) {
			for g := range w.in.Groups {
				w.in.Groups[g].Declared = false
			}
			w.pass(time.Minute)
			w.vanish(0)
			w.in.Groups[0].Target = 20 // not complete
		}, ""},
		"a machine of the region is Ready": {func(w *world) { w.vanish(0); w.node(1).Ready, w.node(1).Taints = cluster.StatusTrue, nil }, ""},
		"the cloud says terminated":        {func(w *world) { w.phase(0, cluster.PhaseGone) }, ""},
		"the group is no longer in a file": {func(w *world) {
			w.in.Groups[0].Declared = false
			w.pass(time.Minute) // which the ledger learns
			w.vanish(0)
		}, ""},
	} {
		w := declared()
		w.sentAndLost()
		c.change(w)
		w.pass(30 * time.Minute)
		held := ""
		for _, h := range w.plan.Held {
			if h.Node == "n00" {
				held = h.Rule + ": " + h.Why
			}
		}
		switch {
		case c.why == "" && (len(w.all) != 1 || w.all[0].Node != "n00"):
			t.Errorf("%s: deleted %+v, held by %s", name, w.all, held)
		case c.why != "" && (len(w.all) > 0 || !strings.HasPrefix(held, "B1: ") && !strings.HasPrefix(held, "G0: ") || !strings.Contains(held, c.why)):
			t.Errorf("%s: deleted %+v, held by %s, want B1 or G0 with %q", name, w.all, held, c.why)
		}
	}
}

// TestLedgerKnowsAccounts: of groups that stand in a file the ledger keeps the account,
// of others nothing.
func TestLedgerKnowsAccounts(t *testing.T) {
	w := declared()
	if r := w.memory.Seen[id(10)]; !r.Declared || r.Account != "cloud/west" || r.Group != "others" {
		t.Errorf("%+v", r)
	}
	w.in.Sent = []cluster.InstanceID{id(10)}
	if w.pass(10 * time.Second); !w.memory.Seen[id(10)].Ended {
		t.Error("what the scaler ended is not noted")
	}
	w.in.Sent = nil
	if w.pass(10 * time.Second); w.memory.Seen[id(10)].Ended {
		t.Error("it lives on, and is still called ended")
	}
	w.in.Groups[1].Declared = false
	w.pass(10 * time.Second)
	if r := w.memory.Seen[id(10)]; r.Declared || r.Account != "" {
		t.Errorf("of a group that the cloud keeps: %+v", r)
	}
}

// TestMassHoldsWhatIsAbsent (B2): while more instances are absent than may be at once, the
// Node of an absent instance waits even if a scale-down removed it. The Node of a terminated
// instance does not wait, and none waits if a scale-down removed all of them.
func TestMassHoldsWhatIsAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		rule   string
	}{
		"absent among absent": {func(w *world) {
			for n := range 4 {
				w.lose(n)
				w.vanish(n)
			}
		}, "B2"},
		"terminated among absent": {func(w *world) {
			for n := range 4 {
				w.lose(n)
			}
			w.phase(0, cluster.PhaseGone)
			for n := 1; n < 4; n++ {
				w.vanish(n)
			}
		}, ""},
		"the only one that is absent": {func(w *world) { w.lose(0); w.vanish(0) }, ""},
	} {
		w := newWorld()
		w.node(0).Taints = append(w.node(0).Taints, sentAway)
		w.step()
		c.change(w)
		w.pass(20 * time.Minute)
		if went := len(w.all) == 1 && w.all[0].Node == "n00"; went != (c.rule == "") || w.held(0) != c.rule {
			t.Errorf("%s: deleted %+v, held by %q, want %q", name, w.all, w.held(0), c.rule)
		}
	}
}
