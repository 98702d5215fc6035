package aws

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// page cuts one page out of a list. Tokens are opaque to callers and bound to
// the action, so that a token of another list is refused as AWS refuses it.
func page[T any](c *Cloud, r *request, action string, items []T, maxParam string, def, most int) (out []T, next string, err *apiError) {
	size, err := r.p.number(maxParam, def)
	if err != nil {
		return nil, "", err
	}
	if size < 1 {
		size = def
	}
	return cut(c, r, action, items, r.p.str("NextToken"), min(size, most))
}

func cut[T any](c *Cloud, r *request, action string, items []T, token string, size int) (out []T, next string, err *apiError) {
	if r.empty {
		return nil, "", nil
	}
	if c.opts.MaxPage > 0 {
		size = min(size, c.opts.MaxPage)
	}
	if r.short {
		return items[:len(items)/2], "", nil
	}
	from := 0
	if token != "" {
		raw, _ := base64.RawURLEncoding.DecodeString(token)
		offset, ok := strings.CutPrefix(string(raw), action+":")
		from, _ = strconv.Atoi(offset)
		if !ok || from < 0 {
			return nil, "", fail("InvalidNextToken", "The token '"+token+"' is invalid.")
		}
	}
	from = min(from, len(items))
	to := min(from+size, len(items))
	if to < len(items) {
		next = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s:%d", action, to))
	}
	return items[from:to], next, nil
}

// filter is one Filter of a Describe call: any of the values will do.
type filter struct {
	name   string
	values []string
}

// filters reads the filters of a request; the list's name and its values'
// name differ between EC2 and Auto Scaling.
func filters(p *params, list, values string) []filter {
	var out []filter
	for _, f := range p.list(list) {
		out = append(out, filter{f.str("Name"), f.strs(values)})
	}
	return out
}

// any says whether a value is among the filter's, with * and ? as wildcards.
func (f filter) any(value string) bool {
	for _, v := range f.values {
		if v == value || wildcard(v, value) {
			return true
		}
	}
	return false
}

// tags says whether a tag filter ("tag:KEY", "tag-key", "tag-value") holds;
// ok is false for other filters.
func (f filter) tags(tags map[string]string) (match, ok bool) {
	if key, is := strings.CutPrefix(f.name, "tag:"); is {
		v, has := tags[key]
		return has && f.any(v), true
	}
	for k, v := range tags {
		if f.name == "tag-key" && f.any(k) || f.name == "tag-value" && f.any(v) {
			return true, true
		}
	}
	return false, f.name == "tag-key" || f.name == "tag-value"
}

// wildcard matches * and ? as EC2 filters do; unlike path.Match, * also
// matches slashes, which tag keys are full of.
func wildcard(pattern, s string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '*':
			for i := 0; i <= len(s); i++ {
				if wildcard(pattern[1:], s[i:]) {
					return true
				}
			}
			return false
		case '?':
			if s == "" {
				return false
			}
		default:
			if s == "" || s[0] != pattern[0] {
				return false
			}
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

func badFilter(name string) *apiError {
	return fail("InvalidParameterValue", "The filter '"+name+"' is invalid")
}
