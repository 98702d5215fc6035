package asg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// script is an AWS of which each test writes only the calls that matter.
type script struct {
	groups     []asgtypes.AutoScalingGroup
	instances  []ec2types.Instance
	types      map[string]ec2types.InstanceTypeInfo
	data       ec2types.ResponseLaunchTemplateData
	image      *ec2types.Image
	fail       map[string]error // by action
	terminated []string
	created    []*autoscaling.CreateAutoScalingGroupInput
	desired    []int32
	updated    *autoscaling.UpdateAutoScalingGroupInput
	matched    *ec2.GetInstanceTypesFromInstanceRequirementsInput
	calls      []string
	refresh    asgtypes.InstanceRefreshStatus // of the newest instance refresh; empty: there was none
}

func (s *script) did(action string) error {
	s.calls = append(s.calls, action)
	return s.fail[action]
}

func code(c, message string) error { return &smithy.GenericAPIError{Code: c, Message: message} }

func (s *script) DescribeAutoScalingGroups(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	return &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: s.groups}, s.did(awsapi.ActionDescribeGroups)
}
func (s *script) DescribeScalingActivities(context.Context, *autoscaling.DescribeScalingActivitiesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeScalingActivitiesOutput, error) {
	return &autoscaling.DescribeScalingActivitiesOutput{}, s.fail[awsapi.ActionDescribeActivities]
}
func (s *script) UpdateAutoScalingGroup(_ context.Context, in *autoscaling.UpdateAutoScalingGroupInput, _ ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error) {
	if err := s.did(awsapi.ActionUpdateGroup); err != nil {
		return nil, err
	}
	s.updated = in
	return &autoscaling.UpdateAutoScalingGroupOutput{}, nil
}

