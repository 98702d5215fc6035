package text

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// TestPrintCSR: the verdict comes first, then the facts, then every rule.
func TestPrintCSR(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var x csrsigner.Explanation
	x.Name, x.At, x.Created, x.Do, x.Rule, x.Why, x.Settled = "csr-1", at, at.Add(-time.Minute), "later", "R13", "name x is nobody's", "approved"
	x.Requester, x.Node, x.Signer = "system:node:w", "w", "kubernetes.io/kubelet-serving"
	x.Facts.AskedNames, x.Facts.ProviderID = []string{"w", "x"}, "aws:///a/i-1"
	for _, s := range [][2]string{{"R12", "passed"}, {"R13", "stopped"}, {"R14", "not reached"}, {"R16", "does not apply"}} {
		x.Steps = append(x.Steps, rules.Step{Rule: s[0], What: "something holds", Result: s[1]})
	}
	x.Steps[1].Why = x.Why
	var b strings.Builder
	CSR(&b, x)
	for _, want := range []string{
		"csr csr-1: held: name x is nobody's [R13]\n", "approved already", "2026-11-21T11:59:00Z (1m0s ago)", "requested names      w, x",
		"yes  R12", "NO   R13  something holds: name x", " .   R14", " -   R16",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
