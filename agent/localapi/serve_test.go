package localapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

// TestNothingIsReadYet: an agent that has not read the cluster, or the node groups, says so and not
// that there is nothing of the name that it is asked about.
func TestNothingIsReadYet(t *testing.T) {
	s := idle(t)
	s.Policy = func(time.Time) decision.Policy { return decision.Policy{} }
	s.Memory = func() decision.Memory { return decision.Memory{} }
	s.Last = func() (decision.Plan, time.Time) { return decision.Plan{}, time.Time{} }
	of := map[string]bool{ // whether the answer is about node groups
		"/explain?kind=pod&name=a/b": false, "/explain?kind=node&name=n": false, "/explain?kind=group&name=w": true,
		NodesPath: true, NodesPath + "?group=w": true, RolloutsPath: true, RolloutsPath + "?group=w": true,
	}
	h := s.questions()
	ask := func(when string, refused func(ofGroups bool) string) {
		t.Helper()
		for path, ofGroups := range of {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			want := refused(ofGroups)
			if got := strings.TrimSpace(w.Body.String()); (w.Code == http.StatusServiceUnavailable) != (want != "") || want != "" && got != want {
				t.Errorf("%s: %s: %d %s, want %q", when, path, w.Code, got, want)
			}
			if got := w.Header().Get(VersionHeader); got != version.Current() {
				t.Errorf("%s: the version is %q", path, got)
			}
		}
	}
	ready := s.Unready
	s.Unready = func() string { return "the caches are not filled yet" }
	ask("nothing is read", func(bool) string { return "the agent has not read the cluster yet" })
	s.Unready = ready
	ask("the cluster is read", func(ofGroups bool) string {
		if ofGroups {
			return "the agent has not read the node groups yet"
		}
		return ""
	})
	if _, err := s.Inventory.Groups(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	ask("all is read", func(bool) string { return "" })
}
