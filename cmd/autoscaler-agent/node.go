package main

import (
	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/rollout"
)

func nodeCommand() *cobra.Command {
	c := parent(&cobra.Command{
		Use:   "node",
		Short: "Ask for the replacement of a node, or bring back what was set on a deleted one",
		Long:  "Ask for the replacement of a node, or bring back what operators had set on a Node that the\nnodecleaner deleted.",
		Example: `  autoscaler-agent node replace worker-3
  autoscaler-agent node restore --list
  autoscaler-agent node restore ip-10-0-3-17.eu-west-1.compute.internal --dry-run`,
	})
	c.AddCommand(rollout.ReplaceCommand(shell), nodeRestoreCommand())
	return c
}
