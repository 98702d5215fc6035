package aws

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func networkActions() map[string]action {
	list := []string{"DryRun", "MaxResults", "NextToken", "Filter.N.Name", "Filter.N.Value.N"}
	plain := []string{"DryRun", "Filter.N.Name", "Filter.N.Value.N"}
	tags := []string{"DryRun", "TagSpecification.N.ResourceType", "TagSpecification.N.Tag.N.Key", "TagSpecification.N.Tag.N.Value"}
	return map[string]action{
		"DescribeVpcs":           {query: (*Cloud).describeVPCs, params: join(list, []string{"VpcId.N"})},
		"DescribeSecurityGroups": {query: (*Cloud).describeSecurityGroups, params: join(list, []string{"GroupId.N"})},
		"CreateSecurityGroup":    {write: true, query: (*Cloud).createSecurityGroup, params: join(tags, []string{"GroupName", "GroupDescription", "VpcId"})},
		"AuthorizeSecurityGroupIngress": {write: true, query: (*Cloud).authorizeIngress, params: []string{"DryRun", "GroupId",
			"IpPermissions.N.IpProtocol", "IpPermissions.N.FromPort", "IpPermissions.N.ToPort", "IpPermissions.N.IpRanges.N.CidrIp", "IpPermissions.N.Ipv6Ranges.N.CidrIpv6", "IpPermissions.N.Groups.N.GroupId",
			"IpProtocol", "FromPort", "ToPort", "CidrIp"}},
		"DescribeKeyPairs":          {query: (*Cloud).describeKeys, params: join(plain, []string{"KeyName.N"})},
		"ImportKeyPair":             {write: true, query: (*Cloud).importKey, params: join(tags, []string{"KeyName", "PublicKeyMaterial"})},
		"DescribeNetworkInterfaces": {query: (*Cloud).describeInterfaces, params: list},
		"CreateNetworkInterface": {write: true, query: (*Cloud).createInterface, params: join(tags, []string{"SubnetId", "Description", "SecurityGroupId.N",
			"PrivateIpAddress", "ClientToken"})},
		"AssignIpv6Addresses": {write: true, query: (*Cloud).assignIPv6, params: []string{"NetworkInterfaceId", "Ipv6AddressCount"}},
		"DescribeAddresses":   {query: (*Cloud).describeAddresses, params: join(plain, []string{"AllocationId.N"})},
		"AllocateAddress":     {write: true, query: (*Cloud).allocateAddress, params: join(tags, []string{"Domain"})},
		"AssociateAddress":    {write: true, query: (*Cloud).associateAddress, params: []string{"DryRun", "AllocationId", "NetworkInterfaceId", "AllowReassociation"}},
	}
}

func (c *Cloud) describeVPCs(r *request) ([]el, *apiError) {
	list := []string{}
	keep, err := r.keep(nil, map[string]string{"is-default": "true", "isDefault": "true", "vpc-id": c.vpc(), "state": "available", "cidr": c.vpcCIDR()})
	if err != nil {
		return nil, err
	}
	ids := r.p.strs("VpcId")
	for _, id := range ids {
		if id != c.vpc() {
			return nil, fail("InvalidVpcID.NotFound", "The vpc ID '"+id+"' does not exist")
		}
	}
	if keep {
		list = append(list, c.vpc())
	}
	return []el{each("vpcSet", "item", list, func(id string) []el {
		return []el{x("vpcId", id), x("ownerId", c.opts.AccountID), x("state", "available"), x("cidrBlock", c.vpcCIDR()),
			x("dhcpOptionsId", "dopt-0123456789abcdef0"), x("instanceTenancy", "default"), x("isDefault", true), x("tagSet")}
	})}, nil
}

