package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
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
	return failed("", fmt.Errorf("no agent answers on %s: %w (systemctl status autoscaler-agent tells whether it runs; --socket names another)", socket, err))
}

// lookFromHere says that a command goes on without the running agent.
func lookFromHere(errout io.Writer, socket string) {
	fmt.Fprintf(errout, "no agent answers on %s: looking at the cluster and the cloud from here\n", socket)
}
