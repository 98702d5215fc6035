package text

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
)

// CSR prints how a certificate request is judged.
func CSR(out io.Writer, x csrsigner.Explanation) {
	p := page{out: out, width: Columns(out), at: x.At}
	p.line("", "csr %s: %s: %s [%s]", x.Name, does[x.Do], x.Why, x.Rule)
	if x.Settled != "" {
		p.line("  ", "it is %s already; below is how it would be judged now", x.Settled)
	}
	p.line("  ", "%s asks for Node %s by signer %s, %s", x.Requester, x.Node, x.Signer, p.when(x.Created))
	p.csrFacts(x)
	p.head("rules, in order")
	signs := map[string]string{"passed": "yes", "stopped": "NO ", "does not apply": " - ", "not reached": " . "}
	for _, s := range x.Steps {
		text := s.What
		if s.Why != "" {
			text += ": " + s.Why
		}
		p.line("  ", "%s  %-4s %s", signs[s.Result], s.Rule, text)
	}
}

// does is the effect of a verdict.
var does = map[string]string{"leave": "left alone", "later": "held", "approve": "approved", "deny": "denied"}

func (p page) csrFacts(x csrsigner.Explanation) {
	p.head("facts")
	row := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.TrimSpace(text) != "" {
			p.line("  ", "%-20s %s", name, text)
		}
	}
	f := x.Facts
	list := func(name string, values []string) { row(name, "%s", strings.Join(values, ", ")) }
	list("requested names", f.AskedNames)
	list("requested addresses", f.AskedAddresses)
	row("key", "%s", f.Key)
	row("Node's provider ID", "%s", f.ProviderID)
	row("younger request", "%s", f.Newer)
	if i := f.Instance; i != nil {
		row("instance", "%s of group %s, %s, launched %s", i.ID, i.Group, i.Phase, p.when(i.Launched))
		row("cloud read at", "%s", i.ReadAt.UTC().Format(time.RFC3339))
		list("allowed Node names", i.NodeNames)
		list("instance's names", i.Names)
		list("instance's addresses", i.Addresses)
	}
	list("this machine", append(append([]string{}, f.SelfNames...), f.SelfAddresses...))
	list("control plane's list", f.Listed)
	if f.Issued != nil {
		row("earlier certificate", "since %s, by request %s", f.Issued.At.UTC().Format(time.RFC3339), f.Issued.CSR)
	}
}