func (c *Cloud) createSecurityGroup(r *request) ([]el, *apiError) {
	name := r.p.str("GroupName")
	tags, err := r.specified("security-group")
	switch {
	case err != nil:
		return nil, err
	case name == "" || r.p.str("GroupDescription") == "":
		return nil, fail("MissingParameter", "The request must contain the parameter GroupName or GroupDescription")
	case r.p.str("VpcId") != "" && r.p.str("VpcId") != c.vpc():
		return nil, fail("InvalidVpcID.NotFound", "The vpc ID '"+r.p.str("VpcId")+"' does not exist")
	}
	for _, g := range c.account.security {
		if g.Name == name {
			return nil, fail("InvalidGroup.Duplicate", "The security group '"+name+"' already exists for VPC '"+c.vpc()+"'")
		}
	}
	g := &SecurityGroup{ID: fmt.Sprintf("sg-0%016x", c.fingerprint("sg "+name)), Name: name, Description: r.p.str("GroupDescription"), Tags: tags}
	c.account.security[g.ID] = g
	return []el{x("groupId", g.ID), tagSet(g.Tags)}, nil
}

func (c *Cloud) securityGroup(id string) (*SecurityGroup, *apiError) {
	if g := c.account.security[id]; g != nil {
		return g, nil
	}
	return nil, fail("InvalidGroup.NotFound", "The security group '"+id+"' does not exist")
}

// permissions reads the rules of AuthorizeSecurityGroupIngress, in their long form or the
// short one.
func (c *Cloud) permissions(r *request) ([]SecurityRule, *apiError) {
	list := r.p.list("IpPermissions")
	if len(list) == 0 {
		list = []*params{r.p}
	}
	var out []SecurityRule
	for _, p := range list {
		rule := SecurityRule{Protocol: p.str("IpProtocol")}
		var err *apiError
		if rule.From, err = p.number("FromPort", -1); err != nil {
			return nil, err
		}
		if rule.To, err = p.number("ToPort", -1); err != nil {
			return nil, err
		}
		if !slices.Contains([]string{"tcp", "udp", "icmp", "-1"}, rule.Protocol) {
			return nil, fail("InvalidPermission.Malformed", "Unsupported IP protocol \""+rule.Protocol+"\"")
		}
		networks, groups := []string{}, []string{}
		for _, n := range p.list("IpRanges") {
			networks = append(networks, n.str("CidrIp"))
		}
		for _, n := range p.list("Ipv6Ranges") {
			networks = append(networks, n.str("CidrIpv6"))
		}
		if s := p.str("CidrIp"); s != "" {
			networks = append(networks, s)
		}
		for _, g := range p.list("Groups") {
			if _, err := c.securityGroup(g.str("GroupId")); err != nil {
				return nil, err
			}
			groups = append(groups, g.str("GroupId"))
		}
		for _, n := range networks {
			one := rule
			one.CIDR = n
			out = append(out, one)
		}
		for _, g := range groups {
			one := rule
			one.Group = g
			out = append(out, one)
		}
	}
	if len(out) == 0 {
		return nil, fail("MissingParameter", "Source group or CIDR missing")
	}
	return out, nil
}

func (c *Cloud) authorizeIngress(r *request) ([]el, *apiError) {
	g, err := c.securityGroup(r.p.str("GroupId"))
	if err != nil {
		return nil, err
	}
	rules, err := c.permissions(r)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		if slices.Contains(g.Ingress, rule) {
			return nil, fail("InvalidPermission.Duplicate", "the specified rule already exists")
		}
	}
	g.Ingress = append(g.Ingress, rules...)
	return []el{x("return", true), x("securityGroupRuleSet")}, nil
}

