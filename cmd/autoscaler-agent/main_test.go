package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestDispatch(t *testing.T) {
	for name, c := range map[string]struct {
		args        []string
		code        int
		out, errout string
	}{
		"nothing":      {nil, exitUsage, "", "Usage:"},
		"help":         {[]string{"--help"}, exitOK, "Examples:", ""},
		"unknown":      {[]string{"frobnicate"}, exitUsage, "", `there is no command "frobnicate"`},
		"unknown flag": {[]string{"version", "--frobnicate"}, exitUsage, "", "frobnicate"},
		"too much":     {[]string{"version", "x"}, exitUsage, "", "one argument too many"},
		"version":      {[]string{"--version"}, exitOK, "autoscaler-agent ", ""},
		"json":         {[]string{"version", "--output", "json"}, exitOK, `"platform"`, ""},
		"policy":       {[]string{"iam-policy", "leader", "--cluster", "demo"}, exitOK, "autoscaling:SetDesiredCapacity", ""},
		"no such role": {[]string{"iam-policy", "root"}, exitUsage, "", "use leader or worker"},
		"env":          {[]string{"check", "--print-env"}, exitOK, "#AUTOSCALER_SCALING_UNNEEDED_FOR=10m", ""},
		"completion":   {[]string{"completion", "bash"}, exitOK, "complete -o default -F", ""},
		"no shell":     {[]string{"completion"}, exitUsage, "", "bash, zsh or fish"},
		"explain what": {[]string{"explain", "pod"}, exitUsage, "", "say what"},
		"no such kind": {[]string{"explain", "queen", "x"}, exitUsage, "", "say what"},
		"node what":    {[]string{"node", "frobnicate"}, exitUsage, "", "want restore"},
		"restore what": {[]string{"node", "restore"}, exitUsage, "", "say which node"},
		"restore none": {[]string{"node", "restore", "n", "--state-dir", "/does/not/exist"}, exitFailed, "", "no deleted Node n is kept"},
		"restore list": {[]string{"node", "restore", "--list", "--state-dir", "/does/not/exist"}, exitOK, "NAME", ""},
		"replay what":  {[]string{"replay"}, exitUsage, "", "say which file"},
		"no recording": {[]string{"replay", "/does/not/exist"}, exitFailed, "", "/does/not/exist"},
		"env file":     {[]string{"check", "--offline", "--env-file", "/does/not/exist"}, exitFailed, "/does/not/exist", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errout bytes.Buffer
			code := dispatch(t.Context(), c.args, &out, &errout)
			if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errout.String(), c.errout) {
				t.Errorf("code %d, want %d\nout: %s\nerr: %s", code, c.code, out.String(), errout.String())
			}
		})
	}
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	for _, c := range commands() {
		var out, errout bytes.Buffer
		if code := c.run(t.Context(), []string{"--help"}, &out, &errout); code != exitOK || !strings.Contains(out.String(), "Examples:") || errout.Len() > 0 {
			t.Errorf("%s --help: code %d, out %q, err %q", c.name, code, out.String(), errout.String())
		}
	}
}
