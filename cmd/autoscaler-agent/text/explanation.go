package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
)

// namedNodes is the number of nodes that a table names for one reason.
const namedNodes = 3

// page writes an explanation for people: the summary first, then the facts.
type page struct {
	out   io.Writer
	width int
	at    time.Time
}

// Explanation prints what becomes of a pod, node or node group, and why.
func Explanation(out io.Writer, x localapi.Explanation) {
	p := page{out: out, width: Columns(out), at: x.At}
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
	if len(f.Drift) > 0 {
		p.head("differs from what its group starts today")
		for _, d := range f.Drift {
			p.line("  ", "%s", d)
		}
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
			default:
				where := string(d.First)
				if d.Could > 1 {
					where += fmt.Sprintf(" and %d more", d.Could-1)
				}
				if d.Why != "" {
					where += ", " + d.Why
				}
				p.line("  ", "%s: %s", d.Pod, where)
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
	if f.Price > 0 {
		row("price", "%.4g an hour: %s", f.Price, f.PriceSource)
	}
	if f.Reserved > 0 {
		row("reserved", "%d pods have a reservation on its upcoming nodes", f.Reserved)
	}
	t := f.Template
	if t.Unknown == "" {
		row("next machine", "cpu %dm, memory %dMi, %d pods allocatable; %d DaemonSets take room on it", t.Allocatable.MilliCPU, t.Allocatable.Memory>>20, t.Allocatable.Pods, len(t.DaemonSets))
	}
	if len(t.Zones) > 0 {
		row("zones", "it spans zones %s and promises none of them: pods that need one zone get no machine of it, so make one group for each zone for them", cluster.InWords(t.Zones))
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
	var daemons []string
	for _, s := range t.DaemonShares {
		daemons = append(daemons, fmt.Sprintf("%s takes cpu %dm, memory %dMi: %s", s.DaemonSet, s.Requests.MilliCPU, s.Requests.Memory>>20, s.Why))
	}
	list("DaemonSets on its next machine", daemons)
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
