package aws

import (
	"fmt"
	"slices"
	"strings"
)

// String prints the whole world, sorted: what a test shows when it fails.
func (c *Cloud) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	w := c.world
	fmt.Fprintf(&b, "aws %s zones %s seed %d\n", c.opts.Region, strings.Join(c.opts.Zones, " "), c.opts.Seed)
	for _, name := range sortedKeys(w.groups) {
		g := w.groups[name]
		fmt.Fprintf(&b, "group %s min %d max %d desired %d members %d template %s version %s\n",
			name, g.min, g.max, g.desired, len(g.members), g.template.name, g.template.version)
		for _, p := range sortedKeys(g.suspended) {
			fmt.Fprintf(&b, "  suspended %s\n", p)
		}
		for _, k := range sortedKeys(g.tags) {
			fmt.Fprintf(&b, "  tag %s=%s\n", k, g.tags[k].value)
		}
	}
	instances := w.sorted()
	slices.SortStableFunc(instances, func(a, b *instance) int {
		return strings.Compare(a.tags["aws:autoscaling:groupName"], b.tags["aws:autoscaling:groupName"])
	})
	for _, i := range instances {
		ip := i.ip
		if ip == "" {
			ip = "-"
		}
		extra := ""
		if i.protected {
			extra += " protected"
		}
		if !i.healthy {
			extra += " unhealthy"
		}
		fmt.Fprintf(&b, "instance %s %s %s %s %s %s group %s%s\n", i.id, i.instanceType, i.zone, ip, i.state, i.lifecycle,
			i.tags["aws:autoscaling:groupName"], extra)
	}
	for _, a := range w.activities {
		fmt.Fprintf(&b, "activity %s %s %s: %s", a.Start.UTC().Format("15:04:05.000"), a.Group, a.Status, a.Description)
		if a.Message != "" {
			fmt.Fprintf(&b, " (%s)", a.Message)
		}
		b.WriteByte('\n')
	}
	var pools []string
	for p, left := range c.pools {
		pools = append(pools, fmt.Sprintf("capacity %s %s left %d\n", p.zone, p.instanceType, left))
	}
	slices.Sort(pools)
	b.WriteString(strings.Join(pools, ""))
	for _, f := range c.faults {
		fmt.Fprintf(&b, "fault %s on %s:%s, seen %d, struck %d\n", f.Kind, f.Service, f.Action, f.seen, f.struck)
	}
	return b.String()
}
