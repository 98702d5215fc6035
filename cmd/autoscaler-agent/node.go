package main

import "github.com/spf13/cobra"

func nodeCommand() *cobra.Command {
	c := parent(&cobra.Command{
		Use:   "node",
		Short: "Bring back what operators had set on a deleted Node",
		Long:  "Bring back what operators had set on a Node that the nodecleaner deleted.",
		Example: `  autoscaler-agent node restore --list
  autoscaler-agent node restore ip-10-0-3-17.eu-west-1.compute.internal --dry-run`,
	})
	c.AddCommand(nodeRestoreCommand())
	return c
}
