package text

import (
	"fmt"
	"io"

	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/view"
)

// Lint prints the findings as compilers do, so that editors find the lines.
func Lint(out io.Writer, v view.Lint) {
	for _, f := range v.Findings {
		kind := "warning"
		if f.Fails {
			kind = "fault"
		}
		place := v.File
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		fmt.Fprintf(out, "%s: %s %s: %s\n", place, f.Rule, kind, f.Text)
	}
	fmt.Fprintf(out, "%s: %d bytes, %d faults, %d warnings", v.File, v.Bytes, v.Faults, len(v.Findings)-v.Faults)
	if v.APIServerVersion != "" {
		fmt.Fprintf(out, ", for an API server of %s", v.APIServerVersion)
	}
	fmt.Fprintln(out)
}
