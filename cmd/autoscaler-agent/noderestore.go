package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// stateDir is where the unit keeps its state (StateDirectory=).
const stateDir = "/var/lib/autoscaler-agent"

// adminConf is kubeadm's kubeconfig: the agent's own one has no right to create Nodes.
const adminConf = "/etc/kubernetes/admin.conf"

func nodeRestoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "restore NAME",
		Short: "Bring back the labels, annotations, taints and cordon of a deleted Node",
		Long: `Bring back what operators had set on a Node that the nodecleaner deleted: its labels,
annotations, taints and cordon. A Node of that name that exists again gets them added.
Otherwise a new Node object is made, unless the cloud says that its machine is gone.
Every deleted Node is kept in nodes/ of the state directory first. The agent's user
can write there: labels and taints that no kubelet may give its own Node are refused
and named, annotations of others are left out, and no Node of the control plane is
touched.`,
		Example: `  autoscaler-agent node restore --list
  autoscaler-agent node restore ip-10-0-3-17.eu-west-1.compute.internal --dry-run
  autoscaler-agent node restore worker-3
  autoscaler-agent node restore worker-3 --uid 3f8e0c1e-6f0a-4c39-9d3b-6d1f1d5f7a10   # an older one`,
	}
	r := restoring{envFile: envFileFlag(c), output: outputFlag(c)}
	c.Flags().BoolVar(&r.list, "list", false, "list what can be brought back, and change nothing")
	c.Flags().BoolVar(&r.force, "force", false, "make the Node object although its machine is gone or cannot be looked up;\nthe nodecleaner deletes it again unless it has the annotation autoscaler-agent/keep")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "print what would come back, and change nothing")
	c.Flags().StringVar(&r.uid, "uid", "", "`uid` of the deleted Node, where several had the name (default the newest)")
	c.Flags().StringVar(&r.kubeconfig, "kubeconfig", "", "a `file` whose user may create and update Nodes (default KUBECONFIG, then "+adminConf+")")
	c.Flags().StringVar(&r.stateDir, "state-dir", "", "the agent's state `directory` (default AUTOSCALER_STATE_DIR, then "+stateDir+")")
	flagvalue.Against(c, "list", "force", "dry-run", "kubeconfig")
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 1 || len(args) == 0 && !r.list {
			return usagef(c, "say which node: node restore NAME (node restore --list shows them)")
		}
		return nil
	}
	c.ValidArgsFunction = r.complete
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := config.LoadEnvFile(*r.envFile); err != nil {
			return failed("configuration", err)
		}
		return r.run(c, strings.Join(args, ""))
	}
	return c
}

// restoring is the command line of node restore.
type restoring struct {
	envFile, output      *string
	stateDir, kubeconfig string
	uid                  string
	list, force, dryRun  bool
}

// state is the state directory: the flag's, the configured one or the unit's.
func (r *restoring) state() string {
	return cmp.Or(r.stateDir, os.Getenv(config.Prefix+"_STATE_DIR"), stateDir)
}

// run restores the newest deleted Node of a name, or lists all of that name. The empty
// name stands for every Node.
func (r *restoring) run(c *cobra.Command, name string) error {
	if _, err := os.Stat(r.state()); err != nil {
		return failed("kept nodes", fmt.Errorf("%w: name the agent's state directory with --state-dir", err))
	}
	kept, err := nodecleaner.Manifests(r.state())
	if err != nil && (kept == nil || !r.list) {
		return failed("kept nodes", err)
	}
	var found []nodecleaner.Kept
	for _, k := range kept {
		if (name == "" || k.Name == name) && (r.uid == "" || k.UID == r.uid) {
			found = append(found, k)
		}
	}
	if r.list {
		return r.show(c, found, err)
	}
	if len(found) == 0 {
		return failed("restore", fmt.Errorf("no deleted Node %s is kept in %s/nodes (node restore --list shows the Nodes that are)", name, r.state()))
	}
	return r.restore(c, found[0])
}

// complete completes the names of the Nodes that can be brought back.
func (r *restoring) complete(_ *cobra.Command, args []string, prefix string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	kept, _ := nodecleaner.Manifests(r.state()) // no names are offered after a failure
	for _, k := range kept {
		if len(args) == 0 && strings.HasPrefix(k.Name, prefix) && !slices.Contains(names, k.Name) {
			names = append(names, k.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (r *restoring) show(c *cobra.Command, list []nodecleaner.Kept, fault error) error {
	code := exitOK
	if fault != nil { // the Nodes that could be read are listed
		code = printError(c.ErrOrStderr(), failed("kept nodes", fault))
	}
	if list == nil {
		list = []nodecleaner.Kept{}
	}
	out := c.OutOrStdout()
	if done, err := printData(out, *r.output, list); done {
		return ends(code, err)
	}
	text.DeletedNodes(out, list)
	return ends(code, nil)
}

func (r *restoring) restore(c *cobra.Command, k nodecleaner.Kept) error {
	cfg, err := config.Load()
	if err != nil {
		return failed("configuration", err)
	}
	cfg.Kubeconfig = cmp.Or(r.kubeconfig, os.Getenv("KUBECONFIG"), cfg.Kubeconfig)
	if _, err := os.Stat(adminConf); err == nil && r.kubeconfig == "" && os.Getenv("KUBECONFIG") == "" {
		cfg.Kubeconfig = adminConf
	}
	done, err := oneshot.RestoreNode(c.Context(), cfg, report.NewLogger("warning", c.ErrOrStderr()), k, r.force, r.dryRun)
	if err != nil {
		return failed("restore", err)
	}
	refused := error(nil)
	if len(done.Refused) > 0 {
		refused = failed("restore", fmt.Errorf("refused: %s: no kubelet may give them to its own Node, so that a file of the agent's state directory does not either; where they are right, kubectl label or kubectl taint sets them", strings.Join(done.Refused, ", ")))
	}
	out := c.OutOrStdout()
	if printed, err := printData(out, *r.output, done); printed {
		return errors.Join(err, refused)
	}
	word := done.Action
	if r.dryRun {
		word = "would be " + word
	}
	fmt.Fprintf(out, "node %s %s (deleted %s: %s)\n", done.Node, word, k.DeletedAt.UTC().Format(time.RFC3339), k.Why)
	for _, part := range []struct {
		name string
		keys []string
	}{{"labels", done.Labels}, {"annotations", done.Annotations}, {"taints", done.Taints}, {"left out", done.LeftOut}} {
		if len(part.keys) > 0 {
			fmt.Fprintf(out, "  %s: %s\n", part.name, strings.Join(part.keys, ", "))
		}
	}
	if done.Cordoned {
		fmt.Fprintln(out, "  cordoned")
	}
	return refused
}
