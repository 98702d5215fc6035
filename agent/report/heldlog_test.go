package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
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

func TestManyBlockedNodesAreOneLineAndSaidOnce(t *testing.T) {
	log, lines := newHeldLog()
	blocked := func(nodes, pods int) []decision.Held {
		var held []decision.Held
		for i := range nodes {
			held = append(held, decision.Held{Kind: "node", Name: fmt.Sprintf("worker-%02d", i), Count: 1, Rule: decision.RuleBlocked, Why: fmt.Sprintf("%d pods may not be moved", pods)})
		}
		return held
	}
	log.Write(blocked(20, 3))
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "held 20 nodes, worker-00 and 19 more") || !strings.Contains(got[0], "rule=D6") {
		t.Errorf("%q", got)
	}
	log.Write(blocked(20, 4))
	if got := lines(); got != nil {
		t.Errorf("another number is no news: %q", got)
	}
	log.Write(blocked(21, 4))
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "held node worker-20") {
		t.Errorf("the node that came is told, and no other again: %q", got)
	}
	log.Write(blocked(2, 4))
	if got := lines(); got != nil {
		t.Errorf("fewer nodes of one reason are no news: %q", got)
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
	if lines := linesOf(held); len(lines) != len(held) {
		t.Errorf("%d lines for %d reasons", len(lines), len(held))
	}
}

// refusals are what many groups say of one pod; groups are by their reason.
func refusals(counts map[string]int) []decision.Refusal {
	var out []decision.Refusal
	for _, why := range slices.Sorted(maps.Keys(counts)) {
		rule, words, _ := strings.Cut(why, " ")
		for range counts[why] {
			out = append(out, decision.Refusal{Name: fmt.Sprintf("group-%03d", len(out)), Rule: rule, Why: words})
		}
	}
	return out
}

// pending is a pod that no group can help, as the engine holds it.
func pending(pod string, counts map[string]int) decision.Held {
	h := decision.Held{Kind: "pod", Name: pod, Count: 1, Rule: decision.RuleNoGroup, Groups: refusals(counts)}
	var said []string
	for _, g := range h.Groups {
		said = append(said, "group "+g.Name+": "+g.Why)
	}
	h.Why = strings.Join(said, "; ")
	return h
}

func TestReasonsOfManyGroupsAreSummedUp(t *testing.T) {
	h := pending("default/web-0", map[string]int{"F3 node(s) didn't match Pod's node affinity/selector": 31, "F6 Insufficient cpu": 2})
	if got, want := reason(h), "31 groups: node(s) didn't match Pod's node affinity/selector; 2 groups: Insufficient cpu"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	few := pending("default/web-0", map[string]int{"F6 Insufficient cpu": 1, "U7 at its maximum of 3": 1})
	if got, want := reason(few), "group group-000: Insufficient cpu; group group-001: at its maximum of 3"; got != want {
		t.Errorf("a few groups are named: %q, want %q", got, want)
	}
	all := map[string]int{}
	for i := range 200 {
		all[fmt.Sprintf("F4 untolerated taint {team: %s}", string(rune('a'+i/26))+string(rune('a'+i%26)))] = 1
	}
	if got := reason(pending("default/web-0", all)); len(got) > 500 || !strings.Contains(got, "193 groups: 193 other reasons (autoscaler-agent explain pod default/web-0)") {
		t.Errorf("%d characters: %s", len(got), got)
	}
	whole := decision.Plan{Held: []decision.Held{h}}
	if strings.Count(whole.String(), "; group ") != 32 {
		t.Error("the plan's own text is to stay whole")
	}
}

// TestALineIsAboutItsOwnPod: a group that comes to its maximum or is backed off makes no line
// of a pod new; another reason of the pod's own does.
func TestALineIsAboutItsOwnPod(t *testing.T) {
	log, lines := newHeldLog()
	affinity, cpu := "F3 node(s) didn't match Pod's node affinity/selector", "F6 Insufficient cpu"
	log.Write([]decision.Held{pending("default/web-6b4b99bc78-qzzrt", map[string]int{affinity: 31, cpu: 2})})
	if got := lines(); len(got) != 1 {
		t.Fatalf("%q", got)
	}
	for _, counts := range []map[string]int{
		{affinity: 30, cpu: 2, "U7 at its maximum of 3": 1},
		{affinity: 30, cpu: 2, "U9 backed off until 13:00 (capacity)": 1},
		{affinity: 33, cpu: 5, "U9 backed off until 14:00 (capacity)": 9},
	} {
		log.Write([]decision.Held{pending("default/web-6b4b99bc78-xp2d5", counts)})
		if got := lines(); got != nil {
			t.Errorf("%v: %q", counts, got)
		}
	}
	log.Write([]decision.Held{pending("default/web-6b4b99bc78-xp2d5", map[string]int{affinity: 31, "F6 Insufficient memory": 2})})
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "2 groups: Insufficient memory") {
		t.Errorf("a reason of its own is news: %q", got)
	}
	log.Write([]decision.Held{pending("default/web-6b4b99bc78-xp2d5", map[string]int{affinity: 31, "F6 Insufficient memory": 2}), pending("default/db-0", map[string]int{affinity: 31, "F6 Insufficient memory": 2})})
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "pod default/db-0") {
		t.Errorf("another workload is told: %q", got)
	}
}

