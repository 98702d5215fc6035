package template

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// compute is an EC2 with launch templates.
type compute struct {
	awsapi.Compute
	versions map[string][]*ec2types.ResponseLaunchTemplateData // nil: deleted
	aliases  map[string]string                                 // nil: no right to read them
	asked    map[string]int
}

func (c *compute) DescribeLaunchTemplateVersions(_ context.Context, in *ec2.DescribeLaunchTemplateVersionsInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error) {
	id, n := aws.ToString(in.LaunchTemplateId), 0
	_, _ = fmt.Sscan(in.Versions[0], &n)
	c.asked[fmt.Sprintf("%s/%d %v", id, n, aws.ToBool(in.ResolveAlias))]++
	list := c.versions[id]
	if n > len(list) || list[n-1] == nil {
		return nil, &smithy.GenericAPIError{Code: "InvalidLaunchTemplateId.VersionNotFound", Message: "no such version"}
	}
	data := *list[n-1]
	if aws.ToBool(in.ResolveAlias) {
		if c.aliases == nil {
			return nil, &smithy.GenericAPIError{Code: "UnauthorizedOperation", Message: "ssm:GetParameters"}
		}
		data.ImageId = aws.String(c.aliases[aws.ToString(data.ImageId)])
	}
	return &ec2.DescribeLaunchTemplateVersionsOutput{LaunchTemplateVersions: []ec2types.LaunchTemplateVersion{{
		LaunchTemplateId: &id, VersionNumber: aws.Int64(int64(n)), LaunchTemplateData: &data}}}, nil
}

func (c *compute) DescribeLaunchTemplates(_ context.Context, in *ec2.DescribeLaunchTemplatesInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	out := &ec2.DescribeLaunchTemplatesOutput{}
	for _, id := range in.LaunchTemplateIds {
		out.LaunchTemplates = append(out.LaunchTemplates, ec2types.LaunchTemplate{LaunchTemplateId: &id, LatestVersionNumber: aws.Int64(int64(len(c.versions[id]))), DefaultVersionNumber: aws.Int64(1)})
	}
	return out, nil
}

func (c *compute) DescribeInstanceTypes(_ context.Context, in *ec2.DescribeInstanceTypesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	out := &ec2.DescribeInstanceTypesOutput{}
	for _, t := range in.InstanceTypes {
		out.InstanceTypes = append(out.InstanceTypes, ec2types.InstanceTypeInfo{InstanceType: t, VCpuInfo: &ec2types.VCpuInfo{DefaultVCpus: aws.Int32(2)}, MemoryInfo: &ec2types.MemoryInfo{SizeInMiB: aws.Int64(8192)}})
	}
	return out, nil
}

func (c *compute) DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	return nil, errors.New("not asked for here")
}

type rig struct {
	*Resolver
	cloud *compute
	at    time.Time
}

func newRig() *rig {
	r := &rig{cloud: &compute{versions: map[string][]*ec2types.ResponseLaunchTemplateData{}, asked: map[string]int{}}, at: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)}
	r.Resolver = New(&awsapi.Client{Compute: r.cloud, Timeout: time.Second}, "eu-west-1", cluster.Reservation{MaxPods: 110}, 0)
	r.now = func() time.Time { return r.at }
	return r
}

func (r *rig) resolve(t *testing.T, g asgtypes.AutoScalingGroup) cluster.Spec {
	t.Helper()
	out, _ := r.Resolve(t.Context(), []asgtypes.AutoScalingGroup{g})
	if out[0].Template.Unknown != "" {
		t.Fatal(out[0].Template.Unknown)
	}
	return out[0].Template.Source
}

func group(version string, started ...string) asgtypes.AutoScalingGroup {
	g := asgtypes.AutoScalingGroup{AutoScalingGroupName: aws.String("workers"), LaunchTemplate: use("lt-1", version), VPCZoneIdentifier: aws.String("subnet-b, subnet-a")}
	for _, v := range started {
		g.Instances = append(g.Instances, asgtypes.Instance{InstanceId: aws.String("i-" + v), LaunchTemplate: use("lt-1", v)})
	}
	return g
}

