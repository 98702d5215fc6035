package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func newHeldLog() (*HeldLog, func() []string) {
	var b bytes.Buffer
	log := logrus.New()
	log.SetOutput(&b)
	log.SetFormatter(textFormatter{&logrus.TextFormatter{DisableTimestamp: true, DisableColors: true}})
	return &HeldLog{Log: logrus.NewEntry(log)}, func() []string {
		defer b.Reset()
		if b.Len() == 0 {
			return nil
		}
		return strings.Split(strings.TrimSpace(b.String()), "\n")
	}
}

func TestManyBusyNodesAreOneLineAndSaidOnce(t *testing.T) {
	log, lines := newHeldLog()
	busy := func(percent int) []decision.Held {
		var held []decision.Held
		for i := range 20 {
			held = append(held, decision.Held{Kind: "node", Name: fmt.Sprintf("worker-%02d", i), Count: 1, Rule: decision.RuleBusy, Why: fmt.Sprintf("utilisation %d%% is above 50%%", percent)})
		}
		return held
	}
	log.Write(busy(80))
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "held 20 nodes") || !strings.Contains(got[0], "rule=D4") {
		t.Errorf("%q", got)
	}
	log.Write(busy(90))
	if got := lines(); got != nil {
		t.Errorf("another share is no news: %q", got)
	}
}

func TestAHeldGroupIsSaidOnceAndOnceWhenItEnds(t *testing.T) {
	log, lines := newHeldLog()
	held := []decision.Held{{Kind: "group", Name: "workers", Count: 1, Rule: decision.RuleBackoff, Why: "backed off until 13:00"}}
	for range 3 {
		log.Write(held)
	}
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "group=workers") {
		t.Errorf("%q", got)
	}
	held[0].Why = "backed off until 14:00"
	log.Write(held)
	if got := lines(); len(got) != 1 || strings.Contains(got[0], "no longer") {
		t.Errorf("a new end of the pause is told, and is no end of the trouble: %q", got)
	}
	log.Write(nil)
	log.Write(nil)
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "group workers is no longer held by U9") {
		t.Errorf("%q", got)
	}
}

func TestTheJournalsSentenceTellsWhatItsFieldsTell(t *testing.T) {
	e := logrus.WithFields(logrus.Fields{"group": "", "node": "n1", "csr": "csr-1", "rule": "R11", "why": "it is in no group", "took": "1ms"})
	e.Message = "serving certificate is held"
	if got, want := sentence(e), "serving certificate is held node=n1 csr=csr-1 [R11]: it is in no group"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.Message = "n1 [R11] csr-1: it is in no group"
	if got := sentence(e); got != e.Message {
		t.Errorf("said twice: %q", got)
	}
}

// TestDifferentReasonsNeverShareALine: five nodes that different pods keep are five
// things for an operator to do.
func TestDifferentReasonsNeverShareALine(t *testing.T) {
	var held []decision.Held
	for _, pod := range []string{"naked", "disk", "never", "system", "unsafe"} {
		held = append(held, decision.Held{Kind: "node", Name: "node-of-" + pod, Rule: decision.RuleBlocked, Why: "pod default/" + pod + " has no controller to make it again"})
	}
	lines := 0
	for _, r := range logLines(held) {
		if !r.detail {
			lines++
		}
	}
	if lines != len(held) {
		t.Errorf("%d lines for %d reasons", lines, len(held))
	}
}
