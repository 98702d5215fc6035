package aws

import (
	"net/url"
	"sort"
	"strconv"
	"strings"
)

// params is one level of a query-protocol request. "Filter.1.Value.2=x"
// becomes a tree, so that handlers ask for members by name and lists come
// back in their numeric order whatever the order on the wire.
type params struct {
	value string
	kids  map[string]*params
}

func parseParams(form url.Values) *params {
	root := &params{}
	for name, values := range form {
		if len(values) == 0 {
			continue
		}
		at := root
		for _, part := range strings.Split(name, ".") {
			if at.kids == nil {
				at.kids = map[string]*params{}
			}
			next := at.kids[part]
			if next == nil {
				next = &params{}
				at.kids[part] = next
			}
			at = next
		}
		at.value = values[0]
	}
	return root
}

// at walks a dotted path. It returns nil where nothing was sent; every method
// of params accepts nil.
func (p *params) at(path string) *params {
	for _, part := range strings.Split(path, ".") {
		if p == nil {
			return nil
		}
		p = p.kids[part]
	}
	return p
}

func (p *params) has(path string) bool { return p.at(path) != nil }

func (p *params) str(path string) string {
	if q := p.at(path); q != nil {
		return q.value
	}
	return ""
}

func (p *params) boolean(path string) bool { return strings.EqualFold(p.str(path), "true") }

// number reads an integer, or def where nothing was sent.
func (p *params) number(path string, def int) (int, *apiError) {
	s := p.str(path)
	if s == "" {
		return def, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fail("InvalidParameterValue", "Value ("+s+") for parameter "+path+" is invalid. Expected an integer.")
	}
	return n, nil
}

// list returns the members of a list in order. Both "X.1" (EC2) and
// "X.member.1" (AWS query) are understood.
func (p *params) list(path string) []*params {
	q := p.at(path)
	if q != nil && q.kids["member"] != nil {
		q = q.kids["member"]
	}
	if q == nil {
		return nil
	}
	type numbered struct {
		n int
		p *params
	}
	var found []numbered
	for name, kid := range q.kids {
		if n, err := strconv.Atoi(name); err == nil {
			found = append(found, numbered{n, kid})
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].n < found[j].n })
	out := make([]*params, len(found))
	for i, f := range found {
		out[i] = f.p
	}
	return out
}

func (p *params) strs(path string) []string {
	var out []string
	for _, kid := range p.list(path) {
		out = append(out, kid.value)
	}
	return out
}

// pattern turns a parameter name into what action tables list:
// "Filter.12.Value.1" becomes "Filter.N.Value.N".
func pattern(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if _, err := strconv.Atoi(part); err == nil && i > 0 {
			parts[i] = "N"
		}
	}
	return strings.Join(parts, ".")
}
