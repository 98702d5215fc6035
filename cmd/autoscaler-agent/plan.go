package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

func planCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Print what one round would do and why, changing nothing",
		Long: `Read the cluster and the cloud once and print what a round would do and why.
Nothing is changed and no Lease is taken.`,
		Example: `  autoscaler-agent plan
  autoscaler-agent plan --output json | jq '.actions[] | select(.kind == "grow")'
  autoscaler-agent plan --output yaml`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile, output := envFileFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load(*envFile)
		if err != nil {
			return failed("configuration", err)
		}
		snapshot, p, err := oneshot.Plan(c.Context(), cfg, report.NewLogger("warning", c.ErrOrStderr()))
		if err != nil {
			return failed("plan", err)
		}
		out := c.OutOrStdout()
		if done, err := printData(out, *output, planView{Data: p.Data(), Stale: snapshot.Stale}); done {
			return err
		}
		fmt.Fprintf(out, "seen: %d nodes, %d pods, %d groups\n", len(snapshot.Nodes), snapshot.PodCount(), len(snapshot.Groups))
		for _, action := range p.Actions {
			fmt.Fprintln(out, action)
		}
		for _, h := range p.Held {
			fmt.Fprintln(out, report.HeldText(h))
		}
		if len(p.Actions)+len(p.Held) == 0 {
			fmt.Fprintln(out, "nothing to do and nothing held")
		}
		return nil
	}
	return c
}

// planView is the plan with the state of its facts; docs/explain.md documents it.
type planView struct {
	decision.Data
	// Stale says why the Kubernetes facts may be old.
	Stale string `json:"stale,omitempty"`
}
