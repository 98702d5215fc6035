package groups

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Mistake is one thing that is wrong in groups.yaml.
type Mistake struct {
	File  string // empty: not known
	Line  int    // 0: not known
	Field string // such as "groups.workers.price"; empty: the file as a whole
	Text  string // what is wrong, and what to write instead
}

// Error is "file:line: field: text", the form that editors and compilers have.
func (m Mistake) Error() string {
	out := m.Text
	if m.Field != "" {
		out = m.Field + ": " + out
	}
	switch {
	case m.Line > 0 && m.File != "":
		return fmt.Sprintf("%s:%d: %s", m.File, m.Line, out)
	case m.Line > 0:
		return fmt.Sprintf("line %d: %s", m.Line, out)
	case m.File != "":
		return m.File + ": " + out
	}
	return out
}

// named returns the first mistakes of err with the name of their file.
func named(err error, file string) error {
	errs := First(flatten(err), func(rest int) error { return Mistake{Text: fmt.Sprintf("and %d more mistakes", rest)} })
	for i, e := range errs {
		m, ok := errors.AsType[Mistake](e)
		if !ok {
			m = Mistake{Text: e.Error()}
		}
		m.File = file
		errs[i] = m
	}
	return errors.Join(errs...)
}

// mostFaults is how many faults of one text are told: a file of another kind has one in each line.
const mostFaults = 20

// First returns the first faults of a text, and one fault more that tells how many it leaves out.
func First(errs []error, more func(rest int) error) []error {
	if rest := len(errs) - mostFaults; rest > 0 {
		return append(errs[:mostFaults:mostFaults], more(rest))
	}
	return errs
}

func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// places are the lines of a document's fields, by the names that mistakes have.
type places map[string]int

// placesOf reads where each field stands. A second document is a mistake: only the first
// would be in force. A text that is no YAML has no places.
func placesOf(data []byte) (places, error) {
	out := places{}
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc yaml.Node
	if d.Decode(&doc) != nil || len(doc.Content) == 0 {
		return out, nil // document tells what is wrong
	}
	out.add("", doc.Content[0])
	var second yaml.Node
	switch err := d.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return out, syntaxError(err)
	case len(second.Content) > 0 && second.Content[0].Tag != "!!null":
		return out, Mistake{Line: second.Content[0].Line, Text: "a second document begins behind ---, and only one is read: put all into one"}
	}
	return out, nil
}

func (p places) add(at string, n *yaml.Node) {
	if _, known := p[at]; !known && at != "" {
		p[at] = n.Line
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := join(at, n.Content[i].Value)
			p[key] = n.Content[i].Line
			p.add(key, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			p.add(fmt.Sprintf("%s[%d]", at, i), item)
		}
	}
}

// line is that of a field, or of the nearest thing around it: a field that is missing has
// none, nor has one that an alias brings.
func (p places) line(field string) int {
	for field != "" {
		if n, ok := p[field]; ok {
			return n
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return 1
}

var yamlLine = regexp.MustCompile(`line (\d+): ([^\n]*)`)

// syntaxError takes the lines out of what the YAML reader says.
func syntaxError(err error) error {
	var errs []error
	for _, m := range yamlLine.FindAllStringSubmatch(err.Error(), -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		text := "it is no YAML: " + m[2]
		if strings.Contains(m[2], "cannot start any token") || strings.Contains(m[2], "tab character") {
			text += " (indent with blanks, not with tabs; put quotes around a value that begins with @, % or `)"
		}
		errs = append(errs, Mistake{Line: n, Text: text})
	}
	if len(errs) == 0 {
		text := err.Error()
		if at := strings.LastIndex(text, "yaml: "); at >= 0 {
			text = text[at+len("yaml: "):]
		}
		if strings.Contains(text, "unsupported value") { // of encoding/json
			return Mistake{Text: "a number is .nan or .inf: write a finite number"}
		}
		return Mistake{Text: "it is no YAML: " + text}
	}
	return errors.Join(errs...)
}
