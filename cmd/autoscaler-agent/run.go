package main

import (
	"errors"
	"io/fs"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/internal/supervise"
)

func runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the agent (what the systemd unit starts)",
		Long:  "Run the agent until SIGTERM. The exit code is 78 when the configuration is wrong.",
		Example: `  autoscaler-agent run
  autoscaler-agent run --env-file ./agent.env`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile := envFileFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		started := time.Now()
		if err := config.LoadCredentials(); err != nil {
			return failed("credentials", err)
		}
		cfg, err := load(*envFile)
		if *envFile == "" && errors.Is(err, fs.ErrPermission) {
			cfg, err = config.Load() // systemd has read the file, as root
		}
		err = errors.Join(err, cfg.CheckFiles()) // a start with broken ones would only be repeated
		log := report.NewLogger(cfg.LogLevel, c.ErrOrStderr())
		if err != nil {
			log.SetLevel(logrus.ErrorLevel) // a wrong level must not hide this
			for _, e := range config.Flatten(err) {
				log.WithField("service", "agent").Error("configuration: " + e.Error())
			}
			return exitCode(exitConfig)
		}
		cfg.EnvFile = *envFile // also where systemd has read it
		for _, text := range cfg.Warnings() {
			log.WithField("service", "agent").Warn("configuration: " + text)
		}
		if err := agent.Run(c.Context(), cfg, log); err != nil {
			log.WithField("service", "agent").Error(err.Error())
			supervise.WaitForSystemd(c.Context(), started)
			return exitCode(exitFailed)
		}
		return nil
	}
	return c
}
