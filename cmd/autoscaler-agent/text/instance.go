package text

import (
	"fmt"
	"io"

	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
)

// Instance prints why a machine has not joined, what is known of it, and its boot phases.
func Instance(out io.Writer, found oneshot.InstanceExplanation) {
	p := page{out: out, width: Columns(out)}
	p.line("", "instance %s: %s", found.Instance, found.Summary)
	if found.Remedy != "" {
		p.line("  ", "remedy: %s", found.Remedy)
	}
	p.head("what is known of it")
	for _, k := range found.Known {
		p.line("  ", "%s", k)
	}
	if len(found.Marks) > 0 {
		p.head("boot phases on its console")
	}
	for _, m := range found.Marks {
		fmt.Fprintf(p.out, "  %s\n", m.Text)
	}
}
