package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// byID are the rules for which Cluster Autoscaler has no word: its metrics leave them out, or
// show a node that they hold by their ID. autoscaler_held_count has every rule.
var byID = strings.Fields(`
	U1 U2 U3 U4 U5 U6 U9 U10 U11 U12 U13 U14 U15 U16 U17 U18 U19 U20 U21 U22 U23 U24 U25 U26 U27 U28 U29 U30
	H1 H2 H3 H4 H5 H6
	I1 I2 I3 I4 I5 I6 I7
	D1 D2 D9 D10 D11 D12 D13 D15 D16 D17 D19 D20 D21 D22 D25 D26 D27 D28 D29 D30 D31 D32 D33 D34 D35 D36`)

// TestEveryRuleIsClassified: how the journal tells a rule and how the metrics show it was decided
// for each rule, not left to what happens by default.
func TestEveryRuleIsClassified(t *testing.T) {
	all := rulesOfDecision(t)
	if len(all) < 60 {
		t.Fatalf("%d rules", len(all))
	}
	for id, name := range all {
		if tellings[id] == 0 {
			t.Errorf("decision.%s (%s) has no line in tellings: does the journal tell it as news, as routine, elsewhere, or with an action?", name, id)
		}
		_, limit := limits[id]
		if word := unremovableReasons[id] != "" || limit; word == slices.Contains(byID, id) {
			t.Errorf("decision.%s (%s): give it a word of Cluster Autoscaler's in limits or unremovableReasons, or an entry in byID, and not both (it has a word: %t)", name, id, word)
		}
	}
	for id := range tellings {
		if all[id] == "" {
			t.Errorf("tellings has %s, which is no rule of package decision", id)
		}
	}
	for _, id := range byID {
		if all[id] == "" {
			t.Errorf("byID has %s, which is no rule of package decision", id)
		}
	}
}

// rulesOfDecision reads the rules from the source: name by ID.
func rulesOfDecision(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../decision/rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) == 0 || !strings.HasPrefix(v.Names[0].Name, "Rule") {
			return true
		}
		id, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil || out[id] != "" {
			t.Errorf("%s: %v, or its ID is %s's too", v.Names[0].Name, err, out[id])
		}
		out[id] = v.Names[0].Name
		return true
	})
	return out
}

// TestWhatIsHeldIsToldByItsRule: news has a line at the start and at the end, the others have none
// at info.
func TestWhatIsHeldIsToldByItsRule(t *testing.T) {
	for id, how := range tellings {
		if how == ofAction {
			continue
		}
		log, lines := newHeldLog()
		log.Write([]decision.Held{{Kind: "group", Name: "g", Rule: id, Why: "why"}})
		log.Write(nil)
		want := 0
		if how == news {
			want = 2
		}
		if got := lines(); len(got) != want {
			t.Errorf("%s: %d lines, want %d: %q", id, len(got), want, got)
		}
	}
}
