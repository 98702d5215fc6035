package aws

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (c *Cloud) setDesiredCapacity(r *request) ([]el, *apiError) {
	g, err := r.group()
	if err != nil {
		return nil, err
	}
	if !r.p.has("DesiredCapacity") {
		return nil, missing("DesiredCapacity")
	}
	n, err := r.p.number("DesiredCapacity", 0)
	switch {
	case err != nil:
		return nil, err
	case g.deleting:
		return nil, fail("ScalingActivityInProgress", "AutoScalingGroup "+g.name+" is being deleted and blocks this action")
	case n > g.max:
		return nil, fail("ValidationError", fmt.Sprintf("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", n, g.max))
	case n < g.min:
		return nil, fail("ValidationError", fmt.Sprintf("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", n, g.min))
	}
	if a := r.world.running(g.name, ""); a != nil && r.p.boolean("HonorCooldown") {
		return nil, fail("ScalingActivityInProgress", "Scaling activity "+a.ID+" is in progress and blocks this action")
	}
	if n != g.desired {
		g.reason = fmt.Sprintf("At %s a user request explicitly set group desired capacity changing the desired capacity from %d to %d.", brief(time.Now()), g.desired, n)
	}
	g.desired = n
	c.kick(g)
	return nil, nil
}

func (c *Cloud) terminateInGroup(r *request) ([]el, *apiError) {
	id := r.p.str("InstanceId")
	i := r.world.instances[id]
	if i == nil || i.group == "" {
		return nil, fail("ValidationError", "Instance Id not found - No managed instance found for instance ID: "+id)
	}
	if !r.p.has("ShouldDecrementDesiredCapacity") {
		return nil, missing("ShouldDecrementDesiredCapacity")
	}
	g := r.world.groups[i.group]
	if ending(i.lifecycle) {
		// The words are those of kubernetes/kops issue 6900.
		return nil, fail("ScalingActivityInProgress", "Activity "+i.act.ID+" is in progress.")
	}
	cause := fmt.Sprintf("At %s instance %s was taken out of service in response to a user request", brief(time.Now()), id)
	// Standby is outside of the desired capacity, so there is nothing to lower.
	if r.p.boolean("ShouldDecrementDesiredCapacity") && counts(i.lifecycle) {
		n := weight(i.weight)
		if g.desired-n < g.min {
			return nil, fail("ValidationError", fmt.Sprintf("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", g.min))
		}
		cause += fmt.Sprintf(", shrinking the capacity from %d to %d.", g.desired, g.desired-n)
		g.desired -= n
	} else {
		cause += "."
	}
	a := c.retire(g, i, cause)
	c.kick(g)
	return []el{x("Activity", a.elements())}, nil
}

// group finds the group that a call names.
func (r *request) group() (*group, *apiError) {
	name := r.p.str("AutoScalingGroupName")
	if name == "" {
		return nil, missing("AutoScalingGroupName")
	}
	g := r.world.groups[name]
	if g == nil {
		return nil, noGroup(name)
	}
	return g, nil
}

// missing is the answer to a call without a parameter that it must have.
func missing(name string) *apiError {
	lower := strings.ToLower(name[:1]) + name[1:]
	return fail("ValidationError", "1 validation error detected: Value null at '"+lower+"' failed to satisfy constraint: Member must not be null")
}

func (c *Cloud) createGroup(r *request) ([]el, *apiError) {
	name := r.p.str("AutoScalingGroupName")
	switch {
	case name == "":
		return nil, missing("AutoScalingGroupName")
	case r.world.groups[name] != nil:
		return nil, fail("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name "+name+" already exists")
	case !r.p.has("MinSize"):
		return nil, missing("MinSize")
	case !r.p.has("MaxSize"):
		return nil, missing("MaxSize")
	}
	g := &group{name: name, tags: map[string]groupTag{}, suspended: map[string]string{}}
	if err := c.settings(r, g); err != nil {
		return nil, err
	}
	if !r.p.has("DesiredCapacity") {
		g.desired = g.min
	}
	if !g.template.given() {
		return nil, fail("ValidationError", "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.")
	}
	for _, t := range r.p.list("Tags") {
		g.tags[t.str("Key")] = groupTag{t.str("Value"), t.boolean("PropagateAtLaunch")}
	}
	return nil, c.adopt(g)
}

func (c *Cloud) updateGroup(r *request) ([]el, *apiError) {
	old, err := r.group()
	if err != nil {
		return nil, err
	}
	g := old.clone()
	if err := c.settings(r, g); err != nil {
		return nil, err
	}
	if !r.p.has("DesiredCapacity") {
		g.desired = max(min(g.desired, g.max), g.min)
	}
	if g.desired != old.desired {
		g.reason = fmt.Sprintf("At %s a user request update of AutoScalingGroup constraints to min: %d, max: %d, desired: %d changing the desired capacity from %d to %d.",
			brief(time.Now()), g.min, g.max, g.desired, old.desired, g.desired)
	}
	return nil, c.adopt(g)
}

