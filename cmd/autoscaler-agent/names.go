package main

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/agentsocket"
)

// completionLimit is how long a shell waits for names while a person types. Tests set
// it, because a loaded machine may take longer.
var completionLimit = time.Second

// completeSubject completes the arguments of explain: a kind, and then a name that the
// running agent knows. No agent, no right to its socket or no answer in time means no
// names and no message: a shell shows what a completion prints as part of the line.
func completeSubject(envFile, socket *string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		kind, start, joined := strings.Cut(prefix, "/")
		switch {
		case len(args) == 0 && joined && kindOf(kind) != "": // pod/NAME
			names := completeNames(c, envFile, socket, kindOf(kind), start)
			for i := range names {
				names[i] = kind + "/" + names[i]
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		case len(args) == 0:
			return []cobra.Completion{"pod", "node", "group", "csr", "instance"}, cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1:
			return completeNames(c, envFile, socket, kindOf(args[0]), prefix), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNames asks the running agent for names of a kind that start with prefix.
func completeNames(c *cobra.Command, envFile, socket *string, kind, prefix string) (names []cobra.Completion) {
	socketOf(socket, *envFile)
	ctx, cancel := context.WithTimeout(c.Context(), completionLimit)
	defer cancel()
	if agentsocket.Ask(ctx, *socket, localapi.NamesPath+"?"+url.Values{"kind": {kind}, "prefix": {prefix}}.Encode(), &names) != nil {
		return nil
	}
	return names
}
