package text

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// The colours of a terminal (ECMA-48 SGR).
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// table prints rows under their heads. The columns are aligned, two blanks apart, and no line
// ends with a blank. On a terminal the heads are bold.
func table(out io.Writer, heads []string, rows [][]string) {
	widths := make([]int, len(heads))
	for _, row := range append([][]string{heads}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&b, "%-*s  ", widths[i], cell)
		}
		return strings.TrimRight(b.String(), " ")
	}
	fmt.Fprintln(out, paint(out, bold, line(heads)))
	for _, row := range rows {
		fmt.Fprintln(out, line(row))
	}
}

// paint colours text on a terminal, unless NO_COLOR is set (no-color.org) or the terminal has no
// colours.
func paint(out io.Writer, colour, text string) string {
	if !Coloured(out) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Coloured tells whether out is a terminal that shows colours and whose user wants them.
func Coloured(out io.Writer) bool {
	return Columns(out) > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
