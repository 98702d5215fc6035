package main

import (
	"context"
	"fmt"
	"io"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
)

func checkCommand(ctx context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("check", "Check everything that the agent needs: configuration, kubeconfig, rights, cloud\ncredentials, node groups. Exits 1 when a finding is an error.", `  autoscaler-agent check --env-file /etc/autoscaler-agent/agent.env
  autoscaler-agent check --offline          speak to nobody
  autoscaler-agent check --kubelets         may --kubelet-certificate-authority be switched on?
  autoscaler-agent check --output json | jq '.[] | select(.level == "error")'
  autoscaler-agent check --print-env > agent.env
`, errout)
	envFile, output := envFileFlag(fs), outputFlag(fs)
	offline := fs.Bool("offline", false, "check the configuration only; speak to nobody")
	kubelets := fs.Bool("kubelets", false, "also dial every Ready node's kubelet and verify its certificate")
	printEnv := fs.Bool("print-env", false, "print every setting with its default, as an environment file")
	if code, done := parse(fs, args, out, errout); done {
		return code
	}
	if *printEnv {
		fmt.Fprint(out, agent.EnvExample())
		return exitOK
	}
	cfg, err := load(*envFile)
	findings := agent.Check(ctx, cfg, err, *offline)
	if *kubelets && !*offline && err == nil {
		findings = append(findings, agent.CheckKubelets(ctx, cfg)...)
	}
	code := exitOK
	for _, f := range findings {
		if f.Level == agent.LevelError {
			code = exitFailed
		}
	}
	if printed, done := printData(out, *output, findings); done {
		return max(code, printed)
	}
	printFindings(out, findings)
	return code
}
