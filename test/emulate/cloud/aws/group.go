package aws

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Group is an Auto Scaling group as a test sets it up.
type Group struct {
	Name              string
	Min, Max, Desired int
	LaunchTemplate    string     // name or ID
	Version           string     // "" is $Default
	Overrides         []Override // any makes it a mixed instances group
	Zones             []string   // full names or letters, default all
	Tags              map[string]string
	// KeepTags stops the tags from being given to instances
	// (PropagateAtLaunch false).
	KeepTags               bool
	ProtectNew             bool // NewInstancesProtectedFromScaleIn
	CapacityRebalance      bool
	SuspendedProcesses     []string // Launch, Terminate, AZRebalance, HealthCheck, ReplaceUnhealthy ...
	DefaultCooldown        time.Duration
	HealthCheckGracePeriod time.Duration
}

// Override is one instance type of a mixed instances group, by preference.
type Override struct {
	InstanceType     string
	WeightedCapacity string // a number from 1 to 999, "" for none
	LaunchTemplate   string // another template for this type
	Version          string
	Requirements     *Requirements // instead of InstanceType
}

// GroupState is a group as it stands.
type GroupState struct {
	Group
	ARN        string
	Status     string // "Delete in progress", else ""
	Instances  []Instance
	Activities []Activity // newest first
}

// Lifecycles counts the members by lifecycle state.
func (g GroupState) Lifecycles() map[string]int {
	out := map[string]int{}
	for _, i := range g.Instances {
		out[i.Lifecycle]++
	}
	return out
}

type groupTag struct {
	value     string
	propagate bool
}

type override struct {
	instanceType, weight string
	template             templateRef
	requirements         *Requirements
}

// hook is a lifecycle hook of a group.
type hook struct {
	name, transition, result, metadata string
	heartbeat                          time.Duration
}

type group struct {
	name, arn              string
	min, max, desired      int
	template               templateRef
	mixed                  bool
	overrides              []override
	zones                  []string
	tags                   map[string]groupTag
	protectNew             bool
	suspended              map[string]string // process to reason
	cooldown, grace        time.Duration
	created                time.Time
	members                []string // instance IDs, oldest first
	hooks                  map[string]hook
	deleting               bool
	terminationPolicies    []string
	scheduled, stuck       bool   // a reconcile is due; the last one said that it cannot scale in
	reason                 string // why desired is what it is, for activities
	onDemandBase, onDemand string // of the instances distribution, as given
	strategy               string
	refresh                refresh
	rebalance              bool // CapacityRebalance
}

func (g *group) clone() *group {
	n := *g
	n.tags, n.suspended, n.hooks = maps.Clone(g.tags), maps.Clone(g.suspended), maps.Clone(g.hooks)
	n.members, n.zones = slices.Clone(g.members), slices.Clone(g.zones)
	n.overrides = slices.Clone(g.overrides)
	return &n
}

// PutGroup creates a group, or replaces the settings of the one of the same
// name. Instances come and go as a changed Desired asks for.
func (c *Cloud) PutGroup(in Group) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed()
	g := &group{
		name: in.Name, min: in.Min, max: in.Max, desired: in.Desired,
		mixed: len(in.Overrides) > 0, tags: map[string]groupTag{}, suspended: map[string]string{},
		protectNew: in.ProtectNew, rebalance: in.CapacityRebalance, cooldown: in.DefaultCooldown, grace: in.HealthCheckGracePeriod,
	}
	for k, v := range in.Tags {
		g.tags[k] = groupTag{v, !in.KeepTags}
	}
	for _, p := range in.SuspendedProcesses {
		g.suspended[p] = "User suspended at " + time.Now().UTC().Format(time.RFC3339)
	}
	for _, z := range in.Zones {
		if len(z) == 1 {
			z = c.opts.Region + z
		}
		g.zones = append(g.zones, z)
	}
	g.template = c.world.reference(in.LaunchTemplate, in.Version)
	for _, o := range in.Overrides {
		v := override{instanceType: o.InstanceType, weight: o.WeightedCapacity, requirements: o.Requirements}
		if o.LaunchTemplate != "" {
			v.template = c.world.reference(o.LaunchTemplate, o.Version)
		}
		g.overrides = append(g.overrides, v)
	}
	if err := c.adopt(g); err != nil {
		return fmt.Errorf("put group %s: %w", in.Name, err)
	}
	return nil
}

// reference takes a name or an ID.
func (w *world) reference(nameOrID, version string) templateRef {
	if w.templates[nameOrID] != nil {
		return templateRef{id: nameOrID, version: version}
	}
	return templateRef{name: nameOrID, version: version}
}