func use(id, version string) *asgtypes.LaunchTemplateSpecification {
	return &asgtypes.LaunchTemplateSpecification{LaunchTemplateId: &id, Version: &version}
}

func script(text string) *string {
	return aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n" + text)))
}

// data is a launch template with a value in each property.
func data(edit func(*ec2types.ResponseLaunchTemplateData)) *ec2types.ResponseLaunchTemplateData {
	d := &ec2types.ResponseLaunchTemplateData{
		ImageId: aws.String("ami-1"), InstanceType: "m5.large", KeyName: aws.String("ops"),
		IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecification{Name: aws.String("worker")},
		SecurityGroupIds:   []string{"sg-2", "sg-1"}, UserData: script("kubeadm join --token abcdef.0123456789abcdef\n"),
		BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMapping{{DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDevice{VolumeSize: aws.Int32(50), VolumeType: "gp3"}}},
		MetadataOptions:     &ec2types.LaunchTemplateInstanceMetadataOptions{HttpTokens: "required", State: "applied"},
		Placement:           &ec2types.LaunchTemplatePlacement{Tenancy: "default"}, EbsOptimized: aws.Bool(true),
	}
	if edit != nil {
		edit(d)
	}
	return d
}

// TestSourceIsStable pins what a version of a launch template tells: a text of this package's
// own that changes with a release would replace no machine (both sides are made anew), and would
// be told to operators in other words.
func TestSourceIsStable(t *testing.T) {
	want := cluster.Spec{"image": "ami-1", "instance type": "m5.large", "key pair": "ops", "IAM instance profile": "worker", "security groups": "sg-1, sg-2",
		"network interfaces": "none", "block devices": "DeviceName=/dev/xvda Ebs.VolumeSize=50 Ebs.VolumeType=gp3", "metadata options": "HttpTokens=required",
		"placement": "Tenancy=default", "other settings": "EbsOptimized=true", "user data": "sha256:4015707922732de3"}
	if got := sourceOf(data(nil)); !maps.Equal(got, want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
}

// TestEveryFieldIsCompared: a change of any field of a launch template is told, but for those
// that make no other machine. A field that a new SDK brings is one of them.
func TestEveryFieldIsCompared(t *testing.T) {
	typ := reflect.TypeFor[ec2types.ResponseLaunchTemplateData]()
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() {
			d := data(nil)
			fill(reflect.ValueOf(d).Elem().Field(i))
			diff := sourceOf(data(nil)).Differences(sourceOf(d))
			if _, out := unread[f.Name]; out && f.Name != "UserData" {
				if len(diff) > 0 {
					t.Errorf("%s: %v", f.Name, diff)
				}
			} else if len(diff) != 1 {
				t.Errorf("%s is changed, and told is %v", f.Name, diff)
			}
		}
	}
}

// fill gives a value that data has nowhere.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(false)
	case reflect.Int32, reflect.Int64:
		v.SetInt(77)
	case reflect.Float64:
		v.SetFloat(7.7)
	}
}

// What AWS orders as it likes, and what only tells how far EC2 has come, is no difference.
func TestSourceDoesNotDependOnTheAnswer(t *testing.T) {
	same := data(func(d *ec2types.ResponseLaunchTemplateData) {
		d.SecurityGroupIds = []string{"sg-1", "sg-2"}
		d.MetadataOptions.State = "pending"
		d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecification{Arn: aws.String("arn:aws:iam::1:instance-profile/path/worker")}
		d.UserData = script("kubeadm join --token zyxwvu.fedcba9876543210\n")
		d.TagSpecifications = []ec2types.LaunchTemplateTagSpecification{{ResourceType: "instance"}}
	})
	if diff := sourceOf(data(nil)).Differences(sourceOf(same)); len(diff) > 0 {
		t.Errorf("%v", diff)
	}
	gone := data(func(d *ec2types.ResponseLaunchTemplateData) { d.KeyName, d.MetadataOptions = nil, nil })
	if diff := sourceOf(data(nil)).Differences(sourceOf(gone)); len(diff) != 2 || diff[0].Wanted != "none" {
		t.Errorf("a property that is not set any more: %v", diff)
	}
}

