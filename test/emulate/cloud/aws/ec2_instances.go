package aws

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stateCodes are EC2's numbers for its states.
var stateCodes = map[string]int{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

func stateElement(name, state string) el {
	return x(name, x("code", stateCodes[state]), x("name", state))
}

// named finds the instances that a call names by ID; without any, all.
func (r *request) named() ([]*instance, *apiError) {
	ids := r.p.strs("InstanceId")
	if len(ids) == 0 {
		return r.world.sorted(), nil
	}
	var out []*instance
	var lost []string
	for _, id := range ids {
		if !strings.HasPrefix(id, "i-") {
			return nil, fail("InvalidInstanceID.Malformed", "Invalid id: \""+id+"\"")
		}
		if i := r.world.instances[id]; i == nil {
			lost = append(lost, id)
		} else if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	switch len(lost) {
	case 0:
		return out, nil
	case 1:
		return nil, fail("InvalidInstanceID.NotFound", "The instance ID '"+lost[0]+"' does not exist")
	}
	return nil, fail("InvalidInstanceID.NotFound", "The instance IDs '"+strings.Join(lost, ", ")+"' do not exist")
}

func (c *Cloud) describeInstances(r *request) ([]el, *apiError) {
	all, err := r.named()
	if err != nil {
		return nil, err
	}
	if r.p.has("InstanceId") && r.p.has("MaxResults") {
		return nil, fail("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	found, err := c.filterInstances(r, all, c.instanceFilter)
	if err != nil {
		return nil, err
	}
	found, next, err := page(c, r, "DescribeInstances", found, "MaxResults", 1000, 1000)
	if err != nil {
		return nil, err
	}
	return []el{
		each("reservationSet", "item", found, func(i *instance) []el {
			return []el{
				x("reservationId", i.reservation),
				x("ownerId", c.opts.AccountID),
				x("groupSet"),
				x("instancesSet", x("item", c.instanceElements(i))),
			}
		}),
		opt("nextToken", next),
	}, nil
}

func (c *Cloud) filterInstances(r *request, all []*instance, value func(*instance, string) (string, bool)) ([]*instance, *apiError) {
	var found []*instance
	fs := filters(r.p, "Filter", "Value")
	for _, f := range fs {
		if _, ok := f.tags(nil); !ok {
			if _, ok := value(&instance{lt: &templateVersion{}}, f.name); !ok {
				return nil, badFilter(f.name)
			}
		}
	}
	for _, i := range all {
		keep := true
		for _, f := range fs {
			match, ok := f.tags(i.tags)
			if !ok {
				v, _ := value(i, f.name)
				match = f.any(v)
			}
			keep = keep && match
		}
		if keep {
			found = append(found, i)
		}
	}
	return found, nil
}

// instanceFilter gives the value that a filter of DescribeInstances looks at.
func (c *Cloud) instanceFilter(i *instance, name string) (string, bool) {
	switch name {
	case "instance-state-name":
		return i.state, true
	case "instance-state-code":
		return strconv.Itoa(stateCodes[i.state]), true
	case "instance-id":
		return i.id, true
	case "instance-type":
		return i.instanceType, true
	case "image-id":
		return i.lt.ImageID, true
	case "availability-zone", "placement.availability-zone":
		return i.zone, true
	case "subnet-id":
		return c.Subnet(i.zone), true
	case "vpc-id":
		return c.vpc(), true
	case "private-ip-address", "network-interface.addresses.private-ip-address":
		return i.ip, true
	case "private-dns-name":
		return c.dnsOf(i), true
	case "ip-address":
		return i.publicIP, true
	case "key-name":
		return i.lt.KeyName, true
	case "architecture":
		return c.types[i.instanceType].Arch, true
	}
	return "", false
}

func (c *Cloud) instanceElements(i *instance) []el {
	t := c.types[i.instanceType]
	groups := each("groupSet", "item", i.lt.SecurityGroups, func(id string) []el {
		return []el{x("groupId", id), x("groupName", id)}
	})
	e := []el{
		x("instanceId", i.id),
		x("imageId", i.lt.ImageID),
		stateElement("instanceState", i.state),
		x("privateDnsName", c.dnsOf(i)),
		x("dnsName", c.publicDNS(i.publicIP)),
		x("reason", i.stateReason()),
		opt("keyName", i.lt.KeyName),
		x("amiLaunchIndex", 0),
		x("productCodes"),
		x("instanceType", i.instanceType),
		x("launchTime", i.launched),
		x("placement", x("availabilityZone", i.zone), x("groupName"), x("tenancy", "default")),
		x("monitoring", x("state", onOff(i.lt.Monitoring, "enabled", "disabled"))),
	}
	if i.ip != "" {
		e = append(e,
			x("subnetId", c.Subnet(i.zone)),
			x("vpcId", c.vpc()),
			x("privateIpAddress", i.ip),
			opt("ipAddress", i.publicIP),
			x("sourceDestCheck", true),
			groups)
	}
	if i.spotRequest != "" {
		e = append(e, x("instanceLifecycle", "spot"), x("spotInstanceRequestId", i.spotRequest))
	}
	if i.reasonCode != "" {
		e = append(e, x("stateReason", x("code", i.reasonCode), x("message", i.reasonCode+": "+i.reason)))
	}
	e = append(e,
		x("architecture", t.Arch),
		x("rootDeviceType", "ebs"),
		x("rootDeviceName", "/dev/xvda"),
		x("blockDeviceMapping"),
		x("virtualizationType", "hvm"),
		x("clientToken"),
		each("tagSet", "item", sortedKeys(i.tags), func(k string) []el { return []el{x("key", k), x("value", i.tags[k])} }),
		x("hypervisor", "xen"),
		x("networkInterfaceSet", c.interfaceElements(i, groups)))
	if p := i.lt.InstanceProfile; p != "" && i.ip != "" {
		e = append(e, x("iamInstanceProfile",
			x("arn", "arn:aws:iam::"+c.opts.AccountID+":instance-profile/"+p),
			x("id", fmt.Sprintf("AIPA%016X", c.fingerprint(p)))))
	}
	return append(e, i.optionElements(t)...)
}

// optionElements are the settings that an instance was launched with.
func (i *instance) optionElements(t InstanceType) []el {
	return []el{
		x("ebsOptimized", i.lt.EBSOptimized),
		x("enaSupport", true),
		x("cpuOptions", x("coreCount", max(1, t.VCPU/2)), x("threadsPerCore", min(2, t.VCPU))),
		x("metadataOptions",
			x("state", onOff(i.state == "pending", "pending", "applied")),
			x("httpTokens", onOff(i.lt.HTTPTokens == "optional", "optional", "required")),
			x("httpPutResponseHopLimit", max(1, i.lt.HopLimit)),
			x("httpEndpoint", "enabled"),
			x("httpProtocolIpv6", "disabled"),
			x("instanceMetadataTags", onOff(i.lt.MetadataTags, "enabled", "disabled"))),
		opt("ipv6Address", i.ipv6),
		x("platformDetails", "Linux/UNIX"),
		x("usageOperation", "RunInstances"),
		x("usageOperationUpdateTime", i.launched),
		x("privateDnsNameOptions", x("hostnameType", i.hostname()),
			x("enableResourceNameDnsARecord", false), x("enableResourceNameDnsAAAARecord", false)),
		x("maintenanceOptions", x("autoRecovery", "default")),
		x("currentInstanceBootMode", "legacy-bios"),
	}
}

// stateReason is the old form of a state's reason, which EC2 still sends:
// "User initiated (2026-01-02 03:04:05 GMT)", or the code of other reasons.
func (i *instance) stateReason() string {
	switch {
	case i.reasonCode == "":
		return ""
	case strings.HasPrefix(i.reasonCode, "Client.User"):
		return "User initiated (" + i.reasonAt.UTC().Format("2006-01-02 15:04:05") + " GMT)"
	}
	return i.reasonCode
}

func onOff(b bool, on, off string) string {
	if b {
		return on
	}
	return off
}

// interfaceElements is the one network interface of a live instance.
func (c *Cloud) interfaceElements(i *instance, groups el) []el {
	if i.ip == "" {
		return nil
	}
	dns := c.dnsOf(i)
	var association el
	if i.publicIP != "" {
		association = x("association", x("ipOwnerId", "amazon"), x("publicDnsName", c.publicDNS(i.publicIP)), x("publicIp", i.publicIP))
	}
	var v6 []string
	if i.ipv6 != "" {
		v6 = []string{i.ipv6}
	}
	return []el{x("item",
		x("networkInterfaceId", i.eni),
		x("subnetId", c.Subnet(i.zone)),
		x("vpcId", c.vpc()),
		x("description"),
		x("ownerId", c.opts.AccountID),
		x("status", "in-use"),
		x("macAddress", i.mac),
		x("privateIpAddress", i.ip),
		x("privateDnsName", dns),
		x("sourceDestCheck", true),
		groups,
		x("attachment",
			x("attachmentId", strings.Replace(i.eni, "eni-", "eni-attach-", 1)),
			x("deviceIndex", 0), x("status", "attached"), x("attachTime", i.launched),
			x("deleteOnTermination", true), x("networkCardIndex", 0)),
		association,
		x("privateIpAddressesSet", x("item",
			x("privateIpAddress", i.ip), x("privateDnsName", dns), x("primary", true), association), c.secondaryElements(i)),
		each("ipv6AddressesSet", "item", v6, func(a string) []el { return []el{x("ipv6Address", a)} }),
		x("interfaceType", "interface"))}
}

func (c *Cloud) createTags(r *request) ([]el, *apiError) {
	for _, id := range r.p.strs("ResourceId") {
		i := r.world.instances[id]
		if i == nil {
			return nil, fail("InvalidID", "The ID '"+id+"' is not valid")
		}
		for _, t := range r.p.list("Tag") {
			if strings.HasPrefix(t.str("Key"), "aws:") {
				return nil, fail("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
			}
			i.tags[t.str("Key")] = t.str("Value")
		}
	}
	return []el{x("return", true)}, nil
}

func (c *Cloud) consoleOutput(r *request) ([]el, *apiError) {
	id := r.p.str("InstanceId")
	i := r.world.instances[id]
	if i == nil {
		return nil, fail("InvalidInstanceID.NotFound", "The instance ID '"+id+"' does not exist")
	}
	text := c.console[id]
	return []el{
		x("instanceId", id), x("timestamp", time.Now()),
		x("output", base64.StdEncoding.EncodeToString([]byte(text))),
	}, nil
}

// Console appends to what GetConsoleOutput tells about an instance.
func (c *Cloud) Console(instanceID, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.console[instanceID] += text
	if n := len(c.console[instanceID]); n > 64<<10 {
		c.console[instanceID] = c.console[instanceID][n-64<<10:]
	}
}