// adopt validates a group, completes it and puts it into the world, in place
// of one of the same name. The caller holds c.mu.
func (c *Cloud) adopt(g *group) *apiError {
	if g.min < 0 || g.max < g.min {
		return fail("ValidationError", fmt.Sprintf("Max bound, %d, must be greater than or equal to min bound, %d", g.max, g.min))
	}
	if g.desired < g.min || g.desired > g.max {
		return fail("ValidationError", fmt.Sprintf("Desired capacity:%d must be between the specified min size:%d and max size:%d", g.desired, g.min, g.max))
	}
	if len(g.zones) == 0 {
		g.zones = slices.Clone(c.opts.Zones)
	}
	for _, z := range g.zones {
		if !slices.Contains(c.opts.Zones, z) {
			return fail("ValidationError", "Invalid Availability Zone(s): ["+z+"]")
		}
	}
	var err *apiError
	if g.template, _, err = c.world.resolve(g.template); err != nil {
		return err
	}
	for i, o := range g.overrides {
		if o.instanceType != "" && c.types[o.instanceType].Name == "" {
			return fail("ValidationError", "You must use a valid fully-formed launch template. The instance type '"+o.instanceType+"' is not supported.")
		}
		if o.template.given() {
			if g.overrides[i].template, _, err = c.world.resolve(o.template); err != nil {
				return err
			}
		}
	}
	if old := c.world.groups[g.name]; old != nil {
		g.arn, g.created, g.members, g.hooks, g.scheduled = old.arn, old.created, old.members, old.hooks, old.scheduled
	} else {
		g.arn = fmt.Sprintf("arn:aws:autoscaling:%s:%s:autoScalingGroup:%s:autoScalingGroupName/%s", c.opts.Region, c.opts.AccountID, c.uuid(), g.name)
		g.created = time.Now()
		g.hooks = map[string]hook{}
		g.reason = fmt.Sprintf("At %s a user request created an AutoScalingGroup changing the desired capacity from 0 to %d.", brief(time.Now()), g.desired)
	}
	c.world.groups[g.name] = g
	c.kick(g)
	return nil
}

// Group returns a group as it stands; ok is false if there is none.
func (c *Cloud) Group(name string) (state GroupState, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.world.groups[name]
	if g == nil {
		return GroupState{}, false
	}
	return c.groupState(g), true
}

// Groups returns all groups, by name.
func (c *Cloud) Groups() []GroupState {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []GroupState
	for _, name := range sortedKeys(c.world.groups) {
		out = append(out, c.groupState(c.world.groups[name]))
	}
	return out
}

func (c *Cloud) groupState(g *group) GroupState {
	s := GroupState{ARN: g.arn, Group: Group{
		Name: g.name, Min: g.min, Max: g.max, Desired: g.desired,
		LaunchTemplate: g.template.name, Version: g.template.version,
		Zones: slices.Clone(g.zones), Tags: map[string]string{}, ProtectNew: g.protectNew, CapacityRebalance: g.rebalance,
		SuspendedProcesses: sortedKeys(g.suspended), DefaultCooldown: g.cooldown, HealthCheckGracePeriod: g.grace,
	}}
	if g.deleting {
		s.Status = deleteInProgress
	}
	for k, t := range g.tags {
		s.Tags[k] = t.value
	}
	for _, o := range g.overrides {
		s.Overrides = append(s.Overrides, Override{InstanceType: o.instanceType, WeightedCapacity: o.weight,
			LaunchTemplate: o.template.name, Version: o.template.version, Requirements: o.requirements})
	}
	for _, id := range g.members {
		s.Instances = append(s.Instances, c.snapshot(c.world.instances[id]))
	}
	for _, a := range slices.Backward(c.world.activities) {
		if a.Group == g.name {
			s.Activities = append(s.Activities, a.Activity)
		}
	}
	return s
}

// SetTag sets a tag of a group, or of an instance if id is an instance's ID.
// A tag with propagate is given to instances launched from then on.
func (c *Cloud) SetTag(id, key, value string, propagate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed()
	if g := c.world.groups[id]; g != nil {
		g.tags[key] = groupTag{value, propagate}
	} else if i := c.world.instances[id]; i != nil {
		i.tags[key] = value
	}
}

// RemoveTag removes a tag of a group or an instance.
func (c *Cloud) RemoveTag(id, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed()
	if g := c.world.groups[id]; g != nil {
		delete(g.tags, key)
	} else if i := c.world.instances[id]; i != nil {
		delete(i.tags, key)
	}
}

const deleteInProgress = "Delete in progress"

// brief is the form of times inside an activity's cause.
func brief(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
