package text

import (
	"bytes"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// TestExplainReaper: the verdict, the facts, and every rule that was asked.
func TestExplainReaper(t *testing.T) {
	var out bytes.Buffer
	p := page{out: &out, width: 200}
	p.reaper(nil)
	if out.Len() > 0 {
		t.Errorf("nothing to say: %q", out.String())
	}
	v := reaper.Verdict{Rule: "G2", Why: "seen gone once", Mode: "delete", Facts: []string{"ledger: known"}, Breakers: []string{"B3: blind"}}
	p.reaper(&v)
	v.Rule, v.Deletes = "G3", true
	p.reaper(&v)
	v.Deletes, v.Would = false, true
	p.reaper(&v)
	for _, want := range []string{"nodecleaner (mode delete): the Node object stays\n  [G2] seen gone once\n  ledger: known\n  open breaker B3: blind\n",
		"the Node object is deleted\n  [G3]", "the Node object would be deleted"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
