package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
)

// instance explains how far a machine came, by its console.
func (x explaining) instance(c *cobra.Command, id string) error {
	cfg, err := load(*x.envFile)
	if err != nil {
		return failed("configuration", err)
	}
	found, err := oneshot.ExplainInstance(c.Context(), cfg, id)
	if err != nil {
		return failed("explain", err)
	}
	if done, err := printData(c.OutOrStdout(), *x.output, found); done || err != nil {
		return err
	}
	p := page{out: c.OutOrStdout(), width: columns(c.OutOrStdout())}
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
	return nil
}
