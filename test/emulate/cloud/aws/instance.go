package aws

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Instance is a machine as the cloud knew it at one moment.
type Instance struct {
	ID, Type, Zone, Region string
	PrivateIP, PrivateDNS  string
	PublicIP, PublicDNS    string // "" without
	IPv6                   string // "" without
	ImageID                string
	UserData               string // decoded
	Tags                   map[string]string
	LaunchTime             time.Time
	State                  string // pending, running, shutting-down, terminated, stopping, stopped
	GroupName              string // "" once it has left its group
	Lifecycle              string // in the group: Pending, Pending:Wait, InService, Terminating ...
	Protected              bool   // from scale-in
	Spec                   InstanceType
	// IMDS returns the endpoint of this instance's own metadata service.
	IMDS func() (endpoint string, err error)
}

type instance struct {
	id, instanceType, zone string
	ip, mac, eni           string
	publicIP, ipv6         string
	dns, hostnameType      string   // as Rewire left them, "" without
	secondary              []string // private addresses beside the primary one
	state                  string
	reason, reasonCode     string // StateReason
	reasonAt               time.Time
	lt                     *templateVersion
	template               templateRef // with the version as a number
	weight                 string
	tags                   map[string]string
	launched               time.Time
	reservation            string

	group     string
	lifecycle string
	healthy   bool
	protected bool
	act       *activity // the launch or termination under way
	notified  bool      // the group has noticed that it is dead
	waitSeq   int       // counts lifecycle waits, so that an old timeout is void
	token     string    // of the lifecycle action

	spotRequest, spotStatus string    // of one that was bought on the spot market
	spotSince               time.Time // when it got that status
}

func (i *instance) explain(code, reason string) {
	i.reasonCode, i.reason, i.reasonAt = code, reason, time.Now()
}

func (c *Cloud) snapshot(i *instance) Instance {
	id := i.id
	return Instance{
		ID: id, Type: i.instanceType, Zone: i.zone, Region: c.opts.Region,
		PrivateIP: i.ip, PrivateDNS: c.dnsOf(i), PublicIP: i.publicIP, PublicDNS: c.publicDNS(i.publicIP), IPv6: i.ipv6,
		ImageID: i.lt.ImageID, UserData: i.lt.UserData, Tags: maps.Clone(i.tags), LaunchTime: i.launched,
		State: i.state, GroupName: i.group, Lifecycle: i.lifecycle, Protected: i.protected, Spec: c.types[i.instanceType],
		IMDS: func() (string, error) { return c.IMDS(id) },
	}
}

// Instances returns every instance that the cloud still shows, terminated
// ones included, oldest first.
func (c *Cloud) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Instance
	for _, i := range c.world.sorted() {
		out = append(out, c.snapshot(i))
	}
	return out
}

// Instance returns one instance; ok is false if the cloud does not show it.
func (c *Cloud) Instance(id string) (i Instance, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.world.instances[id]; found != nil {
		return c.snapshot(found), true
	}
	return Instance{}, false
}

func (w *world) sorted() []*instance {
	out := make([]*instance, 0, len(w.instances))
	for _, i := range w.instances {
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b *instance) int {
		if d := a.launched.Compare(b.launched); d != 0 {
			return d
		}
		return strings.Compare(a.id, b.id)
	})
	return out
}

func (c *Cloud) dnsDomain() string {
	if c.opts.Region == "us-east-1" {
		return "ec2.internal"
	}
	return c.opts.Region + ".compute.internal"
}

func (c *Cloud) privateDNS(ip string) string {
	if ip == "" {
		return ""
	}
	return "ip-" + strings.ReplaceAll(ip, ".", "-") + "." + c.dnsDomain()
}

func (c *Cloud) publicDNS(ip string) string {
	if ip == "" {
		return ""
	}
	domain := c.opts.Region + ".compute.amazonaws.com"
	if c.opts.Region == "us-east-1" {
		domain = "compute-1.amazonaws.com"
	}
	return "ec2-" + strings.ReplaceAll(ip, ".", "-") + "." + domain
}

// The VPC is 10.Network.0.0/16 with one /19 per zone, of which AWS keeps the first
// four addresses and the last one.
const zoneHosts = 8192 - 5

func (c *Cloud) vpcCIDR() string { return fmt.Sprintf("10.%d.0.0/16", c.opts.Network) }

func (c *Cloud) zoneIndex(zone string) int { return slices.Index(c.opts.Zones, zone) }

func (c *Cloud) cidr(zone string) string {
	return fmt.Sprintf("10.%d.%d.0/19", c.opts.Network, c.zoneIndex(zone)*32)
}

func (c *Cloud) vpc() string { return fmt.Sprintf("vpc-0%016x", c.fingerprint("vpc")) }

// Subnet is the ID of a zone's subnet.
func (c *Cloud) Subnet(zone string) string {
	return fmt.Sprintf("subnet-0%016x", c.fingerprint(zone))
}

