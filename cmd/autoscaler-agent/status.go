package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Print what the running agent does now",
		Long:  "Print what the running agent on this machine does now.",
		Example: `  autoscaler-agent status
  autoscaler-agent status --output json | jq .held
  autoscaler-agent status --watch                    # again every two seconds, with the last day
  autoscaler-agent status --html day.html            # the page, for a browser
  autoscaler-agent status --socket /tmp/agent.sock
  autoscaler-agent status --record rounds.json.gz    # recorded rounds, for replay`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile, output, socket := envFileFlag(c), outputFlag(c), socketFlag(c)
	record := c.Flags().String("record", "", "write the last rounds and a round of this moment to `file`, for replay")
	html := c.Flags().String("html", "", "write the page of the last 24 hours to `file`, for a browser")
	watch := c.Flags().Bool("watch", false, "print the status and the last 24 hours again every two seconds")
	c.MarkFlagsMutuallyExclusive("record", "html", "watch")
	c.RunE = func(c *cobra.Command, _ []string) error {
		socketOf(socket, *envFile)
		out := c.OutOrStdout()
		switch {
		case *record != "":
			return recordRounds(c.Context(), *socket, *record, out)
		case *html != "":
			return writePage(c.Context(), *socket, *html, out)
		case *watch && *output != "table":
			return usagef(c, "--watch prints a table: leave out --output %s", *output)
		case *watch:
			return watchStatus(c.Context(), *socket, out)
		}
		var s localapi.Status
		if err := ask(c.Context(), *socket, "/status", &s); err != nil {
			return noAnswer(*socket, err)
		}
		done, err := printData(out, *output, s)
		if !done {
			printStatus(out, s)
		}
		return err
	}
	return c
}

// recordRounds writes the flight recorder's rounds to a file that only its owner reads.
func recordRounds(ctx context.Context, socket, file string, out io.Writer) error {
	body, err := get(ctx, socket, "/flight?full=1")
	if err != nil {
		return noAnswer(socket, err)
	}
	defer func() { _ = body.Close() }() // read to its end
	data, err := io.ReadAll(body)
	if err == nil {
		_, err = atomicfile.Write(file, data, 0o600)
	}
	if err != nil {
		return failed("record", err)
	}
	fmt.Fprintf(out, "%d bytes in %s; decide them once more with: autoscaler-agent replay %s\n", len(data), file, file)
	return nil
}

func printStatus(out io.Writer, s localapi.Status) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("agent", "%s on %s, up %s", s.Version, s.Node, time.Since(s.Since).Round(time.Second))
	if s.Acting {
		row("acting", "yes")
	} else {
		row("acting", "no: %s", s.Why)
	}
	for line := range strings.SplitSeq(s.Settings, "\n") { // one mistake a line
		if line != "" {
			row("settings", "not in force: %s", line)
		}
	}
	if s.Stale != "" {
		row("kubernetes", "%s", s.Stale)
	}
	switch {
	case s.Cloud != "":
		for line := range strings.SplitSeq(s.Cloud, "\n") { // one fault a line
			row("cloud", "%s", line)
		}
	case s.CloudAt.IsZero():
		row("cloud", "not read yet")
	default:
		row("cloud", "read %s ago", time.Since(s.CloudAt).Round(time.Second))
	}
	for _, l := range s.Late {
		row("late", "%s", l)
	}
	row("cluster", "%d nodes (%d ready), %d pods (%d pending)", s.Nodes, s.Ready, s.Pods, s.Pending)
	_ = w.Flush() // out is a terminal or a pipe: a failed write has no reader
	if len(s.Groups) > 0 {
		several := slices.ContainsFunc(s.Groups, func(g localapi.GroupStatus) bool { return g.Provider != "" })
		head, cell := "", func(localapi.GroupStatus) string { return "" }
		if several {
			head, cell = "\tPROVIDER", func(g localapi.GroupStatus) string { return "\t" + g.Provider }
		}
		fmt.Fprintf(w, "\nGROUP%s\tMIN\tTARGET\tMAX\tINSTANCES\n", head)
		for _, g := range s.Groups {
			fmt.Fprintf(w, "%s%s\t%d\t%d\t%d\t%d\n", g.ID, cell(g), g.Min, g.Target, g.Max, g.Instances)
		}
		_ = w.Flush()
		for _, g := range s.Groups {
			if words := g.Remark(); words != "" {
				fmt.Fprintf(out, "  %s: %s\n", g.ID, text.Wrap(words, text.Columns(out)-4-len(g.ID), "    "))
			}
		}
	}
	if s.Plan != "" {
		fmt.Fprintf(out, "\nlast plan, %s ago:\n%s", time.Since(s.LastPlan).Round(time.Second), s.Plan)
	}
}
