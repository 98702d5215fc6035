package report

import (
	"encoding/json"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestYAMLReadsBack: what YAML writes, a YAML library reads back as the same value.
func TestYAMLReadsBack(t *testing.T) {
	for _, v := range []any{
		nil, true, "", "a: b", "yes", "0x10", "2026-11-21", "x #y", " lead", "trail ", "line\nbreak", "uml\u00e4ut", `"q"`, "- dash", "1e3", 1.5, 7,
		[]any{}, map[string]any{}, []any{[]any{1, []any{}}, map[string]any{"a": []any{map[string]any{"b": nil, "c": "d"}, "e"}}},
		map[string]any{"k": map[string]any{"n": []string{"x", "y"}, "e": map[string]int{}}, "ToBeDeleted/x.y": "z", "on": "off"},
	} {
		b, err := YAML(v)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := yaml.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v: %v\n%s", v, err, b)
		}
		j, _ := json.Marshal(v)
		if err := json.Unmarshal(j, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%#v became\n%s%#v", want, b, got)
		}
	}
	const want = "b: 1\na:\n  - x: w\n    z:\n      - 1\n      - 2\n"
	type item struct {
		X string `json:"x"`
		Z []int  `json:"z"`
	}
	b, err := YAML(struct {
		B int    `json:"b"`
		A []item `json:"a"`
	}{1, []item{{"w", []int{1, 2}}}})
	if err != nil || string(b) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b, want)
	}
}