func (s *script) CreateAutoScalingGroup(_ context.Context, in *autoscaling.CreateAutoScalingGroupInput, _ ...func(*autoscaling.Options)) (*autoscaling.CreateAutoScalingGroupOutput, error) {
	if err := s.did(awsapi.ActionCreateGroup); err != nil {
		return nil, err
	}
	s.created = append(s.created, in)
	return &autoscaling.CreateAutoScalingGroupOutput{}, nil
}
func (s *script) SetDesiredCapacity(_ context.Context, in *autoscaling.SetDesiredCapacityInput, _ ...func(*autoscaling.Options)) (*autoscaling.SetDesiredCapacityOutput, error) {
	s.desired = append(s.desired, *in.DesiredCapacity)
	return &autoscaling.SetDesiredCapacityOutput{}, s.did(awsapi.ActionSetDesired)
}
func (s *script) TerminateInstanceInAutoScalingGroup(_ context.Context, in *autoscaling.TerminateInstanceInAutoScalingGroupInput, _ ...func(*autoscaling.Options)) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error) {
	if !aws.ToBool(in.ShouldDecrementDesiredCapacity) {
		return nil, errors.New("without a decrement")
	}
	s.terminated = append(s.terminated, *in.InstanceId)
	return &autoscaling.TerminateInstanceInAutoScalingGroupOutput{}, s.did(awsapi.ActionTerminate)
}
func (s *script) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{Instances: s.instances}}}, s.fail[awsapi.ActionDescribeInstances]
}
func (s *script) DescribeSpotPriceHistory(context.Context, *ec2.DescribeSpotPriceHistoryInput, ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	return &ec2.DescribeSpotPriceHistoryOutput{}, s.did(awsapi.ActionDescribeSpotPrices)
}
func (s *script) DescribeSpotInstanceRequests(context.Context, *ec2.DescribeSpotInstanceRequestsInput, ...func(*ec2.Options)) (*ec2.DescribeSpotInstanceRequestsOutput, error) {
	return &ec2.DescribeSpotInstanceRequestsOutput{}, s.did(awsapi.ActionDescribeSpot)
}
func (s *script) DescribeInstanceRefreshes(context.Context, *autoscaling.DescribeInstanceRefreshesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeInstanceRefreshesOutput, error) {
	out := &autoscaling.DescribeInstanceRefreshesOutput{}
	if s.refresh != "" {
		out.InstanceRefreshes = []asgtypes.InstanceRefresh{{Status: s.refresh, PercentageComplete: aws.Int32(40)}}
	}
	return out, s.did(awsapi.ActionDescribeRefreshes)
}
func (s *script) DescribeInstanceTypes(_ context.Context, in *ec2.DescribeInstanceTypesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	out := &ec2.DescribeInstanceTypesOutput{}
	for _, t := range in.InstanceTypes {
		info, ok := s.types[string(t)]
		if !ok {
			return nil, code("InvalidInstanceType", fmt.Sprintf("The following supplied instance types do not exist: [%s]", t))
		}
		info.InstanceType = t
		out.InstanceTypes = append(out.InstanceTypes, info)
	}
	return out, s.did(awsapi.ActionDescribeTypes)
}
func (s *script) DescribeLaunchTemplates(_ context.Context, in *ec2.DescribeLaunchTemplatesInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	out := &ec2.DescribeLaunchTemplatesOutput{}
	for _, id := range in.LaunchTemplateIds {
		out.LaunchTemplates = append(out.LaunchTemplates, ec2types.LaunchTemplate{LaunchTemplateId: &id, LatestVersionNumber: aws.Int64(3), DefaultVersionNumber: aws.Int64(3)})
	}
	for _, name := range in.LaunchTemplateNames {
		out.LaunchTemplates = append(out.LaunchTemplates, ec2types.LaunchTemplate{LaunchTemplateName: &name, LatestVersionNumber: aws.Int64(3), DefaultVersionNumber: aws.Int64(3)})
	}
	return out, s.did(awsapi.ActionDescribeTemplates)
}
func (s *script) DescribeLaunchTemplateVersions(context.Context, *ec2.DescribeLaunchTemplateVersionsInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error) {
	return &ec2.DescribeLaunchTemplateVersionsOutput{LaunchTemplateVersions: []ec2types.LaunchTemplateVersion{
		{LaunchTemplateId: aws.String("lt-1"), VersionNumber: aws.Int64(3), LaunchTemplateData: &s.data}}}, s.did(awsapi.ActionDescribeVersions)
}
func (s *script) DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	out := &ec2.DescribeImagesOutput{}
	if s.image != nil {
		out.Images = []ec2types.Image{*s.image}
	}
	return out, s.did(awsapi.ActionDescribeImages)
}
func (s *script) GetInstanceTypesFromInstanceRequirements(_ context.Context, in *ec2.GetInstanceTypesFromInstanceRequirementsInput, _ ...func(*ec2.Options)) (*ec2.GetInstanceTypesFromInstanceRequirementsOutput, error) {
	s.matched = in
	return &ec2.GetInstanceTypesFromInstanceRequirementsOutput{InstanceTypes: []ec2types.InstanceTypeInfoFromInstanceRequirements{
		{InstanceType: aws.String("m5.large")}}}, s.did(awsapi.ActionMatchTypes)
}

func info(vcpus int32, mib int64, archs ...ec2types.ArchitectureType) ec2types.InstanceTypeInfo {
	return ec2types.InstanceTypeInfo{VCpuInfo: &ec2types.VCpuInfo{DefaultVCpus: &vcpus}, MemoryInfo: &ec2types.MemoryInfo{SizeInMiB: &mib},
		ProcessorInfo: &ec2types.ProcessorInfo{SupportedArchitectures: archs}}
}

