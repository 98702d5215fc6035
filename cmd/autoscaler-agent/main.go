// Command autoscaler-agent scales the worker machines of a kubeadm cluster from its
// control-plane machine.
//
// This is the roof: environment, arguments and signals in, exit code out. Each
// subcommand has a file of its own; none of them holds a decision about machines.
// It refuses a subcommand or a flag that it does not know.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // it was tried and failed, or a check found an error
	exitUsage  = 2 // it was asked for wrongly
	// exitConfig is EX_CONFIG of sysexits.h: the unit is not started again before
	// somebody mends the configuration (RestartPreventExitStatus=).
	exitConfig = 78
)

// command is one subcommand.
type command struct {
	name  string
	short string
	run   func(ctx context.Context, args []string, out, errout io.Writer) int
}

func commands() []command {
	return []command{
		{"run", "run the agent (what the systemd unit starts)", runCommand},
		{"check", "check configuration, credentials, rights, cloud and cluster", checkCommand},
		{"plan", "print what one round would do and why, changing nothing", planCommand},
		{"status", "print what the running agent does now", statusCommand},
		{"explain", "say why a pod waits, a node stays or goes, a group does not change, how a csr is judged", explainCommand},
		{"node", "bring back what operators had put on a deleted Node", nodeCommand},
		{"replay", "decide recorded rounds once more and compare", replayCommand},
		{"userdata", "render the workers' user data", userdataCommand},
		{"iam-policy", "print the minimal AWS policy of the agent", iamPolicyCommand},
		{"completion", "print a script that completes commands in a shell", completionCommand},
		{"version", "print the version", versionCommand},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func dispatch(ctx context.Context, args []string, out, errout io.Writer) int {
	if len(args) == 0 {
		help(errout)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		help(out)
		return exitOK
	case "-version", "--version":
		args[0] = "version"
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:], out, errout)
		}
	}
	fmt.Fprintf(errout, "autoscaler-agent: there is no command %q\n\n", args[0])
	help(errout)
	return exitUsage
}

func help(w io.Writer) {
	fmt.Fprint(w, "autoscaler-agent scales the worker machines of a kubeadm cluster.\n\nUsage:\n  autoscaler-agent COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-11s %s\n", c.name, c.short)
	}
	fmt.Fprint(w, `
Examples:
  systemctl enable --now autoscaler-agent
  autoscaler-agent check --env-file /etc/autoscaler-agent/agent.env
  autoscaler-agent plan --env-file /etc/autoscaler-agent/agent.env
  autoscaler-agent explain pod default/web-7d4b9c-x2x9k
  journalctl -t autoscaler-agent -f

'autoscaler-agent COMMAND --help' explains a command with examples.
Settings are AUTOSCALER_* variables; 'autoscaler-agent check --print-env' lists them.
`)
}
