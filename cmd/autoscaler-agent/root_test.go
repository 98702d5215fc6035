package main

import (
	"bytes"
	"os"
	"path/filepath"
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
		"no number":     {[]string{"userdata", "render", "--max-pods", "many"}, exitUsage, "", `--max-pods is "many": invalid syntax: write a whole number`},
		"no switch":     {[]string{"check", "--offline=perhaps"}, exitUsage, "", `--offline is "perhaps"`},
		"too much":      {[]string{"version", "x"}, exitUsage, "", "one argument too many"},
		"version":       {[]string{"--version"}, exitOK, "autoscaler-agent ", ""},
		"-version":      {[]string{"-version"}, exitOK, "autoscaler-agent ", ""},
		"json":          {[]string{"version", "--output", "json"}, exitOK, `"platform"`, ""},
		"yaml":          {[]string{"version", "--output=yaml"}, exitOK, "platform: ", ""},
		"one dash":      {[]string{"version", "-output", "json"}, exitOK, `"platform"`, ""},
		"one dash =":    {[]string{"version", "-output=json"}, exitOK, `"platform"`, ""},
		"policy":        {[]string{"iam-policy", "leader", "--cluster", "demo"}, exitOK, "autoscaling:SetDesiredCapacity", ""},
		"flag first":    {[]string{"iam-policy", "-cluster", "demo"}, exitOK, "autoscaling:SetDesiredCapacity", ""},
		"no such role":  {[]string{"iam-policy", "root"}, exitUsage, "", "use leader or worker"},
		"env":           {[]string{"check", "--print-env"}, exitOK, "#AUTOSCALER_SCALING_UNNEEDED_FOR=10m", ""},
		"no shell":      {[]string{"completion"}, exitUsage, "", "bash, zsh or fish"},
		"explain what":  {[]string{"explain", "pod"}, exitUsage, "", "say what"},
		"no such kind":  {[]string{"explain", "queen", "x"}, exitUsage, "", "say what"},
		"node":          {[]string{"node"}, exitUsage, "", "Usage:"},
		"node what":     {[]string{"node", "frobnicate"}, exitUsage, "", "autoscaler-agent node: there is no command"},
		"restore what":  {[]string{"node", "restore"}, exitUsage, "", "say which node"},
		"restore none":  {[]string{"node", "restore", "n", "--state-dir", "/does/not/exist"}, exitFailed, "", "no deleted Node n is kept"},
		"names between": {[]string{"node", "restore", "--state-dir", "/does/not/exist", "n", "-dry-run"}, exitFailed, "", "no deleted Node n is kept"},
		"restore list":  {[]string{"node", "restore", "--list", "--state-dir", "/does/not/exist"}, exitOK, "NAME", ""},
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

// TestBadInputs: what an operator may write wrong is one clear line each, the exit code is that
// of a wrong configuration, and the file stays as it is.
func TestBadInputs(t *testing.T) {
	const groupsFile = "AUTOSCALER_GROUPS_FILE"
	setting := func(name, value string) [2]string {
		return [2]string{"AUTOSCALER_" + name + "=" + value + "\n", "AUTOSCALER_" + name}
	}
	cases := [][2]string{
		{"AUTOSCALER_LISTEN: off\n", "AUTOSCALER_LISTEN=VALUE"}, {"export AUTOSCALER_LISTEN=off\n", "without export"},
		{"autoscaler_listen=off\n", "did you mean AUTOSCALER_LISTEN?"}, {"AUTOSCALE_LISTEN=off\n", "did you mean AUTOSCALER_LISTEN?"},
		{"AUTOSCALER_LISTN=off\n", "did you mean AUTOSCALER_LISTEN?"}, {"--expander=price\n", "AUTOSCALER_SCALING_EXPANDER"},
		{"AUTOSCALER_EXPANDER=price\n", "did you mean AUTOSCALER_SCALING_EXPANDER?"}, {"AUTOSCALER_MAX_NODES_TOTAL=3\n", "did you mean AUTOSCALER_SCALING_MAX_NODES_TOTAL?"},
		{"SCALE_DOWN_ENABLED=false\n", "AUTOSCALER_SCALING_SCALE_DOWN"}, {"AUTOSCALER_LISTEN\n", "with = after the name"}, {"what\n", "NAME=VALUE"},
		setting("LISTEN", "127.0.0.1:99999"), setting("LISTEN", "127.0.0.1:http-x"), setting("LOG_LEVEL", "panic"), setting("SCALING_MAX_NODES_TOTAL", "-1"), setting("SCALING_MAX_CORES_TOTAL", "-1"), setting("SCALING_MAX_MEMORY_TOTAL", "-1"),
		setting("SCALING_MIN_CORES_TOTAL", "-1"), setting("SCALING_MAX_TOTAL_UNREADY_PERCENT", "450"), setting("SCALING_UTILIZATION_THRESHOLD", "NaN"), [2]string{"AUTOSCALER_SCALING_BACKOFF_INITIAL=2h\n", "AUTOSCALER_SCALING_BACKOFF_MAX"},
		setting("SCALING_OK_TOTAL_UNREADY", "-1"), setting("SCALING_MAX_EMPTY_AT_ONCE", "-1"), setting("SCALING_MAX_DRAIN_AT_ONCE", "-1"), setting("SCALING_MAX_POD_EVICTION_TIME", "-1s"),
		setting("SCALING_UNREADY_FOR", "-1s"), setting("SCALING_DELAY_AFTER_ADD", "-1s"), setting("SCALING_DELAY_AFTER_FAILURE", "-1s"), setting("SCALING_NEW_POD_DELAY", "-1s"), setting("SCALING_MAX_NODE_PROVISION_TIME", "0s"),
		setting("SCALING_BACKOFF_RESET", "-1s"), setting("SCALING_MAX_GRACEFUL_TERMINATION", "-1s"), setting("SCALING_MAX_BULK_SOFT_TAINT_COUNT", "-1"), setting("SCALING_FRESH_FOR", "-1s"),
		setting("SCALING_CONSOLIDATE", "perhaps"), setting("SCALING_CONSOLIDATE_SAVING", "2"), setting("SCALING_CONSOLIDATE_AFTER", "-1s"), setting("SCALING_DELAY_AFTER_TAINT", "-1s"), setting("SCALING_MAX_NODE_STARTUP_TIME", "-1s"),
		setting("KUBELET_MAX_PODS", "-1"), setting("KUBELET_MAX_PODS", "0"), setting("OBSERVE_FAST", "0s"), setting("OBSERVE_TIMEOUT", "0s"), setting("CSR_PER_NODE_HOUR", "-1"), setting("NODECLEANER_MAX_SHARE", "2"), setting("NODECLEANER_GRACE", "-1s"),
		setting("CSR_ALARM_PENDING", "-1"), setting("CSR_JOIN_WINDOW", "-1s"), setting("CSR_WARN_AFTER", "-1s"), setting("CSR_MAX_EXPIRATION", "-1s"), setting("CSR_INVENTORY_MAX_AGE", "-1s"), setting("NODECLEANER_MASS_HOLD", "-1s"), setting("NODECLEANER_BREAK_ERRORS", "-1"),
		setting("AWS_VM_MEMORY_OVERHEAD_PERCENT", "450"), setting("AWS_TIMEOUT", "0s"), setting("LEASE_RETRY_PERIOD", "0s"), setting("NODECLEANER_MAX_SHARE", "NaN"),
		setting("LISTEN", "8085"), setting("LISTEN", "nowhere"), setting("LOG_LEVEL", "loud"), setting("STATE_DIR", "relative"), setting("PROVIDER", "azure"),
		setting("PROVIDER", "asg,,nova"), setting("SCALING_EXPANDER", "cheapest"), setting("SCALING_UNNEEDED_FOR", "10"), setting("SCALING_UNNEEDED_FOR", "-1m"),
		setting("SCALING_SCALE_DOWN", "maybe"), setting("SCALING_MAX_NODES_TOTAL", "many"), setting("SCALING_UTILIZATION_THRESHOLD", "1.5"),
		setting("SCALING_GPU_TOTAL", "x"), setting("SCALER_IDLE", "0s"), setting("SCALER_CAP", "1ms"), setting("SCALER_QUIET", "-1s"), setting("LEASE_DURATION", "1s"), setting("LEASE_RENEW_DEADLINE", "1s"),
		setting("OBSERVE_SLOW", "1s"), setting("KUBELET_KUBE_RESERVED", "cpu=lots"), setting("KUBELET_EVICTION_HARD", "memory.available<5%"),
		setting("CSR_JOIN", "clsoed"), setting("CSR_EXTRA_NAMES", "fixed.example.org"), setting("NODECLEANER_MODE", "destroy"), setting("BOOTSTRAP_TOKEN_TTL", "9000h"),
	}
	for _, c := range cases {
		t.Run(c[0], func(t *testing.T) {
			badInput(t, c[0], "", c[1])
		})
	}
	for _, c := range [][2]string{
		{"groups: [", "YAML"}, {"groups: {a: {prise: 1}}", "did you mean price?"}, {"groups: {a: {price: -1}}", "price"}, {"groups: {a: {pause: perhaps}}", "pause"},
		{"groups: {a: {options: {scaleDownUtilizationThreshold: 5}}}", "scaleDownUtilizationThreshold"}, {"groups: {a: {min: 1}}", "min"}, {"gruops: {}", "gruops"},
		{"headroom: [{cpu: 1}]", "name"}, {"headroom: [{name: a}]", "how much"}, {"headroom: [{name: a, cpu: 1, schedule: [{timeZone: Mars/X}]}]", "Mars/X"},
		{"groups: {a: {}, a: {}}", "already"}, {"machines: [{nod: x}]", "machines"},
	} {
		t.Run(c[0], func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "groups.yaml")
			if err := os.WriteFile(file, []byte(c[0]), 0o600); err != nil {
				t.Fatal(err)
			}
			badInput(t, groupsFile+"="+file+"\n", file, c[1])
		})
	}
}

func badInput(t *testing.T, text, file, want string) {
	t.Helper()
	for _, pair := range os.Environ() { // restored at the end of the test
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AUTOSCALER_") {
			t.Setenv(name, value)
			_ = os.Unsetenv(name)
		}
	}
	for line := range strings.SplitSeq(text, "\n") { // what the command sets is put back
		if name, _, ok := strings.Cut(line, "="); ok && strings.HasPrefix(name, "AUTOSCALER_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("AUTOSCALER_AWS_CLUSTER_NAME", "demo")
	env := filepath.Join(t.TempDir(), "agent.env")
	if err := os.WriteFile(env, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errout bytes.Buffer
	code := execute(t.Context(), []string{"run", "--env-file", env}, &out, &errout)
	if code != exitConfig || !strings.Contains(errout.String(), want) || !strings.Contains(errout.String(), file) {
		t.Errorf("code %d, want %d and %q: %s", code, exitConfig, want, errout.String())
	}
	if n := strings.Count(errout.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, errout.String())
	}
	if after, err := os.ReadFile(env); err != nil || string(after) != text {
		t.Errorf("the file is %q, %v", after, err)
	}
}
