package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// String prints the whole cloud, sorted.
func (c *Cloud) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[id]
		fmt.Fprintf(&b, "group %s min %d max %d target %d members %d\n", id, g.facts.Min, g.facts.Max, g.facts.Target, g.members())
		var lines []string
		for _, i := range g.instances {
			lines = append(lines, fmt.Sprintf("  instance %s %s since %s\n", i.facts.ID, i.facts.Phase, i.since.UTC().Format(time.RFC3339)))
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
		for _, f := range g.facts.Failures {
			fmt.Fprintf(&b, "  failure %s %s %s\n", f.At.UTC().Format(time.RFC3339), f.Cause, f.Text)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.loose)) {
		fmt.Fprintf(&b, "loose %s alive %t\n", id, c.loose[id])
	}
	return b.String()
}
