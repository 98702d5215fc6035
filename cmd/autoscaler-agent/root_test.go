package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestExecute(t *testing.T) {
	for name, c := range map[string]struct {
		args        []string
		code        int
		out, errout string
	}{
		"nothing":       {nil, exitUsage, "", "Usage:"},
		"help":          {[]string{"--help"}, exitOK, "Examples:", ""},
		"-help":         {[]string{"-help"}, exitOK, "Examples:", ""},
		"help word":     {[]string{"help"}, exitOK, "Examples:", ""},
		"help of":       {[]string{"help", "status"}, exitOK, "status --record rounds.json.gz", ""},
		"unknown":       {[]string{"frobnicate"}, exitUsage, "", `autoscaler-agent: there is no command "frobnicate" (autoscaler-agent --help lists the commands)`},
		"misspelled":    {[]string{"statsu"}, exitUsage, "", `there is no command "statsu": did you mean status?`},
		"with flag":     {[]string{"frobnicate", "--env-file", "x"}, exitUsage, "", `there is no command "frobnicate"`},
		"unknown flag":  {[]string{"version", "--frobnicate"}, exitUsage, "", "there is no flag --frobnicate (autoscaler-agent version --help lists the flags)"},
		"flag misspelt": {[]string{"status", "--sokcet", "x"}, exitUsage, "", "there is no flag --sokcet: did you mean --socket?"},
		"one letter":    {[]string{"version", "-x"}, exitUsage, "", "there is no flag -x"},
		"no value":      {[]string{"version", "--output"}, exitUsage, "", "autoscaler-agent version --help"},
		"wrong value":   {[]string{"version", "--output", "xml"}, exitUsage, "", `--output is "xml": use table, json or yaml`},
		"no number":     {[]string{"userdata", "render", "--max-pods", "many"}, exitUsage, "", `--max-pods is "many": write a whole number`},
		"no switch":     {[]string{"check", "--offline=perhaps"}, exitUsage, "", `--offline is "perhaps": write true or false`},
		"too much":      {[]string{"version", "x"}, exitUsage, "", "one argument too many"},
		"version":       {[]string{"--version"}, exitOK, "autoscaler-agent ", ""},
		"json":          {[]string{"version", "--output", "json"}, exitOK, `"platform"`, ""},
		"yaml":          {[]string{"version", "--output=yaml"}, exitOK, "platform: ", ""},
		"policy":        {[]string{"iam-policy", "leader", "--cluster", "demo"}, exitOK, "autoscaling:SetDesiredCapacity", ""},
		"flag first":    {[]string{"iam-policy", "--cluster", "demo"}, exitOK, "autoscaling:SetDesiredCapacity", ""},
		"no such role":  {[]string{"iam-policy", "root"}, exitUsage, "", "use leader or worker"},
		"env":           {[]string{"check", "--print-env"}, exitOK, "#AUTOSCALER_SCALING_UNNEEDED_FOR=10m", ""},
		"no shell":      {[]string{"completion"}, exitUsage, "", "bash, zsh or fish"},
		"explain what":  {[]string{"explain", "pod"}, exitUsage, "", "say what"},
		"no such kind":  {[]string{"explain", "queen", "x"}, exitUsage, "", "say what"},
		"node":          {[]string{"node"}, exitUsage, "", "Usage:"},
		"node what":     {[]string{"node", "frobnicate"}, exitUsage, "", "autoscaler-agent node: there is no command"},
		"restore what":  {[]string{"node", "restore"}, exitUsage, "", "say which node"},
		"restore none":  {[]string{"node", "restore", "n", "--state-dir", "/tmp"}, exitFailed, "", "no deleted Node n is kept"},
		"names between": {[]string{"node", "restore", "--state-dir", "/tmp", "n", "--dry-run"}, exitFailed, "", "no deleted Node n is kept"},
		"restore list":  {[]string{"node", "restore", "--list", "--state-dir", "/does/not/exist"}, exitFailed, "", "/does/not/exist: no such file or directory: name the agent's state directory with --state-dir"},
		"replay what":   {[]string{"replay"}, exitUsage, "", "say which file"},
		"no recording":  {[]string{"replay", "/does/not/exist"}, exitFailed, "", "/does/not/exist: no such file or directory (autoscaler-agent status --record FILE makes one)"},
		"after --":      {[]string{"replay", "--", "-output"}, exitFailed, "", "open -output"},
		"env file":      {[]string{"check", "--offline", "--env-file", "/does/not/exist"}, exitFailed, "/does/not/exist", ""},
		"run":           {[]string{"run", "--env-file", "/does/not/exist"}, exitConfig, "", "make it from agent.env.example"},
		"no agent":      {[]string{"status", "--socket", "/does/not/exist"}, exitFailed, "", "autoscaler-agent: no agent answers on /does/not/exist"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errout bytes.Buffer
			code := execute(t.Context(), c.args, &out, &errout)
			if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errout.String(), c.errout) {
				t.Errorf("code %d, want %d\nout: %s\nerr: %s", code, c.code, out.String(), errout.String())
			}
			if code == exitUsage && !strings.Contains(errout.String(), "Usage:") && strings.Count(errout.String(), "\n") != 1 {
				t.Errorf("a wrong command line is answered with more than a line: %q", errout.String())
			}
		})
	}
}

// TestFindingsAreLines: one finding is one line, several are one line each.
func TestFindingsAreLines(t *testing.T) {
	t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
	t.Setenv("AUTOSCALER_LISTEN", "nowhere")
	var out, errout bytes.Buffer
	if code := execute(t.Context(), []string{"plan"}, &out, &errout); code != exitFailed || !strings.HasPrefix(errout.String(), "autoscaler-agent: configuration: AUTOSCALER_LISTEN is") || strings.Count(errout.String(), "\n") != 1 {
		t.Errorf("code %d, %q", code, errout.String())
	}
	t.Setenv("AUTOSCALER_LOG_LEVEL", "loud")
	errout.Reset()
	if code := execute(t.Context(), []string{"plan"}, &out, &errout); code != exitFailed || !strings.HasPrefix(errout.String(), "autoscaler-agent: configuration:\n  AUTOSCALER_") || strings.Count(errout.String(), "\n") != 3 {
		t.Errorf("code %d, %q", code, errout.String())
	}
}

// every calls f for each command of the tree with its words.
func every(t *testing.T, f func(c *cobra.Command, words []string)) {
	t.Helper()
	seen := 0
	var visit func(c *cobra.Command, words []string)
	visit = func(c *cobra.Command, words []string) {
		for _, sub := range c.Commands() {
			seen++
			path := append(slices.Clone(words), sub.Name())
			f(sub, path)
			visit(sub, path)
		}
	}
	visit(newRoot(), nil)
	if seen < 13 {
		t.Errorf("only %d commands", seen)
	}
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	every(t, func(c *cobra.Command, words []string) {
		var out, errout bytes.Buffer
		code := execute(t.Context(), append(slices.Clone(words), "--help"), &out, &errout)
		if code != exitOK || !strings.Contains(out.String(), "Examples:\n  ") || !strings.Contains(out.String(), "Usage:") || errout.Len() > 0 {
			t.Errorf("%v --help: code %d, out %q, err %q", words, code, out.String(), errout.String())
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || len(c.Short) > 90 {
			t.Errorf("%v: %q is no short description", words, c.Short)
		}
		for line := range strings.SplitSeq(c.Long, "\n") {
			if len(line) > 90 {
				t.Errorf("%v: the help has a line of %d characters: %s", words, len(line), line)
			}
		}
	})
}
