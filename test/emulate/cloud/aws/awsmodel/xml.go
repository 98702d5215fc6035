package awsmodel

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// element is a parsed XML element.
type element struct {
	name, space string
	chars       string
	kids        []*element
}

func parse(body []byte) (*element, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	var stack []*element
	var root *element
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("parse XML: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local, space: t.Name.Space}
			if len(stack) > 0 {
				parent := stack[len(stack)-1]
				parent.kids = append(parent.kids, e)
			} else {
				root = e
			}
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) > 0 {
				stack[len(stack)-1].chars += string(t)
			}
		}
	}
	if root == nil {
		return nil, errors.New("parse XML: no element")
	}
	return root, nil
}

// only returns the child of this name if there is exactly one.
func (e *element) only(name string) *element {
	var found *element
	for _, k := range e.kids {
		if k.name == name {
			if found != nil {
				return nil
			}
			found = k
		}
	}
	return found
}

func (e *element) text(name string) string {
	if k := e.only(name); k != nil {
		return k.chars
	}
	return ""
}

func (c *checker) xml(a Answer, op operation) {
	root, err := parse(a.Body)
	if err != nil {
		c.wrong("", "%v", err)
		return
	}
	c.namespace(root)
	if c.api.Metadata.Protocol == "ec2" {
		if root.name != a.Action+"Response" {
			c.wrong(root.name, "the element should be %sResponse", a.Action)
		}
		if root.text("requestId") == "" {
			c.wrong(root.name, "has no requestId")
		}
		s, beside := &shape{Type: "structure"}, []string{"requestId"}
		if op.Output != nil {
			s = c.api.Shapes[op.Output.Shape]
		} else {
			// EC2 says <return>true</return> where the model has nothing.
			beside = append(beside, "return")
		}
		c.structure(root.name, root, s, beside...)
		return
	}
	if op.Output == nil {
		c.exactly(root, a.Action+"Response", "ResponseMetadata")
	} else {
		c.exactly(root, a.Action+"Response", op.Output.ResultWrapper, "ResponseMetadata")
		if result := root.only(op.Output.ResultWrapper); result != nil {
			c.structure(result.name, result, c.api.Shapes[op.Output.Shape])
		}
	}
	if meta := root.only("ResponseMetadata"); meta == nil || meta.text("RequestId") == "" {
		c.wrong(root.name, "has no ResponseMetadata with a RequestId")
	}
}

// structure checks the children of an element against a structure's members.
// Names beside are allowed too.
func (c *checker) structure(path string, e *element, s *shape, beside ...string) {
	if strings.TrimSpace(e.chars) != "" {
		c.wrong(path, "has text %q beside its elements", strings.TrimSpace(e.chars))
	}
	seen := map[string]int{}
	for _, k := range e.kids {
		seen[k.name]++
		member, r := s.member(k.name)
		if member == "" {
			allowed := false
			for _, b := range beside {
				allowed = allowed || b == k.name
			}
			if !allowed {
				c.wrong(path, "unknown element %s", k.name)
			}
			continue
		}
		target := c.api.Shapes[r.Shape]
		if target.Type == "list" && target.Flattened {
			c.value(path+"/"+k.name, k, c.api.Shapes[target.Member.Shape])
			continue
		}
		if seen[k.name] > 1 {
			c.wrong(path, "element %s comes more than once", k.name)
		}
		c.value(path+"/"+k.name, k, target)
	}
	for _, name := range s.Required {
		r := s.Members[name]
		if wire := wireName(name, r); seen[wire] == 0 {
			c.wrong(path, "the required element %s is missing", wire)
		}
	}
}

func wireName(name string, r ref) string {
	if r.LocationName != "" {
		return r.LocationName
	}
	return name
}

// member finds the member that is called name on the wire.
func (s *shape) member(name string) (string, ref) {
	for m, r := range s.Members {
		if wireName(m, r) == name {
			return m, r
		}
	}
	return "", ref{}
}

func (c *checker) value(path string, e *element, s *shape) {
	switch s.Type {
	case "structure":
		c.structure(path, e, s)
	case "list":
		name := "member"
		if s.Member.LocationName != "" {
			name = s.Member.LocationName
		}
		if strings.TrimSpace(e.chars) != "" {
			c.wrong(path, "has text %q beside its members", strings.TrimSpace(e.chars))
		}
		for i, k := range e.kids {
			if k.name != name {
				c.wrong(path, "a member is called %s, not %s", k.name, name)
				continue
			}
			c.value(fmt.Sprintf("%s[%d]", path, i), k, c.api.Shapes[s.Member.Shape])
		}
	case "map":
		c.wrong(path, "maps in XML are not checked, so none may be sent")
	default:
		if len(e.kids) > 0 {
			c.wrong(path, "a %s has elements", s.Type)
			return
		}
		c.scalar(path, e.chars, s)
	}
}
