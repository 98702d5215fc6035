package config

import (
	"strings"
	"testing"
)

// TestGroupsFields: the list that the man page is made of has the fields of every section, each
// once and with a sentence.
func TestGroupsFields(t *testing.T) {
	seen := map[string]GroupsField{}
	for _, f := range groupsFields() {
		if _, twice := seen[f.Path]; twice || f.About == "" && !strings.Contains(f.Path, "[]") && !strings.Contains(f.Path, "NAME") {
			t.Errorf("%+v, twice: %t", f, twice)
		}
		seen[f.Path] = f
	}
	for _, want := range []string{"groups.NAME.price", "groups.NAME.options.scaleDownUnneededTime", "headroom[].name", "machines[].instance", "nova.groups[].flavor"} {
		if seen[want].Type == "" {
			t.Errorf("%s is missing", want)
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d fields", len(seen))
	}
}
