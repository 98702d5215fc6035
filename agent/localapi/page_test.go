package localapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/trouble"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
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
		s.Policy = func(time.Time) decision.Policy { return decision.Policy{} }
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
		for _, want := range []string{"leader&lt;1&gt;", "shop/web", "2 more pods", "Insufficient cpu", "workers", "R12", "7 requests are not decided", "dead-1", "G3: terminated", "Not acting", "No node group can serve 3 pods"} {
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
		s.Config.ListenPage, s.Node = true, "leader-1"
		for host, want := range map[string]int{"127.0.0.1:8085": 200, "[::1]:8085": 200, "10.0.0.1": 200, "localhost:8085": 200, "Leader-1:8085": 200,
			"evil.example": 421, "127.0.0.1.evil.example:8085": 421, "localhost.evil.example": 421, "": 421} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, PagePath, nil)
			r.Host = host
			s.metrics().ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("beside the metrics, asked of %q: %d, want %d", host, w.Code, want)
			}
		}
		if _, landing := get(s.metrics(), "/"); !strings.Contains(landing, `href="/page"`) {
			t.Error("no link to the page")
		}
	})
}

// TestLeaving: machines that are drained or end, the longest first, with the pods that have to move and
// what they wait for; a machine that ends without a mark is one of them.
func TestLeaving(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	m := decision.Memory{Draining: map[cluster.NodeName]time.Time{"b": now, "a": now.Add(-time.Minute)}}
	got := leaving([]fleet.Machine{{Name: "b", State: fleet.Draining, Exactly: "draining"}, {Name: "stays", State: fleet.Ready}, {Name: "a", Group: "g", State: fleet.Draining, Pods: 2, Rule: "D14", Why: "a budget"},
		{Name: "c", State: fleet.Draining, Exactly: "ending"}}, m)
	want := []page.Leaving{{Node: "c", Why: "ending"}, {Node: "a", Group: "g", Since: now.Add(-time.Minute), Pods: 2, Why: "D14: a budget"}, {Node: "b", Since: now, Why: "draining"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestHeldRequests: a request counts that is held by its newest verdict and still there, since it was first held.
func TestHeldRequests(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	got := heldRequests([]csrsigner.Judged{{At: at, Request: "a", Do: "later", Rule: "R13"}, {At: at, Request: "b", Do: "approve"}, {At: at.Add(-time.Minute), Request: "b", Do: "later"},
		{At: at.Add(-time.Minute), Request: "gone", Do: "later"}, {At: at.Add(-time.Hour), Request: "a", Do: "later", Rule: "R10"}}, []string{"a", "b", "other"})
	if want := []trouble.Certificate{{Request: "a", Rule: "R13", Since: at.Add(-time.Hour)}}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestUnreadIsNotZero: an agent that has read neither the cluster nor the cloud says so in each part of the page and in
// the status, and counts nothing; one that has read both counts.
func TestUnreadIsNotZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := idle(t)
		s.Since, s.Leadership, s.History = time.Now(), election.New(election.Config{}, election.Deps{}), &history.History{}
		s.Policy = func(time.Time) decision.Policy { return decision.Policy{} }
		s.Memory = func() decision.Memory { return decision.Memory{} }
		s.Last = func() (decision.Plan, time.Time) { return decision.Plan{}, time.Time{} }
		s.Config.StateDir = t.TempDir()
		counted := []string{"There is no machine", "No pod is held back", "No node group is found", "0 of 0", "0 requests are", ">0 pods now"}
		s.Unready = func() string { return "the cluster is not read" }
		drawn := func() string {
			w := httptest.NewRecorder()
			s.servePage(w, nil)
			return w.Body.String()
		}
		text := drawn()
		for _, zero := range counted {
			if strings.Contains(text, zero) {
				t.Errorf("nothing was read, and the page says %q", zero)
			}
		}
		if n := strings.Count(text, "Not known: the agent has"); n != 6 {
			t.Errorf("%d parts of the page say that they are not known", n)
		}
		if st := s.status(); !slices.Equal(st.Unread, []string{UnreadCluster, UnreadGroups}) {
			t.Errorf("unread: %q", st.Unread)
		}
		s.Unready = func() string { return "" }
		if _, err := s.Inventory.Groups(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		if text = drawn(); strings.Contains(text, "Not known") || !strings.Contains(text, counted[0]) || !strings.Contains(text, counted[1]) || s.status().Unread != nil {
			t.Errorf("all was read, and the page says:\n%s", text)
		}
	})
}
