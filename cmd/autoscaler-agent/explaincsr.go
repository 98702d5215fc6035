package main

import (
	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
)

// csr explains how a certificate request is judged.
func (x explaining) csr(c *cobra.Command, name string) error {
	var found csrsigner.Explanation
	answered, err := x.ask(c, "csr", name, &found)
	if err != nil {
		return err
	}
	if !answered {
		cfg, err := load(*x.envFile)
		if err != nil {
			return failed("configuration", err)
		}
		if found, err = oneshot.ExplainCSR(c.Context(), cfg, report.NewLogger("warning", c.ErrOrStderr()), name); err != nil {
			return failed("explain", err)
		}
	}
	out := c.OutOrStdout()
	done, err := printData(out, *x.output, found)
	if !done {
		text.CSR(out, found)
	}
	return err
}
