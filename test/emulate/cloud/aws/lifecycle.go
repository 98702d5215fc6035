package aws

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	launching   = "autoscaling:EC2_INSTANCE_LAUNCHING"
	terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
)

// ending says whether a member is on its way out, or already dead.
func ending(lifecycle string) bool { return strings.HasPrefix(lifecycle, "Terminat") }

// hookFor finds the first hook of a group for a transition.
func (g *group) hookFor(transition string) (hook, bool) {
	for _, name := range sortedKeys(g.hooks) {
		if g.hooks[name].transition == transition {
			return g.hooks[name], true
		}
	}
	return hook{}, false
}

// proceed takes a new instance that runs into service, through Pending:Wait
// if a hook asks for it.
func (c *Cloud) proceed(i *instance) {
	g := c.world.groups[i.group]
	if g == nil {
		return
	}
	if h, ok := g.hookFor(launching); ok {
		c.wait(i, "Pending:Wait", h)
		return
	}
	c.inService(i)
}

func (c *Cloud) inService(i *instance) {
	i.lifecycle = "InService"
	i.act.end("Successful", "")
}

// wait holds an instance for a lifecycle hook until CompleteLifecycleAction
// or the heartbeat timeout, whichever comes first.
func (c *Cloud) wait(i *instance, lifecycle string, h hook) {
	i.lifecycle = lifecycle
	i.waitSeq++
	i.token = c.uuid()
	if i.act != nil {
		i.act.Status = "MidLifecycleAction"
	}
	seq := i.waitSeq
	c.after(h.heartbeat, func() {
		if i.waitSeq == seq && i.lifecycle == lifecycle {
			c.complete(i, h.result)
		}
	})
}

// complete ends a wait. result is CONTINUE or ABANDON.
func (c *Cloud) complete(i *instance, result string) {
	i.waitSeq++
	g := c.world.groups[i.group]
	switch {
	case i.lifecycle == "Pending:Wait" && result == "ABANDON" && g != nil:
		i.act.end("Cancelled", "Lifecycle action was abandoned.")
		c.retire(g, i, fmt.Sprintf("At %s an instance was taken out of service in response to a lifecycle action being abandoned.", brief(time.Now())))
		c.kick(g)
	case i.lifecycle == "Pending:Wait":
		i.lifecycle = "Pending:Proceed"
		c.inService(i)
	case i.lifecycle == "Terminating:Wait":
		i.lifecycle = "Terminating:Proceed"
		c.finish(i)
	}
}

// retire begins the termination of a member by its group.
func (c *Cloud) retire(g *group, i *instance, cause string) *activity {
	i.act.end("Cancelled", "")
	i.act = c.begin(g, i.zone, i.id, "Terminating EC2 instance: "+i.id, cause)
	i.lifecycle = "Terminating"
	act := i.act
	if h, ok := g.hookFor(terminating); ok && i.state == "running" && !g.deleting {
		c.wait(i, "Terminating:Wait", h)
		return act
	}
	c.finish(i)
	return act
}

// finish terminates the machine of a member that is on its way out.
func (c *Cloud) finish(i *instance) {
	if i.state == "terminated" {
		c.leave(i, "Successful")
		return
	}
	c.shutdown(i, "Client.UserInitiatedShutdown", "User initiated shutdown")
}

// leave takes an instance out of its group. Its tags stay, and with them the
// name of the group that it was in.
func (c *Cloud) leave(i *instance, status string) {
	i.act.end(status, "")
	g := c.world.groups[i.group]
	i.group, i.lifecycle = "", ""
	if g == nil {
		return
	}
	g.members = slices.DeleteFunc(g.members, func(id string) bool { return id == i.id })
	if g.deleting {
		c.emptyOut(g)
		return
	}
	c.kick(g)
}

// emptyOut terminates the members of a group that is being deleted, and
// deletes it when there are none.
func (c *Cloud) emptyOut(g *group) {
	if len(g.members) == 0 {
		delete(c.world.groups, g.name)
		return
	}
	for _, id := range slices.Clone(g.members) {
		i := c.world.instances[id]
		switch {
		case !ending(i.lifecycle):
			c.retire(g, i, fmt.Sprintf("At %s a user request force deleted AutoScalingGroup changing the desired capacity from %d to 0.", brief(time.Now()), len(g.members)))
		case i.lifecycle == "Terminating:Wait":
			c.complete(i, "CONTINUE")
		}
	}
}

// noticeDead lets a group's health check find a dead member later.
func (c *Cloud) noticeDead(i *instance) {
	if i.group == "" || i.notified {
		return
	}
	i.notified = true
	c.after(c.jittered(c.opts.HealthCheckDelay), func() {
		g := c.world.groups[i.group]
		if g == nil || g.suspended["HealthCheck"] != "" || ending(i.lifecycle) {
			i.notified = false
			return
		}
		i.healthy = false
		if g.suspended["ReplaceUnhealthy"] != "" || g.suspended["Terminate"] != "" {
			return
		}
		c.retire(g, i, fmt.Sprintf("At %s an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped.", brief(time.Now())))
		c.kick(g)
	})
}
