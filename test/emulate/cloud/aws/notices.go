package aws

import (
	"fmt"
	"slices"
	"time"
)

// What AWS does of its own accord, as a test has it do: spot interruptions, instance
// refreshes, warm pools. Nothing of it happens unless it is asked for.

// MakeSpot makes a running instance one that was bought on the spot market. EC2 never does
// so: an agent that repeats its last description of the instance does not learn of it.
// LaunchTemplate.Spot launches such instances.
func (c *Cloud) MakeSpot(id string) error {
	return c.outOfBand("make spot", id, c.makeSpot)
}

func (c *Cloud) makeSpot(i *instance) {
	i.spotRequest, i.spotStatus, i.spotSince = "sir-0"+c.hex(7), "fulfilled", i.launched
}

// Interrupt gives a spot instance its notice of two minutes. It goes on running; a test
// ends it by TerminateInstance.
func (c *Cloud) Interrupt(id string) error {
	return c.outOfBand("interrupt", id, func(i *instance) { i.spotStatus, i.spotSince = "marked-for-termination", time.Now() })
}

// Spare takes the notice of a spot instance back.
func (c *Cloud) Spare(id string) error {
	return c.outOfBand("spare", id, func(i *instance) { i.spotStatus, i.spotSince = "fulfilled", time.Now() })
}

// InstanceRefresh sets what a group's instance refresh looks like: a status such as
// InProgress or Successful, and how much of it is done. Machines are not touched.
func (c *Cloud) InstanceRefresh(group, status string, percent int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed()
	g := c.world.groups[group]
	if g == nil {
		return fmt.Errorf("instance refresh: no group %s", group)
	}
	if g.refresh.id == "" {
		g.refresh.id, g.refresh.start = c.hex(8)+"-0000-4000-8000-"+c.hex(12), time.Now()
	}
	g.refresh.status, g.refresh.percent = status, percent
	return nil
}

// refresh is a group's newest instance refresh.
type refresh struct {
	id, status string
	percent    int
	start      time.Time
}

// Warm puts a member of a group into its warm pool, as a scale-in under a reuse policy
// does: stopped, not counted any more, still tagged with the group's name.
func (c *Cloud) Warm(id string) error {
	return c.outOfBand("warm", id, func(i *instance) {
		g := c.world.groups[i.group]
		if g == nil {
			return
		}
		g.members = slices.DeleteFunc(g.members, func(m string) bool { return m == id })
		g.desired--
		i.lifecycle = "Warmed:Stopped"
		c.setState(i, "stopped")
	})
}

// Unwarm takes an instance out of the warm pool into service, as a scale-out does.
func (c *Cloud) Unwarm(id string) error {
	return c.outOfBand("unwarm", id, func(i *instance) {
		g := c.world.groups[i.group]
		if g == nil {
			return
		}
		g.members = append(g.members, id)
		g.desired++
		i.lifecycle = "InService"
		c.setState(i, "running")
	})
}

func (w *world) warm(group string) int {
	n := 0
	for _, i := range w.instances {
		if i.group == group && i.lifecycle == "Warmed:Stopped" {
			n++
		}
	}
	return n
}

func (c *Cloud) describeRefreshes(r *request) ([]el, *apiError) {
	g := r.world.groups[r.p.str("AutoScalingGroupName")]
	if g == nil {
		return nil, noGroup(r.p.str("AutoScalingGroupName"))
	}
	var found []refresh
	if ids := r.p.strs("InstanceRefreshIds"); g.refresh.id != "" && (len(ids) == 0 || slices.Contains(ids, g.refresh.id)) {
		found = append(found, g.refresh)
	}
	found, next, err := page(c, r, "DescribeInstanceRefreshes", found, "MaxRecords", 50, 100)
	if err != nil {
		return nil, err
	}
	return []el{each("InstanceRefreshes", "member", found, func(f refresh) []el {
		return []el{x("InstanceRefreshId", f.id), x("AutoScalingGroupName", g.name), x("Status", f.status), x("StartTime", f.start),
			x("PercentageComplete", f.percent), x("InstancesToUpdate", len(g.members))}
	}), opt("NextToken", next)}, nil
}

func (c *Cloud) describeSpot(r *request) ([]el, *apiError) {
	var found []*instance
	for _, i := range r.world.sorted() {
		keep := i.spotRequest != "" && i.state != "terminated"
		for _, f := range filters(r.p, "Filter", "Value") {
			switch f.name {
			case "status-code":
				keep = keep && f.any(i.spotStatus)
			case "instance-id":
				keep = keep && f.any(i.id)
			case "spot-instance-request-id":
				keep = keep && f.any(i.spotRequest)
			case "state":
				keep = keep && f.any("active")
			default:
				return nil, fail("InvalidParameterValue", "The filter '"+f.name+"' is invalid")
			}
		}
		if keep {
			found = append(found, i)
		}
	}
	found, next, err := page(c, r, "DescribeSpotInstanceRequests", found, "MaxResults", 1000, 1000)
	if err != nil {
		return nil, err
	}
	return []el{each("spotInstanceRequestSet", "item", found, func(i *instance) []el {
		return []el{x("spotInstanceRequestId", i.spotRequest), x("type", "one-time"), x("state", "active"),
			x("status", x("code", i.spotStatus), x("updateTime", i.spotSince), x("message", "Your Spot request is "+i.spotStatus+".")),
			x("instanceId", i.id), x("createTime", i.launched), x("productDescription", "Linux/UNIX"),
			x("launchedAvailabilityZone", i.zone), x("instanceInterruptionBehavior", "terminate")}
	}), opt("nextToken", next)}, nil
}
