package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/view"
)

func tokenCommand() *cobra.Command {
	c := parent(&cobra.Command{
		Use:   "token",
		Short: "List, make and revoke the join tokens of machines",
		Long: `List, make and revoke the agent's join tokens. The agent makes them by itself when
machines come; one that an operator makes is not renewed and stays until it ends.`,
		Example: `  autoscaler-agent token list
  autoscaler-agent token create --for 4h
  autoscaler-agent token revoke asa003`,
	})
	c.AddCommand(tokenListCommand(), tokenCreateCommand(), tokenRevokeCommand())
	return c
}

func tokenListCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the join tokens, without their secrets",
		Long: `List the agent's join tokens, without their secrets, and those of others that cluster-info
is signed with. The agent may not read the tokens of others: their lines say so.`,
		Example: `  autoscaler-agent token list
  autoscaler-agent token list --output json | jq -r '.[] | select(.for == "others") | .id'`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile, output := envFileFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load(*envFile)
		if err != nil {
			return failed("configuration", err)
		}
		list, err := oneshot.JoinTokens(c.Context(), cfg)
		if err != nil {
			return failed("token list", err)
		}
		if list == nil {
			list = []oneshot.JoinToken{}
		}
		if done, err := printData(c.OutOrStdout(), *output, list); done || err != nil {
			return err
		}
		text.Tokens(c.OutOrStdout(), list)
		return nil
	}
	return c
}

func tokenCreateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a join token that stays until it ends",
		Long: `Make a join token and print it. It is not renewed, and stays until it ends, also where
tokens are made on demand only. The closed join holds for it as for any other: it lets
in the machines that the cloud knows, once for each.`,
		Example: `  autoscaler-agent token create --for 4h
  autoscaler-agent token create --for 1h --instance aws:///eu-west-1a/i-0123456789abcdef0
  autoscaler-agent token create --output json | jq -r .token`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile, output := envFileFlag(c), outputFlag(c)
	life := c.Flags().Duration("for", time.Hour, "how `long` it lives, 48h at most")
	instance := c.Flags().String("instance", "", "the `provider ID` of the one machine that it is for")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := oneshot.JudgeTokenLife(*life); err != nil {
			return usagef(c, "--for is %s: %v", *life, err)
		}
		cfg, err := load(*envFile)
		if err != nil {
			return failed("configuration", err)
		}
		token, expires, err := oneshot.CreateJoinToken(c.Context(), cfg, *instance, *life)
		if err != nil {
			return failed("token create", err)
		}
		if done, err := printData(c.OutOrStdout(), *output, view.CreatedToken{ID: tokenID(token), Token: token, Expires: expires.UTC(), Instance: *instance}); done || err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), token)
		fmt.Fprintf(c.ErrOrStderr(), "expires %s\n", expires.UTC().Format(time.RFC3339))
		return nil
	}
	return c
}

// tokenID is the part of a token that is not secret.
func tokenID(token string) string {
	id, _, _ := strings.Cut(token, ".")
	return id
}

func tokenRevokeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "revoke ID",
		Short: "Delete a join token of the agent's",
		Long: `Delete a join token of the agent's by its ID. Machines that hold it and have not joined
cannot join any more. Where a standing token is kept, the agent makes another one.`,
		Example: "  autoscaler-agent token revoke asa003",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(c, "say which token: token revoke ID (token list shows them)")
			}
			if id := tokenID(args[0]); len(id) != 6 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
				return usagef(c, "%.60q is no ID of a token: write six of a-z and 0-9, for example asa003 (token list shows them)", id)
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile, output := envFileFlag(c), outputFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := load(*envFile)
		if err != nil {
			return failed("configuration", err)
		}
		if err := oneshot.RevokeJoinToken(c.Context(), cfg, args[0]); err != nil {
			return failed("token revoke", err)
		}
		revoked := view.RevokedToken{ID: tokenID(args[0]), Revoked: true}
		if done, err := printData(c.OutOrStdout(), *output, revoked); done || err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "token %s is revoked\n", revoked.ID)
		return nil
	}
	return c
}
