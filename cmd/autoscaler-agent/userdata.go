package main

import "github.com/spf13/cobra"

func userdataCommand() *cobra.Command {
	c := parent(&cobra.Command{
		Use:   "userdata",
		Short: "Render the workers' user data",
		Long: `Make the user data of a launch template: a shell script that installs what is missing
and joins the cluster.`,
		Example: `  autoscaler-agent userdata render -o worker.sh`,
	})
	c.AddCommand(userdataRenderCommand())
	return c
}
