package main

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// namedNodes is the number of nodes that a table names for one reason.
const namedNodes = 3

func explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain pod|node|group|csr|instance NAME",
		Short: "Explain what becomes of a pod, node, node group, csr or instance, and why",
		Long: `Explain by rule ID why a pod waits, why a node stays or goes, why a node group does
not change, how a certificate request is judged, how far an instance came on its way to
the cluster (by its console, on EC2 and Nova). The running agent answers; where none
runs, the command reads the cluster and the cloud itself, as plan does. The exit code
is 1 when there is nothing of that name.`,
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
	if len(args) != 2 || kindOf(args[0]) == "" {
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
		if found, err = oneshot.Explain(c.Context(), cfg, report.NewLogger("warning", c.ErrOrStderr()), kind, name); err != nil {
			return failed("explain", err)
		}
	}
	return printExplained(c.OutOrStdout(), *x.output, found)
}

// ask asks the running agent, unless told not to. It is no error where none runs.
func (x explaining) ask(c *cobra.Command, kind, name string, v any) (answered bool, err error) {
	if x.dry {
		return false, nil
	}
	socketOf(x.socket, *x.envFile)
	err = ask(c.Context(), *x.socket, "/explain?"+url.Values{"kind": {kind}, "name": {name}}.Encode(), v)
	switch {
	case err == nil:
		return true, nil
	case nobodyListens(err):
		lookFromHere(c.ErrOrStderr(), *x.socket)
		return false, nil
	case kind == "csr" && strings.Contains(err.Error(), "not found"):
		return false, failed("explain", err)
	}
	return false, noAnswer(*x.socket, err)
}

func printExplained(out io.Writer, format string, x localapi.Explanation) error {
	done, err := printData(out, format, x)
	if !done {
		printExplanation(out, x)
	}
	if err == nil && !x.Found {
		return exitCode(exitFailed)
	}
	return err
}

// kindOf reads a kind in the spellings of kubectl, and returns "" for an unknown one.
func kindOf(word string) string {
	switch strings.ToLower(word) {
	case "pod", "pods", "po":
		return "pod"
	case "node", "nodes", "no":
		return "node"
	case "headroom":
		return "headroom"
	case "csr", "csrs", "certificatesigningrequest", "certificatesigningrequests":
		return "csr"
	case "instance", "instances":
		return "instance"
	case "group", "groups", "nodegroup", "ng":
		return "group"
	}
	return ""
}

// page writes an explanation for people: the summary first, then the facts.
type page struct {
	out   io.Writer
	width int
	at    time.Time
}

func printExplanation(out io.Writer, x localapi.Explanation) {
	p := page{out: out, width: columns(out), at: x.At}
	p.line("", "%s %s: %s", x.Kind, x.Name, x.Summary)
	p.verdicts("", x.Verdicts)
	switch {
	case x.Pod != nil:
		p.pod(x.Pod)
	case x.Node != nil:
		p.node(x.Node)
		p.reaper(x.Reaper)
	case x.Group != nil:
		p.group(x.Group)
	}
	if len(x.Cluster) > 0 {
		p.verdicts("whole cluster", x.Cluster)
	}
}

func (p page) line(indent, format string, args ...any) {
	fmt.Fprintln(p.out, indent+wrap(fmt.Sprintf(format, args...), p.width-len(indent), indent+"    "))
}

func (p page) head(title string) { fmt.Fprintf(p.out, "\n%s\n", title) }

func (p page) verdicts(title string, list []decision.Verdict) {
	if len(list) > 0 && title != "" {
		p.head(title)
	}
	for _, v := range list {
		text := v.Why
		if v.About != "" {
			text = v.About + ": " + text
		}
		if v.Count > 1 {
			text = fmt.Sprintf("%d pods like it: %s", v.Count, text)
		}
		p.line("  ", "[%s] %s", v.Rule, text)
	}
}

// when writes a time with its distance from the moment of the explanation.
func (p page) when(t time.Time) string {
	d := p.at.Sub(t).Round(time.Second)
	if d < 0 {
		return fmt.Sprintf("%s (in %s)", t.UTC().Format(time.RFC3339), -d)
	}
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), d)
}