// stage is a group "pool" 1..5 with target 2, two members, and its script.
func stage() (*script, *Provider) {
	s := &script{
		groups: []asgtypes.AutoScalingGroup{{
			AutoScalingGroupName: aws.String("pool"), MinSize: aws.Int32(1), MaxSize: aws.Int32(5), DesiredCapacity: aws.Int32(2),
			NewInstancesProtectedFromScaleIn: aws.Bool(true), AvailabilityZones: []string{"eu-west-1a"},
			LaunchTemplate: &asgtypes.LaunchTemplateSpecification{LaunchTemplateId: aws.String("lt-1"), Version: aws.String("$Latest")},
		}},
		types: map[string]ec2types.InstanceTypeInfo{"m5.large": info(2, 8192, "x86_64"), "m6g.large": info(2, 8192, "arm64")},
		data: ec2types.ResponseLaunchTemplateData{InstanceType: "m5.large", ImageId: aws.String("ami-1"),
			BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMapping{{DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDevice{VolumeSize: aws.Int32(50)}}}},
		image: &ec2types.Image{Architecture: "x86_64", RootDeviceName: aws.String("/dev/sda1"), BlockDeviceMappings: []ec2types.BlockDeviceMapping{
			{DeviceName: aws.String("/dev/sda1"), Ebs: &ec2types.EbsBlockDevice{VolumeSize: aws.Int32(9)}}}},
		fail: map[string]error{},
	}
	for _, id := range []string{"i-1", "i-2"} {
		s.groups[0].Instances = append(s.groups[0].Instances, asgtypes.Instance{InstanceId: &id, LifecycleState: "InService",
			AvailabilityZone: aws.String("eu-west-1a"), ProtectedFromScaleIn: aws.Bool(true)})
		s.instances = append(s.instances, ec2types.Instance{InstanceId: &id, State: &ec2types.InstanceState{Name: "running"},
			Tags: []ec2types.Tag{{Key: aws.String(groupTag), Value: aws.String("pool")}}})
	}
	c := Config{Groups: []string{"pool"}, VMMemoryOverheadPercent: 7.5, Timeout: time.Second}
	return s, newProvider(c, cluster.Reservation{MaxPods: 110}, "eu-west-1", s, s)
}

var background = context.Background()

func id(short string) cluster.InstanceID { return providerID("eu-west-1a", short) }

func read(t *testing.T, p *Provider) cluster.NodeGroup {
	t.Helper()
	list, err := p.Groups(background)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

func TestDeleteByLifecycle(t *testing.T) {
	for life, c := range map[asgtypes.LifecycleState]struct {
		kind  provider.Kind
		calls int
	}{
		"InService": {calls: 1}, "Pending": {calls: 1}, "Pending:Wait": {calls: 1},
		"Terminating": {}, "Terminating:Wait": {}, "Terminated": {},
		"Standby": {kind: provider.Invalid}, "Detaching": {kind: provider.Invalid},
	} {
		s, p := stage()
		s.groups[0].Instances[0].LifecycleState = life
		err := p.Delete(background, "pool", id("i-1"))
		if provider.KindOf(err) != c.kind || (err != nil) != (c.kind != 0) || len(s.terminated) != c.calls {
			t.Errorf("%s: %v, %d terminations", life, err, len(s.terminated))
		}
	}
}

func TestDeleteStopsAtTheMinimum(t *testing.T) {
	s, p := stage()
	err := p.Delete(background, "pool", id("i-1"), id("i-2"))
	if !slices.Equal(s.terminated, []string{"i-1"}) || provider.KindOf(err) != provider.Invalid || !strings.Contains(err.Error(), "MinSize") {
		t.Errorf("%v, %v", s.terminated, err)
	}
}

func TestDeleteErrorsOfAWS(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		kind provider.Kind
		word string
	}{
		"busy":    {code("ScalingActivityInProgress", "Activity 1 is in progress."), provider.Transient, ""},
		"fault":   {code("ScalingActivityInProgressFault", "Activity 1 is in progress."), provider.Transient, ""},
		"minimum": {code("ValidationError", "Currently, desiredSize equals minSize (1). Terminating instance without replacement will violate group's min size constraint."), provider.Invalid, "MinSize"},
		"denied":  {code("AccessDenied", "no"), provider.Denied, "autoscaling:TerminateInstanceInAutoScalingGroup"},
		"expired": {code("ExpiredToken", "old"), provider.Denied, "expired"},
		"slow":    {context.DeadlineExceeded, provider.Transient, "no answer in time"},
		"unknown": {code("Novelty", "new"), provider.Other, "Novelty"},
	} {
		s, p := stage()
		s.fail[awsapi.ActionTerminate] = c.err
		err := p.Delete(background, "pool", id("i-1"))
		if provider.KindOf(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v", name, err)
		}
		if len(s.terminated) != 1 {
			t.Errorf("%s: %d attempts", name, len(s.terminated))
		}
	}
}