// TestStartedVersions: the contents of older versions are asked for once, some at a time; a
// version that was deleted once an hour.
func TestStartedVersions(t *testing.T) {
	r := newRig()
	var started []string
	for i := range 10 {
		r.cloud.versions["lt-1"] = append(r.cloud.versions["lt-1"], data(func(d *ec2types.ResponseLaunchTemplateData) { d.ImageId = aws.String(fmt.Sprint("ami-", i+1)) }))
		started = append(started, fmt.Sprint(i+1))
	}
	r.cloud.versions["lt-1"][2] = nil
	g := group("$Latest", started...)
	for round := range 150 {
		before := len(r.cloud.asked)
		r.resolve(t, g)
		if n := len(r.cloud.asked) - before; n > startedAtOnce+1 {
			t.Errorf("round %d asks for %d versions", round, n)
		}
		r.at = r.at.Add(30 * time.Second)
	}
	for name, n := range r.cloud.asked {
		if want := map[string]int{"lt-1/3 false": 2}[name]; n != max(1, want) {
			t.Errorf("%s was asked for %d times in 75 minutes", name, n)
		}
	}
	now := r.resolve(t, g)
	for i := range 10 {
		got := r.Started(use("lt-1", fmt.Sprint(i+1)))
		switch diff := got.Differences(now); {
		case i == 2 && got != nil:
			t.Errorf("version 3 was deleted and tells %v", got)
		case i == 9 && len(diff) > 0, i != 2 && i != 9 && (len(diff) != 1 || diff[0].Is != fmt.Sprint("ami-", i+1) || diff[0].Wanted != "ami-10"):
			t.Errorf("version %d: %v", i+1, diff)
		}
	}
	if r.Started(nil) != nil || r.Started(use("lt-1", "$Latest")) != nil {
		t.Error("a machine of no known version tells one")
	}
	r.resolve(t, group("$Latest"))
	if n := len(r.facts.versions); n != 1 {
		t.Errorf("%d versions are kept when no machine is of them", n)
	}
}

