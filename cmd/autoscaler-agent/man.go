//go:build man

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

// The command man is in no shipped binary, because it brings a Markdown parser
// (docs/dependencies.md). `make man` runs it.
func init() { tagged = append(tagged, manCommand) }

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write a man page for each command",
		Long:    "Write a man page of section 8 for each command, and of section 5 for agent.env and groups.yaml. A missing directory is made.",
		Example: `  autoscaler-agent man /usr/local/share/man/man8`,
		Hidden:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(c, "say where to: man DIRECTORY")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			build := version.Build()
			date, err := time.Parse(time.RFC3339, build.Date) // the same commit makes the same pages
			if err != nil {
				date = time.Unix(0, 0).UTC()
			}
			c.Root().DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "AUTOSCALER-AGENT", Section: "8", Date: &date, Source: "autoscaler-agent " + build.Version, Manual: "autoscaler-agent"}
			err = errors.Join(os.MkdirAll(args[0], 0o755), doc.GenManTree(c.Root(), header, args[0]))
			for name, page := range config.ManPages(date, header.Source) {
				err = errors.Join(err, os.WriteFile(filepath.Join(args[0], name), []byte(page), 0o644)) // #nosec G306 -- a page for everybody
			}
			if err != nil {
				return failed("", fmt.Errorf("write man pages: %w", err))
			}
			return nil
		},
	}
}
