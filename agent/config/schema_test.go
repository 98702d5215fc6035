package config

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
)

// TestSchemaIsPublished: docs/groups.schema.json is generated
// (go run ./cmd/autoscaler-agent check --print-schema > docs/groups.schema.json), and the
// example names it for editors.
func TestSchemaIsPublished(t *testing.T) {
	file, err := os.ReadFile("../../docs/groups.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(file) != GroupsSchema() {
		t.Error("docs/groups.schema.json is old: go run ./cmd/autoscaler-agent check --print-schema > docs/groups.schema.json")
	}
	example, err := os.ReadFile("../../units/groups.yaml.example")
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(example), "\n"); first != "# yaml-language-server: $schema="+schemaURL {
		t.Errorf("the example starts with %q", first)
	}
}

var knownAre = regexp.MustCompile(`(?m)no such field: known are (.*)$`)

// TestSchemaKnowsTheFields: each mapping of the schema has the fields that the reader of the
// file knows there, and no other. The reader tells its fields when it meets an unknown one.
func TestSchemaKnowsTheFields(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal([]byte(GroupsSchema()), &root); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   string // in the schema
		text string // a file with the unknown field
		but  string // fields that the reader knows in order to refuse them
	}{
		{"", "zzzzzzzzzzzz: 1", ""},
		{"groups *", "groups: {w: {zzzzzzzzzzzz: 1}}", "max min"},
		{"groups * options", "groups: {w: {options: {zzzzzzzzzzzz: 1}}}", ""},
		{"groups * pause", "groups: {w: {pause: {zzzzzzzzzzzz: 1}}}", ""},
		{"groups * template", "groups: {w: {template: {zzzzzzzzzzzz: 1}}}", ""},
		{"headroom []", "headroom: [{zzzzzzzzzzzz: 1}]", ""},
		{"headroom [] nodes", "headroom: [{nodes: {zzzzzzzzzzzz: 1}}]", ""},
		{"headroom [] tolerations []", "headroom: [{tolerations: [{zzzzzzzzzzzz: 1}]}]", ""},
		{"headroom [] schedule []", "headroom: [{schedule: [{zzzzzzzzzzzz: 1}]}]", ""},
		{"asg", "asg: {zzzzzzzzzzzz: 1}", ""},
		{"asg pools []", "asg: {pools: [{zzzzzzzzzzzz: 1}]}", ""},
		{"asg pools [] cpu", "asg: {pools: [{cpu: {zzzzzzzzzzzz: 1}}]}", ""},
		{"nova", "nova: {zzzzzzzzzzzz: 1}", ""},
		{"nova clouds []", "nova: {clouds: [{zzzzzzzzzzzz: 1}]}", ""},
		{"nova groups []", "nova: {groups: [{zzzzzzzzzzzz: 1}]}", ""},
		{"nova groups [] flavors []", "nova: {groups: [{flavors: [{zzzzzzzzzzzz: 1}]}]}", ""},
		{"nova groups [] bootVolume", "nova: {groups: [{bootVolume: {zzzzzzzzzzzz: 1}}]}", ""},
		{"nova groups [] networks []", "nova: {groups: [{networks: [{zzzzzzzzzzzz: 1}]}]}", ""},
	} {
		_, err := groups.Parse([]byte(c.text), sections())
		if err == nil {
			t.Errorf("%s is accepted", c.text)
			continue
		}
		m := knownAre.FindStringSubmatch(err.Error())
		if m == nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		known := slices.DeleteFunc(strings.Split(m[1], ", "), func(name string) bool { return slices.Contains(strings.Fields(c.but), name) })
		if got := fieldsAt(t, root, c.at); !slices.Equal(got, known) {
			t.Errorf("%q: the schema has %q, the reader %q", c.at, got, known)
		}
	}
}

// fieldsAt are the properties of a part of the schema; of several forms, those of the mapping.
func fieldsAt(t *testing.T, part map[string]any, at string) []string {
	t.Helper()
	for step := range strings.FieldsSeq(at) {
		var next any
		switch step {
		case "*":
			next = part["additionalProperties"]
		case "[]":
			next = part["items"]
		default:
			next = part["properties"].(map[string]any)[step]
		}
		part = next.(map[string]any)
	}
	if forms, several := part["anyOf"].([]any); several {
		for _, form := range forms {
			if part = form.(map[string]any); part["properties"] != nil {
				break
			}
		}
	}
	if part["additionalProperties"] != false {
		t.Errorf("%q takes unknown fields", at)
	}
	return slices.Sorted(maps.Keys(part["properties"].(map[string]any)))
}
