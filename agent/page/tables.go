package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
)

// How much of each list is shown at once.
const (
	shownRows    = 50
	shownLeaving = 100
	shownGroups  = 200
)

// table begins a table. Where the screen is narrow each row is a block of lines, and each line has its column's name.
func (w *document) table(name string, columns ...string) {
	w.columns = columns
	w.put(`<table role="table" aria-label="%s"><thead><tr role="row">`, name)
	for _, c := range columns {
		w.put(`<th scope="col" role="columnheader">%s</th>`, c)
	}
	w.put("</tr></thead><tbody>\n")
}

func (w *document) endTable() { w.put("</tbody></table>\n") }

// The kinds of cells beside plain text.
type (
	heading string // the name of the row
	rule    string // the ID of a rule
)

// row writes a row of the table: a heading, texts, rules and numbers. More can be written into its last cell
// before endRow.
func (w *document) row(id string, cells ...any) {
	w.put(`<tr role="row"`)
	if id != "" {
		w.put(` id="%s"`, id)
	}
	w.put(`>`)
	for i, c := range cells {
		name := ""
		if i < len(w.columns) {
			name = w.columns[i]
		}
		if i > 0 {
			w.endCell(cells[i-1])
		}
		switch c := c.(type) {
		case heading:
			w.put(`<th scope="row" role="rowheader">%s`, string(c))
		case rule:
			w.put(`<td role="cell" data-l="%s"><code>%s</code>`, name, string(c))
		case int:
			w.put(`<td role="cell" class="n" data-l="%s">%s`, name, c)
		default:
			w.put(`<td role="cell" data-l="%s">%s`, name, c)
		}
	}
}

func (w *document) endCell(c any) {
	if _, head := c.(heading); head {
		w.put(`</th>`)
		return
	}
	w.put(`</td>`)
}

func (w *document) endRow() { w.put("</td></tr>\n") }

func (w *document) section(id, title string) {
	w.put(`<section aria-labelledby="%s"><h2 id="%s">%s</h2>`+"\n", id, id, title)
}

// waiting lists what is pending and why.
func (w *document) waiting(d *Data) {
	list := d.Waiting
	w.section("waiting", "What is pending, and why")
	if len(list) == 0 {
		w.put(`<p>%s</p>`, cmp.Or(d.unread(true, true), "No pod is held back."))
	}
	for _, p := range clip(list, shownRows) {
		w.put(`<details><summary><strong>%s</strong>`, p.Name)
		if p.Count > 1 {
			w.put(` and %s`, cluster.Plural(p.Count-1, "more pod"))
		}
		w.put(` <code>%s</code> %s</summary>`, p.Rule, p.Why)
		if len(p.Groups) > 0 {
			w.table("Reasons of each group for "+p.Name, "Group", "Rule", "Reason")
			for _, g := range clip(p.Groups, shownGroups) {
				w.row("", heading(g.Name), rule(g.Rule), g.Why)
				w.endRow()
			}
			w.endTable()
		}
		w.put(`<p>More: <code>autoscaler-agent explain pod %s</code></p></details>`+"\n", p.Name)
	}
	w.more(len(list), shownRows, "autoscaler-agent plan")
	w.put("</section>\n")
}

// leaving lists the nodes on their way out.
func (w *document) leaving(d Data) {
	w.section("leaving", "Nodes on their way out")
	if len(d.Leaving) == 0 {
		w.put(`<p>%s</p></section>`, cmp.Or(d.unread(true, true), "None."))
		return
	}
	w.table("Nodes on their way out", "Node", "Group", "For", "Pods to move", "What it waits for")
	for _, n := range clip(d.Leaving, shownLeaving) {
		since := ""
		if !n.Since.IsZero() {
			since = age(d.At.Sub(n.Since))
		}
		w.row("", heading(n.Node), n.Group, since, n.Pods, n.Why)
		w.endRow()
	}
	w.endTable()
	w.more(len(d.Leaving), shownLeaving, "autoscaler-agent plan")
	w.put("</section>\n")
}

