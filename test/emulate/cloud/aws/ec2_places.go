package aws

import (
	"fmt"
	"slices"
	"strings"
)

// zoneID is the zone's name that is the same in all accounts: use1-az1.
func (c *Cloud) zoneID(zone string) string {
	parts := strings.Split(c.opts.Region, "-")
	short := parts[0]
	if len(parts) == 3 {
		short += parts[1][:1] + parts[2]
	}
	return fmt.Sprintf("%s-az%d", short, c.zoneIndex(zone)+1)
}

func (c *Cloud) describeSubnets(r *request) ([]el, *apiError) {
	ids := r.p.strs("SubnetId")
	for _, id := range ids {
		if !slices.ContainsFunc(c.opts.Zones, func(z string) bool { return c.Subnet(z) == id }) {
			return nil, fail("InvalidSubnetID.NotFound", "The subnet ID '"+id+"' does not exist")
		}
	}
	var found []string
	for _, z := range c.opts.Zones {
		keep := len(ids) == 0 || slices.Contains(ids, c.Subnet(z))
		for _, f := range filters(r.p, "Filter", "Value") {
			switch f.name {
			case "availability-zone", "availabilityZone":
				keep = keep && f.any(z)
			case "subnet-id":
				keep = keep && f.any(c.Subnet(z))
			case "vpc-id":
				keep = keep && f.any(c.vpc())
			default:
				return nil, badFilter(f.name)
			}
		}
		if keep {
			found = append(found, z)
		}
	}
	return []el{each("subnetSet", "item", found, func(z string) []el {
		used := 0
		for _, i := range r.world.instances {
			if i.zone == z && i.ip != "" {
				used++
			}
		}
		id := c.Subnet(z)
		return []el{
			x("subnetId", id), x("subnetArn", fmt.Sprintf("arn:aws:ec2:%s:%s:subnet/%s", c.opts.Region, c.opts.AccountID, id)),
			x("state", "available"), x("ownerId", c.opts.AccountID), x("vpcId", c.vpc()), x("cidrBlock", c.cidr(z)),
			x("availableIpAddressCount", zoneHosts-used), x("availabilityZone", z), x("availabilityZoneId", c.zoneID(z)),
			x("defaultForAz", true), x("mapPublicIpOnLaunch", false), x("assignIpv6AddressOnCreation", false),
			x("ipv6CidrBlockAssociationSet"), x("tagSet"),
		}
	})}, nil
}

func (c *Cloud) describeImages(r *request) ([]el, *apiError) {
	ids := r.p.strs("ImageId")
	var found []image
	for _, i := range c.images(r.world) {
		keep := len(ids) == 0 || slices.Contains(ids, i.id)
		for _, f := range filters(r.p, "Filter", "Value") {
			switch f.name {
			case "image-id":
				keep = keep && f.any(i.id)
			case "architecture":
				keep = keep && f.any(i.arch)
			case "state":
				keep = keep && f.any("available")
			default:
				return nil, badFilter(f.name)
			}
		}
		if keep {
			found = append(found, i)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(c.images(r.world), func(i image) bool { return i.id == id }) {
			return nil, fail("InvalidAMIID.NotFound", "The image id '["+id+"]' does not exist")
		}
	}
	found, next, err := page(c, r, "DescribeImages", found, "MaxResults", 1000, 1000)
	if err != nil {
		return nil, err
	}
	return []el{each("imagesSet", "item", found, func(i image) []el {
		return []el{
			x("imageId", i.id), x("imageLocation", "amazon/"+i.id), x("imageState", "available"), x("imageOwnerId", c.opts.AccountID),
			x("creationDate", "2026-01-01T00:00:00.000Z"), x("isPublic", true), x("architecture", i.arch), x("imageType", "machine"),
			x("name", i.id), x("rootDeviceType", "ebs"), x("rootDeviceName", "/dev/xvda"), x("virtualizationType", "hvm"),
			x("hypervisor", "xen"), x("enaSupport", true), x("platformDetails", "Linux/UNIX"), x("usageOperation", "RunInstances"),
			each("blockDeviceMapping", "item", i.disks, func(d BlockDevice) []el {
				return []el{x("deviceName", d.DeviceName), x("ebs", x("volumeSize", d.SizeGiB), x("volumeType", d.VolumeType),
					x("deleteOnTermination", true), x("encrypted", false))}
			}),
			x("tagSet"),
		}
	}), opt("nextToken", next)}, nil
}
