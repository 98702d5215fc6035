package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/view"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

func versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Print the version of this binary, its commit with date, and the Go release that built it.",
		Example: `  autoscaler-agent version
  autoscaler-agent version --output json`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		v := view.Version{Info: version.Build(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
		out := c.OutOrStdout()
		if done, err := printData(out, *output, v); done {
			return err
		}
		fmt.Fprintf(out, "autoscaler-agent %s %s %s\n", v.Version, v.Go, v.Platform)
		if v.Commit != "" {
			fmt.Fprintf(out, "commit %s of %s\n", v.Commit, v.Date)
		}
		return nil
	}
	return c
}
