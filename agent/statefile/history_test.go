package statefile

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
)

// TestHistorySurvivesARestart: it is written when a sample of the day or a decision is due to be and at
// the end, only its owner reads it, and a torn file is set aside.
func TestHistorySurvivesARestart(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	f, h := HistoryIn(dir), &history.History{}
	if err := f.Load(h, now); err != nil {
		t.Fatalf("a missing file: %v", err)
	}
	h.Look(&cluster.Snapshot{Now: now, Nodes: []*cluster.Node{{Name: "n"}}})
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "history.json"))
		if err != nil {
			return -1
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
		return info.Size()
	}
	save := func(at time.Time, end, writes bool) {
		t.Helper()
		_ = os.Remove(filepath.Join(dir, "history.json"))
		if err := f.Save(h, at, end); err != nil {
			t.Fatal(err)
		}
		if (size() > 0) != writes {
			t.Errorf("at %s (the end: %t) the file has %d bytes", at.Format(time.TimeOnly), end, size())
		}
	}
	save(now, false, true)
	save(now.Add(4*time.Minute), false, false)
	save(now.Add(5*time.Minute), false, true)
	h.Acted(decision.Plan{}, []cluster.Outcome{{Action: "cordon", Node: "n", At: now}})
	save(now.Add(5*time.Minute+time.Second), false, false)
	save(now.Add(6*time.Minute), false, true)
	save(now.Add(7*time.Minute), false, false)
	save(now.Add(7*time.Minute), true, true)
	next := &history.History{}
	if err := HistoryIn(dir).Load(next, now.Add(8*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if a, b := h.View(now), next.View(now); !reflect.DeepEqual(a, b) || len(b.Marks) != 1 {
		t.Errorf("%+v\nwant\n%+v", b, a)
	}
	for _, torn := range []string{`{"version":1,"day":{"last":`, `{"version":9,"day":{},"hour":{}}`, `{"version":1,"day":{"last":29000000,"pending":"1x5","nodes":"","ready":"","price":""},"hour":{"last":0,"pending":"","nodes":"","ready":"","price":""}}`} {
		if err := os.WriteFile(filepath.Join(dir, "history.json"), []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := HistoryIn(dir).Load(&history.History{}, time.Unix(29000001*300, 0)); err == nil || size() >= 0 {
			t.Errorf("%s: %v, and the file has %d bytes", torn, err, size())
		}
	}
}
