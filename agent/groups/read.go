package groups

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
	"github.com/autoscaler-agent/autoscaler-agent/internal/quantity"
)

// reader walks a document and collects every mistake with its place.
type reader struct {
	lines places
	errs  []error
}

func (r *reader) bad(at, format string, args ...any) {
	r.errs = append(r.errs, Mistake{Line: r.lines.line(at), Field: at, Text: fmt.Sprintf(format, args...)})
}

// wrongAt tells whether a field has a mistake already.
func (r *reader) wrongAt(at string) bool {
	return slices.ContainsFunc(r.errs, func(err error) bool {
		m, ok := errors.AsType[Mistake](err)
		return ok && m.Field == at
	})
}

// document turns YAML into JSON's own values; numbers keep their digits. A key that
// stands twice is an error.
func document(data []byte) (any, error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, syntaxError(err)
	}
	var doc any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return nil, syntaxError(err)
	}
	return doc, nil
}

// fields reads the fields of one object.
type fields map[string]func(at string, v any)

// into reads a field into to.
func into[T any](to *T, read func(at string, v any) T) func(at string, v any) {
	return func(at string, v any) { *to = read(at, v) }
}

// given is into of a field that may be left out: to stays nil where the value is wrong.
func given[T any](to **T, read func(at string, v any) (T, bool)) func(at string, v any) {
	return func(at string, v any) {
		if value, ok := read(at, v); ok {
			*to = &value
		}
	}
}

// parsed is into of a text with a form of its own.
func parsed[T any](r *reader, to *T, parse func(string) (T, error)) func(at string, v any) {
	return func(at string, v any) {
		if text, ok := r.text(at, v); ok {
			var err error
			if *to, err = parse(text); err != nil {
				r.bad(at, "%v", err)
			}
		}
	}
}

// items is into of a list.
func items[T any](r *reader, to *[]T, read func(at string, v any) T) func(at string, v any) {
	return func(at string, v any) { r.each(at, v, func(at string, v any) { *to = append(*to, read(at, v)) }) }
}

// refused is a field that people expect and that does not belong here; words say where
// it does.
func (r *reader) refused(words string) func(at string, v any) {
	return func(at string, _ any) { r.bad(at, "%s", words) }
}

// object reads a mapping; a field that is not known is named with the nearest one.
func (r *reader) object(at string, v any, known fields) {
	if v == nil {
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		r.bad(at, "write a mapping (name: value), not %s", kind(v))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		place := join(at, key)
		if read := known[key]; read != nil {
			read(place, m[key])
			continue
		}
		names := slices.Sorted(maps.Keys(known))
		if near := nearest(key, names); near != "" {
			r.bad(place, "no such field: did you mean %s?", near)
		} else {
			r.bad(place, "no such field: known are %s", strings.Join(names, ", "))
		}
	}
}

// each reads a list.
func (r *reader) each(at string, v any, read func(at string, v any)) {
	if v == nil {
		return
	}
	list, ok := v.([]any)
	if !ok {
		r.bad(at, "write a list (- item), not %s", kind(v))
		return
	}
	for i, item := range list {
		read(fmt.Sprintf("%s[%d]", at, i), item)
	}
}

// entries reads a mapping with names of the operator's own.
func (r *reader) entries(at string, v any, read func(at, key string, v any)) {
	if v == nil {
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		r.bad(at, "write a mapping (name: value), not %s", kind(v))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		read(join(at, key), key, m[key])
	}
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case bool, json.Number:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%q", v)
}

// text takes a string or a number as it is written.
func (r *reader) text(at string, v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	if _, boolean := v.(bool); boolean {
		r.bad(at, "write a text, not %s: YAML reads n, no and off as false, y, yes and on as true, where no quotes are around them", kind(v))
	} else {
		r.bad(at, "write a text, not %s", kind(v))
	}
	return "", false
}

func (r *reader) number(at string, v any, least float64, example string) (float64, bool) {
	if n, ok := v.(json.Number); ok {
		if f, err := n.Float64(); err == nil && f >= least {
			return f, true
		}
	}
	r.bad(at, "%s is no number of %g or more: write for example %s", kind(v), least, example)
	return 0, false
}

func (r *reader) whole(at string, v any, least int) (int, bool) {
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil && i >= int64(least) && i <= 1<<31 {
			return int(i), true
		}
	}
	r.bad(at, "%s is no whole number of %d or more", kind(v), least)
	return 0, false
}

