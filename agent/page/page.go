// Package page draws the agent's page: one HTML document with its pictures inside, from
// values.
//
// It refuses to read anything, to ask another host for anything, to run a script but its own, and to
// write a text that it was given unescaped: the document has a policy (CSP) that forbids
// all but its own style sheet and its own script, by their hashes. What needs no script (all words, the
// map with what each machine is) works without one. It does not use html/template, which keeps the
// linker from dropping what nothing calls.
package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/trouble"
)

// Data is what the page shows.
type Data struct {
	At       time.Time
	Version  string
	Node     string
	Since    time.Time
	Acting   bool
	StandsBy bool              // another agent acts
	Why      string            // why it does not act
	Troubles []trouble.Trouble // of this moment, the gravest first
	Machines []fleet.Machine
	Nodes    int
	Ready    int
	Pods     int
	Pending  int
	Groups   []Group
	Rollouts []Rollout // of groups whose nodes are replaced
	Waiting  []Waiting
	Leaving  []Leaving
	History  history.View
	Verdicts []Verdict // on certificate requests
	Judged   []Judged  // the newest verdicts on single requests, the newest first
	Requests int       // certificate requests that wait
	Alarm    string    // of a flood of them
	Reaped   []Reaped
	// NoCluster and NoGroups: the agent has not read the cluster, or the node groups, since it started, so that the page cannot show them.
	NoCluster, NoGroups bool
}

// unread says what the agent has not read, where a part of the page is about it; empty: it is known.
func (d *Data) unread(cluster, groups bool) string {
	switch cluster, groups = cluster && d.NoCluster, groups && d.NoGroups; {
	case cluster && groups:
		return "Not known: the agent has read neither the cluster nor the node groups yet."
	case cluster:
		return "Not known: the agent has not read the cluster yet."
	case groups:
		return "Not known: the agent has not read the node groups yet."
	}
	return ""
}

// Group is one node group as it is now.
type Group struct {
	Name                       string
	Min, Target, Max, Machines int
	Drifted                    int    // machines that differ from what the group starts today
	Remark                     string // what an operator should know of it
}

// Waiting is a class of pods that wait, and why.
type Waiting struct {
	Name      string // of the first pod
	Count     int
	Rule, Why string
	Groups    []Refusal // by node group
}

// Refusal is why a group does not help.
type Refusal struct{ Name, Rule, Why string }

// Leaving is a node on its way out.
type Leaving struct {
	Node, Group string
	Since       time.Time
	Pods        int // pods still to be moved, without DaemonSet pods
	Why         string
}

// Verdict counts the verdicts of one kind since the agent started.
type Verdict struct {
	Do, Rule string
	Count    int
}

// Judged is one verdict on one certificate request.
type Judged struct {
	At            time.Time
	Request, Node string
	Kind          string // of the certificate
	Do, Rule, Why string
}

// Reaped is a Node whose machine was dead and that was deleted.
type Reaped struct {
	Node string
	At   time.Time
	Why  string
}

// Render draws the page. Its size grows with the history and the lists as far as these are shown, and
// with the machines up to ownBoxes; at the bounds of all it is below 4 MB.
func Render(d Data) []byte {
	w, a := &document{}, together()
	w.put(`<!doctype html>
<html lang="en" class="noscript"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="%s"><title>autoscaler-agent on %s</title>
<style>%s</style></head><body>
<a class="skip" href="#main">Skip to the fleet</a>
`, a.policy, d.Node, markup(a.style))
	w.header(d)
	w.put(`<main id="main">`)
	w.fleet(d)
	w.parts()
	w.facts(d)
	w.charts(d)
	w.waiting(&d)
	w.leaving(d)
	w.groups(&d)
	w.rollouts(d.Rollouts)
	w.decisions(d.History.Marks)
	w.certificates(d)
	w.reaped(d)
	w.put("</main>\n<script>%s</script></body></html>\n", markup(a.script))
	return []byte(w.b.String())
}

// price is the newest price that is known.
func price(prices []float64) string {
	for i := len(prices) - 1; i >= 0; i-- {
		if prices[i] >= 0 {
			return fmt.Sprintf("%.2f", prices[i])
		}
	}
	return ""
}

// age is a duration in its largest two units.
func age(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return d.String()
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d days %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// more says how many of a list are not shown.
func (w *document) more(all, shown int, where string) {
	if all > shown {
		w.put(`<p>%s more: %s</p>`, all-shown, where)
	}
}

// clip is the first n of a list.
func clip[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// join puts words together that are not empty.
func join(sep string, words ...string) string {
	var out []string
	for _, word := range words {
		if word != "" {
			out = append(out, word)
		}
	}
	return strings.Join(out, sep)
}