// TestSourceOfChoices: AWS picks one of several types and launch templates, and a machine of any
// of them is what the group starts.
func TestSourceOfChoices(t *testing.T) {
	r := newRig()
	r.cloud.versions["lt-1"] = []*ec2types.ResponseLaunchTemplateData{data(nil)}
	r.cloud.versions["lt-2"] = []*ec2types.ResponseLaunchTemplateData{data(func(d *ec2types.ResponseLaunchTemplateData) { d.ImageId, d.InstanceType = aws.String("ami-arm"), "" })}
	mixed := func(overrides ...asgtypes.LaunchTemplateOverrides) asgtypes.AutoScalingGroup {
		g := group("1")
		g.LaunchTemplate = nil
		g.MixedInstancesPolicy = &asgtypes.MixedInstancesPolicy{LaunchTemplate: &asgtypes.LaunchTemplate{LaunchTemplateSpecification: use("lt-1", "1"), Overrides: overrides}}
		return g
	}
	typ := func(name string) asgtypes.LaunchTemplateOverrides {
		return asgtypes.LaunchTemplateOverrides{InstanceType: &name}
	}
	arm := typ("m6g.large")
	arm.LaunchTemplateSpecification = use("lt-2", "1")
	own := typ("m5a.large")
	own.ImageId = aws.String("ami-own")
	for name, c := range map[string]struct {
		g             asgtypes.AutoScalingGroup
		image, typeOf string
	}{
		"one":             {group("1"), "ami-1", "m5.large"},
		"types":           {mixed(typ("m5.large"), typ("m5a.large")), "ami-1", "m5.large|m5a.large"},
		"architectures":   {mixed(typ("m5.large"), arm), "ami-1|ami-arm", "m5.large|m6g.large"},
		"an image of one": {mixed(typ("m5.large"), own), "ami-1|ami-own", "m5.large|m5a.large"},
	} {
		got := r.resolve(t, c.g)
		if got["image"] != c.image || got["instance type"] != c.typeOf || got["subnet"] != "subnet-a|subnet-b" || got["key pair"] != "ops" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAliases: an alias of an image is asked for each half hour, an alias that may not be read
// each hour, and then no image is told.
func TestAliases(t *testing.T) {
	r := newRig()
	r.cloud.versions["lt-1"] = []*ec2types.ResponseLaunchTemplateData{data(func(d *ec2types.ResponseLaunchTemplateData) { d.ImageId = aws.String("resolve:ssm:/image") })}
	if got, told := r.resolve(t, group("1"))["image"]; told {
		t.Errorf("the image of an alias that may not be read is %s", got)
	}
	r.cloud.aliases = map[string]string{"resolve:ssm:/image": "ami-7"}
	r.at = r.at.Add(goneLife)
	if got := r.resolve(t, group("1"))["image"]; got != "ami-7" {
		t.Errorf("the alias means %q", got)
	}
	if _, told := r.Started(use("lt-1", "1"))["image"]; told {
		t.Error("the version tells the image that its machines were started from, and the alias meant another then")
	}
	r.cloud.aliases["resolve:ssm:/image"] = "ami-8"
	for range 60 {
		r.at = r.at.Add(30 * time.Second)
		r.resolve(t, group("1"))
	}
	if got := r.resolve(t, group("1"))["image"]; got != "ami-8" {
		t.Errorf("half an hour later it means %q", got)
	}
	if n := r.cloud.asked["lt-1/1 true"]; n != 3 {
		t.Errorf("the alias was asked for %d times", n)
	}
	if keys := slices.Sorted(maps.Keys(r.cloud.asked)); strings.Join(keys, " ") != "lt-1/1 false lt-1/1 true" {
		t.Errorf("asked: %v", keys)
	}
}

// TestSameContents: what a group names its launch template by, and how the user data is written in
// base64, is no difference; another network interface and a smaller disk are.
func TestSameContents(t *testing.T) {
	r := newRig()
	r.cloud.versions["lt-1"] = []*ec2types.ResponseLaunchTemplateData{data(nil), data(nil)}
	r.cloud.versions["lt-2"] = []*ec2types.ResponseLaunchTemplateData{data(func(d *ec2types.ResponseLaunchTemplateData) { d.UserData = aws.String(*d.UserData + "\n") })}
	r.cloud.versions["lt-3"] = []*ec2types.ResponseLaunchTemplateData{data(func(d *ec2types.ResponseLaunchTemplateData) {
		d.NetworkInterfaces = []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), Groups: []string{"sg-1"}}}
		d.BlockDeviceMappings[0].Ebs.VolumeSize = aws.Int32(40)
	})}
	next := func(id, version string) asgtypes.AutoScalingGroup {
		g := group("1", "1")
		g.LaunchTemplate = use(id, version)
		return g
	}
	for name, c := range map[string]struct {
		g    asgtypes.AutoScalingGroup
		want []string
	}{
		"another version":         {next("lt-1", "2"), nil},
		"another launch template": {next("lt-2", "1"), nil},
		"other contents":          {next("lt-3", "1"), []string{"block devices", "network interfaces"}},
	} {
		now := r.resolve(t, c.g)
		var got []string
		for _, d := range r.Started(use("lt-1", "1")).Differences(now) {
			got = append(got, d.Property)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
