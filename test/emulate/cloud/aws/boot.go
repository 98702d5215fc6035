package aws

import "fmt"

// BootFault is what can go wrong between a launch that EC2 accepted and a
// machine that runs.
type BootFault string

// The boot faults.
const (
	// BootHangs leaves the instance pending for ever.
	BootHangs BootFault = "BootHangs"
	// BootDies lets it go from pending to terminated, with
	// Server.InternalError as the reason, as after a failure of the host; its
	// group gives up on it and tries again.
	BootDies BootFault = "BootDies"
)

// SpoilBoots lets the next n launches end in this way. Calls add up.
func (c *Cloud) SpoilBoots(n int, how BootFault) {
	if how != BootHangs && how != BootDies {
		panic(fmt.Sprintf("aws: spoil boots: unknown fault %q", how))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.spoiled = append(c.spoiled, how)
	}
}

// boot takes a new instance from pending to running and into service. The
// caller holds c.mu.
func (c *Cloud) boot(i *instance) {
	var fault BootFault
	if len(c.spoiled) > 0 {
		fault, c.spoiled = c.spoiled[0], c.spoiled[1:]
	}
	if fault == BootHangs {
		return
	}
	c.after(c.jittered(c.opts.BootDelay), func() {
		if i.state != "pending" {
			return
		}
		if fault == BootDies {
			c.die(i)
			return
		}
		c.setState(i, "running")
		enter := func() {
			if i.lifecycle == "Pending" && i.state == "running" {
				c.proceed(i)
			}
		}
		if c.opts.ServiceDelay == 0 {
			enter()
			return
		}
		c.after(c.jittered(c.opts.ServiceDelay), enter)
	})
}

// die ends an instance that never ran.
func (c *Cloud) die(i *instance) {
	const why = "Internal error on launch"
	i.explain("Server.InternalError", why)
	c.powerOff(i)
	c.setState(i, "terminated")
	c.after(c.opts.TerminatedVisibleFor, func() { c.forget(i) })
	g := c.world.groups[i.group]
	if g == nil {
		return
	}
	if i.lifecycle == "Pending" {
		i.act.end("Failed", "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: Server.InternalError: "+why)
	}
	c.leave(i, "Successful")
}
