package pool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Tag is the tag that names the pool of a group.
const Tag = "autoscaler-agent/pool"

// most is how many groups a pool may make: an account has 500 in a region, and a decision looks at
// each.
const most = 200

// Requirements ask EC2 for the types of the pool.
func (p *Pool) Requirements() *ec2types.InstanceRequirementsRequest {
	out := &ec2types.InstanceRequirementsRequest{
		AllowedInstanceTypes: p.Types,
		VCpuCount:            &ec2types.VCpuCountRangeRequest{Min: aws.Int32(int32(p.CPU.Min))},
		MemoryMiB:            &ec2types.MemoryMiBRequest{Min: aws.Int32(int32(p.Memory.Min) * 1024)},
		BurstablePerformance: ec2types.BurstablePerformanceIncluded, // AWS leaves them out by default, also those that are named
	}
	if p.CPU.Max > 0 {
		out.VCpuCount.Max = aws.Int32(int32(p.CPU.Max))
	}
	if p.Memory.Max > 0 {
		out.MemoryMiB.Max = aws.Int32(int32(p.Memory.Max) * 1024)
	}
	return out
}

// Groups are the groups of the pool for these types of EC2, by name, as the cloud will show them
// while they are empty. owner are the tags by which the agent finds its groups.
func (p *Pool) Groups(types []string, owner map[string]string) ([]asgtypes.AutoScalingGroup, error) {
	types = slices.DeleteFunc(slices.Sorted(slices.Values(types)), func(t string) bool { return !p.allows(t) })
	if n := len(types) * len(p.Subnets) * len(p.Capacity); n > most {
		return nil, fmt.Errorf("%d types in %d zones are %d groups, more than %d: narrow types, cpu, memory or subnets", len(types), len(p.Subnets), n, most)
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("no instance type of the region is one of types %v within cpu, memory and arch", p.Types)
	}
	var out []asgtypes.AutoScalingGroup
	for _, typ := range types {
		for _, zone := range slices.Sorted(maps.Keys(p.Subnets)) {
			for _, market := range p.Capacity {
				out = append(out, p.group(typ, zone, market, owner))
			}
		}
	}
	return out, nil
}

func (p *Pool) group(typ, zone, market string, owner map[string]string) asgtypes.AutoScalingGroup {
	name, share := p.Name+"-"+typ+"-"+zone, int32(100)
	if market == Spot {
		name, share = name+"-spot", 0
	}
	spec := &asgtypes.LaunchTemplateSpecification{Version: aws.String(p.Version)}
	if strings.HasPrefix(p.LaunchTemplate, "lt-") {
		spec.LaunchTemplateId = aws.String(p.LaunchTemplate)
	} else {
		spec.LaunchTemplateName = aws.String(p.LaunchTemplate)
	}
	g := asgtypes.AutoScalingGroup{
		AutoScalingGroupName: aws.String(name),
		AvailabilityZones:    []string{zone},
		VPCZoneIdentifier:    aws.String(p.Subnets[zone]),
		MinSize:              aws.Int32(0), MaxSize: aws.Int32(int32(p.Max)), DesiredCapacity: aws.Int32(0),
		NewInstancesProtectedFromScaleIn: aws.Bool(true),
		MixedInstancesPolicy: &asgtypes.MixedInstancesPolicy{
			LaunchTemplate: &asgtypes.LaunchTemplate{LaunchTemplateSpecification: spec, Overrides: []asgtypes.LaunchTemplateOverrides{{InstanceType: aws.String(typ)}}},
			InstancesDistribution: &asgtypes.InstancesDistribution{OnDemandBaseCapacity: aws.Int32(0), OnDemandPercentageAboveBaseCapacity: aws.Int32(share),
				OnDemandAllocationStrategy: aws.String("prioritized")},
		},
	}
	tag := func(key, value string, machines bool) {
		g.Tags = append(g.Tags, asgtypes.TagDescription{Key: aws.String(key), Value: aws.String(value), PropagateAtLaunch: aws.Bool(machines),
			ResourceId: aws.String(name), ResourceType: aws.String("auto-scaling-group")})
	}
	for _, key := range slices.Sorted(maps.Keys(owner)) {
		tag(key, owner[key], false)
	}
	tag(Tag, p.Name, false)
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		tag(key, p.Tags[key], true)
	}
	return g
}

// Create is the call that makes a group of Groups with its first machines.
func Create(g asgtypes.AutoScalingGroup, machines int) *autoscaling.CreateAutoScalingGroupInput {
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: g.AutoScalingGroupName, VPCZoneIdentifier: g.VPCZoneIdentifier,
		MinSize: g.MinSize, MaxSize: g.MaxSize, DesiredCapacity: aws.Int32(int32(machines)),
		NewInstancesProtectedFromScaleIn: g.NewInstancesProtectedFromScaleIn, MixedInstancesPolicy: g.MixedInstancesPolicy,
	}
	for _, t := range g.Tags {
		in.Tags = append(in.Tags, asgtypes.Tag{Key: t.Key, Value: t.Value, PropagateAtLaunch: t.PropagateAtLaunch, ResourceId: t.ResourceId, ResourceType: t.ResourceType})
	}
	return in
}
