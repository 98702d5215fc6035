package aws

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kick lets a group compare what it has with what it wants, after the delay
// that AWS takes to begin. The caller holds c.mu.
func (c *Cloud) kick(g *group) { c.kickIn(g, c.opts.LaunchDelay) }

func (c *Cloud) kickIn(g *group, d time.Duration) {
	if g.scheduled {
		return
	}
	g.scheduled = true
	name := g.name
	c.after(c.jittered(d), func() {
		// Settings may have been replaced since: act on the group of the name.
		if g := c.world.groups[name]; g != nil {
			g.scheduled = false
			c.reconcile(g)
		}
	})
}

// counts says whether an instance in this lifecycle state is one that the
// group's desired capacity counts.
func counts(lifecycle string) bool {
	return strings.HasPrefix(lifecycle, "Pending") || lifecycle == "InService"
}

func (c *Cloud) reconcile(g *group) {
	if g.deleting {
		c.emptyOut(g)
		return
	}
	have := 0
	for _, id := range g.members {
		if i := c.world.instances[id]; counts(i.lifecycle) {
			have += weight(i.weight)
		}
	}
	switch {
	case have < g.desired && g.suspended["Launch"] == "":
		c.scaleOut(g, have)
	case have > g.desired && g.suspended["Terminate"] == "":
		c.scaleIn(g, have)
	}
}

// weight is how many units of capacity an instance stands for.
func weight(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return 1
}

// choice is one way to launch an instance for a group.
type choice struct {
	instanceType, weight string
	ref                  templateRef
	version              *templateVersion
}

// choices lists what the group may launch, by preference.
func (c *Cloud) choices(g *group) ([]choice, *apiError) {
	ref, v, err := c.world.resolve(g.template)
	if err != nil {
		return nil, err
	}
	var out []choice
	add := func(types []string, weight string, ref templateRef, v *templateVersion) {
		ref.version = strconv.Itoa(v.number)
		for _, t := range types {
			out = append(out, choice{t, weight, ref, v})
		}
	}
	of := func(instanceType string, r *Requirements) []string {
		if r != nil {
			return c.choose(*r)
		}
		return []string{instanceType}
	}
	if len(g.overrides) == 0 {
		add(of(v.InstanceType, v.Requirements), "", ref, v)
	}
	for _, o := range g.overrides {
		oref, ov := ref, v
		if o.template.given() {
			if oref, ov, err = c.world.resolve(o.template); err != nil {
				return nil, err
			}
		}
		add(of(o.instanceType, o.requirements), o.weight, oref, ov)
	}
	return out, nil
}

// scaleOut launches what is missing, zone by zone so that zones stay
// balanced, and falls back to other types and zones where one has nothing.
func (c *Cloud) scaleOut(g *group, have int) {
	cause := func(n int) string {
		return fmt.Sprintf("%s  At %s an instance was started in response to a difference between desired and actual capacity, increasing the capacity from %d to %d.",
			g.reason, brief(time.Now()), have, n)
	}
	options, err := c.choices(g)
	if err != nil {
		c.begin(g, g.zones[0], "", "Launching a new EC2 instance", cause(g.desired)).end("Failed", err.message+" Launching EC2 instance failed.")
		c.kickIn(g, c.opts.RetryDelay)
		return
	}
	failed := map[string]bool{} // zone|message, reported once per round
	for got := have; got < g.desired; {
		launched := false
		for _, zone := range c.balanced(g) {
			for _, o := range options {
				message := c.refusal(g, zone, o)
				if message == "" {
					c.launch(g, zone, o, cause(g.desired))
					got += weight(o.weight)
					launched = true
					break
				}
				if key := zone + message; !failed[key] {
					failed[key] = true
					c.begin(g, zone, "", "Launching a new EC2 instance.  Status Reason: "+message, cause(g.desired)).end("Failed", message)
					c.logf("group %s: %s", g.name, message)
				}
			}
			if launched {
				break
			}
		}
		if !launched {
			c.kickIn(g, c.opts.RetryDelay)
			return
		}
	}
}

// balanced lists the group's zones, the one with the fewest members first.
func (c *Cloud) balanced(g *group) []string {
	n := map[string]int{}
	for _, id := range g.members {
		if i := c.world.instances[id]; counts(i.lifecycle) {
			n[i.zone]++
		}
	}
	zones := slices.Clone(g.zones)
	slices.SortStableFunc(zones, func(a, b string) int { return n[a] - n[b] })
	return zones
}

func (c *Cloud) launch(g *group, zone string, o choice, cause string) {
	id := "i-0" + c.hex(16)
	i := &instance{
		id: id, instanceType: o.instanceType, zone: zone, weight: o.weight,
		ip: c.address(zone), eni: "eni-0" + c.hex(16),
		mac:  "0a:" + c.hex(2) + ":" + c.hex(2) + ":" + c.hex(2) + ":" + c.hex(2) + ":" + c.hex(2),
		lt:   o.version,
		tags: map[string]string{}, launched: time.Now(), reservation: "r-0" + c.hex(16),
		template: o.ref, group: g.name, lifecycle: "Pending", healthy: true, protected: g.protectNew,
	}
	if g.onDemand == "0" {
		c.makeSpot(i)
	}
	if o.version.Spot {
		c.makeSpot(i)
	}
	if o.version.PublicIP {
		i.publicIP = fmt.Sprintf("203.0.113.%d", 1+c.rng.IntN(254))
	}
	if o.version.IPv6 {
		i.ipv6 = fmt.Sprintf("2001:db8:0:%x::%s", c.zoneIndex(zone), c.hex(4))
	}
	for k, v := range o.version.Tags {
		i.tags[k] = v
	}
	for k, t := range g.tags {
		if t.propagate {
			i.tags[k] = t.value
		}
	}
	i.tags["aws:autoscaling:groupName"] = g.name
	i.tags["aws:ec2launchtemplate:id"] = o.ref.id
	i.tags["aws:ec2launchtemplate:version"] = o.ref.version
	c.world.instances[id] = i
	g.members = append(g.members, id)
	c.draw(zone, o.instanceType)
	i.act = c.begin(g, zone, id, "Launching a new EC2 instance: "+id, cause)
	c.setState(i, "pending")
	c.boot(i)
}

// scaleIn terminates instances until the group has what it wants, by AWS's
// default policy: in the zone that has most, the oldest first; never one that
// is protected.
func (c *Cloud) scaleIn(g *group, have int) {
	for have > g.desired {
		n := map[string]int{}
		var candidates []*instance
		for _, id := range g.members {
			i := c.world.instances[id]
			if !counts(i.lifecycle) {
				continue
			}
			n[i.zone]++
			if !i.protected && have-weight(i.weight) >= g.desired {
				candidates = append(candidates, i)
			}
		}
		if len(candidates) == 0 {
			if !g.stuck {
				g.stuck = true
				c.begin(g, g.zones[0], "", "Terminating EC2 instance", g.reason).end("Failed",
					"Could not scale to desired capacity because all remaining instances are protected from scale-in.")
			}
			return
		}
		slices.SortStableFunc(candidates, func(a, b *instance) int {
			if d := n[b.zone] - n[a.zone]; d != 0 {
				return d
			}
			return a.launched.Compare(b.launched)
		})
		victim := candidates[0]
		cause := fmt.Sprintf("%s  At %s an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from %d to %d.",
			g.reason, brief(time.Now()), have, g.desired)
		have -= weight(victim.weight)
		c.retire(g, victim, cause)
	}
	g.stuck = false
}
