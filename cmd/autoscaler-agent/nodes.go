package main

import (
	"net/url"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/agentsocket"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

func nodesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "nodes",
		Short: "List the machines, what differs from their groups, and what holds them",
		Long: `List the machines of the node groups, and the Nodes of no group: age, version of the
kubelet, state, in what a machine differs from what its group would start today, and the
first reason for which the last round left it as it is. explain node NAME tells all of it.
The running agent answers; where none runs, the command reads the cluster and the cloud
itself, as plan does.`,
		Example: `  autoscaler-agent nodes
  autoscaler-agent nodes --group workers
  autoscaler-agent nodes --output json | jq -r '.nodes[] | select(.drift) | .node'
  autoscaler-agent nodes --output yaml`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile, output, socket := envFileFlag(c), outputFlag(c), socketFlag(c)
	group := c.Flags().String("group", "", "list the machines of this node `group` alone")
	complete(c, "group", func(c *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeNames(c, envFile, socket, "group", prefix), cobra.ShellCompDirectiveNoFileComp
	})
	c.RunE = func(c *cobra.Command, _ []string) error {
		socketOf(socket, *envFile)
		var list decision.Nodes
		err := agentsocket.Ask(c.Context(), *socket, localapi.NodesPath+"?"+url.Values{"group": {*group}}.Encode(), &list)
		switch {
		case err == nil:
		case agentsocket.NotRunning(err):
			lookFromHere(c.ErrOrStderr(), *socket)
			if list, err = nodesFromHere(c, *envFile, *group); err != nil {
				return err
			}
		default:
			return noAnswer(*socket, err)
		}
		done, err := printData(c.OutOrStdout(), *output, list)
		if !done {
			text.Nodes(c.OutOrStdout(), list)
		}
		return err
	}
	return c
}

func nodesFromHere(c *cobra.Command, envFile, group string) (decision.Nodes, error) {
	cfg, err := load(envFile)
	if err != nil {
		return decision.Nodes{}, failed("configuration", err)
	}
	stop := text.Progress(c.ErrOrStderr(), "reading the cluster and the cloud")
	list, err := oneshot.Nodes(c.Context(), cfg, report.NewLogger("warning", c.ErrOrStderr()), group)
	stop()
	if err != nil {
		err = failed("nodes", err)
	}
	return list, err
}
