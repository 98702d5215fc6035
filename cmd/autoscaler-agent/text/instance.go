package text

import (
	"fmt"
	"io"

	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
)

// Instance prints how far a machine came on its way to the cluster.
func Instance(out io.Writer, found oneshot.InstanceExplanation) {
	p := page{out: out, width: Columns(out)}
	p.line("", "instance %s: %s", found.Instance, found.Where)
	if found.Likely != "" {
		p.line("  ", "likely: %s", found.Likely)
	}
	if found.Remedy != "" {
		p.line("  ", "remedy: %s", found.Remedy)
	}
	if len(found.Marks) > 0 {
		p.head("boot phases")
	}
	for _, m := range found.Marks {
		fmt.Fprintf(p.out, "  %s\n", m.Text)
	}
}