func (c *Cloud) describeSecurityGroups(r *request) ([]el, *apiError) {
	ids := r.p.strs("GroupId")
	for _, id := range ids {
		if _, err := c.securityGroup(id); err != nil {
			return nil, err
		}
	}
	var found []*SecurityGroup
	for _, id := range sortedKeys(c.account.security) {
		g := c.account.security[id]
		keep, err := r.keep(g.Tags, map[string]string{"group-name": g.Name, "group-id": g.ID, "vpc-id": c.vpc()})
		if err != nil {
			return nil, err
		}
		if keep && (len(ids) == 0 || slices.Contains(ids, id)) {
			found = append(found, g)
		}
	}
	return []el{each("securityGroupInfo", "item", found, func(g *SecurityGroup) []el {
		return []el{x("ownerId", c.opts.AccountID), x("groupId", g.ID), x("groupName", g.Name), x("groupDescription", g.Description), x("vpcId", c.vpc()),
			each("ipPermissions", "item", g.Ingress, func(rule SecurityRule) []el {
				e := []el{x("ipProtocol", rule.Protocol)}
				if rule.From >= 0 {
					e = append(e, x("fromPort", rule.From), x("toPort", rule.To))
				}
				if rule.Group != "" {
					return append(e, x("groups", x("item", x("userId", c.opts.AccountID), x("groupId", rule.Group))))
				}
				if strings.Contains(rule.CIDR, ":") {
					return append(e, x("ipv6Ranges", x("item", x("cidrIpv6", rule.CIDR))))
				}
				return append(e, x("ipRanges", x("item", x("cidrIp", rule.CIDR))))
			}), tagSet(g.Tags)}
	})}, nil
}

func (c *Cloud) describeKeys(r *request) ([]el, *apiError) {
	wanted := r.p.strs("KeyName")
	for _, name := range wanted {
		if _, ok := c.account.keys[name]; !ok {
			return nil, fail("InvalidKeyPair.NotFound", "The key pair '"+name+"' does not exist")
		}
	}
	var found []string
	for _, name := range sortedKeys(c.account.keys) {
		keep, err := r.keep(nil, map[string]string{"key-name": name})
		if err != nil {
			return nil, err
		}
		if keep && (len(wanted) == 0 || slices.Contains(wanted, name)) {
			found = append(found, name)
		}
	}
	return []el{each("keySet", "item", found, func(name string) []el {
		return []el{x("keyPairId", fmt.Sprintf("key-0%016x", c.fingerprint("key "+name))), x("keyName", name), x("tagSet")}
	})}, nil
}

func (c *Cloud) importKey(r *request) ([]el, *apiError) {
	name := r.p.str("KeyName")
	if _, ok := c.account.keys[name]; ok {
		return nil, fail("InvalidKeyPair.Duplicate", "The keypair already exists")
	}
	tags, err := r.specified("key-pair")
	if err != nil {
		return nil, err
	}
	c.account.keys[name] = r.p.str("PublicKeyMaterial")
	return []el{x("keyName", name), x("keyPairId", fmt.Sprintf("key-0%016x", c.fingerprint("key "+name))), tagSet(tags)}, nil
}

func (c *Cloud) createInterface(r *request) ([]el, *apiError) {
	zone, err := c.zoneOf(r.p.str("SubnetId"))
	if err != nil {
		return nil, err
	}
	tags, err := r.specified("network-interface")
	if err != nil {
		return nil, err
	}
	groups := r.p.strs("SecurityGroupId")
	for _, id := range groups {
		if _, err := c.securityGroup(id); err != nil {
			return nil, err
		}
	}
	n := &NetworkInterface{ID: "eni-0" + c.hex(16), Zone: zone, PrivateIP: r.p.str("PrivateIpAddress"), Groups: groups, Tags: tags}
	if n.PrivateIP == "" {
		n.PrivateIP = c.address(zone)
	}
	c.account.nics[n.ID] = n
	return []el{x("networkInterface", c.nicElements(n))}, nil
}

func (c *Cloud) assignIPv6(r *request) ([]el, *apiError) {
	n := c.account.nics[r.p.str("NetworkInterfaceId")]
	if n == nil {
		return nil, fail("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '"+r.p.str("NetworkInterfaceId")+"' does not exist")
	}
	n.IPv6 = "2001:db8:1::" + strconv.Itoa(len(c.account.nics))
	return []el{x("networkInterfaceId", n.ID), x("assignedIpv6Addresses", x("item", n.IPv6))}, nil
}