func (p page) pod(f *decision.PodFacts) {
	if !f.Waits.IsZero() && f.State == "waiting" {
		alike := ""
		if f.Alike > 1 {
			alike = fmt.Sprintf("; %d pods like it wait", f.Alike)
		}
		p.line("  ", "unschedulable since %s%s", p.when(f.Waits), alike)
	}
	if f.Groups != nil {
		p.head(f.Groups.Words)
		p.refusals(f.Groups, len(f.Groups.Refusals))
	}
	if f.Nodes != nil {
		p.head(f.Nodes.Words)
		p.refusals(f.Nodes, namedNodes)
	}
	p.blockers(f.Blockers)
}

// refusals writes one line for each reason, with the first names that share it.
func (p page) refusals(j *decision.Judgement, named int) {
	type reason struct{ rule, why string }
	by := map[reason][]string{}
	var order []reason
	for _, r := range j.Refusals {
		k := reason{r.Rule, r.Why}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], r.Name)
	}
	slices.SortStableFunc(order, func(a, b reason) int { return len(by[b]) - len(by[a]) })
	for _, k := range order {
		names := by[k]
		said := strings.Join(names[:min(named, len(names))], ", ")
		if len(names) > named {
			said += fmt.Sprintf(" and %d more", len(names)-named)
		}
		if k.rule != "" {
			k.why = "[" + k.rule + "] " + k.why
		}
		p.line("  ", "%s: %s", said, k.why)
	}
}

func (p page) blockers(list []decision.Blocker) {
	if len(list) == 0 {
		return
	}
	p.head("pods that must not be evicted")
	for _, b := range list {
		p.line("  ", "%s: %s (%s)", b.Pod, b.Why, b.Name)
	}
}

func (p page) node(f *decision.NodeFacts) {
	if f.Group != "" {
		p.line("  ", "group %s, instance %s %s, %s; utilisation %.0f%% of at most %.0f%%", f.Group, f.Instance, f.Phase, f.State, f.Utilisation*100, f.Limit*100)
	}
	if len(f.Checks) > 0 {
		p.head("conditions of its removal")
		for _, c := range f.Checks {
			sign := "yes"
			if !c.OK {
				sign = "NO "
			}
			p.line("  ", "%s  %-4s %s", sign, c.Rule, c.Why)
		}
	}
	p.blockers(f.Blockers)
	if len(f.Destinations) > 0 {
		p.head("destinations of its pods")
		for _, d := range f.Destinations {
			switch {
			case d.Could == 0:
				p.line("  ", "%s: nowhere: %s", d.Pod, d.Why)
			case d.Could == 1:
				p.line("  ", "%s: %s", d.Pod, d.First)
			default:
				p.line("  ", "%s: %s and %d more", d.Pod, d.First, d.Could-1)
			}
		}
	}
}

func (p page) group(f *decision.GroupFacts) {
	w := tabwriter.NewWriter(p.out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if f.Provider != "" {
		row("provider", "%s", f.Provider)
	}
	row("size", "minimum %d, target %d, maximum %d; %d instances, %d Nodes, %d upcoming, %d leaving", f.Min, f.Target, f.Max, f.Instances, f.Nodes, f.Upcoming, f.Removing)
	row("read", "%s", p.when(f.ReadAt))
	if f.Reserved > 0 {
		row("reserved", "%d pods have a reservation on its upcoming nodes", f.Reserved)
	}
	t := f.Template
	if t.Unknown == "" {
		row("next machine", "cpu %dm, memory %dMi, %d pods allocatable; %d DaemonSets take room on it", t.Allocatable.MilliCPU, t.Allocatable.Memory>>20, t.Allocatable.Pods, len(t.DaemonSets))
	}
	for _, name := range sortedKeys(f.Unneeded) {
		row("unneeded", "%s since %s", name, p.when(f.Unneeded[name]))
	}
	_ = w.Flush() // out is a terminal or a pipe: a failed write has no reader
	list := func(title string, list []string) {
		if len(list) > 0 {
			p.head(title)
		}
		for _, text := range list {
			p.line("  ", "%s", text)
		}
	}
	p.verdicts("why it cannot grow now", f.NoGrowth)
	p.verdicts("why it cannot shrink now", f.NoShrink)
	var taints, failures []string
	for _, x := range t.Taints {
		taints = append(taints, x.Key+"="+x.Value+":"+x.Effect)
	}
	for _, x := range f.Failures {
		failures = append(failures, fmt.Sprintf("%s %s: %s", p.when(x.At), x.Cause, x.Text))
	}
	list("taints of its machines", taints)
	list("learned from its own nodes", t.Learnt)
	list("failures reported by the cloud", failures)
	list("warnings", f.Warnings)
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
