package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/magnum"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

func openstackRulesCommand() *cobra.Command {
	providers := []string{"nova", "magnum"}
	c := &cobra.Command{
		Use:   "openstack-rules [nova|magnum]",
		Short: "Print the access rules of the agent's OpenStack credential",
		Long: `Print the calls that the agent makes with the provider nova (the default) or magnum, as
access rules of an application credential. Paths are those behind the endpoints of the
catalog: where an endpoint has a prefix (/compute/v2.1), so have the rules.`,
		Example: `  autoscaler-agent openstack-rules > access-rules.json
  openstack application credential create autoscaler-agent --role member \
      --access-rules access-rules.json
  autoscaler-agent openstack-rules magnum`,
		ValidArgs: providers,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef(c, "%q is one argument too many: name one provider", args[1])
			case len(args) == 1 && !slices.Contains(providers, args[0]):
				return usagef(c, "there are no access rules of %q: use %s", args[0], strings.Join(providers, " or "))
			}
			return nil
		},
	}
	var console bool
	c.Flags().BoolVar(&console, "console", false, "with nova, let the agent read consoles: the same path also stops and rebuilds servers")
	c.RunE = func(c *cobra.Command, args []string) error {
		rules := nova.AccessRules(console)
		if len(args) > 0 && args[0] == "magnum" {
			if console {
				return usagef(c, "--console is for nova: with magnum the agent reads no console")
			}
			rules = magnum.AccessRules()
		}
		list, err := text.AccessRules(rules)
		if err != nil {
			return failed("access rules", err)
		}
		fmt.Fprint(c.OutOrStdout(), list)
		return nil
	}
	return c
}