// TestDeleteOfWhatTheGroupForgot: AWS says "not found" between our read and our
// write, and the instance is looked up.
func TestDeleteOfWhatTheGroupForgot(t *testing.T) {
	for state, kind := range map[ec2types.InstanceStateName]provider.Kind{"terminated": 0, "shutting-down": 0, "running": provider.NotFound} {
		s, p := stage()
		s.instances[0].State.Name = state
		s.fail[awsapi.ActionTerminate] = code("ValidationError", "Instance Id not found - No managed instance found for instance ID: i-1")
		if err := p.Delete(background, "pool", id("i-1")); provider.KindOf(err) != kind || (err != nil) != (kind != 0) {
			t.Errorf("%s: %v", state, err)
		}
	}
	s, p := stage()
	s.groups[0].Instances = s.groups[0].Instances[1:]
	s.fail[awsapi.ActionDescribeInstances] = code("InvalidInstanceID.NotFound", "The instance ID 'i-1' does not exist")
	if err := p.Delete(background, "pool", id("i-1")); err != nil {
		t.Errorf("EC2 has forgotten it: %v", err)
	}
}

func TestLoweringNeedsProtection(t *testing.T) {
	s, p := stage()
	s.groups[0].DesiredCapacity = aws.Int32(4)
	if err := p.Resize(background, "pool", 4, 3); err != nil || !slices.Equal(s.desired, []int32{3}) {
		t.Errorf("all protected: %v, %v", err, s.desired)
	}
	s.groups[0].Instances[1].ProtectedFromScaleIn = aws.Bool(false)
	if err := p.Resize(background, "pool", 4, 3); provider.KindOf(err) != provider.Invalid || len(s.desired) != 1 {
		t.Errorf("one bare: %v, %v", err, s.desired)
	}
	s.groups[0].Instances[1].LifecycleState = "Standby"
	if err := p.Resize(background, "pool", 4, 1); err != nil {
		t.Errorf("standby is not counted: %v", err)
	}
}

