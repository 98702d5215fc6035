package aws

// boot takes a new instance from pending to running and into service. The
// caller holds c.mu.
func (c *Cloud) boot(i *instance) {
	c.after(c.jittered(c.opts.BootDelay), func() {
		if i.state != "pending" {
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