// fingerprint makes IDs that are stable for a name and a seed.
func (c *Cloud) fingerprint(name string) uint64 {
	h := c.opts.Seed ^ 14695981039346656037
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// address hands out a private address of the zone's subnet that no instance
// has which still runs. Terminated instances have given theirs back.
func (c *Cloud) address(zone string) string {
	taken := map[string]bool{}
	for _, i := range c.world.instances {
		taken[i.ip] = true
	}
	start := c.nextIP[zone]
	if c.opts.ReuseIPs {
		start = 0
	}
	for k := range zoneHosts {
		host := (start+k)%zoneHosts + 4
		ip := fmt.Sprintf("10.%d.%d.%d", c.opts.Network, c.zoneIndex(zone)*32+host/256, host%256)
		if !taken[ip] {
			c.nextIP[zone] = (start + k + 1) % zoneHosts
			return ip
		}
	}
	return ""
}

// setState moves an instance to another EC2 state and tells those who listen.
func (c *Cloud) setState(i *instance, state string) {
	old := i.state
	if old == state {
		return
	}
	i.state = state
	now := c.snapshot(i)
	c.logf("instance %s %s -> %s", i.id, old, state)
	if f := c.opts.OnState; f != nil {
		c.notify(func() { f(now, old, state) })
	}
	if f := c.opts.OnLaunch; f != nil && state == "running" {
		go f(now)
	}
}

// shutdown takes an instance through shutting-down to terminated and, later,
// out of sight. It is idempotent.
func (c *Cloud) shutdown(i *instance, code, reason string) {
	if i.state == "shutting-down" || i.state == "terminated" {
		return
	}
	i.explain(code, reason)
	c.setState(i, "shutting-down")
	c.after(c.jittered(c.opts.TerminateDelay), func() { c.terminated(i) })
}

func (c *Cloud) terminated(i *instance) {
	c.powerOff(i)
	c.setState(i, "terminated")
	if strings.HasPrefix(i.lifecycle, "Terminating") {
		i.lifecycle = "Terminated"
		if c.opts.LeaveDelay == 0 {
			c.leave(i, "Successful")
		} else {
			c.after(c.jittered(c.opts.LeaveDelay), func() { c.leave(i, "Successful") })
		}
	}
	c.after(c.opts.TerminatedVisibleFor, func() { c.forget(i) })
}

// powerOff takes away what only a live machine has.
func (c *Cloud) powerOff(i *instance) {
	i.ip, i.publicIP, i.ipv6 = "", "", ""
	if m := c.metadata[i.id]; m != nil {
		m.close()
		delete(c.metadata, i.id)
	}
}

// forget removes an instance from everything that is shown.
func (c *Cloud) forget(i *instance) {
	if i.group != "" {
		c.leave(i, "Successful")
	}
	delete(c.world.instances, i.id)
	delete(c.console, i.id)
}

// TerminateInstance terminates an instance behind its group's back, as a
// person at the console does. The group notices after HealthCheckDelay.
func (c *Cloud) TerminateInstance(id string) error {
	return c.outOfBand("terminate", id, func(i *instance) {
		c.shutdown(i, "Client.UserInitiatedShutdown", "User initiated shutdown")
		c.noticeDead(i)
	})
}

// StopInstance stops an instance behind its group's back. Its group takes it
// for dead, terminates and replaces it, as AWS does.
func (c *Cloud) StopInstance(id string) error {
	return c.outOfBand("stop", id, func(i *instance) {
		if i.state != "running" {
			return
		}
		i.explain("Client.UserInitiatedShutdown", "User initiated shutdown")
		c.setState(i, "stopping")
		c.after(c.jittered(c.opts.TerminateDelay), func() {
			if i.state == "stopping" {
				c.setState(i, "stopped")
			}
		})
		c.noticeDead(i)
	})
}

// Reboot reboots an instance: no state changes, but Options.OnReboot is told.
func (c *Cloud) Reboot(id string) error {
	return c.outOfBand("reboot", id, func(i *instance) {
		if f := c.opts.OnReboot; f != nil && i.state == "running" {
			now := c.snapshot(i)
			c.notify(func() { f(now) })
		}
	})
}

// Vanish removes an instance at once, without a trace: from its group and
// from everything that EC2 shows. AWS has no such call; it is what a reader
// finds who looks again after TerminatedVisibleFor.
func (c *Cloud) Vanish(id string) error {
	return c.outOfBand("vanish", id, func(i *instance) {
		c.powerOff(i)
		c.setState(i, "terminated")
		c.forget(i)
	})
}

func (c *Cloud) outOfBand(what, id string, do func(*instance)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed()
	i := c.world.instances[id]
	if i == nil {
		return fmt.Errorf("%s instance %s: no such instance", what, id)
	}
	do(i)
	return nil
}
