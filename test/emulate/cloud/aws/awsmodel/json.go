package awsmodel

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

func (c *checker) json(a Answer, op operation) {
	if a.ContentType != "application/x-amz-json-1.1" {
		c.wrong("Content-Type", "is %q", a.ContentType)
	}
	var v any
	if err := json.Unmarshal(a.Body, &v); err != nil {
		c.wrong("", "parse JSON: %v", err)
		return
	}
	s := &shape{Type: "structure"}
	if op.Output != nil {
		s = c.api.Shapes[op.Output.Shape]
	}
	c.jsonValue(a.Action, v, s)
}

func (c *checker) jsonFailure(a Answer, op operation, known bool) {
	var v map[string]any
	if err := json.Unmarshal(a.Body, &v); err != nil {
		c.wrong("", "parse JSON: %v", err)
		return
	}
	for name := range v {
		if name != "__type" && strings.ToLower(name) != "message" {
			c.wrong("", "unknown member %s", name)
		}
	}
	code, _ := v["__type"].(string)
	c.code(a.Service, code[strings.LastIndex(code, "#")+1:], op, known)
}

func (c *checker) jsonValue(path string, v any, s *shape) {
	switch s.Type {
	case "structure":
		object, ok := v.(map[string]any)
		if !ok {
			c.wrong(path, "%T is not an object", v)
			return
		}
		for name, kid := range object {
			member, r := s.member(name)
			if member == "" {
				c.wrong(path, "unknown member %s", name)
				continue
			}
			c.jsonValue(path+"."+name, kid, c.api.Shapes[r.Shape])
		}
		for _, name := range s.Required {
			if _, ok := object[wireName(name, s.Members[name])]; !ok {
				c.wrong(path, "the required member %s is missing", name)
			}
		}
	case "list":
		list, ok := v.([]any)
		if !ok {
			c.wrong(path, "%T is not a list", v)
			return
		}
		for i, kid := range list {
			c.jsonValue(fmt.Sprintf("%s[%d]", path, i), kid, c.api.Shapes[s.Member.Shape])
		}
	case "map":
		object, ok := v.(map[string]any)
		if !ok {
			c.wrong(path, "%T is not an object", v)
			return
		}
		for name, kid := range object {
			c.jsonValue(path+"."+name, kid, c.api.Shapes[s.Value.Shape])
		}
	default:
		c.jsonScalar(path, v, s)
	}
}

func (c *checker) jsonScalar(path string, v any, s *shape) {
	ok := false
	switch s.Type {
	case "string", "blob":
		text, is := v.(string)
		ok = is && (len(s.Enum) == 0 || slices.Contains(s.Enum, text))
	case "integer", "long":
		n, is := v.(float64)
		ok = is && n == math.Trunc(n)
	case "float", "double", "timestamp":
		_, ok = v.(float64)
	case "boolean":
		_, ok = v.(bool)
	}
	if !ok {
		c.wrong(path, "%v (%T) is no %s", v, v, s.Type)
	}
}
