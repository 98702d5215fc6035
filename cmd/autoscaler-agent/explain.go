package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// namedNodes is how many nodes with one reason a table names.
const namedNodes = 3

func explainCommand(ctx context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("explain pod|node|group|csr NAME", "Say why a pod waits, why a node stays or goes, why a node group does not change,\nhow a certificate request is judged, by rule ID. The running agent answers; where none runs, the command looks at the\ncluster and the cloud itself, as plan does. Exits 1 when there is no such thing.", `  autoscaler-agent explain pod default/web-7d4b9c-x2x9k
  autoscaler-agent explain node ip-10-0-3-17.eu-west-1.compute.internal
  autoscaler-agent explain group workers --output yaml
  autoscaler-agent explain csr csr-8vnps
  autoscaler-agent explain pod web-0 --output json | jq -r '.pod.groups.refusals[] | .name + ": " + .why'
`, errout)
	envFile, output, socket := envFileFlag(fs), outputFlag(fs), socketFlag(fs)
	dry := fs.Bool("dry", false, "look at the cluster and the cloud without asking the running agent")
	names, code, done := parseNames(fs, args, out, errout)
	if done {
		return code
	}
	if len(names) == 1 {
		if kind, name, ok := strings.Cut(names[0], "/"); ok && kindOf(kind) != "" {
			names = []string{kind, name}
		}
	}
	if len(names) != 2 || kindOf(names[0]) == "" {
		fmt.Fprint(errout, "autoscaler-agent explain: say what: explain pod NAME, explain node NAME, explain group NAME or explain csr NAME\n")
		return exitUsage
	}
	kind, name := kindOf(names[0]), names[1]
	if kind == "csr" {
		return explainCSR(ctx, name, *envFile, *output, socket, *dry, out, errout)
	}
	var x agent.Explanation
	if !*dry {
		if err := socketOf(socket, *envFile); err != nil {
			return complain(errout, "configuration", err)
		}
		err := ask(ctx, *socket, "/explain?"+url.Values{"kind": {kind}, "name": {name}}.Encode(), &x)
		switch {
		case err != nil && !silent(err):
			return noAnswer(errout, *socket, err)
		case err != nil:
			fmt.Fprintf(errout, "no agent answers on %s: looking at the cluster and the cloud from here\n", *socket)
			*dry = true
		}
	}
	if *dry {
		cfg, err := load(*envFile)
		if err != nil {
			return complain(errout, "configuration", err)
		}
		if x, err = agent.DryExplain(ctx, cfg, report.NewLogger("warning", errout), kind, name); err != nil {
			return complain(errout, "explain", err)
		}
	}
	return printExplained(out, *output, x)
}

// kindOf knows the names that kubectl's users write.
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
	case "group", "groups", "nodegroup", "ng":
		return "group"
	}
	return ""
}

// page writes an explanation for people: one sentence first, then what it rests on.
type page struct {
	out   io.Writer
	width int
	at    time.Time
}

func printExplanation(out io.Writer, x agent.Explanation) {
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
		p.verdicts("the whole cluster", x.Cluster)
	}
}

func (p page) line(indent, format string, args ...any) {
	fmt.Fprintln(p.out, indent+wrap(fmt.Sprintf(format, args...), p.width-len(indent), indent+"    "))
}

func (p page) head(title string) { fmt.Fprintf(p.out, "\n%s\n", title) }

func (p page) verdicts(title string, list []agent.Verdict) {
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

// when writes a time with how far it is from the moment of the explanation.
func (p page) when(t time.Time) string {
	d := p.at.Sub(t).Round(time.Second)
	if d < 0 {
		return fmt.Sprintf("%s (in %s)", t.UTC().Format(time.RFC3339), -d)
	}
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), d)
}

func (p page) pod(f *agent.PodFacts) {
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

// refusals writes those that share a reason on one line, few of them by name.
func (p page) refusals(j *agent.Judgement, named int) {
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

func (p page) blockers(list []agent.Blocker) {
	if len(list) == 0 {
		return
	}
	p.head("pods that may not be evicted")
	for _, b := range list {
		p.line("  ", "%s: %s (%s)", b.Pod, b.Why, b.Name)
	}
}

func (p page) node(f *agent.NodeFacts) {
	if f.Group != "" {
		p.line("  ", "group %s, instance %s %s, %s; utilisation %.0f%% of at most %.0f%%", f.Group, f.Instance, f.Phase, f.State, f.Utilisation*100, f.Limit*100)
	}
	if len(f.Checks) > 0 {
		p.head("what must hold for it to go")
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
		p.head("where its pods could go")
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

func (p page) group(f *agent.GroupFacts) {
	w := tabwriter.NewWriter(p.out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if f.Provider != "" {
		row("provider", "%s", f.Provider)
	}
	row("size", "minimum %d, target %d, maximum %d; %d instances, %d Nodes, %d coming, %d leaving", f.Min, f.Target, f.Max, f.Instances, f.Nodes, f.Upcoming, f.Removing)
	row("read", "%s", p.when(f.ReadAt))
	if f.Reserved > 0 {
		row("promised", "%d pods count on its coming machines", f.Reserved)
	}
	t := f.Template
	if t.Unknown == "" {
		row("next machine", "cpu %dm, memory %dMi, %d pods allocatable; %d DaemonSets take room on it", t.Allocatable.MilliCPU, t.Allocatable.Memory>>20, t.Allocatable.Pods, len(t.DaemonSets))
	}
	for _, name := range sortedKeys(f.Unneeded) {
		row("unneeded", "%s since %s", name, p.when(f.Unneeded[name]))
	}
	_ = w.Flush() // out is a terminal or a pipe; nobody reads a broken one
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
	list("learnt from its own nodes", t.Learnt)
	list("failures that the cloud reports", failures)
	list("to be mended", f.Warnings)
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
