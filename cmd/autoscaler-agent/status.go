package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/agentsocket"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Print what the running agent does now",
		Long:  "Print what the running agent on this machine does now.",
		Example: `  autoscaler-agent status
  autoscaler-agent status --output json | jq .held
  autoscaler-agent status --watch                    # again every two seconds, with a map of all machines and the last day
  autoscaler-agent status --html day.html            # the page, for a browser
  autoscaler-agent status --socket /tmp/agent.sock
  autoscaler-agent status --record rounds.json.gz    # recorded rounds, for replay`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile, output, socket := envFileFlag(c), outputFlag(c), socketFlag(c)
	record := c.Flags().String("record", "", "write the last rounds and a round of this moment to `file`, for replay")
	html := c.Flags().String("html", "", "write the page of the last 24 hours to `file`, for a browser")
	watch := c.Flags().Bool("watch", false, "print the status, a map of all machines and the last 24 hours again every two seconds")
	c.MarkFlagsMutuallyExclusive("record", "html", "watch", "output")
	c.RunE = func(c *cobra.Command, _ []string) error {
		socketOf(socket, *envFile)
		out := c.OutOrStdout()
		switch {
		case *record != "":
			return save(c.Context(), *socket, "/flight?full=1", *record, "; decide them once more with: autoscaler-agent replay "+*record, out)
		case *html != "":
			return save(c.Context(), *socket, localapi.PagePath, *html, ": open it in a browser", out)
		case *watch:
			return watchStatus(c.Context(), *socket, out)
		}
		var s localapi.Status
		if err := agentsocket.Ask(c.Context(), *socket, "/status", &s); err != nil {
			return noAnswer(*socket, err)
		}
		done, err := printData(out, *output, s)
		if !done {
			text.Status(out, s)
		}
		if s.Version != version.Current() {
			fmt.Fprintf(c.ErrOrStderr(), "the running agent is another program than this one: %s\n", otherVersion(s.Version))
		}
		return err
	}
	return c
}

// save writes what the running agent answers to a file that only its owner reads: it names pods and nodes.
func save(ctx context.Context, socket, path, file, then string, out io.Writer) error {
	body, err := agentsocket.Get(ctx, socket, path)
	if err != nil {
		return noAnswer(socket, err)
	}
	defer func() { _ = body.Close() }() // read to its end
	data, err := io.ReadAll(body)
	if err == nil {
		_, err = atomicfile.Write(file, data, 0o600)
	}
	if err != nil {
		return failed("write", err)
	}
	fmt.Fprintf(out, "%d bytes in %s%s\n", len(data), file, then)
	return nil
}
