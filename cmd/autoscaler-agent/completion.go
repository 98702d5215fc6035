package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes commands, flags and names in a shell",
		Long: `Print a script that completes commands, flags and names in a shell. Names of pods,
nodes, groups and certificate requests come from the running agent; where it does not
answer within a second, none are offered. For bash the package bash-completion is needed.`,
		Example: `  autoscaler-agent completion bash > /etc/bash_completion.d/autoscaler-agent
  source <(autoscaler-agent completion zsh)
  autoscaler-agent completion fish > ~/.config/fish/completions/autoscaler-agent.fish`,
		ValidArgs: shells,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usagef(c, "say for which shell: %s", strings.Join(shells[:2], ", ")+" or "+shells[2])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			generate := map[string]func(io.Writer) error{
				"bash": func(w io.Writer) error { return c.Root().GenBashCompletionV2(w, true) },
				"zsh":  c.Root().GenZshCompletion,
				"fish": func(w io.Writer) error { return c.Root().GenFishCompletion(w, true) },
			}[args[0]]
			if err := generate(c.OutOrStdout()); err != nil {
				return failed("", fmt.Errorf("write the script: %w", err))
			}
			return nil
		},
	}
}
