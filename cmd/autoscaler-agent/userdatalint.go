package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint"
)

func userdataLintCommand() *cobra.Command {
	var o lint.Options
	c := &cobra.Command{
		Use:   "lint FILE",
		Short: "Judge user data: size, secrets, syntax, versions",
		Long: `Judge a file of user data of any origin: bytes against the cloud's limit, secrets,
joins at every boot, kubeadm's API against the version of Kubernetes, the syntax of
shell scripts, the form of cloud-config, MIME and Ignition, downloads that nothing
checks. A dash reads standard input. Nothing is executed. The exit code is 1 when a
machine would not join or a secret would be given away.`,
		Example: `  autoscaler-agent userdata lint --cloud aws --os flatcar worker.sh`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(c, "name one file, or - for standard input")
			}
			return nil
		},
	}
	c.Flags().StringVar(&o.Cloud, "cloud", "", "`cloud` whose limit of bytes counts")
	c.Flags().StringVar(&o.System, "os", "", "operating `system` of the image")
	c.Flags().StringVar(&o.Version, "kubernetes-version", "", "`version` of Kubernetes, for example v1.36.3 (default the one that the user data names)")
	complete(c, "cloud", fixed(userdata.Clouds()...))
	complete(c, "os", fixed(userdata.Systems()...))
	c.RunE = func(c *cobra.Command, args []string) error {
		data, err := readFileOrInput(c, args[0])
		if err != nil {
			return failed("userdata lint", err)
		}
		failing := 0
		found := lint.Check(data, o)
		for _, f := range found {
			kind := "warning"
			if f.Fails {
				kind = "fault"
				failing++
			}
			place := args[0]
			if f.Line > 0 {
				place = fmt.Sprintf("%s:%d", place, f.Line)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s %s: %s\n", place, f.Rule, kind, f.Text)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %d bytes, %d faults, %d warnings\n", args[0], len(data), failing, len(found)-failing)
		if failing > 0 {
			return failed("userdata lint", errors.New("the user data has faults"))
		}
		return nil
	}
	return c
}

func readFileOrInput(c *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(c.InOrStdin())
	}
	return os.ReadFile(file)
}
