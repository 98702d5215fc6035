package aws

import (
	"slices"
	"strings"
)

func (c *Cloud) describeGroups(r *request) ([]el, *apiError) {
	names := r.p.strs("AutoScalingGroupNames")
	var found []*group
	for _, name := range sortedKeys(r.world.groups) {
		g := r.world.groups[name]
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		keep := true
		for _, f := range filters(r.p, "Filters", "Values") {
			tags := map[string]string{}
			for k, t := range g.tags {
				tags[k] = t.value
			}
			match, ok := f.tags(tags)
			if !ok {
				return nil, fail("ValidationError", "Filter type "+f.name+" is not correct. Allowed Filter types are: tag-key, tag-value, tag:<tag-key>")
			}
			keep = keep && match
		}
		if keep {
			found = append(found, g)
		}
	}
	found, next, err := page(c, r, "DescribeAutoScalingGroups", found, "MaxRecords", 50, 100)
	if err != nil {
		return nil, err
	}
	bare := r.p.has("IncludeInstances") && !r.p.boolean("IncludeInstances")
	return []el{
		each("AutoScalingGroups", "member", found, func(g *group) []el { return c.groupElements(r.world, g, bare) }),
		opt("NextToken", next),
	}, nil
}

func (c *Cloud) groupElements(w *world, g *group, bare bool) []el {
	var subnets []string
	for _, z := range g.zones {
		subnets = append(subnets, c.Subnet(z))
	}
	status := ""
	if g.deleting {
		status = deleteInProgress
	}
	e := []el{
		x("AutoScalingGroupName", g.name),
		x("AutoScalingGroupARN", g.arn),
	}
	if g.mixed {
		e = append(e, c.mixedElements(g))
	} else {
		e = append(e, x("LaunchTemplate", g.template.elements()))
	}
	return append(e,
		x("MinSize", g.min),
		x("MaxSize", g.max),
		x("DesiredCapacity", g.desired),
		x("DefaultCooldown", g.cooldownSeconds()),
		texts("AvailabilityZones", "member", g.zones),
		x("LoadBalancerNames"),
		x("TargetGroupARNs"),
		x("HealthCheckType", "EC2"),
		x("HealthCheckGracePeriod", int(g.grace.Seconds())),
		when(!bare, each("Instances", "member", g.members, func(id string) []el { return w.instances[id].memberElements() })),
		x("CreatedTime", g.created),
		each("SuspendedProcesses", "member", sortedKeys(g.suspended), func(p string) []el {
			return []el{x("ProcessName", p), x("SuspensionReason", g.suspended[p])}
		}),
		x("VPCZoneIdentifier", strings.Join(subnets, ",")),
		x("EnabledMetrics"),
		opt("Status", status),
		each("Tags", "member", sortedKeys(g.tags), g.tagElements),
		texts("TerminationPolicies", "member", g.policies()),
		x("NewInstancesProtectedFromScaleIn", g.protectNew),
		x("ServiceLinkedRoleARN", "arn:aws:iam::"+c.opts.AccountID+":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"),
		x("CapacityRebalance", g.rebalance),
		when(w.warm(g.name) > 0, x("WarmPoolConfiguration", x("MinSize", 0), x("PoolState", "Stopped"), x("InstanceReusePolicy", x("ReuseOnScaleIn", true)))),
		when(w.warm(g.name) > 0, x("WarmPoolSize", w.warm(g.name))),
		x("TrafficSources"),
	)
}

func (g *group) policies() []string {
	if len(g.terminationPolicies) == 0 {
		return []string{"Default"}
	}
	return g.terminationPolicies
}

func (g *group) cooldownSeconds() int {
	if g.cooldown == 0 {
		return 300
	}
	return int(g.cooldown.Seconds())
}

func (c *Cloud) mixedElements(g *group) el {
	def := func(s, d string) string {
		if s == "" {
			return d
		}
		return s
	}
	return x("MixedInstancesPolicy",
		x("LaunchTemplate",
			x("LaunchTemplateSpecification", g.template.elements()),
			each("Overrides", "member", g.overrides, func(o override) []el {
				e := []el{opt("InstanceType", o.instanceType), opt("WeightedCapacity", o.weight)}
				if o.template.given() {
					e = append(e, x("LaunchTemplateSpecification", o.template.elements()))
				}
				if o.requirements != nil {
					e = append(e, o.requirements.element("InstanceRequirements", "member", false))
				}
				return e
			})),
		x("InstancesDistribution",
			x("OnDemandAllocationStrategy", def(g.strategy, "prioritized")),
			x("OnDemandBaseCapacity", def(g.onDemandBase, "0")),
			x("OnDemandPercentageAboveBaseCapacity", def(g.onDemand, "100")),
			x("SpotAllocationStrategy", "lowest-price"),
			x("SpotInstancePools", 2)))
}

func (g *group) tagElements(key string) []el {
	return []el{
		x("ResourceId", g.name),
		x("ResourceType", "auto-scaling-group"),
		x("Key", key),
		x("Value", g.tags[key].value),
		x("PropagateAtLaunch", g.tags[key].propagate),
	}
}

// memberElements describes an instance as its group sees it.
func (i *instance) memberElements() []el {
	health := "Healthy"
	if !i.healthy {
		health = "Unhealthy"
	}
	return []el{
		x("InstanceId", i.id),
		x("InstanceType", i.instanceType),
		x("AvailabilityZone", i.zone),
		x("LifecycleState", i.lifecycle),
		x("HealthStatus", health),
		x("LaunchTemplate", i.template.elements()),
		x("ProtectedFromScaleIn", i.protected),
		opt("WeightedCapacity", i.weight),
	}
}

func (c *Cloud) describeActivities(r *request) ([]el, *apiError) {
	name := r.p.str("AutoScalingGroupName")
	if name != "" && r.world.groups[name] == nil && !r.p.boolean("IncludeDeletedGroups") {
		return nil, noGroup(name)
	}
	ids := r.p.strs("ActivityIds")
	var found []*activity
	for _, a := range slices.Backward(r.world.activities) {
		if (name == "" || a.Group == name) && (len(ids) == 0 || slices.Contains(ids, a.ID)) {
			found = append(found, a)
		}
	}
	found, next, err := page(c, r, "DescribeScalingActivities", found, "MaxRecords", 100, 100)
	if err != nil {
		return nil, err
	}
	return []el{each("Activities", "member", found, (*activity).elements), opt("NextToken", next)}, nil
}

// noGroup is Auto Scaling's answer to a name that it does not know.
func noGroup(name string) *apiError {
	return fail("ValidationError", "AutoScalingGroup name not found - AutoScalingGroup '"+name+"' not found")
}