// TestTwoHundredGroupsInTroubleFitOnAScreen: every group has its own trouble, and 200 pods
// wait for them.
func TestTwoHundredGroupsInTroubleFitOnAScreen(t *testing.T) {
	const screen = 50 // lines of a terminal
	log, lines := newHeldLog()
	causes := []struct{ rule, why string }{
		{decision.RuleBackoff, "backed off until 13:%02d (capacity): no %s in zone %s"}, {decision.RulePaused, "the cloud starts nothing since 12:%02d: %s %s"},
		{decision.RuleTemplate, "no template after %d reads: flavor %s of %s is not there"}, {decision.RuleShort, "%d machines of %s in %s did not come"},
	}
	round := func(minute int) []decision.Held {
		var held []decision.Held
		counts := map[string]int{"F3 node(s) didn't match Pod's node affinity/selector": 198, "F6 Insufficient cpu": 2}
		for i := range 200 {
			c := causes[i%len(causes)]
			name := fmt.Sprintf("workers-%c%c", 'a'+i/26, 'a'+i%26)
			held = append(held, decision.Held{Kind: "group", Name: name, Count: 1, Rule: c.rule, Why: fmt.Sprintf(c.why, minute, name, "z"+name)})
			held = append(held, pending(fmt.Sprintf("default/app%c%c-0", 'a'+i/26, 'a'+i%26), counts))
		}
		return held
	}
	log.Write(round(1))
	got := lines()
	long := 0
	for _, line := range got {
		long = max(long, len(line))
	}
	if len(got) > screen || long > 500 {
		t.Errorf("%d lines, the longest of %d characters:\n%s", len(got), long, strings.Join(got, "\n"))
	}
	for _, want := range []string{"held 200 pods, default/appaa-0 and 199 more", "198 groups: node(s) didn't match Pod's node affinity/selector; 2 groups: Insufficient cpu", "rule=U9", "rule=U10", "rule=U11", "rule=I5"} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("no line with %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
	log.Write(round(1))
	if again := lines(); again != nil {
		t.Errorf("said twice: %q", again)
	}
	log.Write(nil)
	if over := lines(); len(over) != 5 || !strings.Contains(over[0], "50 groups are no longer held by") {
		t.Errorf("%q", over)
	}
}

// TestNothingAtInfoWhenNothingIsWrong: a pod that will be scheduled and a node in use make no
// line at info, and at debug none that says held.
func TestNothingAtInfoWhenNothingIsWrong(t *testing.T) {
	log, lines := newHeldLog()
	var quiet []decision.Held
	for _, row := range decision.Rules {
		rule := row.ID
		if row.Level != decision.Debug {
			continue
		}
		quiet = append(quiet, decision.Held{Kind: "pod", Name: "default/web-" + rule, Count: 2, Rule: rule, Why: "for now"}, decision.Held{Kind: "node", Name: "worker-" + rule, Count: 1, Rule: rule, Why: "for now"})
	}
	log.Write(quiet)
	log.Write(nil)
	if got := lines(); got != nil {
		t.Errorf("%q", got)
	}
	log.Log.Logger.SetLevel(logrus.DebugLevel)
	log.Write(quiet)
	if got := strings.Join(lines(), "\n"); strings.Contains(got, "held") || !strings.Contains(got, "pod default/web-U1 and 1 more") {
		t.Errorf("%s", got)
	}
}

// TestFieldsOfASharedLine: the journal finds a line about many by each name.
func TestFieldsOfASharedLine(t *testing.T) {
	var held []decision.Held
	for i := range 5 {
		held = append(held, decision.Held{Kind: "group", Name: fmt.Sprintf("workers-%d", i), Count: 1, Rule: decision.RuleBackoff, Why: "backed off\nfor long"})
	}
	lines := linesOf(held)
	names, several := lines[0].fields["group"].(Names)
	if len(lines) != 1 || !several || len(names) != 5 || lines[0].fields["rule"] != decision.RuleBackoff {
		t.Fatalf("%+v", lines)
	}
	got := string(datagram("m", journal.PriInfo, map[string]string{"WHY": "a\nb"}, map[string]Names{"GROUP": names}))
	want := "PRIORITY=6\nMESSAGE=m\nWHY\n\x03\x00\x00\x00\x00\x00\x00\x00a\nb\n"
	for _, name := range names {
		want += "GROUP=" + name + "\n"
	}
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWorkload(t *testing.T) {
	for pod, want := range map[string]string{
		"default/web-6b4b99bc78-qzzrt": "default/web", "default/db-0": "default/db", "default/node-exporter-x2x9k": "default/node-exporter",
		"default/web": "default/web", "default/my-app": "default/my-app", "kube-system/coredns-autoscaler": "kube-system/coredns-autoscaler", "a/b-": "a/b-",
	} {
		if got := workload(pod); got != want {
			t.Errorf("%s: %s, want %s", pod, got, want)
		}
	}
}

func TestASpentBudgetIsSaidOnceAndOnceWhenItEnds(t *testing.T) {
	log, lines := newHeldLog()
	spent := func(part string, nodes int) decision.Held {
		return decision.Held{Kind: "cluster", Name: "cluster", Count: 1, Rule: decision.RuleBudget, Why: fmt.Sprintf("the budget of %s is spent: %d nodes", part, nodes)}
	}
	for n := range 5 {
		log.Write([]decision.Held{spent("relocation", 800-n)})
	}
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "rule=H6") {
		t.Errorf("each round has another number, and that is no news: %q", got)
	}
	log.Write([]decision.Held{spent("relocation", 700), spent("consolidation", 3)})
	if got := lines(); len(got) != 2 || !strings.Contains(strings.Join(got, " "), "consolidation") {
		t.Errorf("another part is news: %q", got)
	}
	log.Write(nil)
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "the cluster is no longer held by H6") {
		t.Errorf("%q", got)
	}
}
