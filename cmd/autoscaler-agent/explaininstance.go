package main

import (
	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

// instance explains how far a machine came, and why not further.
func (x explaining) instance(c *cobra.Command, id string) error {
	cfg, err := load(*x.envFile)
	if err != nil {
		return failed("configuration", err)
	}
	var known nojoin.Known
	answered, err := x.ask(c, "instance", id, &known)
	if err != nil {
		return err
	}
	stop := text.Progress(c.ErrOrStderr(), "reading the machine's console and its user data")
	if !answered {
		known = oneshot.KnownInstance(c.Context(), cfg, report.NewLogger("warning", c.ErrOrStderr()), id)
	}
	found := oneshot.ExplainInstance(c.Context(), cfg, known, id)
	stop()
	return printExplained(c.OutOrStdout(), *x.output, found, found.Found, text.Instance)
}
