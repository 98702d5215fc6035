package text

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// Nodes prints machines, and below them in what they differ and what holds them.
func Nodes(out io.Writer, list decision.Nodes) {
	if len(list.Nodes) == 0 {
		fmt.Fprintln(out, "there is no machine")
		return
	}
	rows := make([][]string, len(list.Nodes))
	drifted := 0
	for i, n := range list.Nodes {
		age := "-"
		if !n.Created.IsZero() {
			age = shortAge(list.At.Sub(n.Created))
		}
		kubelet := cmp.Or(n.Kubelet, "-")
		if n.MinorsBehind > 0 {
			kubelet += fmt.Sprintf(" (%d behind)", n.MinorsBehind)
		}
		drift := "-"
		if len(n.Drift) > 0 {
			drifted++
			if drift = n.Drift[0].Property; len(n.Drift) > 1 {
				drift += fmt.Sprintf(" +%d", len(n.Drift)-1)
			}
		}
		rows[i] = []string{string(cmp.Or(n.Group, "-")), nameOf(n), age, kubelet, n.State, drift, cmp.Or(n.Rule, "-")}
	}
	table(out, []string{"GROUP", "NODE", "AGE", "KUBELET", "STATE", "DRIFT", "HELD"}, rows)
	if list.ControlPlane != "" {
		fmt.Fprintf(out, "API server %s; %d of %d machines differ from what their groups start today\n", list.ControlPlane, drifted, len(list.Nodes))
	}
	for _, n := range list.Nodes {
		remarks(out, n)
	}
}

// remarks prints what the columns of a machine have no room for.
func remarks(out io.Writer, n decision.NodeRow) {
	name := nameOf(n)
	for _, words := range []string{cluster.FirstOf(n.Drift), n.Held} {
		if words != "" {
			fmt.Fprintf(out, "  %s: %s\n", name, wrap(words, Columns(out)-4-len(name), "    "))
		}
	}
}

// nameOf is the Node's name, or the instance's ID where it has none.
func nameOf(n decision.NodeRow) string { return cmp.Or(string(n.Node), n.Instance.Last()) }

// shortAge is an age as kubectl writes it: 90s, 12m, 7h, 3d.
func shortAge(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
