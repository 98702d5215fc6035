package localapi

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page"
)

// TestPage: the page has what the status, the memory, the metrics and the state directory
// tell; beside the metrics it is served only where the operator asks for it.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := idle(t)
		if _, err := s.Inventory.Groups(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		s.Since, s.Leadership, s.History = time.Now(), election.New(election.Config{}, election.Deps{}), &history.History{}
		s.Memory = func() decision.Memory { return decision.Memory{} }
		held := []decision.Held{{Kind: "pod", Name: "shop/web", Count: 3, Rule: "U5", Why: "no group", Groups: []decision.Refusal{{Name: "workers", Rule: "F1", Why: "Insufficient cpu"}}}, {Kind: "node", Name: "quiet", Rule: "D3"}}
		s.Last = func() (decision.Plan, time.Time) { return decision.Plan{Held: held}, time.Now() }
		s.Metrics.Count("csr_decisions_total", "do", "deny", "rule", "R12")
		s.Metrics.Gauge("csr_pending_count", 7)
		s.Config.StateDir = t.TempDir()
		dir := filepath.Join(s.Config.StateDir, "nodes")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		manifest := `{"metadata":{"name":"dead-1","annotations":{"autoscaler-agent/deleted":"2026-11-21T10:00:00Z G3: terminated"}}}`
		if err := os.WriteFile(filepath.Join(dir, "dead-1.json"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		s.servePage(w, nil)
		for _, want := range []string{"leader&lt;1&gt;", "shop/web", "2 more pods", "Insufficient cpu", "workers", "R12", "7 requests are not decided", "dead-1", "G3: terminated", "Not acting"} {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%q is not on the page", want)
			}
		}
		if got := w.Header().Get("Content-Security-Policy"); got != page.Policy() {
			t.Errorf("policy %q", got)
		}
		if code, _ := get(s.metrics(), PagePath); code != 404 {
			t.Errorf("beside the metrics, unasked: %d", code)
		}
		s.Config.ListenPage = true
		if code, _ := get(s.metrics(), PagePath); code != 200 {
			t.Errorf("beside the metrics, asked: %d", code)
		}
		if _, landing := get(s.metrics(), "/"); !strings.Contains(landing, `href="/page"`) {
			t.Error("no link to the page")
		}
	})
}

// TestLeaving: nodes with the mark, the longest first, with the pods that have to move and
// what they wait for.
func TestLeaving(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := cluster.Snapshot{Groups: []cluster.NodeGroup{{ID: "g", Instances: []cluster.Instance{{ID: "i-1"}}}},
		Nodes: []*cluster.Node{{Name: "b"}, {Name: "stays"}, {Name: "a", ProviderID: "i-1", Pods: []cluster.Pod{{Owner: &cluster.Owner{Kind: "DaemonSet"}}, {}, {Owner: &cluster.Owner{Kind: "ReplicaSet"}}}}}}
	m := decision.Memory{Draining: map[cluster.NodeName]time.Time{"b": now, "a": now.Add(-time.Minute)}}
	got := leaving(s, m, []decision.Held{{Kind: "node", Name: "a", Rule: "D14", Why: "a budget"}})
	if len(got) != 2 || got[0] != (page.Leaving{Node: "a", Group: "g", Since: now.Add(-time.Minute), Pods: 2, Why: "D14: a budget"}) || got[1].Node != "b" {
		t.Errorf("%+v", got)
	}
}
