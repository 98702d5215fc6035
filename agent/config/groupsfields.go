package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// GroupsField is one field of groups.yaml.
type GroupsField struct {
	Path  string // "groups.NAME.price", "headroom[].name"
	Type  string // of JSON
	About string
}

// groupsFields lists the fields of groups.yaml, as GroupsSchema has them.
func groupsFields() []GroupsField {
	var root part
	if err := json.Unmarshal([]byte(GroupsSchema()), &root); err != nil {
		panic(err) // the schema is of this package
	}
	return root.fields("")
}

// part is what a field needs of a JSON schema.
type part struct {
	Description string
	Type        any
	Enum        []any
	Properties  map[string]part
	Additional  json.RawMessage `json:"additionalProperties"`
	Items       *part
}

func (p part) fields(path string) (out []GroupsField) {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		f, at := p.Properties[name], strings.TrimPrefix(path+"."+name, ".")
		out = append(append(out, GroupsField{at, f.kind(), f.Description}), f.fields(at)...)
	}
	var values part
	if json.Unmarshal(p.Additional, &values) == nil { // not where it is true or false
		out = append(out, values.fields(path+".NAME")...)
	}
	if p.Items != nil {
		out = append(out, p.Items.fields(path+"[]")...)
	}
	return out
}

// kind is the type for a person.
func (p part) kind() string {
	var words []string
	switch t := p.Type.(type) {
	case string:
		words = []string{t}
	case []any:
		for _, v := range t {
			if v != "null" {
				words = append(words, fmt.Sprint(v))
			}
		}
	}
	for _, v := range p.Enum {
		words = append(words, fmt.Sprint(v))
	}
	if words == nil {
		return "any"
	}
	return strings.Join(words, " or ")
}