func (r *reader) share(at string, v any) *float64 {
	f, ok := r.number(at, v, 0, "0.5")
	if ok && f > 1 {
		r.bad(at, "%g is above 1: write a fraction, for example 0.5", f)
		ok = false
	}
	if !ok {
		return nil
	}
	return &f
}

func (r *reader) duration(at string, v any) *time.Duration {
	if s, ok := v.(string); ok {
		if d, err := time.ParseDuration(s); err == nil && d >= 0 {
			return &d
		}
	}
	r.bad(at, "%s is no time: write for example 90s, 10m or 1h30m", kind(v))
	return nil
}

// neverOr reads a time of least or more; zero switches off what it is for.
func (r *reader) neverOr(at string, v any, least time.Duration) *time.Duration {
	d := r.duration(at, v)
	if d != nil && *d > 0 && *d < least {
		r.bad(at, "%s is too short: write %s or more, or 0s for never", *d, least)
	}
	return d
}

func (r *reader) yes(at string, v any) (value, ok bool) {
	if value, ok = v.(bool); !ok {
		r.bad(at, "write true or false, not %s", kind(v))
	}
	return value, ok
}

// quantity reads an amount; cpu is counted in thousandths, all else in whole units,
// rounded down.
func (r *reader) quantity(at, name string, v any) (int64, bool) {
	s, ok := r.text(at, v)
	if !ok {
		return 0, false
	}
	n, err := quantity.Parse(name, s)
	if err != nil {
		r.bad(at, "%q: %v", s, err)
		return 0, false
	}
	if counted := name == "pods" || strings.Contains(name, "/"); counted && strings.ContainsAny(s, ".munp") {
		r.bad(at, "%q is no whole number: %s are counted, write for example 4", s, name)
		return 0, false
	}
	if bytes := name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-"); bytes && n > 0 && n < leastBytes {
		r.bad(at, "%q are %d bytes: write the unit, for example %sGi", s, n, strings.TrimRight(s, "mkKMGi"))
		return 0, false
	}
	return n, true
}

// leastBytes is less memory than any machine or pod has: a smaller number lacks its unit.
const leastBytes = 1 << 20

// resourceNames are those without a domain, and the words that people write for them.
var resourceNames = map[string]string{
	"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeral-storage", "pods": "pods",
	"mem": "memory", "ram": "memory", "cores": "cpu", "cpus": "cpu", "storage": "ephemeral-storage", "disk": "ephemeral-storage",
	"gpu": "nvidia.com/gpu", "gpus": "nvidia.com/gpu",
}

// resource tells whether name is a resource's.
func (r *reader) resource(at, name string) bool {
	if resourceNames[name] == name || strings.HasPrefix(name, "hugepages-") {
		return true
	}
	if domain, _, extended := strings.Cut(name, "/"); extended {
		if nodespec.Resource(name) != nil || domain == "kubernetes.io" {
			r.bad(at, "%q is no name of an extended resource: write for example nvidia.com/gpu", name)
			return false
		}
		return true
	}
	meant := resourceNames[strings.ToLower(name)]
	if meant == "" {
		meant = nearest(name, slices.Sorted(maps.Keys(resourceNames)))
	}
	if meant != "" {
		r.bad(at, "no such resource: did you mean %s?", meant)
	} else {
		r.bad(at, "no such resource: known are cpu, memory, ephemeral-storage, pods and extended resources such as nvidia.com/gpu")
	}
	return false
}

// label judges a label's key and value as the API server does.
func (r *reader) label(at, key, value string) {
	if err := nodespec.Label(key, value); err != nil {
		r.bad(at, "%v", err)
	}
}

// wrong is everything that was wrong, joined, in the order of the file; nil when nothing was.
func (r *reader) wrong() error {
	slices.SortStableFunc(r.errs, func(a, b error) int {
		one, _ := errors.AsType[Mistake](a)
		other, _ := errors.AsType[Mistake](b)
		return cmp.Compare(one.Line, other.Line)
	})
	return errors.Join(r.errs...)
}

// nearest is the name that key was likely meant to be; empty: none is near.
func nearest(key string, names []string) string {
	best, distance := "", max(2, len(key)/3)+1
	for _, name := range names {
		if len(key) > 2 && strings.HasPrefix(strings.ToLower(name), strings.ToLower(key)) {
			return name
		}
	}
	for _, name := range names {
		if d := Edits(strings.ToLower(key), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// comparable is the longest name that Edits compares: its cost is the product of the lengths.
const comparable = 200

// Edits is Levenshtein's distance: by how many letters two names differ. A name that is too long
// to be a mistyped one differs in every letter.
func Edits(a, b string) int {
	if len(a) > comparable || len(b) > comparable {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
