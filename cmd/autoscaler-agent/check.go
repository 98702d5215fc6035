package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/doctor"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

func checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Check configuration, credentials, rights, cloud and cluster",
		Long: `Check everything that the agent needs: configuration, kubeconfig, rights, cloud
credentials, node groups. The exit code is 1 when a finding is an error.`,
		Example: `  autoscaler-agent check
  autoscaler-agent check --offline          # the configuration alone
  autoscaler-agent check --groups new.yaml  # one groups.yaml alone
  autoscaler-agent check --kubelets         # may --kubelet-certificate-authority be switched on?
  autoscaler-agent check --join             # could a machine join now?
  autoscaler-agent check --output json | jq '.[] | select(.level == "error")'
  autoscaler-agent check --print-env > agent.env
  autoscaler-agent check --print-schema > groups.schema.json   # of groups.yaml, for editors`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	envFile, output := envFileFlag(c), outputFlag(c)
	offline := c.Flags().Bool("offline", false, "check the configuration only, without any connection")
	kubelets := c.Flags().Bool("kubelets", false, "also connect to the kubelet of every Ready node and verify its certificate")
	join := c.Flags().Bool("join", false, "also do with the published values what a machine that joins does with them")
	printEnv := c.Flags().Bool("print-env", false, "print every setting with its default, as an environment file")
	groups := c.Flags().String("groups", "", "judge this groups.yaml `file` alone, before it is put in its place")
	files := c.Flags().Bool("files", false, "try the files and directories alone, as the user of this command")
	c.Flags().Lookup("files").Hidden = true // check starts itself with it, as the unit's user
	printSchema := c.Flags().Bool("print-schema", false, "print the JSON schema of groups.yaml, for editors")
	flagvalue.Against(c, "print-env", "print-schema", "groups", "env-file", "output", "offline", "kubelets", "join")
	flagvalue.Against(c, "print-schema", "groups", "env-file", "output", "offline", "kubelets", "join")
	flagvalue.Against(c, "groups", "env-file", "offline", "kubelets", "join")
	flagvalue.Against(c, "offline", "kubelets", "join")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *printSchema {
			fmt.Fprint(c.OutOrStdout(), config.GroupsSchema())
			return nil
		}
		if *printEnv {
			fmt.Fprint(c.OutOrStdout(), config.EnvExample())
			return nil
		}
		if *groups != "" {
			return checkGroups(c, *output, *groups)
		}
		cfg, err := load(*envFile)
		if *files {
			_, err := printData(c.OutOrStdout(), *output, doctor.Files(cfg, *offline))
			return err
		}
		stop := text.Progress(c.ErrOrStderr(), "checking files, cluster and cloud")
		findings := doctor.Check(c.Context(), cfg, err, *offline)
		stop()
		if *kubelets && err == nil {
			findings = append(findings, doctor.Kubelets(c.Context(), cfg)...)
		}
		if *join && err == nil {
			findings = append(findings, doctor.Rehearsal(c.Context(), cfg)...)
		}
		return tellFindings(c, *output, findings)
	}
	return c
}

// checkGroups judges one groups.yaml.
func checkGroups(c *cobra.Command, format, file string) error {
	findings, err := doctor.GroupsFile(file)
	if err != nil {
		return failed("check", err)
	}
	return tellFindings(c, format, findings)
}

// tellFindings prints what was found; the exit code tells of errors.
func tellFindings(c *cobra.Command, format string, findings []doctor.Finding) error {
	if done, err := printData(c.OutOrStdout(), format, findings); err != nil {
		return err
	} else if !done {
		text.Findings(c.OutOrStdout(), findings)
	}
	if slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Level == doctor.LevelError }) {
		return exitCode(exitFailed)
	}
	return nil
}
