package main

import (
	"context"
	"io"
	"os"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

func runCommand(ctx context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("run", "Run the agent until SIGTERM. Exits 78 when the configuration is wrong.", `  autoscaler-agent run
  autoscaler-agent run --env-file ./agent.env
`, errout)
	envFile := envFileFlag(fs)
	if code, done := parse(fs, args, out, errout); done {
		return code
	}
	cfg, err := load(*envFile)
	log := report.NewLogger(cfg.LogLevel, os.Stderr)
	if err != nil {
		for _, e := range agent.Flatten(err) {
			log.WithField("service", "agent").Error("configuration: " + e.Error())
		}
		return exitConfig
	}
	if err := agent.Run(ctx, cfg, log); err != nil {
		log.WithField("service", "agent").Error(err.Error())
		return exitFailed
	}
	return exitOK
}