func TestTemplateOfScripts(t *testing.T) {
	requirements := &asgtypes.InstanceRequirements{
		VCpuCount: &asgtypes.VCpuCountRequest{Min: aws.Int32(2), Max: aws.Int32(4)}, MemoryMiB: &asgtypes.MemoryMiBRequest{Min: aws.Int32(4096)},
		BurstablePerformance: asgtypes.BurstablePerformanceExcluded, CpuManufacturers: []asgtypes.CpuManufacturer{asgtypes.CpuManufacturerIntel},
	}
	mixed := func(o ...asgtypes.LaunchTemplateOverrides) *asgtypes.MixedInstancesPolicy {
		return &asgtypes.MixedInstancesPolicy{LaunchTemplate: &asgtypes.LaunchTemplate{Overrides: o,
			LaunchTemplateSpecification: &asgtypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("lt"), Version: aws.String("2")}}}
	}
	for name, c := range map[string]struct {
		edit    func(*script)
		unknown string // part of Template.Unknown
		warning string
		stale   bool
		check   func(cluster.Template, *script) bool
	}{
		"plain": {check: func(t cluster.Template, _ *script) bool {
			return t.Capacity.EphemeralStorage == 9<<30 && t.Labels["kubernetes.io/arch"] == "amd64"
		}},
		"root volume of the launch template": {edit: func(s *script) { s.image.RootDeviceName = aws.String("/dev/xvda") },
			check: func(t cluster.Template, _ *script) bool { return t.Capacity.EphemeralStorage == 50<<30 }},
		"images denied": {edit: func(s *script) { s.fail[awsapi.ActionDescribeImages] = code("UnauthorizedOperation", "no") },
			warning: "allow ec2:DescribeImages", check: func(t cluster.Template, _ *script) bool {
				return t.Capacity.EphemeralStorage == 50<<30 && t.Labels["kubernetes.io/arch"] == "amd64"
			}},
		"no root volume": {edit: func(s *script) { s.image, s.data.BlockDeviceMappings = nil, nil }, warning: "the size of the root volume is not known"},
		"launch configuration": {edit: func(s *script) {
			s.groups[0].LaunchTemplate, s.groups[0].LaunchConfigurationName = nil, aws.String("old")
		}, unknown: "launch configuration old"},
		"nothing":      {edit: func(s *script) { s.groups[0].LaunchTemplate = nil }, unknown: "no launch template"},
		"no type":      {edit: func(s *script) { s.data.InstanceType = "" }, unknown: "names no instance type"},
		"unknown type": {edit: func(s *script) { s.data.InstanceType = "x9.huge" }, unknown: "x9.huge"},
		"template gone": {edit: func(s *script) {
			s.fail[awsapi.ActionDescribeTemplates] = code("InvalidLaunchTemplateId.NotFound", "gone")
		}, unknown: "lt-1 version $Latest"},
		"numbers throttled": {edit: func(s *script) { s.fail[awsapi.ActionDescribeTemplates] = code("RequestLimitExceeded", "slow") }, unknown: "RequestLimitExceeded", stale: true},
		"numbers denied": {edit: func(s *script) { s.fail[awsapi.ActionDescribeTemplates] = code("UnauthorizedOperation", "no") },
			warning: "allow ec2:DescribeLaunchTemplates", check: func(t cluster.Template, _ *script) bool { return t.Capacity.MilliCPU == 2000 }},
		"throttled":    {edit: func(s *script) { s.fail[awsapi.ActionDescribeVersions] = code("RequestLimitExceeded", "slow") }, unknown: "RequestLimitExceeded", stale: true},
		"types denied": {edit: func(s *script) { s.fail[awsapi.ActionDescribeTypes] = code("UnauthorizedOperation", "no") }, unknown: "allow ec2:DescribeInstanceTypes", stale: true},
		"vcpu units":   {edit: func(s *script) { s.groups[0].DesiredCapacityType = aws.String("vcpu") }, unknown: "vcpu"},
		"weight": {edit: func(s *script) {
			s.groups[0].MixedInstancesPolicy = mixed(asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large"), WeightedCapacity: aws.String("4")})
		}, unknown: "weights"},
		"weight of one": {edit: func(s *script) {
			s.groups[0].MixedInstancesPolicy = mixed(asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large"), WeightedCapacity: aws.String("1")})
		}},
		"mixed and bare": {edit: func(s *script) { s.groups[0].MixedInstancesPolicy = mixed() }},
		"two architectures": {warning: "image ami-1 could not be read", edit: func(s *script) {
			s.image = nil
			s.groups[0].MixedInstancesPolicy = mixed(asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large")}, asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m6g.large")})
		}, check: func(t cluster.Template, _ *script) bool { _, ok := t.Labels["kubernetes.io/arch"]; return !ok }},
		"one bad type of two": {edit: func(s *script) {
			s.groups[0].MixedInstancesPolicy = mixed(asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large")}, asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("x9.huge")})
		}, unknown: "x9.huge"},
		"requirements": {edit: func(s *script) {
			s.groups[0].MixedInstancesPolicy = mixed(asgtypes.LaunchTemplateOverrides{InstanceRequirements: requirements})
		},
			check: func(t cluster.Template, s *script) bool {
				r := s.matched.InstanceRequirements
				return t.Capacity.MilliCPU == 2000 && *r.VCpuCount.Max == 4 && *r.MemoryMiB.Min == 4096 && r.CpuManufacturers[0] == "intel" &&
					r.BurstablePerformance == "excluded" && slices.Equal(s.matched.ArchitectureTypes, []ec2types.ArchitectureType{"x86_64"})
			}},
		"cpu options": {edit: func(s *script) {
			s.data.CpuOptions = &ec2types.LaunchTemplateCpuOptions{CoreCount: aws.Int32(1), ThreadsPerCore: aws.Int32(1)}
		}, check: func(t cluster.Template, _ *script) bool { return t.Capacity.MilliCPU == 1000 }},
		"resources tags win": {edit: func(s *script) {
			s.groups[0].Tags = []asgtypes.TagDescription{{Key: aws.String("k8s.io/cluster-autoscaler/node-template/resources/" + "memory"), Value: aws.String("4Gi")}, {Key: aws.String("k8s.io/cluster-autoscaler/node-template/resources/" + "pods"), Value: aws.String("17")}}
		}, check: func(t cluster.Template, _ *script) bool {
			return t.Capacity.Memory == 4<<30 && t.Allocatable.Pods == 17
		}},
		"windows": {edit: func(s *script) { s.image.Platform = ec2types.PlatformValuesWindows },
			check: func(t cluster.Template, _ *script) bool { return t.Labels["kubernetes.io/os"] == "windows" }},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := stage()
			if c.edit != nil {
				c.edit(s)
			}
			list, err := p.Groups(background)
			if len(list) != 1 || (err != nil) != c.stale || (list[0].TemplateStale != "") != c.stale || list[0].Stale != "" {
				t.Fatalf("template stale %q, stale %q, error %v", list[0].TemplateStale, list[0].Stale, err)
			}
			g := list[0]
			if (c.unknown == "") != (g.Template.Unknown == "") || !strings.Contains(g.Template.Unknown, c.unknown) {
				t.Errorf("unknown: %q, want %q", g.Template.Unknown, c.unknown)
			}
			if c.unknown == "" && (g.Template.Spec == "" || g.Template.Allocatable.MilliCPU == 0) {
				t.Errorf("%+v", g.Template)
			}
			if text := strings.Join(g.Warnings, "\n"); c.warning == "" && text != "" || !strings.Contains(text, c.warning) {
				t.Errorf("warnings: %s", text)
			}
			if c.check != nil && !c.check(g.Template, s) {
				t.Errorf("%+v", g.Template)
			}
			if len(g.Instances) != 2 {
				t.Errorf("%d instances", len(g.Instances))
			}
		})
	}
}

