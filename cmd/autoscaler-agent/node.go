package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// stateDir is where the unit keeps its state (StateDirectory=).
const stateDir = "/var/lib/autoscaler-agent"

// adminConf is kubeadm's: the agent's own kubeconfig may not make Nodes.
const adminConf = "/etc/kubernetes/admin.conf"

const nodeUsage = `Bring back what operators had put on a Node that the nodecleaner deleted.

Usage:
  autoscaler-agent node restore NAME [flags]
  autoscaler-agent node restore --list [NAME] [flags]

Examples:
  autoscaler-agent node restore --list
  autoscaler-agent node restore ip-10-0-3-17.eu-west-1.compute.internal --dry-run
`

// nodeCommand is `autoscaler-agent node`.
func nodeCommand(ctx context.Context, args []string, out, errout io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errout, nodeUsage)
		return exitUsage
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		fmt.Fprint(out, nodeUsage)
		return exitOK
	case "restore":
		return nodeRestore(ctx, args[1:], out, errout)
	}
	fmt.Fprintf(errout, "autoscaler-agent node: unknown command %q: want restore\n", args[0])
	return exitUsage
}

// restoring is the command line of node restore.
type restoring struct {
	envFile, output      *string
	stateDir, kubeconfig string
	uid                  string
	list, force, dryRun  bool
	out, errout          io.Writer
}

func nodeRestore(ctx context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("node restore NAME", "Bring back what operators had put on a Node that the nodecleaner deleted: its labels,\nannotations, taints and cordon. A Node of that name that is there again gets them laid\nover; else a fresh Node object is made, unless the cloud says that its machine is gone.\nEvery deleted Node is kept in nodes/ of the state directory first.", `  autoscaler-agent node restore --list
  autoscaler-agent node restore ip-10-0-3-17.eu-west-1.compute.internal --dry-run
  autoscaler-agent node restore worker-3 --env-file /etc/autoscaler-agent/agent.env
  autoscaler-agent node restore worker-3 --uid 3f8e0c1e-6f0a-4c39-9d3b-6d1f1d5f7a10   # an older one
`, errout)
	r := restoring{envFile: envFileFlag(fs), output: outputFlag(fs), out: out, errout: errout}
	fs.BoolVar(&r.list, "list", false, "list what can be brought back, and change nothing")
	fs.BoolVar(&r.force, "force", false, "make the Node object although its machine is gone or cannot be looked for;\nit is reaped again unless it carries the annotation autoscaler-agent/keep")
	fs.BoolVar(&r.dryRun, "dry-run", false, "say what would come back, and change nothing")
	fs.StringVar(&r.uid, "uid", "", "the deleted Node's `uid`, where several had the name (default the newest)")
	fs.StringVar(&r.kubeconfig, "kubeconfig", "", "a `file` whose user may create and update Nodes (default KUBECONFIG, then "+adminConf+")")
	fs.StringVar(&r.stateDir, "state-dir", "", "the agent's state `directory` (default AUTOSCALER_STATE_DIR, then "+stateDir+")")
	names, code, done := parseNames(fs, args, out, errout)
	if done {
		return code
	}
	if len(names) > 1 || len(names) == 0 && !r.list {
		fmt.Fprint(errout, "autoscaler-agent node restore: say which node: node restore NAME (node restore --list shows them)\n")
		return exitUsage
	}
	if *r.envFile != "" {
		if err := agent.LoadEnvFile(*r.envFile); err != nil {
			return complain(errout, "configuration", err)
		}
	}
	if r.stateDir == "" {
		r.stateDir = os.Getenv(agent.Prefix + "_STATE_DIR")
	}
	if r.stateDir == "" {
		r.stateDir = stateDir
	}
	kept, err := agent.KeptNodes(r.stateDir)
	if err != nil && (kept == nil || !r.list) {
		return complain(errout, "kept nodes", err)
	}
	var found []agent.KeptNode
	for _, k := range kept {
		if (len(names) == 0 || k.Name == names[0]) && (r.uid == "" || k.UID == r.uid) {
			found = append(found, k)
		}
	}
	if r.list {
		return r.show(found, err)
	}
	if len(found) == 0 {
		return complain(errout, "restore", fmt.Errorf("no deleted Node %s is kept in %s/nodes (node restore --list shows those that are)", names[0], r.stateDir))
	}
	return r.restore(ctx, found[0])
}

func (r restoring) show(list []agent.KeptNode, fault error) int {
	code := exitOK
	if fault != nil {
		code = complain(r.errout, "kept nodes", fault)
	}
	if list == nil {
		list = []agent.KeptNode{}
	}
	if printed, done := printData(r.out, *r.output, list); done {
		return max(code, printed)
	}
	w := tabwriter.NewWriter(r.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tDELETED\tUID\tWHY")
	for _, k := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.Name, k.DeletedAt.UTC().Format(time.RFC3339), k.UID, k.Why)
	}
	_ = w.Flush() // out is a terminal or a pipe; nobody reads a broken one
	return code
}

func (r restoring) restore(ctx context.Context, k agent.KeptNode) int {
	cfg, err := agent.Load()
	if err != nil {
		return complain(r.errout, "configuration", err)
	}
	switch {
	case r.kubeconfig != "":
		cfg.Kubeconfig = r.kubeconfig
	case os.Getenv("KUBECONFIG") != "":
		cfg.Kubeconfig = os.Getenv("KUBECONFIG")
	default:
		if _, err := os.Stat(adminConf); err == nil {
			cfg.Kubeconfig = adminConf
		}
	}
	done, err := agent.RestoreNode(ctx, cfg, report.NewLogger("warning", r.errout), k, r.force, r.dryRun)
	if err != nil {
		return complain(r.errout, "restore", err)
	}
	if code, printed := printData(r.out, *r.output, done); printed {
		return code
	}
	word := done.Action
	if r.dryRun {
		word = "would be " + word
	}
	fmt.Fprintf(r.out, "node %s %s (deleted %s: %s)\n", done.Node, word, k.DeletedAt.UTC().Format(time.RFC3339), k.Why)
	for _, part := range []struct {
		name string
		keys []string
	}{{"labels", done.Labels}, {"annotations", done.Annotations}, {"taints", done.Taints}} {
		if len(part.keys) > 0 {
			fmt.Fprintf(r.out, "  %s: %s\n", part.name, strings.Join(part.keys, ", "))
		}
	}
	if done.Cordoned {
		fmt.Fprintln(r.out, "  cordoned")
	}
	return exitOK
}
