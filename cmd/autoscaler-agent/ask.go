package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/agentsocket"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

func socketFlag(c *cobra.Command) *string {
	return c.Flags().String("socket", "", "path of the running agent's `socket` (default AUTOSCALER_SOCKET, then the unit's)")
}

// socketOf fills in the configured socket where none was named. It needs no other setting.
func socketOf(socket *string, envFile string) {
	if *socket == "" {
		*socket = config.SocketPath(envFile)
	}
}

// noAnswer is the failure to ask the running agent.
func noAnswer(socket string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return failed("", fmt.Errorf("the agent's socket %s may not be opened: %w (use sudo, or join the group autoscaler-agent)", socket, err))
	}
	if refused, ok := errors.AsType[*agentsocket.Refused](err); ok {
		if refused.Unknown() {
			err = fmt.Errorf("the agent on %s does not answer this question (%s): %s", socket, refused.Text, otherVersion(cmp.Or(refused.Version, "unknown")))
		}
		return failed("", err)
	}
	if info, stat := os.Stat(socket); stat == nil && info.Mode().Type() != fs.ModeSocket {
		return failed("", fmt.Errorf("%s is no socket: leave --socket out, or name the agent's (AUTOSCALER_SOCKET)", socket))
	}
	return failed("", fmt.Errorf("no agent answers on %s: %w (systemctl status autoscaler-agent tells whether it runs; --socket names another)", socket, err))
}

// otherVersion says what to do about an agent that runs another program than this one.
func otherVersion(theirs string) string {
	return fmt.Sprintf("its version is %s, this program's is %s; systemctl restart autoscaler-agent starts the program that is installed", theirs, version.Current())
}

// lookFromHere says that a command goes on without the running agent.
func lookFromHere(errout io.Writer, socket string) {
	fmt.Fprintf(errout, "no agent answers on %s: looking at the cluster and the cloud from here\n", socket)
}
