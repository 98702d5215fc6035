package aws

import (
	"fmt"
	"slices"
	"strings"
)

// pool is where EC2 capacity comes from.
type pool struct{ zone, instanceType string }

// NoCapacity lets launches of an instance type in a zone fail with
// InsufficientInstanceCapacity. Both may be globs; a zone may be its letter.
func (c *Cloud) NoCapacity(zone, instanceType string) { c.LimitCapacity(zone, instanceType, 0) }

// HasCapacity undoes NoCapacity and LimitCapacity of the same zone and type.
func (c *Cloud) HasCapacity(zone, instanceType string) { c.LimitCapacity(zone, instanceType, -1) }

// LimitCapacity lets n more launches of an instance type in a zone succeed and
// then is NoCapacity. Terminations give nothing back. A negative n is no limit.
func (c *Cloud) LimitCapacity(zone, instanceType string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(zone) == 1 && zone != "*" {
		zone = c.opts.Region + zone
	}
	p := pool{zone, instanceType}
	if delete(c.pools, p); n >= 0 {
		c.pools[p] = n
	}
}

// Quota limits the vCPUs of all instances that run or are about to; 0 is no
// limit.
func (c *Cloud) Quota(vcpus int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quota = vcpus
}

func (c *Cloud) exhausted(zone, instanceType string) bool {
	for p, left := range c.pools {
		if left == 0 && matches(p.zone, zone) && matches(p.instanceType, instanceType) {
			return true
		}
	}
	return false
}

// draw takes a launch out of every pool that it belongs to.
func (c *Cloud) draw(zone, instanceType string) {
	for p, left := range c.pools {
		if left > 0 && matches(p.zone, zone) && matches(p.instanceType, instanceType) {
			c.pools[p]--
		}
	}
}

func (c *Cloud) inUse() (vcpus int) {
	for _, i := range c.world.instances {
		if i.state == "pending" || i.state == "running" {
			vcpus += c.types[i.instanceType].VCPU
		}
	}
	return vcpus
}

// refusal is EC2's answer to a launch that it will not do, in the words that
// end up in the activity; "" if it will.
func (c *Cloud) refusal(g *group, zone string, o choice) string {
	prefix := func(code string) string {
		if g.mixed {
			return "Could not launch On-Demand Instances. " + code + " - "
		}
		return ""
	}
	t, known := c.types[o.instanceType]
	vcpus := c.inUse()
	switch {
	case o.instanceType == "":
		return "You must use a valid fully-formed launch template. The request must contain the parameter InstanceType. Launching EC2 instance failed."
	case !known:
		return prefix("InvalidParameterValue") + "Invalid value '" + o.instanceType + "' for InstanceType. Launching EC2 instance failed."
	case o.version.ImageID == "":
		return "You must use a valid fully-formed launch template. The request must contain the parameter ImageId. Launching EC2 instance failed."
	case c.badImage[o.version.ImageID]:
		return prefix("InvalidAMIID.NotFound") + "The image id '[" + o.version.ImageID + "]' does not exist. Launching EC2 instance failed."
	case c.quota > 0 && vcpus+t.VCPU > c.quota:
		return prefix("VcpuLimitExceeded") + fmt.Sprintf("You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. Launching EC2 instance failed.", c.quota)
	case c.exhausted(zone, o.instanceType):
		var others []string
		for _, z := range c.opts.Zones {
			if z != zone && !c.exhausted(z, o.instanceType) {
				others = append(others, z)
			}
		}
		slices.Sort(others)
		hint := ""
		if len(others) > 0 {
			hint = fmt.Sprintf(" You can currently get %s capacity by not specifying an Availability Zone in your request or choosing %s.", o.instanceType, strings.Join(others, ", "))
		}
		return prefix("InsufficientInstanceCapacity") + fmt.Sprintf("We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). Our system will be working on provisioning additional capacity.%s Launching EC2 instance failed.", o.instanceType, zone, hint)
	}
	return ""
}
