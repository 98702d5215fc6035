package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/joinfile"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/renderflags"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/view"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint"
)

func userdataLintCommand() *cobra.Command {
	var o lint.Options
	var server joinfile.Server
	var joinFile string
	c := &cobra.Command{
		Use:   "lint FILE",
		Short: "Judge user data: size, secrets, syntax, versions",
		Long: `Judge a file of user data of any origin: bytes against the cloud's limit, secrets,
joins at every boot, the kubelet's version against the API server's, kubeadm's
configuration against its version, the values of a join, the syntax of shell scripts,
what cloud-init or Ignition would refuse, downloads that nothing checks. A dash reads
standard input. Nothing is executed. The exit code is 1 when a machine would not join
or a secret would be given away.`,
		Example: `  autoscaler-agent userdata lint --cloud aws --os flatcar worker.sh
  autoscaler-agent userdata lint --output json worker.sh | jq '.findings[] | select(.fails)'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(c, "name one file, or - for standard input")
			}
			return nil
		},
	}
	c.Flags().Var(flagvalue.OneOf(&o.Cloud, "cloud", userdata.Clouds()...), "cloud", "`cloud` whose limit of bytes counts")
	c.Flags().Var(flagvalue.OneOf(&o.System, "system", userdata.Systems()...), "os", "operating `system` of the image")
	c.Flags().Var((*flagvalue.Version)(&o.Version), "kubernetes-version", "`version` of Kubernetes, for example v1.36.3 (default the one that the user data names)")
	server.Declare(c)
	c.Flags().StringVar(&joinFile, "join-file", joinfile.Default, "`file` that the agent publishes, where it is: its JOIN_KUBERNETES_VERSION is the API server's version")
	output := outputFlag(c)
	words(c, "cloud", userdata.Clouds()...)
	words(c, "os", userdata.Systems()...)
	c.RunE = func(c *cobra.Command, args []string) error {
		data, err := renderflags.ReadInput(c, args[0])
		if err == nil {
			o.APIServerVersion, err = server.VersionBeside(c.Context(), joinFile)
		}
		if err != nil {
			return failed("userdata lint", err)
		}
		v := view.LintOf(args[0], data, o)
		done, err := printData(c.OutOrStdout(), *output, v)
		if err != nil {
			return err
		}
		if !done {
			text.Lint(c.OutOrStdout(), v)
		}
		if v.Faults > 0 {
			return failed("userdata lint", errors.New("the user data has faults"))
		}
		return nil
	}
	return c
}
