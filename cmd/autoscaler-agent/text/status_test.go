package text

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/trouble"
)

// TestEachCauseIsToldOnce: what a trouble says stands in no other line, and what was not read has no figures.
func TestEachCauseIsToldOnce(t *testing.T) {
	f := trouble.Facts{Hindered: true, Why: "waiting for the Lease: no route to 10.0.0.1", Stale: "the API server has not answered since noon",
		Cloud: "the cloud refuses the credentials", Settings: "groups.yaml:3: no such field", Late: []string{"scaler: no beat for 1m"}}
	s := localapi.Status{Why: f.Why, Stale: f.Stale, Cloud: f.Cloud, Settings: f.Settings, Late: f.Late, Troubles: trouble.List(f), Unread: []string{localapi.UnreadCluster, localapi.UnreadGroups}}
	var out strings.Builder
	Status(&out, s)
	for _, cause := range []string{f.Why, f.Stale, f.Cloud, f.Settings, f.Late[0]} {
		if n := strings.Count(out.String(), cause); n != 1 {
			t.Errorf("%q is told %d times:\n%s", cause, n, out.String())
		}
	}
	if strings.Contains(out.String(), "0 nodes") || strings.Count(out.String(), "not read yet") != 2 {
		t.Errorf("what was not read has figures:\n%s", out.String())
	}
	out.Reset()
	Status(&out, localapi.Status{Why: "standing by: b holds the Lease", CloudAt: time.Now(), Nodes: 3})
	if !strings.Contains(out.String(), "no: standing by: b holds the Lease") || !strings.Contains(out.String(), "3 nodes") {
		t.Error(out.String())
	}
}
