package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/renderflags"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/view"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

func userdataDownloadsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "downloads",
		Short: "List the files that machines may fetch, for a mirror",
		Long: `List every file that machines with such user data may fetch: its SHA-256 and its path
below a mirror, which is the publisher's address without https://. Nothing is fetched.
The table is what sha256sum -c reads; json and yaml have the publisher's address, too.`,
		Example: `  # The form of sha256sum -c, for a directory that a mirror serves
  autoscaler-agent userdata downloads --kubernetes-version v1.36.3 --arch amd64

  # The addresses alone
  autoscaler-agent userdata downloads --kubernetes-version v1.36.3 --output json | jq -r '.[].url'`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := renderflags.NewDownloads(c)
	output := outputFlag(c)
	words(c, "arch", userdata.Arches...)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.Version == "" {
			return usagef(c, "give --kubernetes-version, for example --kubernetes-version v1.36.3")
		}
		if err := f.ReadFiles(); err != nil {
			return failed("userdata downloads", err)
		}
		list, err := f.Downloads()
		if err != nil {
			return misused("userdata downloads", renderflags.Named(c.Flags(), err))
		}
		if done, err := printData(c.OutOrStdout(), *output, view.Downloads(list)); done || err != nil {
			return err
		}
		for _, d := range list {
			fmt.Fprintf(c.OutOrStdout(), "%s  %s\n", d.SHA256, d.Path)
		}
		return nil
	}
	return c
}
