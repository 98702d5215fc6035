package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
)

func replayCommand(_ context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("replay FILE", "Decide recorded rounds once more and compare, bit for bit. A file comes from\n'autoscaler-agent status --record FILE' or from the flight directory below the state\ndirectory. Exits 1 when a round is decided otherwise than it was.", `  autoscaler-agent status --record now.json.gz && autoscaler-agent replay now.json.gz
  autoscaler-agent replay now.json.gz --policy UNNEEDED_FOR=5m --policy EXPANDER=least-nodes
  autoscaler-agent replay now.json.gz --explain pod/default/web-0
  autoscaler-agent replay now.json.gz --output json | jq '.[] | select(.equal | not) | .diff'
`, errout)
	output := outputFlag(fs)
	var settings []string
	fs.Func("policy", "decide with this `KEY=VALUE` instead of the recorded setting; may be given several times", func(v string) error {
		settings = append(settings, v)
		return nil
	})
	about := fs.String("explain", "", "explain a `KIND/NAME` as it was in the last round of the file")
	names, code, done := parseNames(fs, args, out, errout)
	if done {
		return code
	}
	if len(names) != 1 {
		fmt.Fprint(errout, "autoscaler-agent replay: say which file: replay FILE\n")
		return exitUsage
	}
	f, err := os.Open(names[0])
	if err != nil {
		return complain(errout, "replay", err)
	}
	defer func() { _ = f.Close() }() // only read
	rounds, err := agent.Replay(f, settings)
	if err != nil {
		code = complain(errout, "replay", err)
	}
	if *about != "" && len(rounds) > 0 {
		kind, name, _ := strings.Cut(*about, "/")
		return max(code, printExplained(out, *output, rounds[len(rounds)-1].Explain(kindOf(kind), name)))
	}
	for _, r := range rounds {
		if !r.Equal {
			code = exitFailed
		}
	}
	if rounds == nil {
		rounds = []agent.Replayed{}
	}
	if printed, done := printData(out, *output, rounds); done {
		return max(code, printed)
	}
	for _, r := range rounds {
		printReplayed(out, r)
	}
	return code
}

func printReplayed(out io.Writer, r agent.Replayed) {
	word := "equal"
	if !r.Equal {
		word = "differs"
	}
	fmt.Fprintf(out, "%s  %-7s  %d actions, %d held\n", r.At.UTC().Format(time.RFC3339), word, len(r.Now.Actions), len(r.Now.Held))
	for _, line := range r.Diff {
		fmt.Fprintln(out, "  "+line)
	}
}

func printExplained(out io.Writer, format string, x agent.Explanation) int {
	code := exitOK
	if !x.Found {
		code = exitFailed
	}
	if printed, done := printData(out, format, x); done {
		return max(code, printed)
	}
	printExplanation(out, x)
	return code
}
