package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// TestExpanderPages: each expander of the code is told wherever an operator looks for it.
func TestExpanderPages(t *testing.T) {
	page := func(name, from, to string) string {
		raw, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, has := strings.Cut(string(raw), from)
		part, _, ends := strings.Cut(rest, to)
		if !has || !ends {
			t.Fatalf("%s has no part from %q to %q", name, from, to)
		}
		return part
	}
	field, _ := reflect.TypeFor[decision.Policy]().FieldByName("Expander")
	for _, place := range []struct{ name, text, form string }{
		{"agent/decision/policy.go", field.Tag.Get("desc"), "%s, "},
		{"docs/configuration.md, the table of expanders", page("docs/configuration.md", "\n## Which group is grown\n", "\n### "), "| `%s` |"},
		{"docs/scaling-rules.md, the table of expanders", page("docs/scaling-rules.md", "| expander | cost of a machine |", "\n\n"), "`%s`"},
	} {
		for _, name := range plan.Expanders() {
			if !strings.Contains(place.text, fmt.Sprintf(place.form, name)) {
				t.Errorf("%s does not tell the expander %s", place.name, name)
			}
		}
	}
}
