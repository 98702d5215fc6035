package page

import (
	"fmt"
	"html"
	"strings"
	"unicode"
)

// markup is text of this package that is written as it is.
type markup string

// document is the page as it grows.
type document struct {
	b       strings.Builder
	args    []any
	boxes   int      // that were drawn
	columns []string // of the table that is being written
}

// put writes a format of this package. Its verbs are %s; every argument that is no number
// and no markup is escaped.
func (w *document) put(format string, args ...any) {
	w.args = w.args[:0]
	for _, a := range args {
		switch a := a.(type) {
		case int:
			w.args = append(w.args, fmt.Sprint(a))
		case markup:
			w.args = append(w.args, string(a))
		case string:
			w.args = append(w.args, escape(a))
		default:
			panic(fmt.Sprintf("page: a %T is written", a)) // a mistake of this package, in every test
		}
	}
	fmt.Fprintf(&w.b, format, w.args...)
}

// escape makes a text of anybody harmless in HTML text and in a quoted attribute: what
// has a meaning in HTML is written as a reference, and what cannot be seen as a mark.
func escape(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r): // bidirectional overrides, too
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar))))
}
