package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/agentsocket"
)

func reloadCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reload",
		Short: "Take a changed groups.yaml or log level into the running agent",
		Long: `Take a changed groups.yaml and AUTOSCALER_LOG_LEVEL into the running agent, as
'systemctl reload autoscaler-agent' does. Other variables take a restart: they are
named, and the exit code is 1. It is 1, too, where a file has a mistake; what was in
force stays then.`,
		Example: `  systemctl reload autoscaler-agent
  autoscaler-agent reload --output json`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile, output, socket := envFileFlag(c), outputFlag(c), socketFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		socketOf(socket, *envFile)
		var r localapi.Reloaded
		if err := agentsocket.Post(c.Context(), *socket, localapi.ReloadPath, &r); err != nil {
			return noAnswer(*socket, err)
		}
		done, err := printData(c.OutOrStdout(), *output, r)
		if err != nil {
			return err
		}
		if !done {
			for _, text := range r.Done {
				fmt.Fprintln(c.OutOrStdout(), text)
			}
		}
		var errs []error
		for _, text := range r.Faults {
			errs = append(errs, errors.New(text))
		}
		if len(errs) > 0 {
			return failed("reload", errors.Join(errs...))
		}
		return nil
	}
	return c
}
