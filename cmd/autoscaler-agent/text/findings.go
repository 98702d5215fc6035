package text

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/autoscaler-agent/autoscaler-agent/agent/doctor"
)

var levelColours = map[doctor.Level]string{doctor.LevelOK: green, doctor.LevelWarning: yellow, doctor.LevelError: red}

// Findings writes a table. On a terminal long texts are wrapped under their
// column and the levels are coloured; a pipe gets one line for each text, so that grep
// finds whole messages.
func Findings(out io.Writer, findings []doctor.Finding) {
	width := Columns(out)
	about := 0
	for _, f := range findings {
		about = max(about, utf8.RuneCountInString(f.About))
	}
	about = min(about, 24)
	for _, f := range findings {
		level := paint(out, levelColours[f.Level], fmt.Sprintf("%-7s", f.Level))
		head := fmt.Sprintf("%s  %-*s  ", level, about, f.About)
		indent := strings.Repeat(" ", len("warning")+2+about+2)
		fmt.Fprintln(out, head+wrap(f.Text, width-len(indent), indent))
		if f.Remedy != "" {
			fmt.Fprintln(out, indent+"-> "+wrap(f.Remedy, width-len(indent)-3, indent+"   "))
		}
	}
}
