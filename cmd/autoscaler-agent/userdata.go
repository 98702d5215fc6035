package main

import "github.com/spf13/cobra"

func userdataCommand() *cobra.Command {
	c := parent(&cobra.Command{
		Use:   "userdata",
		Short: "Render and judge the workers' user data",
		Long: `Make what a machine is told at its first boot, and judge what somebody else wrote for
that purpose.`,
		Example: `  autoscaler-agent userdata render -o worker.sh
  autoscaler-agent userdata lint --cloud aws worker.sh`,
	})
	c.AddCommand(userdataRenderCommand(), userdataLintCommand(), userdataDownloadsCommand())
	return c
}