// TestFactsAreAskedForOnce: types, images and numbered versions do not change.
func TestFactsAreAskedForOnce(t *testing.T) {
	s, p := stage()
	s.groups[0].LaunchTemplate.Version = aws.String("3")
	first := read(t, p).Template
	s.calls = nil
	if again := read(t, p).Template; again.Spec != first.Spec || !slices.Equal(s.calls, []string{awsapi.ActionDescribeGroups}) {
		t.Errorf("calls of a second read: %q", s.calls)
	}
	s.groups[0].Tags = []asgtypes.TagDescription{{Key: aws.String("k8s.io/cluster-autoscaler/node-template/label/" + "a"), Value: aws.String("b")}}
	if changed := read(t, p).Template; changed.Spec == first.Spec {
		t.Error("a label tag does not change the spec")
	}
	s.groups[0].Tags = []asgtypes.TagDescription{{Key: aws.String("cost-centre"), Value: aws.String("b")}}
	if same := read(t, p).Template; same.Spec != first.Spec {
		t.Error("a foreign tag changes the spec")
	}
}

func TestCallHook(t *testing.T) {
	s, p := stage()
	var got []Call
	WithCallHook(func(c Call) { got = append(got, c) })(p)
	s.fail[awsapi.ActionSetDesired] = code("Throttling", "slow")
	err := p.Resize(background, "pool", 2, 3)
	if provider.KindOf(err) != provider.Transient || len(got) != 2 || got[1].Action != awsapi.ActionSetDesired || got[1].Err == nil {
		t.Errorf("%v, %+v", err, got)
	}
}

// TestExposedMetadata: check warns of a launch template whose pods reach the metadata service, and of no other template.
func TestExposedMetadata(t *testing.T) {
	type options = ec2types.LaunchTemplateInstanceMetadataOptions
	for name, c := range map[string]struct {
		set  *options
		says []string
	}{
		"closed":              {&options{HttpTokens: "required", HttpPutResponseHopLimit: aws.Int32(1)}, nil},
		"switched off":        {&options{HttpEndpoint: "disabled", HttpPutResponseHopLimit: aws.Int32(64)}, nil},
		"nothing is said":     {nil, []string{"HttpTokens is not set", "sets no hop limit"}},
		"IMDSv1":              {&options{HttpTokens: "optional", HttpPutResponseHopLimit: aws.Int32(1)}, []string{"HttpTokens is optional"}},
		"two hops":            {&options{HttpTokens: "required", HttpPutResponseHopLimit: aws.Int32(2)}, []string{"has a hop limit of 2"}},
		"the hop limit alone": {&options{HttpTokens: "required"}, []string{"sets no hop limit"}},
	} {
		s, p := stage()
		s.data.MetadataOptions = c.set
		g := read(t, p)
		text := g.Exposed
		if (text == "") != (len(c.says) == 0) || len(g.Warnings) > 0 || text != "" && !strings.HasPrefix(text, "launch template lt-1 version 3 ") {
			t.Errorf("%s: %q, warnings %q", name, g.Exposed, g.Warnings)
		}
		for _, want := range c.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q, want %q", name, text, want)
			}
		}
	}
}
