package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/doctor"
)

func checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Check configuration, credentials, rights, cloud and cluster",
		Long: `Check everything that the agent needs: configuration, kubeconfig, rights, cloud
credentials, node groups. The exit code is 1 when a finding is an error.`,
		Example: `  autoscaler-agent check
  autoscaler-agent check --offline          # the configuration alone
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
	files := c.Flags().Bool("files", false, "try the files and directories alone, as the user of this command")
	c.Flags().Lookup("files").Hidden = true // check starts itself with it, as the unit's user
	printSchema := c.Flags().Bool("print-schema", false, "print the JSON schema of groups.yaml, for editors")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *printSchema {
			fmt.Fprint(c.OutOrStdout(), config.GroupsSchema())
			return nil
		}
		if *printEnv {
			fmt.Fprint(c.OutOrStdout(), config.EnvExample())
			return nil
		}
		cfg, err := load(*envFile)
		findings := []doctor.Finding{}
		if *files {
			findings = append(findings, doctor.Files(cfg, *offline)...)
		} else {
			findings = doctor.Check(c.Context(), cfg, err, *offline)
		}
		if *kubelets && !*offline && err == nil {
			findings = append(findings, doctor.Kubelets(c.Context(), cfg)...)
		}
		if *join && !*offline && err == nil {
			findings = append(findings, doctor.Rehearsal(c.Context(), cfg)...)
		}
		if done, err := printData(c.OutOrStdout(), *output, findings); err != nil {
			return err
		} else if !done {
			printFindings(c.OutOrStdout(), findings)
		}
		for _, f := range findings {
			if f.Level == doctor.LevelError {
				return exitCode(exitFailed)
			}
		}
		return nil
	}
	return c
}
