package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
)

// How much of a day stands on a screen.
const (
	dayGroups    = 10
	dayDecisions = 8
	dayWidth     = 72 // columns of a line of blocks where the output is no terminal
)

// blocks are the heights of a line of blocks; a value that is not known is a blank.
var blocks = []rune("▁▂▃▄▅▆▇█")

// History prints the last 24 hours: a line of blocks for pending pods, Ready nodes, the price
// and the groups that changed most, and the newest decisions.
func History(out io.Writer, v history.View, columns int) {
	width := dayWidth
	if columns > 0 {
		width = max(10, min(columns-44, len(v.Pending)))
	}
	fmt.Fprintf(out, "\nlast 24 hours, from %s:\n", v.Start.Format("15:04"))
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name string, values []int) {
		low, high := bounds(values)
		if high >= 0 {
			fmt.Fprintf(w, "%s\t%s\t%d to %d\n", name, spark(values, width), low, high)
		}
	}
	row("pending pods", v.Pending)
	row("nodes ready", v.Ready)
	price := make([]int, len(v.Price))
	for i, p := range v.Price {
		price[i] = int(p + 0.5)
	}
	row("price an hour", price)
	groups := slices.Clone(v.Groups)
	slices.SortStableFunc(groups, func(a, b history.Group) int {
		la, ha := bounds(a.Machines)
		lb, hb := bounds(b.Machines)
		return cmp.Compare(hb-lb, ha-la)
	})
	for _, g := range groups[:min(dayGroups, len(groups))] {
		row("group "+g.Name, g.Machines)
	}
	_ = w.Flush() // out is a terminal or a pipe: a failed write has no reader
	if len(groups) > dayGroups {
		fmt.Fprintf(out, "and %d groups that changed less\n", len(groups)-dayGroups)
	}
	if len(v.Marks) > 0 {
		fmt.Fprintln(out, "\nnewest decisions:")
	}
	for i := len(v.Marks) - 1; i >= max(0, len(v.Marks)-dayDecisions); i-- {
		m := &v.Marks[i]
		line := m.Do + " " + strings.TrimSpace(m.Group+" "+m.Node)
		if m.Do == "grow" {
			line = fmt.Sprintf("grow %s %d→%d", m.Group, m.From, m.To)
		} else if m.Count > 1 {
			line += fmt.Sprintf(" and %d more", m.Count-1)
		}
		if m.Error != "" {
			line += ", failed: " + m.Error
		}
		fmt.Fprintf(out, "  %s  %s\n", m.At.Format("15:04"), wrap(fmt.Sprintf("%s [%s] %s", line, m.Rule, m.Why), columns-9, "         "))
	}
}

// bounds are the least and the most of what is known; -1: nothing is.
func bounds(values []int) (low, high int) {
	low, high = -1, -1
	for _, v := range values {
		if v >= 0 && (low < 0 || v < low) {
			low = v
		}
		high = max(high, v)
	}
	return low, high
}

// spark is a line of so many blocks; each shows the most of its part of the values.
func spark(values []int, width int) string {
	_, high := bounds(values)
	width = min(width, len(values))
	var b strings.Builder
	for i := range width {
		_, most := bounds(values[i*len(values)/width : (i+1)*len(values)/width])
		switch {
		case most < 0:
			b.WriteByte(' ')
		case high == 0:
			b.WriteRune(blocks[0])
		default:
			b.WriteRune(blocks[most*(len(blocks)-1)/high])
		}
	}
	return b.String()
}
