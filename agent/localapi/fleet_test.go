package localapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
)

// TestFleetAnswers: a list, also of nothing, and a plain word for what is no number of boxes.
func TestFleetAnswers(t *testing.T) {
	s := idle(t)
	s.Policy = func(time.Time) decision.Policy { return decision.Policy{} }
	s.Memory = func() decision.Memory { return decision.Memory{} }
	s.Last = func() (decision.Plan, time.Time) { return decision.Plan{}, time.Time{} }
	for query, want := range map[string]int{"": 200, "?most=400": 200, "?most=0": 200, "?most=-1": 400, "?most=all": 400, "?most=99999999999999999999": 400} {
		w := httptest.NewRecorder()
		s.serveFleet(w, httptest.NewRequest(http.MethodGet, FleetPath+query, nil))
		if w.Code != want {
			t.Errorf("%q: %d, want %d", query, w.Code, want)
		}
		var list []fleet.Box
		if err := json.Unmarshal(w.Body.Bytes(), &list); want == 200 && (err != nil || list == nil) {
			t.Errorf("%q: %s, %v", query, w.Body, err)
		}
	}
}
