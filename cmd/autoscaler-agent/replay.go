package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/replay"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
	"github.com/autoscaler-agent/autoscaler-agent/internal/textfile"
)

func replayCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Decide recorded rounds once more and compare",
		Long: `Decide recorded rounds once more and compare, bit for bit. A file comes from
'autoscaler-agent status --record FILE' or from the directory flight/ of the state
directory. The exit code is 1 when a round is decided differently.`,
		Example: `  autoscaler-agent status --record now.json.gz && autoscaler-agent replay now.json.gz
  autoscaler-agent replay now.json.gz --policy UNNEEDED_FOR=5m --policy EXPANDER=least-nodes
  autoscaler-agent replay now.json.gz --explain pod/default/web-0
  autoscaler-agent replay now.json.gz --output json | jq '.[] | select(.equal | not) | .diff'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(c, "say which file: replay FILE")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []cobra.Completion{"json.gz"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	output := outputFlag(c)
	settings := c.Flags().StringArray("policy", nil, "decide with this `KEY=VALUE` instead of the recorded setting; may be repeated")
	about := c.Flags().String("explain", "", "explain `KIND/NAME` as it was in the last round of the file")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := replay.JudgePolicy(*settings); err != nil {
			return misused("replay", err)
		}
		if kind, name, _ := strings.Cut(*about, "/"); *about != "" && (kindOf(kind) == "" || name == "") {
			return usagef(c, "--explain is %q: write KIND/NAME, for example pod/default/web-0", *about)
		}
		return replayFile(c, args[0], *settings, *about, *output)
	}
	return c
}

func replayFile(c *cobra.Command, file string, settings []string, about, format string) error {
	if err := textfile.Check(file); err != nil {
		return failed("replay", replay.NoRecording(err))
	}
	f, err := os.Open(file)
	if err != nil {
		return failed("replay", replay.NoRecording(err))
	}
	defer func() { _ = f.Close() }() // only read
	rounds, err := replay.Rounds(f, settings)
	code := exitOK
	if err != nil { // of a torn file, the rounds before the tear are printed
		code = printError(c.ErrOrStderr(), failed("replay", replay.NoRecording(err)))
	}
	out := c.OutOrStdout()
	if about != "" && len(rounds) > 0 {
		kind, name, _ := strings.Cut(about, "/")
		x := rounds[len(rounds)-1].Explain(kindOf(kind), name)
		err = printExplained(out, format, x, x.Found, text.Explanation)
		return ends(code, err)
	}
	for _, r := range rounds {
		if !r.Equal {
			code = exitFailed
		}
	}
	if rounds == nil {
		rounds = []replay.Round{}
	}
	done, err := printData(out, format, rounds)
	if !done {
		for _, r := range rounds {
			text.Replayed(out, r)
		}
	}
	return ends(code, err)
}