func (c *Cloud) zoneOf(subnet string) (string, *apiError) {
	for _, z := range c.opts.Zones {
		if c.Subnet(z) == subnet {
			return z, nil
		}
	}
	return "", fail("InvalidSubnetID.NotFound", "The subnet ID '"+subnet+"' does not exist")
}

func (c *Cloud) nicElements(n *NetworkInterface) []el {
	status := "available"
	if n.Instance != "" {
		status = "in-use"
	}
	six := []string{}
	if n.IPv6 != "" {
		six = append(six, n.IPv6)
	}
	return []el{x("networkInterfaceId", n.ID), x("subnetId", c.Subnet(n.Zone)), x("vpcId", c.vpc()), x("availabilityZone", n.Zone),
		x("ownerId", c.opts.AccountID), x("status", status), x("privateIpAddress", n.PrivateIP), x("privateDnsName", c.privateDNS(n.PrivateIP)),
		x("sourceDestCheck", true), x("interfaceType", "interface"),
		each("ipv6AddressesSet", "item", six, func(a string) []el { return []el{x("ipv6Address", a)} }),
		each("groupSet", "item", n.Groups, func(id string) []el { return []el{x("groupId", id)} }), tagSet(n.Tags)}
}

func (c *Cloud) describeInterfaces(r *request) ([]el, *apiError) {
	var found []*NetworkInterface
	for _, id := range sortedKeys(c.account.nics) {
		n := c.account.nics[id]
		keep, err := r.keep(n.Tags, map[string]string{"network-interface-id": n.ID, "subnet-id": c.Subnet(n.Zone), "private-ip-address": n.PrivateIP})
		if err != nil {
			return nil, err
		}
		if keep {
			found = append(found, n)
		}
	}
	return []el{each("networkInterfaceSet", "item", found, c.nicElements)}, nil
}

func (c *Cloud) allocateAddress(r *request) ([]el, *apiError) {
	tags, err := r.specified("elastic-ip")
	if err != nil {
		return nil, err
	}
	c.account.next++
	a := &Address{ID: "eipalloc-0" + c.hex(16), PublicIP: "198.51.100." + strconv.Itoa(c.account.next), Tags: tags}
	c.account.addrs[a.ID] = a
	return []el{x("publicIp", a.PublicIP), x("allocationId", a.ID), x("domain", "vpc")}, nil
}

func (c *Cloud) associateAddress(r *request) ([]el, *apiError) {
	a := c.account.addrs[r.p.str("AllocationId")]
	if a == nil {
		return nil, fail("InvalidAllocationID.NotFound", "The allocation ID '"+r.p.str("AllocationId")+"' does not exist")
	}
	n := c.account.nics[r.p.str("NetworkInterfaceId")]
	if n == nil {
		return nil, fail("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '"+r.p.str("NetworkInterfaceId")+"' does not exist")
	}
	a.Interface = n.ID
	if i := c.world.instances[n.Instance]; i != nil {
		i.publicIP = a.PublicIP
	}
	return []el{x("associationId", strings.Replace(a.ID, "eipalloc", "eipassoc", 1))}, nil
}

func (c *Cloud) describeAddresses(r *request) ([]el, *apiError) {
	ids := r.p.strs("AllocationId")
	var found []*Address
	for _, id := range sortedKeys(c.account.addrs) {
		a := c.account.addrs[id]
		keep, err := r.keep(a.Tags, map[string]string{"allocation-id": a.ID, "public-ip": a.PublicIP, "network-interface-id": a.Interface})
		if err != nil {
			return nil, err
		}
		if keep && (len(ids) == 0 || slices.Contains(ids, id)) {
			found = append(found, a)
		}
	}
	return []el{each("addressesSet", "item", found, func(a *Address) []el {
		return []el{x("publicIp", a.PublicIP), x("allocationId", a.ID), x("domain", "vpc"), opt("networkInterfaceId", a.Interface), tagSet(a.Tags)}
	})}, nil
}
