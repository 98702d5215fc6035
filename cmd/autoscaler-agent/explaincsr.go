package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// explainCSR asks the running agent how it judges a certificate request, or judges it
// from here where none runs.
func explainCSR(ctx context.Context, name, envFile, output string, socket *string, dry bool, out, errout io.Writer) int {
	var x agent.CSRExplanation
	if !dry {
		if err := socketOf(socket, envFile); err != nil {
			return complain(errout, "configuration", err)
		}
		err := ask(ctx, *socket, "/explain?"+url.Values{"kind": {"csr"}, "name": {name}}.Encode(), &x)
		switch {
		case err != nil && strings.Contains(err.Error(), "not found"):
			return complain(errout, "explain", err)
		case err != nil && !silent(err):
			return noAnswer(errout, *socket, err)
		case err != nil:
			fmt.Fprintf(errout, "no agent answers on %s: looking at the cluster and the cloud from here\n", *socket)
			dry = true
		}
	}
	if dry {
		cfg, err := load(envFile)
		if err != nil {
			return complain(errout, "configuration", err)
		}
		if x, err = agent.DryExplainCSR(ctx, cfg, report.NewLogger("warning", errout), name); err != nil {
			return complain(errout, "explain", err)
		}
	}
	if code, done := printData(out, output, x); done {
		return code
	}
	printCSR(page{out: out, width: columns(out), at: x.At}, x)
	return exitOK
}

func printCSR(p page, x agent.CSRExplanation) {
	p.line("", "csr %s: %s: %s [%s]", x.Name, does[x.Do], x.Why, x.Rule)
	if x.Settled != "" {
		p.line("  ", "it is %s already; what follows is how it would be judged now", x.Settled)
	}
	p.line("  ", "%s asks for Node %s by signer %s, %s", x.Requester, x.Node, x.Signer, p.when(x.Created))
	p.csrFacts(x)
	p.head("what must hold, in order")
	signs := map[string]string{"passed": "yes", "stopped": "NO ", "does not apply": " - ", "not reached": " . "}
	for _, s := range x.Steps {
		text := s.What
		if s.Why != "" {
			text += ": " + s.Why
		}
		p.line("  ", "%s  %-4s %s", signs[s.Result], s.Rule, text)
	}
}

// does says what a verdict does.
var does = map[string]string{"leave": "left alone", "later": "held", "approve": "approved", "deny": "denied"}

func (p page) csrFacts(x agent.CSRExplanation) {
	p.head("facts")
	row := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.TrimSpace(text) != "" {
			p.line("  ", "%-18s %s", name, text)
		}
	}
	f := x.Facts
	list := func(name string, values []string) { row(name, "%s", strings.Join(values, ", ")) }
	list("names asked for", f.AskedNames)
	list("addresses", f.AskedAddresses)
	row("key", "%s", f.Key)
	row("Node's machine", "%s", f.ProviderID)
	row("younger request", "%s", f.Newer)
	if i := f.Instance; i != nil {
		row("instance", "%s of group %s, %s, launched %s", i.ID, i.Group, i.Phase, p.when(i.Launched))
		row("cloud was read", "%s", i.ReadAt.UTC().Format(time.RFC3339))
		list("Node may be called", i.NodeNames)
		list("its names", i.Names)
		list("its addresses", i.Addresses)
	}
	list("this machine's", append(append([]string{}, f.SelfNames...), f.SelfAddresses...))
	if f.Issued != nil {
		row("has a certificate", "since %s, by request %s", f.Issued.At.UTC().Format(time.RFC3339), f.Issued.CSR)
	}
}
