package aws_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestEveryOtherActionAnswersInForm calls what the other tests do not, on an
// instance with everything that an instance can have; the form is checked by
// start.
func TestEveryOtherActionAnswersInForm(t *testing.T) {
	opts := fast()
	opts.Region = "eu-west-1"
	c := start(t, opts)
	c.PutLaunchTemplate(aws.LaunchTemplate{Name: "rich", InstanceType: "g4dn.xlarge", UserData: "x", KeyName: "k", InstanceProfile: "p",
		SecurityGroups: []string{"sg-1", "sg-2"}, PublicIP: true, IPv6: true, Monitoring: true, EBSOptimized: true, MetadataTags: true,
		Requirements: &aws.Requirements{MinVCPU: 1, MaxVCPU: 4, MinMemoryMiB: 1, Allowed: []string{"g4dn.*"}, MinGPUs: 1, MaxGPUs: -1}})
	if err := c.PutGroup(aws.Group{Name: "workers", Max: 3, Desired: 1, LaunchTemplate: "rich", Version: "$Latest", Zones: []string{"b"}}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "one in service", inService(c, 1))
	i := c.Instances()[0]
	if i.PublicDNS == "" || i.IPv6 == "" || i.PrivateDNS != "ip-10-0-32-4.eu-west-1.compute.internal" || i.Zone != "eu-west-1b" || i.Type != "g4dn.xlarge" {
		t.Errorf("got %+v", i)
	}
	api := dial(c)
	group := sdk.String("workers")
	ids := []string{i.ID}
	for name, call := range map[string]func() (any, error){
		"DescribeInstances": func() (any, error) {
			return api.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids})
		},
		"DescribeInstanceTypes": func() (any, error) {
			return api.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []ec2types.InstanceType{"g4dn.xlarge"}})
		},
		"DescribeLaunchTemplates": func() (any, error) {
			return api.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"rich"}})
		},
		"DescribeLaunchTemplateVersions": func() (any, error) {
			return api.ec2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{"$Latest", "$Default"}})
		},
		"DescribeImages": func() (any, error) {
			return api.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{i.ImageID}})
		},
		"GetConsoleOutput": func() (any, error) {
			return api.ec2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &i.ID})
		},
		"CreateTags": func() (any, error) {
			return api.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: ids, Tags: []ec2types.Tag{{Key: sdk.String("a"), Value: sdk.String("b")}}})
		},
		"CreateOrUpdateTags": func() (any, error) {
			return api.asg.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{{ResourceId: group,
				ResourceType: sdk.String("auto-scaling-group"), Key: sdk.String("a"), Value: sdk.String("b"), PropagateAtLaunch: sdk.Bool(true)}}})
		},
		"SuspendProcesses": func() (any, error) {
			return api.asg.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: group, ScalingProcesses: []string{"AZRebalance"}})
		},
		"DescribeSpotPriceHistory": func() (any, error) {
			c.SetSpotPrice("m5.large", "us-east-1a", 0.04)
			out, err := api.ec2.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{InstanceTypes: []ec2types.InstanceType{"m5.large"},
				ProductDescriptions: []string{"Linux/UNIX"}, StartTime: sdk.Time(time.Now())})
			if err == nil && (len(out.SpotPriceHistory) != 1 || sdk.ToString(out.SpotPriceHistory[0].SpotPrice) != "0.040000") {
				err = fmt.Errorf("%+v", out.SpotPriceHistory)
			}
			return out, err
		},
		"DescribeSpotInstanceRequests": func() (any, error) {
			if err := errors.Join(c.MakeSpot(i.ID), c.Interrupt(i.ID)); err != nil {
				return nil, err
			}
			out, err := api.ec2.DescribeSpotInstanceRequests(ctx, &ec2.DescribeSpotInstanceRequestsInput{Filters: []ec2types.Filter{
				{Name: sdk.String("status-code"), Values: []string{"marked-for-termination"}}}})
			if err == nil && (len(out.SpotInstanceRequests) != 1 || *out.SpotInstanceRequests[0].InstanceId != i.ID) {
				err = fmt.Errorf("%+v", out.SpotInstanceRequests)
			}
			return out, err
		},
		"DescribeInstanceRefreshes": func() (any, error) {
			if err := c.InstanceRefresh(*group, "InProgress", 40); err != nil {
				return nil, err
			}
			out, err := api.asg.DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: group})
			if err == nil && (len(out.InstanceRefreshes) != 1 || out.InstanceRefreshes[0].Status != astypes.InstanceRefreshStatusInProgress) {
				err = fmt.Errorf("%+v", out.InstanceRefreshes)
			}
			return out, err
		},
		"GetParameters": func() (any, error) {
			return api.ssm.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"/none"}})
		},
	} {
		if _, err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := api.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{DryRun: sdk.Bool(true)})
	wantCode(t, err, "DryRunOperation")
	_, err = api.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []ec2types.InstanceType{"z9.huge"}})
	wantMessage(t, err, "InvalidInstanceType: The following supplied instance types do not exist: [z9.huge]")
}
