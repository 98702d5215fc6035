package aws

import (
	"fmt"
	"slices"
	"strings"
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

func (c *Cloud) setProtection(r *request) ([]el, *apiError) {
	g, list, err := c.members(r)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if i.lifecycle != "InService" && !strings.HasPrefix(i.lifecycle, "Pending") {
			return nil, fail("ValidationError", fmt.Sprintf("The instance %s is not in InService or EnteringStandby or Standby.", i.id))
		}
	}
	for _, i := range list {
		i.protected = r.p.boolean("ProtectedFromScaleIn")
	}
	g.stuck = false
	c.kick(g)
	return nil, nil
}

func (c *Cloud) setHealth(r *request) ([]el, *apiError) {
	id := r.p.str("InstanceId")
	i := r.world.instances[id]
	if i == nil || i.group == "" {
		return nil, fail("ValidationError", "Instance Id not found - No managed instance found for instance ID "+id)
	}
	i.healthy = r.p.str("HealthStatus") != "Unhealthy"
	if !i.healthy {
		c.noticeDead(i)
	}
	return nil, nil
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

func (c *Cloud) exitStandby(r *request) ([]el, *apiError) {
	g, list, err := c.members(r)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if i.lifecycle != "Standby" {
			return nil, fail("ValidationError", fmt.Sprintf("The instance %s is not in Standby.", i.id))
		}
	}
	if g.desired+len(list) > g.max {
		return nil, fail("ValidationError", fmt.Sprintf("AutoScalingGroup %s has min-size=%d, max-size=%d, and desired-size=%d. To remove from standby %d instance, please update the AutoScalingGroup sizes appropriately.", g.name, g.min, g.max, g.desired, len(list)))
	}
	var acts []*activity
	for _, i := range list {
		i.lifecycle = "InService"
		g.desired++
		acts = append(acts, c.begin(g, i.zone, i.id, "Moving EC2 instance out of Standby: "+i.id,
			fmt.Sprintf("At %s instance %s was moved out of standby in response to a user request, increasing the capacity from %d to %d.", brief(time.Now()), i.id, g.desired-1, g.desired)))
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

func (c *Cloud) deleteTags(r *request) ([]el, *apiError) {
	for _, t := range r.p.list("Tags") {
		g, err := r.tagged(t)
		if err != nil {
			return nil, err
		}
		delete(g.tags, t.str("Key"))
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

func (c *Cloud) deleteHook(r *request) ([]el, *apiError) {
	g, err := r.group()
	if err != nil {
		return nil, err
	}
	delete(g.hooks, r.p.str("LifecycleHookName"))
	return nil, nil
}

func (c *Cloud) describeHooks(r *request) ([]el, *apiError) {
	g, err := r.group()
	if err != nil {
		return nil, err
	}
	return []el{each("LifecycleHooks", "member", sortedKeys(g.hooks), func(name string) []el {
		h := g.hooks[name]
		return []el{
			x("LifecycleHookName", h.name), x("AutoScalingGroupName", g.name), x("LifecycleTransition", h.transition),
			opt("NotificationMetadata", h.metadata), x("HeartbeatTimeout", int(h.heartbeat.Seconds())),
			x("GlobalTimeout", min(172800, 100*int(h.heartbeat.Seconds()))), x("DefaultResult", h.result),
		}
	})}, nil
}

func (c *Cloud) completeAction(r *request) ([]el, *apiError) {
	g, err := r.group()
	if err != nil {
		return nil, err
	}
	id, token := r.p.str("InstanceId"), r.p.str("LifecycleActionToken")
	for _, member := range g.members {
		i := r.world.instances[member]
		if (id == "" || i.id == id) && (token == "" || i.token == token) && strings.HasSuffix(i.lifecycle, ":Wait") {
			c.complete(i, r.p.str("LifecycleActionResult"))
			return nil, nil
		}
	}
	return nil, fail("ValidationError", "No active Lifecycle Action found with instance ID "+id)
}
