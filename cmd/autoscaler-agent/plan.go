package main

import (
	"context"
	"fmt"
	"io"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

func planCommand(ctx context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("plan", "Look at the cluster and the cloud once and print what a round would do and why.\nNothing is changed and no Lease is taken.", `  autoscaler-agent plan --env-file /etc/autoscaler-agent/agent.env
  autoscaler-agent plan --output json | jq '.actions[] | select(.kind == "grow")'
  autoscaler-agent plan --output yaml
`, errout)
	envFile, output := envFileFlag(fs), outputFlag(fs)
	if code, done := parse(fs, args, out, errout); done {
		return code
	}
	cfg, err := load(*envFile)
	if err != nil {
		return complain(errout, "configuration", err)
	}
	snapshot, p, err := agent.DryRound(ctx, cfg, report.NewLogger("warning", errout))
	if err != nil {
		return complain(errout, "plan", err)
	}
	if code, done := printData(out, *output, planView{PlanData: p.Data(), Stale: snapshot.Stale}); done {
		return code
	}
	fmt.Fprintf(out, "seen: %d nodes, %d pods, %d groups\n", len(snapshot.Nodes), snapshot.PodCount(), len(snapshot.Groups))
	if text := p.String(); text != "" {
		fmt.Fprint(out, text)
	} else {
		fmt.Fprintln(out, "nothing to do and nothing held")
	}
	return exitOK
}

// planView is the plan and what it was made of; docs/troubleshooting.md documents it.
type planView struct {
	agent.PlanData
	// Stale says why the Kubernetes facts may be old.
	Stale string `json:"stale,omitempty"`
}
