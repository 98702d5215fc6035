package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/autoscaler-agent/autoscaler-agent/agent/doctor"
)

// terminalColumns is the width of a terminal that does not tell its own in COLUMNS.
const terminalColumns = 100

// printFindings writes a table. On a terminal long texts are wrapped under their
// column; a pipe gets one line for each text, so that grep finds whole messages.
func printFindings(out io.Writer, findings []doctor.Finding) {
	width := columns(out)
	about := 0
	for _, f := range findings {
		about = max(about, utf8.RuneCountInString(f.About))
	}
	about = min(about, 24)
	for _, f := range findings {
		head := fmt.Sprintf("%-7s  %-*s  ", f.Level, about, f.About)
		indent := strings.Repeat(" ", len("warning")+2+about+2)
		fmt.Fprintln(out, head+wrap(f.Text, width-len(indent), indent))
		if f.Remedy != "" {
			fmt.Fprintln(out, indent+"-> "+wrap(f.Remedy, width-len(indent)-3, indent+"   "))
		}
	}
}

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

// columns is the width of the terminal that out is, 0 where it is none.
func columns(out io.Writer) int {
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
