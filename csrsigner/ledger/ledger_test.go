package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestLedger: what is written is read again; a torn file is set aside; what is gone from
// a whole read of the cloud is forgotten after a day.
func TestLedger(t *testing.T) {
	dir := t.TempDir()
	logger, hook := logtest.NewNullLogger()
	log := logrus.NewEntry(logger)
	l := Open(dir, log)
	if err := l.Enter("i-1", rules.Issue{Node: "n1", Key: "k1", CSR: "c1", At: noon}); err != nil {
		t.Fatal(err)
	}
	if err := l.Enter("i-1", rules.Issue{Node: "n1", Key: "k1", CSR: "c2", At: noon.Add(time.Hour)}); err != nil {
		t.Errorf("the same key again: %v", err)
	}
	for name, i := range map[string]rules.Issue{"another key": {Node: "n1", Key: "k2"}, "another name": {Node: "n2", Key: "k1"}} {
		if err := l.Enter("i-1", i); err == nil || !strings.Contains(err.Error(), "c1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.Enter("i-2", rules.Issue{Key: "k3", At: noon}); err != nil {
		t.Fatal(err)
	}
	l = Open(dir, log)
	if got := l.Of("i-1"); got == nil || got.CSR != "c1" || !got.At.Equal(noon) {
		t.Fatalf("read again: %+v", got)
	}
	there := cluster.NodeGroup{ID: "g", Instances: []cluster.Instance{{ID: "i-1"}}}
	stale := there
	stale.Stale, stale.Instances = "throttled", nil
	l.Prune([]cluster.NodeGroup{stale}, noon.Add(48*time.Hour))
	l.Prune([]cluster.NodeGroup{there}, noon.Add(Keep))
	if l.Of("i-2") == nil {
		t.Error("forgotten by a stale read, or before its time")
	}
	l.Prune([]cluster.NodeGroup{there}, noon.Add(Keep+time.Second))
	if l.Of("i-2") != nil || l.Of("i-1") == nil {
		t.Errorf("after a day: %+v %+v", l.Of("i-1"), l.Of("i-2"))
	}
	path := filepath.Join(dir, "joined.json")
	if err := os.WriteFile(filepath.Join(dir, ".joined.json.77"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for asides, torn := range []string{"{", `{"version":9}`, ""} {
		if torn == "" {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		hook.Reset()
		if l := Open(dir, log); l.Of("i-1") != nil || len(hook.Entries) != 1 {
			t.Errorf("%s: %d lines", torn, len(hook.Entries))
		}
		if kept, err := filepath.Glob(path + ".bad-*"); err != nil || len(kept) != asides+1 {
			t.Errorf("set aside: %q %v", kept, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("what cannot be read still stands there")
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".joined.json.77")); err == nil {
		t.Error("what a crash left is still there")
	}
}

// TestLedgerLearns: approvals of others are kept over a restart, each key once, the last
// few of a name; what is known by the agent's own entry is not kept twice; a name that no
// instance has any more is forgotten a day after.
func TestLedgerLearns(t *testing.T) {
	dir := t.TempDir()
	logger, _ := logtest.NewNullLogger()
	log := logrus.NewEntry(logger)
	l := Open(dir, log)
	if err := l.Enter("i-1", rules.Issue{Node: "n1", Key: "k1", CSR: "c1", At: noon}); err != nil {
		t.Fatal(err)
	}
	learn := func(i rules.Issue) {
		if err := l.Learn(i); err != nil {
			t.Fatal(err)
		}
	}
	learn(rules.Issue{Node: "n1", Key: "k1", CSR: "c1", At: noon})
	if got := l.Granted("n1"); len(got) != 0 {
		t.Errorf("the agent's own approval is kept twice: %+v", got)
	}
	for n := range grantsKept + 3 {
		for range 2 {
			learn(rules.Issue{Node: "n2", Key: fmt.Sprintf("k%d", n), At: noon.Add(time.Duration(n) * time.Second)})
		}
	}
	l = Open(dir, log)
	got := l.Granted("n2")
	if len(got) != grantsKept || got[0].Key != "k3" || got[grantsKept-1].Key != fmt.Sprintf("k%d", grantsKept+2) {
		t.Errorf("after a restart: %+v", got)
	}
	// A person approved another key of the same machine: it may ask again, under its name.
	learn(rules.Issue{Node: "n1", Key: "by-hand", CSR: "by-hand", At: noon})
	if err := l.Enter("i-1", rules.Issue{Node: "n1", Key: "by-hand"}); err != nil {
		t.Errorf("a key that a person approved: %v", err)
	}
	if err := l.Enter("i-1", rules.Issue{Node: "n2", Key: "by-hand"}); err == nil {
		t.Error("the same key under another name")
	}
	there := []cluster.NodeGroup{{ID: "g", Instances: []cluster.Instance{{ID: "i-1", NodeNames: []string{"N2."}}}}}
	l.Prune(there, noon.Add(Keep))
	if len(l.Granted("n1")) != 1 || len(l.Granted("n2")) == 0 {
		t.Errorf("forgotten before its time: %+v %+v", l.Granted("n1"), l.Granted("n2"))
	}
	l.Prune(there, noon.Add(Keep+time.Second))
	if len(l.Granted("n1")) != 0 || len(l.Granted("n2")) == 0 {
		t.Errorf("after a day: %+v %+v", l.Granted("n1"), l.Granted("n2"))
	}
}

// TestLedgerKnowsItsGap: an agent that is new, or was away, knows of which machines it cannot tell
// whether another agent has let them in.
func TestLedgerKnowsItsGap(t *testing.T) {
	dir := t.TempDir()
	logger, _ := logtest.NewNullLogger()
	open := func(now time.Time) *Ledger {
		l := Open(dir, logrus.NewEntry(logger))
		if l.seen.IsZero() {
			l.since = now // the test's own time
		}
		if err := l.Watches(now); err != nil {
			t.Fatal(err)
		}
		return l
	}
	gaps := func(l *Ledger, launched time.Time, want bool) {
		t.Helper()
		if got := l.Gap(launched); (got != "") != want {
			t.Errorf("launched %s, watched since %s: %q", launched, l.since, got)
		}
	}
	l := open(noon)
	gaps(l, noon.Add(-time.Hour), true)
	gaps(l, noon.Add(-approvedKept), false) // its approval is there still
	gaps(l, noon, false)
	gaps(l, time.Time{}, false) // the cloud has no launch times
	if err := l.Watches(noon.Add(NoteEvery)); err != nil {
		t.Fatal(err)
	}
	l = open(noon.Add(NoteEvery + 30*time.Minute)) // a short stop
	gaps(l, noon.Add(-time.Hour), true)
	gaps(l, noon.Add(-time.Minute), false)
	later := noon.Add(3 * time.Hour) // a long one
	l = open(later)
	gaps(l, later.Add(-time.Hour), true)
	gaps(l, later.Add(-time.Minute), false)
	// The file of an older version: what it has seen it has seen.
	if err := os.WriteFile(filepath.Join(dir, "joined.json"), []byte(`{"version":1,"joined":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	gaps(Open(dir, logrus.NewEntry(logger)), noon.Add(-24*time.Hour), false)
}
