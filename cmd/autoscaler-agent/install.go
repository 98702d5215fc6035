package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/doctor"
	"github.com/autoscaler-agent/autoscaler-agent/agent/install"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

func installCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "install",
		Short: "Install or upgrade the agent on this control-plane machine",
		Long: `Install the agent on this control-plane machine: the user, the directories, the unit
with this binary's path, the Kubernetes rights and policies, a kubeconfig of its own
that the cluster signs for a year, its weekly renewal, agent.env from what is found,
and where it names an attest listener that listener's certificate, which the cluster's
CA signs. A further leader takes settings and groups.yaml from what the first one has
published (docs/ha.md). Then check. The service is not started; one that runs is
restarted when something changed. What is in place already stays as it is.`,
		Example: `  sudo autoscaler-agent install --dry-run
  sudo autoscaler-agent install
  sudo autoscaler-agent install --set AUTOSCALER_AWS_CLUSTER_NAME=production
  sudo autoscaler-agent install --set AUTOSCALER_PROVIDER=nova --set AUTOSCALER_NOVA_CLUSTER_NAME=production`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var o install.Options
	installFlags(c, &o)
	output, dry := outputFlag(c), c.Flags().Bool("dry-run", false, "print every step and change nothing")
	set := c.Flags().StringArray("set", nil, "write `NAME=VALUE` into agent.env, unless it sets NAME already; may be repeated")
	c.Flags().BoolVar(&o.Publish, "publish", false, "make this machine's settings and groups.yaml those that further leaders get, in place of what another leader has published")
	c.Flags().BoolVar(&o.Renew, "renew", false, "renew the client certificate, and that of the attest listener, if less than a third of its time is left, and do nothing else")
	c.MarkFlagsMutuallyExclusive("renew", "set")
	c.RunE = func(c *cobra.Command, _ []string) error {
		for _, pair := range *set {
			name, value, ok := strings.Cut(pair, "=")
			if !ok {
				return usagef(c, "--set is %q: write NAME=VALUE", pair)
			}
			o.Set = append(o.Set, install.Setting{Name: name, Value: value})
		}
		if err := install.JudgeSettings(o.Set); err != nil {
			return misused("install", err)
		}
		host, err := install.ThisHost(*dry)
		if err != nil {
			return failed("install", err)
		}
		steps, err := install.Install(c.Context(), host, o, time.Now())
		if err == nil {
			err = applySteps(c, steps, *output, *dry)
		}
		if err != nil {
			return failed("install", err)
		}
		if *dry || o.Renew || *output != "table" {
			return nil
		}
		return afterInstall(c, host)
	}
	return c
}

func uninstallCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the agent and remove it from this machine and the cluster",
		Long: `Stop the agent and remove its unit, its objects in the cluster, its configuration,
its state and its user. Machines and Nodes stay as they are. The binary stays: remove
it by hand, or with its package.`,
		Example: `  sudo autoscaler-agent uninstall --dry-run
  sudo autoscaler-agent uninstall --keep-config --keep-state`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var o install.Options
	installFlags(c, &o)
	output, dry := outputFlag(c), c.Flags().Bool("dry-run", false, "print every step and change nothing")
	c.Flags().BoolVar(&o.KeepConfig, "keep-config", false, "leave /etc/autoscaler-agent and the user")
	c.Flags().BoolVar(&o.KeepState, "keep-state", false, "leave /var/lib/autoscaler-agent and the user")
	c.Flags().BoolVar(&o.KeepCluster, "keep-cluster", false, "leave the objects in the cluster")
	c.MarkFlagsMutuallyExclusive("keep-cluster", "kubeconfig")
	c.RunE = func(c *cobra.Command, _ []string) error {
		host, err := install.ThisHost(*dry)
		if err != nil {
			return failed("uninstall", err)
		}
		steps, err := install.Uninstall(c.Context(), host, o)
		if err == nil {
			err = applySteps(c, steps, *output, *dry)
		}
		if err != nil {
			return failed("uninstall", err)
		}
		return nil
	}
	return c
}

func installFlags(c *cobra.Command, o *install.Options) {
	c.Flags().StringVar(&o.AdminConf, "kubeconfig", install.AdminConf, "an administrator's kubeconfig `file`")
}

// applySteps does the steps and prints each, or prints them all without doing them.
func applySteps(c *cobra.Command, steps []install.Step, format string, dry bool) error {
	out := c.OutOrStdout()
	var told []install.Step
	tell := func(s install.Step) {
		told = append(told, s)
		if format == "table" {
			fmt.Fprintf(out, "%-7s  %-13s  %s\n", s.State, s.About, s.Text)
		}
	}
	var err error
	if dry {
		for _, s := range steps {
			tell(s)
		}
	} else {
		err = install.Apply(c.Context(), steps, tell)
	}
	_, printed := printData(out, format, told)
	return errors.Join(err, printed)
}

// afterInstall checks what was installed, as the unit will, and says what to type.
func afterInstall(c *cobra.Command, host install.Host) error {
	out := c.OutOrStdout()
	fmt.Fprintln(out)
	findings, err := doctor.AsUnit(c.Context(), host.UnitEnvironment())
	if err != nil {
		return failed("install", fmt.Errorf("everything is installed, and check does not run as the unit's user: %w", err))
	}
	text.Findings(out, findings)
	fmt.Fprintln(out)
	for _, f := range findings {
		if f.Level == doctor.LevelError {
			fmt.Fprintf(out, "installed, with errors: mend them (%s), then: autoscaler-agent check\n", config.EnvFile)
			return exitCode(exitFailed)
		}
	}
	if host.Answer("is-active", "autoscaler-agent.service") == "active" {
		fmt.Fprintln(out, "the service runs: journalctl -u autoscaler-agent -f")
		return nil
	}
	fmt.Fprintln(out, "next: systemctl enable --now autoscaler-agent && journalctl -u autoscaler-agent -f")
	return nil
}