// settings reads what CreateAutoScalingGroup and UpdateAutoScalingGroup share.
func (c *Cloud) settings(r *request, g *group) *apiError {
	cooldown, grace := int(g.cooldown.Seconds()), int(g.grace.Seconds())
	for name, to := range map[string]*int{
		"MinSize": &g.min, "MaxSize": &g.max, "DesiredCapacity": &g.desired,
		"DefaultCooldown": &cooldown, "HealthCheckGracePeriod": &grace,
	} {
		n, err := r.p.number(name, *to)
		if err != nil {
			return err
		}
		*to = n
	}
	g.cooldown, g.grace = time.Duration(cooldown)*time.Second, time.Duration(grace)*time.Second
	if r.p.has("NewInstancesProtectedFromScaleIn") {
		g.protectNew = r.p.boolean("NewInstancesProtectedFromScaleIn")
	}
	if r.p.has("CapacityRebalance") {
		g.rebalance = r.p.boolean("CapacityRebalance")
	}
	if p := r.p.strs("TerminationPolicies"); len(p) > 0 {
		g.terminationPolicies = p
	}
	if t := r.p.str("HealthCheckType"); t != "" && t != "EC2" {
		return fail("UnsupportedOperation", "This emulated AWS knows the health check type EC2 only.")
	}
	if z := r.p.strs("AvailabilityZones"); len(z) > 0 {
		g.zones = z
	}
	if ids := r.p.str("VPCZoneIdentifier"); ids != "" {
		g.zones = nil
		for _, id := range strings.Split(ids, ",") {
			k := slices.IndexFunc(c.opts.Zones, func(z string) bool { return c.Subnet(z) == strings.TrimSpace(id) })
			if k < 0 {
				return fail("ValidationError", "The subnet ID '"+id+"' does not exist")
			}
			g.zones = append(g.zones, c.opts.Zones[k])
		}
	}
	if p := r.p.at("LaunchTemplate"); p != nil {
		g.template, g.mixed, g.overrides = readTemplateRef(p), false, nil
	}
	if p := r.p.at("MixedInstancesPolicy"); p != nil {
		return g.readMixed(p)
	}
	return nil
}

func readTemplateRef(p *params) templateRef {
	return templateRef{p.str("LaunchTemplateId"), p.str("LaunchTemplateName"), p.str("Version")}
}

func (g *group) readMixed(p *params) *apiError {
	g.mixed = true
	if t := p.at("LaunchTemplate.LaunchTemplateSpecification"); t != nil {
		g.template = readTemplateRef(t)
	}
	if list := p.list("LaunchTemplate.Overrides"); len(list) > 0 {
		g.overrides = nil
		for _, o := range list {
			v := override{instanceType: o.str("InstanceType"), weight: o.str("WeightedCapacity"), template: readTemplateRef(o.at("LaunchTemplateSpecification"))}
			if q := o.at("InstanceRequirements"); q != nil {
				req, err := readRequirements(q, "CpuManufacturers", "AllowedInstanceTypes", "ExcludedInstanceTypes")
				if err != nil {
					return err
				}
				v.requirements = req
			}
			g.overrides = append(g.overrides, v)
		}
	}
	d := p.at("InstancesDistribution")
	if s := d.str("OnDemandPercentageAboveBaseCapacity"); s != "" {
		if n, err := strconv.Atoi(s); err != nil || n != 100 && n != 0 {
			return fail("UnsupportedOperation", "This emulated AWS mixes no markets: OnDemandPercentageAboveBaseCapacity must be 100 or 0.")
		}
		g.onDemand = s
	}
	if s := d.str("OnDemandBaseCapacity"); s != "" {
		g.onDemandBase = s
	}
	if s := d.str("OnDemandAllocationStrategy"); s != "" {
		g.strategy = s
	}
	return nil
}

func (c *Cloud) deleteGroup(r *request) ([]el, *apiError) {
	g, err := r.group()
	if err != nil {
		return nil, err
	}
	if r.world.running(g.name, "") != nil && !r.p.boolean("ForceDelete") {
		return nil, fail("ScalingActivityInProgress", "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.")
	}
	if len(g.members) > 0 && !r.p.boolean("ForceDelete") {
		return nil, fail("ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.")
	}
	g.deleting = true
	g.min, g.max, g.desired = 0, 0, 0
	c.emptyOut(g)
	return nil, nil
}
