package aws

import (
	"fmt"
	"slices"
	"time"
)

// members finds the instances that a call names, all of which must be in the
// group that it names.
func (c *Cloud) members(r *request) (*group, []*instance, *apiError) {
	g, err := r.group()
	if err != nil {
		return nil, nil, err
	}
	var out []*instance
	for _, id := range r.p.strs("InstanceIds") {
		if !slices.Contains(g.members, id) {
			return nil, nil, fail("ValidationError", fmt.Sprintf("The instance %s is not part of Auto Scaling group %s.", id, g.name))
		}
		out = append(out, r.world.instances[id])
	}
	return g, out, nil
}

func (c *Cloud) suspend(r *request) ([]el, *apiError) {
	return c.setProcesses(r, func(g *group, p string) {
		g.suspended[p] = "User suspended at " + brief(time.Now())
	})
}

func (c *Cloud) resume(r *request) ([]el, *apiError) {
	return c.setProcesses(r, func(g *group, p string) { delete(g.suspended, p) })
}

var processes = []string{"AZRebalance", "AddToLoadBalancer", "AlarmNotification", "HealthCheck", "InstanceRefresh",
	"Launch", "ReplaceUnhealthy", "ScheduledActions", "Terminate"}

func (c *Cloud) setProcesses(r *request, set func(*group, string)) ([]el, *apiError) {
	g, err := r.group()
	if err != nil {
		return nil, err
	}
	list := r.p.strs("ScalingProcesses")
	if len(list) == 0 {
		list = processes
	}
	for _, p := range list {
		if !slices.Contains(processes, p) {
			return nil, fail("ValidationError", "Invalid process name: "+p)
		}
	}
	for _, p := range list {
		set(g, p)
	}
	// What happened while a check was off is found when it is on again.
	for _, id := range g.members {
		i := r.world.instances[id]
		if i.state != "pending" && i.state != "running" && !ending(i.lifecycle) {
			i.notified = false
			c.noticeDead(i)
		}
	}
	c.kick(g)
	return nil, nil
}

func (c *Cloud) enterStandby(r *request) ([]el, *apiError) {
	g, list, err := c.members(r)
	if err != nil {
		return nil, err
	}
	if !r.p.has("ShouldDecrementDesiredCapacity") {
		return nil, missing("ShouldDecrementDesiredCapacity")
	}
	for _, i := range list {
		if i.lifecycle != "InService" {
			return nil, fail("ValidationError", fmt.Sprintf("The instance %s is not in InService.", i.id))
		}
	}
	if n := g.desired - len(list); r.p.boolean("ShouldDecrementDesiredCapacity") {
		if n < g.min {
			return nil, fail("ValidationError", fmt.Sprintf("AutoScalingGroup %s has min-size=%d, max-size=%d, and desired-size=%d. To place into standby %d instance, please update the AutoScalingGroup sizes appropriately.", g.name, g.min, g.max, g.desired, len(list)))
		}
		g.desired = n
	}
	var acts []*activity
	for _, i := range list {
		i.lifecycle = "Standby"
		a := c.begin(g, i.zone, i.id, "Moving EC2 instance to Standby: "+i.id,
			fmt.Sprintf("At %s instance %s was moved to standby in response to a user request.", brief(time.Now()), i.id))
		acts = append(acts, a)
	}
	e := each("Activities", "member", acts, (*activity).elements)
	for _, a := range acts {
		a.end("Successful", "")
	}
	c.kick(g)
	return []el{e}, nil
}

// tagged finds the group that a tag of CreateOrUpdateTags or DeleteTags is for.
func (r *request) tagged(t *params) (*group, *apiError) {
	id := t.str("ResourceId")
	if kind := t.str("ResourceType"); kind != "auto-scaling-group" {
		return nil, fail("ValidationError", "Resource type "+kind+" is not supported. Supported resource types are: auto-scaling-group")
	}
	g := r.world.groups[id]
	if g == nil {
		return nil, noGroup(id)
	}
	return g, nil
}

func (c *Cloud) putTags(r *request) ([]el, *apiError) {
	for _, t := range r.p.list("Tags") {
		g, err := r.tagged(t)
		if err != nil {
			return nil, err
		}
		g.tags[t.str("Key")] = groupTag{t.str("Value"), t.boolean("PropagateAtLaunch")}
	}
	return nil, nil
}

func (c *Cloud) putHook(r *request) ([]el, *apiError) {
	g, err := r.group()
	if err != nil {
		return nil, err
	}
	name := r.p.str("LifecycleHookName")
	h, known := g.hooks[name]
	if !known {
		h = hook{name: name, result: "ABANDON", heartbeat: time.Hour}
	}
	if t := r.p.str("LifecycleTransition"); t != "" {
		h.transition = t
	}
	if h.transition != launching && h.transition != terminating {
		return nil, fail("ValidationError", "Lifecycle transition "+h.transition+" is not supported.")
	}
	if d := r.p.str("DefaultResult"); d != "" {
		h.result = d
	}
	if m := r.p.str("NotificationMetadata"); m != "" {
		h.metadata = m
	}
	seconds, err := r.p.number("HeartbeatTimeout", int(h.heartbeat.Seconds()))
	if err != nil {
		return nil, err
	}
	h.heartbeat = time.Duration(seconds) * time.Second
	g.hooks[name] = h
	return nil, nil
}
