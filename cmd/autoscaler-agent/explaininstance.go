package main

import (
	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
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
	text.Instance(c.OutOrStdout(), found)
	return nil
}
