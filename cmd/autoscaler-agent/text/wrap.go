package text

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// terminalColumns is the width of a terminal that does not tell its own in COLUMNS.
const terminalColumns = 100

// wrap breaks text at spaces into lines of at most width characters, each but the
// first after indent; a width that is not positive breaks nothing.
func wrap(text string, width int, indent string) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// Columns is the width of the terminal that out is, 0 where it is none.
func Columns(out io.Writer) int {
	if o, ok := out.(*Output); ok {
		out = o.To
	}
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	if st, err := f.Stat(); err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= 60 {
		return n
	}
	return terminalColumns
}
