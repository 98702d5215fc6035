package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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
	f := &userdataFlags{flags: c.Flags(), cloud: "aws"}
	f.flags.StringVar(&f.version, "kubernetes-version", "", "`version` of Kubernetes, for example v1.36.3")
	f.flags.StringVar(&f.arch, "arch", "", "`architecture` of the machines: amd64 or arm64 (default both)")
	f.downloadFlags()
	output := outputFlag(c)
	words(c, "arch", userdata.Arches...)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.version == "" {
			return usagef(c, "give --kubernetes-version, for example --kubernetes-version v1.36.3")
		}
		if err := f.readFiles(); err != nil {
			return failed("userdata downloads", err)
		}
		// The list depends on no cluster: these join values go nowhere.
		f.reserved = userdata.DefaultReservation()
		spec := f.spec(map[string]string{
			"JOIN_KUBERNETES_VERSION": f.version, "JOIN_ENDPOINT": "cluster:6443", "JOIN_CERT_HASH": "sha256:" + strings.Repeat("0", 64),
		}, "abcdef.0123456789abcdef")
		list, err := userdata.DownloadsOf(spec)
		if err != nil {
			return misused("userdata downloads", err)
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
