package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/renderflags"
	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

const renderExamples = `  # The join information that the running agent publishes, to a file that only
  # you can read
  autoscaler-agent userdata render -o worker.sh

  # A group for batch work
  autoscaler-agent userdata render --label example.net/pool=batch \
      --taint example.net/dedicated=batch:NoSchedule -o batch.sh

  # For an image of Flatcar, in the format of Ignition
  autoscaler-agent userdata render --os flatcar --arch amd64 -o worker.ign

  # Without access to the internet
  autoscaler-agent userdata render --mirror https://mirror.example.net \
      --registry-mirror registry.k8s.io=https://mirror.example.net/v2 -o worker.sh

  # On AWS, without a secret in the user data
  autoscaler-agent userdata render --attest leader.example.net:6444 -o worker.sh

  # For servers of OpenStack: the agent puts a token of its own into each
  autoscaler-agent userdata render --cloud openstack -o /etc/autoscaler-agent/worker.sh

  # The same user data for another version of Kubernetes
  autoscaler-agent userdata render --from worker.sh --kubernetes-version v1.36.3 -o worker.sh

  # A new version of the launch template
  aws ec2 create-launch-template-version --launch-template-name workers \
      --source-version '$Latest' \
      --launch-template-data "{\"UserData\":\"$(base64 -w0 worker.sh)\"}"`

func userdataRenderCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "render",
		Short: "Render the user data of a launch template",
		Long: `Make the user data of a launch template: what a machine needs at its first boot to
install what is missing and to join the cluster.

The output holds the join token, or with --attest no secret at all: the machine gets its
token from the leader. The amounts that the kubelets reserve are those of
AUTOSCALER_KUBELET_* in the agent's own configuration (--env-file and the
environment), because the agent computes from them what a new machine can hold. A flag
with another value wins, with a warning.

With --from the settings are those that the user data in a file was rendered with, and
the programs that surround Kubernetes have this release's versions where no flag chose
others.`,
		Example:           renderExamples,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := renderflags.New(c, envFileFlag(c))
	var output string
	c.Flags().VarP((*flagvalue.File)(&output), "out", "o", "write to `file`, with mode 0600, instead of standard output")
	for name, values := range renderflags.Words() {
		words(c, name, values...)
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if why := f.Apart(); why != "" {
			return usagef(c, "%s", why)
		}
		script, differs, err := f.Render(c)
		for _, text := range differs {
			if err != nil {
				break // the mistake is what has to be read
			}
			fmt.Fprintf(c.ErrOrStderr(), "%s: warning: %s\n", c.CommandPath(), text)
		}
		switch {
		case err != nil && f.Typed(err):
			return misused("userdata render", renderflags.Named(c.Flags(), err))
		case err != nil:
		case output != "":
			_, err = atomicfile.Write(output, script, 0o600)
		default:
			_, err = c.OutOrStdout().Write(script)
		}
		if err != nil {
			return failed("userdata render", err)
		}
		return nil
	}
	return c
}
