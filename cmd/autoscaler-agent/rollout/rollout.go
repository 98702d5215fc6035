// Package rollout has the commands by which operators look at rollouts of node groups and give orders to them (rollout status, pause,
// resume, start, back), and ask for the replacement of one node (node replace).
//
// It refuses to replace a machine: an order is written where each leader reads it, and the agent acts by its own rules. Only rollout
// back changes something in the cloud: what a group starts, by the word of a person.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/agentsocket"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/text"
)

// Shell is what all commands have in common.
type Shell struct {
	Parent  func(*cobra.Command) *cobra.Command // a command that only has subcommands
	EnvFile func(*cobra.Command) *string        // declares --env-file
	Output  func(*cobra.Command) *string        // declares --output
	Socket  func(*cobra.Command) *string        // declares --socket
	// Print prints what is for programs; done tells that the format is one of theirs.
	Print  func(out io.Writer, format string, v any) (done bool, err error)
	Failed func(step string, err error) error
	Usage  func(c *cobra.Command, format string, args ...any) error
	// NoAnswer is a failure to ask the running agent; FromHere says that the command goes on without it.
	NoAnswer func(socket string, err error) error
	FromHere func(errout io.Writer, socket string)
	Names    func(c *cobra.Command, envFile, socket *string, kind, prefix string) []cobra.Completion
}

// Command is rollout.
func Command(sh Shell) *cobra.Command {
	c := sh.Parent(&cobra.Command{
		Use:   "rollout",
		Short: "Look at the replacement of machines, pause it, and let it go on",
		Long: `Look at how the machines of node groups are replaced (a new image, launch template or
user data), pause it, let it go on after a halt, and start it where
AUTOSCALER_SCALING_DRIFT is off. An order is kept on the agent's Lease: it holds for
each agent that leads, and outlives restarts. Any machine with an agent can give it.`,
		Example: `  autoscaler-agent rollout status
  autoscaler-agent rollout pause workers --reason "the new image is looked at"
  autoscaler-agent rollout resume workers`,
	})
	c.AddCommand(statusCommand(sh), pauseCommand(sh), resumeCommand(sh), startCommand(sh), backCommand(sh))
	return c
}

// call is one command line.
type call struct {
	Shell
	envFile, output, socket *string
	all                     bool
}

// newCall declares the flags. kind is what the argument names; all says what --all means, "": there is no such flag.
func newCall(sh Shell, c *cobra.Command, kind, all string) *call {
	x := &call{Shell: sh, envFile: sh.EnvFile(c), output: sh.Output(c), socket: sh.Socket(c)}
	if all != "" {
		c.Flags().BoolVar(&x.all, "all", false, all)
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return sh.Names(c, x.envFile, x.socket, kind, prefix), cobra.ShellCompDirectiveNoFileComp
	}
	return x
}

// one refuses a command line without one group, or, where there is such a flag, without --all.
func (x *call) one(c *cobra.Command, args []string) error {
	switch flag := c.Flags().Lookup("all"); {
	case x.all && len(args) > 0:
		return x.Usage(c, "say a group or --all, not both")
	case len(args) > 1 || len(args) == 0 && flag == nil:
		return x.Usage(c, "say which group: %s GROUP (rollout status lists them)", c.CommandPath())
	case len(args) == 0 && !x.all:
		return x.Usage(c, "say which group, or --all: %s GROUP (rollout status lists them)", c.CommandPath())
	}
	return nil
}

// ask asks the running agent; where none runs, it looks at the cluster and the cloud itself.
func (x *call) ask(c *cobra.Command, group string) (list decision.Rollouts, err error) {
	if *x.socket == "" {
		*x.socket = config.SocketPath(*x.envFile)
	}
	err = agentsocket.Ask(c.Context(), *x.socket, localapi.RolloutsPath+"?"+url.Values{"group": {group}}.Encode(), &list)
	switch {
	case err == nil:
		return list, nil
	case agentsocket.NotRunning(err):
		x.FromHere(c.ErrOrStderr(), *x.socket)
	default:
		return list, x.NoAnswer(*x.socket, err)
	}
	cfg, err := config.LoadWith(*x.envFile)
	if err != nil {
		return list, x.Failed("configuration", err)
	}
	stop := text.Progress(c.ErrOrStderr(), "reading the cluster and the cloud")
	list, err = oneshot.Rollouts(c.Context(), cfg, report.NewLogger("warning", c.ErrOrStderr()), group)
	stop()
	if err != nil {
		err = x.Failed("rollout", err)
	}
	return list, err
}

func statusCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{
		Use:   "status [GROUP]",
		Short: "Tell how far machines are replaced, and what holds it",
		Long: `Tell of each node group how many machines are of the present source (image, launch
template, user data ...) and differ in nothing, how many nodes are to be replaced and
for which reason, which is the first machine of a new source, why a rollout is paused
or halted, and when a disruption budget lets nodes go again.`,
		Example: `  autoscaler-agent rollout status
  autoscaler-agent rollout status workers
  autoscaler-agent rollout status --output json | jq -r '.rollouts[] | select(.state == "halted") | .group'`,
	}
	x := newCall(sh, c, "group", "")
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return x.Usage(c, "say one group, or none for all")
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		list, err := x.ask(c, strings.Join(args, ""))
		if err != nil {
			return err
		}
		done, err := x.Print(c.OutOrStdout(), *x.output, list)
		if !done {
			text.Rollouts(c.OutOrStdout(), list)
		}
		return err
	}
	return c
}

// Ordered is what a command that gives an order prints for programs. The names of its fields are promises.
type Ordered struct {
	Group   cluster.GroupID `json:"group"` // empty: all groups
	Order   string          `json:"order"` // "pause", "resume", "start"
	Changed bool            `json:"changed"`
	Source  string          `json:"source,omitempty"`
	Text    string          `json:"text"`
}

// order changes the orders of one group on the Lease and prints what became of it.
func (x *call) order(c *cobra.Command, done Ordered, change func(*cluster.RolloutOrder)) error {
	cfg, err := config.LoadWith(*x.envFile)
	if err != nil {
		return x.Failed("configuration", err)
	}
	err = oneshot.OrderRollout(c.Context(), cfg, func(orders cluster.RolloutOrders) {
		o := orders[done.Group]
		before := o
		change(&o)
		orders[done.Group], done.Changed = o, o != before
	})
	if err != nil {
		return x.Failed("rollout "+done.Order, err)
	}
	if !done.Changed {
		done.Text += " (it was so before)"
	}
	printed, err := x.Print(c.OutOrStdout(), *x.output, done)
	if !printed {
		fmt.Fprintln(c.OutOrStdout(), done.Text)
	}
	return err
}

// subject is the group that the arguments name, as the agent knows it; with --all there is none.
func (x *call) subject(c *cobra.Command, args []string) (decision.Rollout, error) {
	if x.all {
		return decision.Rollout{Group: cluster.AllGroups}, nil
	}
	list, err := x.ask(c, args[0])
	if err != nil {
		return decision.Rollout{}, err
	}
	if len(list.Rollouts) != 1 || string(list.Rollouts[0].Group) != args[0] { // an order for another group would be carried out
		return decision.Rollout{}, x.Failed("rollout", errors.New(localapi.NoGroup(args[0])))
	}
	return list.Rollouts[0], nil
}

func whose(g cluster.GroupID) string {
	if g == cluster.AllGroups {
		return "each rollout"
	}
	return "the rollout of group " + string(g)
}

// longestReason is how many bytes of a pause's reason are kept: it is told wherever the pause is, and
// the Lease that keeps it has room for those of all groups.
const longestReason = 500

func pauseCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{
		Use:   "pause GROUP | --all",
		Short: "Replace no drifted and no expired node until it is resumed",
		Long: `Replace no drifted and no expired node of a group, or of all groups, until rollout
resume. The cordon of a node that is being drained for that is taken back. Sick nodes,
and nodes whose replacement somebody asked for, are replaced as before.`,
		Example: `  autoscaler-agent rollout pause workers
  autoscaler-agent rollout pause workers --reason "the new image is looked at"
  autoscaler-agent rollout pause --all --reason "incident 4711"`,
	}
	x := newCall(sh, c, "group", "pause the rollouts of all groups, also of those that come later")
	reason := c.Flags().String("reason", "", "a `text` that is told wherever the pause is")
	c.Args = func(c *cobra.Command, args []string) error {
		if n := len(*reason); n > longestReason {
			return x.Usage(c, "--reason has %d bytes: write at most %d", n, longestReason)
		}
		return x.one(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		g, err := x.subject(c, args)
		if err != nil {
			return err
		}
		back := string(g.Group)
		if x.all {
			back = "--all"
		}
		done := Ordered{Group: g.Group, Order: "pause", Text: fmt.Sprintf("%s is paused; `autoscaler-agent rollout resume %s` lets it go on", whose(g.Group), back)}
		return x.order(c, done, func(o *cluster.RolloutOrder) {
			if !o.Paused {
				o.Paused, o.Since = true, time.Now().UTC().Truncate(time.Second)
			}
			if c.Flags().Changed("reason") {
				o.Reason = *reason
			}
		})
	}
	return c
}

func resumeCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{
		Use:   "resume GROUP | --all",
		Short: "Let a rollout go on that is paused or halted",
		Long: `Let the rollout of a group go on. A pause ends. A rollout that was halted, because the
first machine of its source did not come or pods crash on it, goes on with that source
without another trial: within the disruption budgets, and until the group gets another
source. With --all the pause of all groups ends; groups that were paused or halted
alone stay so.`,
		Example: `  autoscaler-agent rollout resume workers
  autoscaler-agent rollout resume --all`,
	}
	x := newCall(sh, c, "group", "end the pause of all groups")
	c.Args = x.one
	c.RunE = func(c *cobra.Command, args []string) error {
		g, err := x.subject(c, args)
		if err != nil {
			return err
		}
		done := Ordered{Group: g.Group, Order: "resume", Text: whose(g.Group) + " goes on"}
		if g.State == decision.RolloutHalted {
			done.Source, done.Text = g.Source, fmt.Sprintf("%s goes on with source %s", whose(g.Group), g.Source)
		}
		return x.order(c, done, func(o *cluster.RolloutOrder) {
			o.Paused, o.Since, o.Reason = false, time.Time{}, ""
			if done.Source != "" {
				o.Resumed = done.Source
			}
		})
	}
	return c
}

func startCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{
		Use:   "start GROUP",
		Short: "Replace the machines that differ from what the group starts now",
		Long: `Replace the nodes of a group that are not what the group starts now, as
AUTOSCALER_SCALING_DRIFT does, for its present source alone: the first machine is a
trial, disruption budgets hold. Another source needs another start. rollout pause
stops it.`,
		Example: "  autoscaler-agent rollout start workers",
	}
	x := newCall(sh, c, "group", "")
	c.Args = x.one
	c.RunE = func(c *cobra.Command, args []string) error {
		g, err := x.subject(c, args)
		if err != nil {
			return err
		}
		if g.Source == "" {
			return x.Failed("rollout start", fmt.Errorf("the provider of group %s does not tell what its machines are started from: use node replace NAME", g.Group))
		}
		done := Ordered{Group: g.Group, Order: "start", Source: g.Source, Text: fmt.Sprintf("machines of group %s that are not of source %s are replaced", g.Group, g.Source)}
		return x.order(c, done, func(o *cluster.RolloutOrder) { o.Started = g.Source })
	}
	return c
}

// ReplaceCommand is node replace.
func ReplaceCommand(sh Shell) *cobra.Command {
	c := &cobra.Command{
		Use:   "replace NAME",
		Short: "Ask for the replacement of one node",
		Long: `Ask for the replacement of one node: where its pods have no room elsewhere, a machine
of its group is ordered first; then it is drained, and its machine ended.
PodDisruptionBudgets and annotations that protect pods hold. The wish is the
annotation autoscaler-agent/replace-requested of the Node; explain node NAME tells
what it waits for.`,
		Example: `  autoscaler-agent node replace worker-3
  autoscaler-agent node replace worker-3 --cancel`,
	}
	x := newCall(sh, c, "node", "")
	cancel := c.Flags().Bool("cancel", false, "take the wish back; a drain that has begun is taken back too")
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return x.Usage(c, "say which node: node replace NAME (nodes lists them)")
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return x.replace(c.Context(), c.OutOrStdout(), args[0], *cancel)
	}
	return c
}

// Replacing is what node replace prints for programs. The names of its fields are promises.
type Replacing struct {
	Node      string `json:"node"`
	Requested bool   `json:"requested"`
	Changed   bool   `json:"changed"`
}

func (x *call) replace(ctx context.Context, out io.Writer, name string, back bool) error {
	cfg, err := config.LoadWith(*x.envFile)
	if err != nil {
		return x.Failed("configuration", err)
	}
	changed, err := oneshot.ReplaceNode(ctx, cfg, name, back)
	if err != nil {
		return x.Failed("node replace", err)
	}
	printed, err := x.Print(out, *x.output, Replacing{name, !back, changed})
	if printed {
		return err
	}
	words := fmt.Sprintf("node %s is to be replaced; `autoscaler-agent explain node %s` tells what it waits for", name, name)
	if back {
		words = fmt.Sprintf("nobody asks for the replacement of node %s any more", name)
	}
	if !changed {
		words += " (it was so before)"
	}
	fmt.Fprintln(out, words)
	return nil
}
