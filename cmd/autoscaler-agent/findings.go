package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/autoscaler-agent/autoscaler-agent/agent/doctor"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

// printFindings writes a table. On a terminal long texts are wrapped under their
// column; a pipe gets one line for each text, so that grep finds whole messages.
func printFindings(out io.Writer, findings []doctor.Finding) {
	width := text.Columns(out)
	about := 0
	for _, f := range findings {
		about = max(about, utf8.RuneCountInString(f.About))
	}
	about = min(about, 24)
	for _, f := range findings {
		head := fmt.Sprintf("%-7s  %-*s  ", f.Level, about, f.About)
		indent := strings.Repeat(" ", len("warning")+2+about+2)
		fmt.Fprintln(out, head+text.Wrap(f.Text, width-len(indent), indent))
		if f.Remedy != "" {
			fmt.Fprintln(out, indent+"-> "+text.Wrap(f.Remedy, width-len(indent)-3, indent+"   "))
		}
	}
}
