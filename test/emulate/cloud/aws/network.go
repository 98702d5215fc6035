package aws

import "time"

// Network is what a test may change of an instance: how it is addressed and called,
// and since when it has run.
type Network struct {
	PrivateIP  string
	PrivateDNS string // "" is the name that follows from PrivateIP
	// HostnameType is "ip-name" or "resource-name"; the latter names the instance by
	// its ID where PrivateDNS is "".
	HostnameType string
	PublicIP     string // "" without; an Elastic IP address looks the same
	IPv6         string
	// Secondary are private addresses that the interface has beside the primary one,
	// as a CNI asks for them.
	Secondary  []string
	LaunchTime time.Time
}

// Rewire changes an instance's network behind everybody's back. AWS has no such call
// for most of it; it is how a test gets what subnets, Elastic IP addresses, address
// reuse and old instances come to.
func (c *Cloud) Rewire(id string, change func(*Network)) error {
	return c.outOfBand("rewire", id, func(i *instance) {
		n := Network{PrivateIP: i.ip, PrivateDNS: i.dns, HostnameType: i.hostname(), PublicIP: i.publicIP, IPv6: i.ipv6,
			Secondary: i.secondary, LaunchTime: i.launched}
		change(&n)
		i.ip, i.dns, i.hostnameType, i.publicIP, i.ipv6 = n.PrivateIP, n.PrivateDNS, n.HostnameType, n.PublicIP, n.IPv6
		i.secondary, i.launched = n.Secondary, n.LaunchTime
	})
}

func (i *instance) hostname() string {
	if i.hostnameType != "" {
		return i.hostnameType
	}
	return "ip-name"
}

// dnsOf is an instance's private DNS name, "" once it has none.
func (c *Cloud) dnsOf(i *instance) string {
	switch {
	case i.ip == "":
		return ""
	case i.dns != "":
		return i.dns
	case i.hostname() == "resource-name":
		return i.id + "." + c.dnsDomain()
	}
	return c.privateDNS(i.ip)
}

func (c *Cloud) secondaryElements(i *instance) []el {
	var out []el
	for _, ip := range i.secondary {
		out = append(out, x("item", x("privateIpAddress", ip), x("privateDnsName", c.privateDNS(ip)), x("primary", false)))
	}
	return out
}
