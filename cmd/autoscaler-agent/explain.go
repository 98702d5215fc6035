package main

import (
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/agentsocket"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

func explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain pod|node|group|csr|instance NAME",
		Short: "Explain what becomes of a pod, node, node group, csr or instance, and why",
		Long: `Explain by rule ID why a pod waits, why a node stays or goes, why a node group does
not change, how a certificate request is judged, why an instance has not joined the
cluster (on EC2 and Nova also by its user data and console). The running agent answers;
where none runs, the command reads the cluster and the cloud itself, as plan does. The
exit code is 1 when there is nothing of that name.`,
		Example: `  autoscaler-agent explain pod default/web-7d4b9c-x2x9k
  autoscaler-agent explain node ip-10-0-3-17.eu-west-1.compute.internal
  autoscaler-agent explain group workers --output yaml
  autoscaler-agent explain csr csr-8vnps
  autoscaler-agent explain instance i-0123456789abcdef0
  autoscaler-agent explain pod web-0 --output json | jq -r '.pod.groups.refusals[] | .name + ": " + .why'`,
		Args: func(c *cobra.Command, args []string) error {
			_, _, err := subject(c, args)
			return err
		},
	}
	x := explaining{envFile: envFileFlag(c), output: outputFlag(c), socket: socketFlag(c)}
	c.Flags().BoolVar(&x.dry, "dry", false, "read the cluster and the cloud without asking the running agent")
	c.MarkFlagsMutuallyExclusive("dry", "socket")
	c.ValidArgsFunction = completeSubject(x.envFile, x.socket)
	c.RunE = func(c *cobra.Command, args []string) error {
		kind, name, err := subject(c, args)
		switch {
		case err != nil:
			return err
		case kind == "csr":
			return x.csr(c, name)
		case kind == "instance":
			return x.instance(c, name)
		}
		return x.explain(c, kind, name)
	}
	return c
}

// explaining is the command line of explain.
type explaining struct {
	envFile, output, socket *string
	dry                     bool
}

// subject reads "pod NAME" or "pod/NAME".
func subject(c *cobra.Command, args []string) (kind, name string, err error) {
	if len(args) == 1 {
		if kind, name, ok := strings.Cut(args[0], "/"); ok && kindOf(kind) != "" {
			args = []string{kind, name}
		}
	}
	if len(args) != 2 || kindOf(args[0]) == "" || args[1] == "" {
		return "", "", usagef(c, "say what: explain pod NAME, explain node NAME, explain group NAME, explain csr NAME or explain instance ID")
	}
	return kindOf(args[0]), args[1], nil
}

func (x explaining) explain(c *cobra.Command, kind, name string) error {
	var found localapi.Explanation
	answered, err := x.ask(c, kind, name, &found)
	if err != nil {
		return err
	}
	if !answered {
		cfg, err := load(*x.envFile)
		if err != nil {
			return failed("configuration", err)
		}
		stop := text.Progress(c.ErrOrStderr(), "reading the cluster and the cloud")
		found, err = oneshot.Explain(c.Context(), cfg, report.NewLogger("warning", c.ErrOrStderr()), kind, name)
		stop()
		if err != nil {
			return failed("explain", err)
		}
	}
	return printExplained(c.OutOrStdout(), *x.output, found, found.Found, text.Explanation)
}

// ask asks the running agent, unless told not to. It is no error where none runs.
func (x explaining) ask(c *cobra.Command, kind, name string, v any) (answered bool, err error) {
	if x.dry {
		return false, nil
	}
	socketOf(x.socket, *x.envFile)
	err = agentsocket.Ask(c.Context(), *x.socket, "/explain?"+url.Values{"kind": {kind}, "name": {name}}.Encode(), v)
	switch {
	case err == nil:
		return true, nil
	case agentsocket.NotRunning(err):
		lookFromHere(c.ErrOrStderr(), *x.socket)
		return false, nil
	}
	return false, noAnswer(*x.socket, err)
}

// printExplained prints x as data, or for people.
func printExplained[X any](out io.Writer, format string, x X, found bool, print func(io.Writer, X)) error {
	done, err := printData(out, format, x)
	if !done {
		print(out, x)
	}
	if err == nil && !found {
		return exitCode(exitFailed)
	}
	return err
}

// kindOf reads a kind in the spellings of kubectl, and returns "" for an unknown one.
func kindOf(word string) string { return kinds[strings.ToLower(word)] }

var kinds = map[string]string{
	"pod": "pod", "pods": "pod", "po": "pod", "node": "node", "nodes": "node", "no": "node", "headroom": "headroom",
	"csr": "csr", "csrs": "csr", "certificatesigningrequest": "csr", "certificatesigningrequests": "csr",
	"instance": "instance", "instances": "instance", "group": "group", "groups": "group", "nodegroup": "group", "ng": "group",
}