// groups lists the node groups as they are now.
func (w *document) groups(d *Data) {
	list := d.Groups
	w.section("groups", "Node groups now")
	if len(list) == 0 {
		w.put(`<p>%s</p></section>`, cmp.Or(d.unread(false, true), "No node group is found."))
		return
	}
	w.table("Node groups", "Group", "Least", "Asked for", "Most", "Machines", "Drifted", "Remark")
	for _, g := range clip(list, shownGroups) {
		w.row("", heading(g.Name), g.Min, g.Target, g.Max, g.Machines, g.Drifted, g.Remark)
		w.endRow()
	}
	w.endTable()
	w.more(len(list), shownGroups, "autoscaler-agent status")
	w.put("</section>\n")
}

// decisions lists what was done, newest first. The marks in the pictures lead to its rows.
func (w *document) decisions(marks []history.Mark) {
	w.section("decisions", "Decisions that were carried out")
	if len(marks) == 0 {
		w.put(`<p>None within the last 24 hours that this agent remembers; the journal has all.</p></section>`)
		return
	}
	rows := func(name string, from, to int) { // indexes from the newest
		w.table(name, "When", "What", "Rule", "Reason")
		for i := from; i < to; i++ {
			at := len(marks) - 1 - i
			m := &marks[at]
			w.row(fmt.Sprintf("d%d", at), m.At.Format("15:04:05"), heading(what(m)), rule(m.Rule), m.Why)
			if m.Error != "" {
				w.put(` <strong class="bad">failed: %s</strong>`, m.Error)
			}
			w.endRow()
		}
		w.endTable()
	}
	rows("Decisions", 0, min(shownRows, len(marks)))
	if len(marks) > shownRows {
		w.put(`<details><summary>%s</summary>`, cluster.Plural(len(marks)-shownRows, "older decision"))
		rows("Older decisions", shownRows, len(marks))
		w.put(`</details>`)
	}
	w.put("</section>\n")
}

// what says what a decision did.
func what(m *history.Mark) string {
	if m.Do == "grow" {
		return fmt.Sprintf("grow %s %d→%d", m.Group, m.From, m.To)
	}
	name := m.Node
	if m.Count > 1 {
		name = fmt.Sprintf("%d nodes, %s first", m.Count, m.Node)
	}
	if m.Group != "" {
		name += " of " + m.Group
	}
	return m.Do + " " + name
}

// certificates sums up what was decided on certificate requests.
func (w *document) certificates(d Data) {
	w.section("certificates", "Certificates of kubelets")
	if d.Alarm != "" {
		w.put(`<p class="bad"><strong>Alarm:</strong> %s</p>`, d.Alarm)
	}
	w.put(`<p>%s</p>`, cmp.Or(d.unread(true, false), isAre(d.Requests, "request")+" not decided."))
	if len(d.Verdicts) > 0 {
		w.table("Verdicts since the agent started", "Verdict", "Rule", "Requests")
		for _, v := range d.Verdicts {
			w.row("", heading(v.Do), rule(v.Rule), v.Count)
			w.endRow()
		}
		w.endTable()
	}
	if len(d.Judged) > 0 {
		w.table("Newest verdicts", "When", "Node", "Certificate", "Verdict", "Rule", "Reason")
		for _, j := range d.Judged {
			w.row("", j.At.UTC().Format(time.DateTime), heading(j.Node), j.Kind, j.Do, rule(j.Rule), j.Request+": "+j.Why)
			w.endRow()
		}
		w.endTable()
	}
	w.put("</section>\n")
}

func isAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// reaped lists the Nodes of dead machines that were deleted.
func (w *document) reaped(d Data) {
	w.section("reaped", "Nodes of dead machines that were deleted")
	if len(d.Reaped) == 0 {
		w.put(`<p>None is kept.</p></section>`)
		return
	}
	list := slices.Clone(d.Reaped)
	slices.SortStableFunc(list, func(a, b Reaped) int { return b.At.Compare(a.At) })
	w.table("Deleted Nodes", "When", "Node", "Proof")
	for _, r := range clip(list, shownRows) {
		w.row("", r.At.UTC().Format(time.DateTime), heading(r.Node), r.Why)
		w.endRow()
	}
	w.endTable()
	w.more(len(list), shownRows, "autoscaler-agent node restore --list")
	w.put(`<p>Bring back what operators had set on one: <code>autoscaler-agent node restore NAME</code></p></section>` + "\n")
}
