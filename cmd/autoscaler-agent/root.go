package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/rollout"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

// tagged are commands that only a build with their tag has.
var tagged []func() *cobra.Command

// newRoot makes the tree of commands. A tree is made for each execution, because a
// flag keeps its value.
func newRoot() *cobra.Command {
	cobra.EnableCommandSorting = false // the order below is that of use
	root := parent(&cobra.Command{
		Use:   "autoscaler-agent",
		Short: "Scale the worker machines of a kubeadm cluster",
		Long: `autoscaler-agent scales the worker machines of a kubeadm cluster.

Settings are AUTOSCALER_* variables; 'autoscaler-agent check --print-env' lists them.`,
		Example: `  systemctl enable --now autoscaler-agent
  autoscaler-agent check
  autoscaler-agent plan
  autoscaler-agent explain pod default/web-7d4b9c-x2x9k
  journalctl -t autoscaler-agent -f`,
	})
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true // completion.go has ours
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		if strings.HasPrefix(c.Name(), cobra.ShellCompRequestCmd) { // the last word is not written yet
			return nil
		}
		if err := errors.Join(flagvalue.Blank(args), flagvalue.Control(c.Flags(), args), flagvalue.Empty(c.Flags()), flagvalue.Words(c), flagvalue.Forms(c.Flags())); err != nil {
			return usagef(c, "%v", config.Flatten(err)[0])
		}
		if err := c.ValidateFlagGroups(); err != nil { // "...; [dry socket] were all set"
			given := strings.TrimSuffix(err.Error()[strings.LastIndexByte(err.Error(), '[')+1:], "] were all set")
			return usagef(c, "--%s exclude each other: give one of them", strings.ReplaceAll(given, " ", " and --"))
		}
		// A file that somebody named and that cannot be read may name another socket than the one that is asked.
		if f := c.Flags().Lookup("env-file"); f != nil && f.Changed && c.Flags().Lookup("socket") != nil {
			if err := config.Readable(f.Value.String()); err != nil {
				return failed("configuration", err)
			}
		}
		return nil
	}
	usage := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		if run := c.RunE; c.HasSubCommands() { // without a subcommand, a parent only fails
			defer func() { c.RunE = run }()
			c.RunE = nil
		}
		return usage(c)
	})
	root.AddCommand(runCommand(), checkCommand(), planCommand(), statusCommand(), nodesCommand(), rollout.Command(shell), explainCommand(), reloadCommand(), nodeCommand(),
		replayCommand(), leaderConfigCommand(), userdataCommand(), tokenCommand(), iamPolicyCommand(), openstackRulesCommand(), completionCommand(), installCommand(), uninstallCommand(), versionCommand())
	for _, command := range tagged {
		root.AddCommand(command())
	}
	flagvalue.Declare(root, flagForms)
	return root
}

// parent makes a command that only has subcommands: without one it prints its help
// and fails, and a subcommand that does not exist is answered with the nearest name.
func parent(c *cobra.Command) *cobra.Command {
	c.FParseErrWhitelist.UnknownFlags = true // the unknown subcommand before it is the mistake to report
	c.DisableFlagsInUseLine, c.SuggestionsMinimumDistance = true, 2
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("there is no command %q", args[0])
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return usagef(c, "%s: did you mean %s?", text, strings.Join(near, " or "))
		}
		return usagef(c, "%s (%s --help lists the commands)", text, c.CommandPath())
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		c.SetOut(c.ErrOrStderr()) // standard output is for results
		if err := c.Help(); err != nil {
			return failed("help", err)
		}
		return exitCode(exitUsage)
	}
	return c
}

// execute runs the command line args and returns the exit code of the process.
func execute(ctx context.Context, args []string, out, errout io.Writer) int {
	root := newRoot()
	if flag := flagvalue.Lost(root, args); flag != "" {
		name, _, _ := strings.Cut(flag, "=")
		if answer := flagvalue.OfAutoscaler(root, strings.TrimLeft(name, "-")); answer != "" {
			return printError(errout, usagef(root, "%s %s", name, answer))
		}
		return printError(errout, usagef(root, "there is no flag %s (%s --help lists the commands)", flag, root.CommandPath()))
	}
	if len(args) > 0 && args[0] == "--version" {
		args = append([]string{"version"}, args[1:]...)
	}
	root.SetArgs(args)
	result := &text.Output{To: out}
	root.SetOut(result)
	root.SetErr(errout)
	err := root.ExecuteContext(ctx)
	code := printError(errout, err)
	if _, printed := errors.AsType[exitCode](err); result.Err != nil && (err == nil || printed) {
		code = max(code, printError(errout, failed("the result is not complete", result.Err)))
	}
	return code
}
