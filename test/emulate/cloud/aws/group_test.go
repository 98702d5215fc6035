package aws_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

func set(api clients, n int32, honor bool) error {
	_, err := api.asg.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: sdk.String("workers"), DesiredCapacity: &n, HonorCooldown: &honor})
	return err
}

func terminate(api clients, id string, decrement bool) error {
	_, err := api.asg.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: &id, ShouldDecrementDesiredCapacity: &decrement})
	return err
}

// wantMessage wants an API error whose message contains all the words.
func wantMessage(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want %q in it", err, w)
		}
	}
}

func TestBoundsAreKeptInTheWordsOfAWS(t *testing.T) {
	c := start(t, fast())
	workers(t, c, aws.Group{Min: 1, Max: 3, Desired: 1})
	api := dial(c)
	wantMessage(t, set(api, 4, false), "ValidationError: New SetDesiredCapacity value 4 is above max value 3 for the AutoScalingGroup.")
	wantMessage(t, set(api, 0, false), "ValidationError: New SetDesiredCapacity value 0 is below min value 1 for the AutoScalingGroup.")
	await.True(t, "one in service", inService(c, 1))
	id := must(c.Group("workers")).Instances[0].ID
	wantMessage(t, terminate(api, id, true), "ValidationError: Currently, desiredSize equals minSize (1).")
	wantMessage(t, terminate(api, "i-0123456789abcdef0", true), "No managed instance found for instance ID: i-0123456789abcdef0")
	if err := set(api, 2, true); err != nil {
		t.Fatal(err)
	}
	await.True(t, "two in service", inService(c, 2))
	if err := terminate(api, id, false); err != nil {
		t.Fatal(err)
	}
	wantCode(t, terminate(api, id, true), "ScalingActivityInProgress")
	await.True(t, "a replacement", func() bool {
		g := must(c.Group("workers"))
		return g.Desired == 2 && g.Lifecycles()["InService"] == 2 && g.Instances[0].ID != id
	})
	_, err := api.asg.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: sdk.String("nobody"), DesiredCapacity: sdk.Int32(1)})
	wantMessage(t, err, "ValidationError", "AutoScalingGroup name not found")
}

func must(g aws.GroupState, ok bool) aws.GroupState {
	if !ok {
		panic("no such group")
	}
	return g
}

func TestHonorCooldownRefusesWhileAnActivityRuns(t *testing.T) {
	opts := fast()
	opts.BootDelay = time.Hour
	c := start(t, opts)
	workers(t, c, aws.Group{Max: 3, Desired: 1})
	await.True(t, "one pending", func() bool { return must(c.Group("workers")).Lifecycles()["Pending"] == 1 })
	api := dial(c)
	wantMessage(t, set(api, 2, true), "ScalingActivityInProgress", "is in progress and blocks this action")
	if err := set(api, 2, false); err != nil {
		t.Error(err)
	}
}

func TestLoweringTheTargetKillsUnlessProtected(t *testing.T) {
	c := start(t, fast())
	workers(t, c, aws.Group{Max: 6, Desired: 3})
	await.True(t, "three in service", inService(c, 3))
	api := dial(c)
	if err := set(api, 1, false); err != nil {
		t.Fatal(err)
	}
	await.True(t, "one left", inService(c, 1))
	for _, protect := range []bool{true, false} { // of the three that come in between
		_, err := api.asg.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: sdk.String("workers"), NewInstancesProtectedFromScaleIn: &protect})
		if err != nil {
			t.Fatal(err)
		}
		if protect {
			if err := set(api, 4, false); err != nil {
				t.Fatal(err)
			}
			await.True(t, "four in service", inService(c, 4))
		}
	}
	if err := set(api, 1, false); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the protected ones left", inService(c, 3))
	g := must(c.Group("workers"))
	for _, i := range g.Instances {
		if !i.Protected {
			t.Errorf("%s is left and not protected", i.ID)
		}
	}
	await.True(t, "a complaint about protection", func() bool {
		for _, a := range must(c.Group("workers")).Activities {
			if strings.Contains(a.Message, "protected from scale-in") {
				return true
			}
		}
		return false
	})
	if err := terminate(api, g.Instances[0].ID, true); err != nil {
		t.Errorf("protection must not stop a termination by name: %v", err)
	}
}

func TestCapacityQuotaAndImageFailuresAreTold(t *testing.T) {
	c := start(t, fast())
	c.NoCapacity("a", "t3.*")
	c.LimitCapacity("b", "t3.large", 1)
	workers(t, c, aws.Group{Max: 9, Desired: 4})
	await.True(t, "four in service", inService(c, 4))
	g := must(c.Group("workers"))
	for _, i := range g.Instances {
		if i.Zone == "us-east-1a" {
			t.Errorf("%s is where no capacity is", i.ID)
		}
	}
	api := dial(c)
	failed := func(words ...string) {
		t.Helper()
		await.True(t, "activity that says "+words[0], func() bool {
			out, err := api.asg.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: sdk.String("workers")})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range out.Activities {
				all := a.StatusCode == astypes.ScalingActivityStatusCodeFailed
				for _, w := range words {
					all = all && strings.Contains(sdk.ToString(a.StatusMessage), w)
				}
				if all {
					return true
				}
			}
			return false
		})
	}
	failed("We currently do not have sufficient t3.large capacity in the Availability Zone you requested (us-east-1a).", "choosing us-east-1c.")
	c.HasCapacity("b", "t3.large")
	c.Quota(10)
	if err := set(api, 9, false); err != nil {
		t.Fatal(err)
	}
	failed("your current vCPU limit of 10 allows")
	await.True(t, "five in service", inService(c, 5))
	c.Quota(0)
	c.RemoveImage(g.Instances[0].ImageID)
	failed("The image id '[" + g.Instances[0].ImageID + "]' does not exist.")
	c.RestoreImage(g.Instances[0].ImageID)
	await.True(t, "nine in service", inService(c, 9))
}

func TestMixedInstancesFallBackByPreference(t *testing.T) {
	c := start(t, fast())
	c.NoCapacity("*", "m5.large")
	workers(t, c, aws.Group{Max: 3, Desired: 2, Overrides: []aws.Override{{InstanceType: "m5.large"}, {InstanceType: "m5a.large"},
		{Requirements: &aws.Requirements{MinVCPU: 2, MinMemoryMiB: 2048}}}})
	await.True(t, "two in service", inService(c, 2))
	for _, i := range must(c.Group("workers")).Instances {
		if i.Type != "m5a.large" {
			t.Errorf("%s is a %s", i.ID, i.Type)
		}
	}
	out, err := dial(c).asg.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
	if err != nil {
		t.Fatal(err)
	}
	g := out.AutoScalingGroups[0]
	if g.LaunchTemplate != nil || len(g.MixedInstancesPolicy.LaunchTemplate.Overrides) != 3 {
		t.Errorf("got %+v", g)
	}
	types, err := dial(c).ec2.GetInstanceTypesFromInstanceRequirements(ctx, &ec2.GetInstanceTypesFromInstanceRequirementsInput{
		ArchitectureTypes: []ec2types.ArchitectureType{"arm64"}, VirtualizationTypes: []ec2types.VirtualizationType{"hvm"},
		InstanceRequirements: &ec2types.InstanceRequirementsRequest{
			VCpuCount: &ec2types.VCpuCountRangeRequest{Min: sdk.Int32(4)}, MemoryMiB: &ec2types.MemoryMiBRequest{Min: sdk.Int32(0)}}})
	if err != nil || len(types.InstanceTypes) != 1 || *types.InstanceTypes[0].InstanceType != "m6g.xlarge" {
		t.Errorf("got %v, %v", types, err)
	}
}

func TestOutOfBandDeathIsNoticedAndReplaced(t *testing.T) {
	for name, kill := range map[string]func(*aws.Cloud, string) error{
		"terminate": (*aws.Cloud).TerminateInstance, "stop": (*aws.Cloud).StopInstance, "vanish": (*aws.Cloud).Vanish,
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, fast())
			workers(t, c, aws.Group{Max: 3, Desired: 2})
			await.True(t, "two in service", inService(c, 2))
			id := must(c.Group("workers")).Instances[0].ID
			if err := kill(c, id); err != nil {
				t.Fatal(err)
			}
			await.True(t, "the dead one replaced", func() bool {
				g := must(c.Group("workers"))
				return inService(c, 2)() && g.Instances[0].ID != id && g.Instances[1].ID != id
			})
			i, shown := c.Instance(id)
			if shown == (name == "vanish") || shown && (i.State != "terminated" || i.Tags["aws:autoscaling:groupName"] != "workers") {
				t.Errorf("got %+v, shown %v", i, shown)
			}
		})
	}
}

func TestGroupsAreMadeChangedAndDeletedThroughTheAPI(t *testing.T) {
	c := start(t, fast())
	api := dial(c)
	lt, err := api.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: sdk.String("arm"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "m6g.large", ImageId: sdk.String("ami-arm"), UserData: sdk.String("aGk=")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.ec2.CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: sdk.String("arm"), SourceVersion: sdk.String("1"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "m6g.xlarge"}}); err != nil {
		t.Fatal(err)
	}
	zones, err := api.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.asg.CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: sdk.String("workers"), MinSize: sdk.Int32(0), MaxSize: sdk.Int32(5), DesiredCapacity: sdk.Int32(2),
		VPCZoneIdentifier: zones.Subnets[1].SubnetId, LaunchTemplate: &astypes.LaunchTemplateSpecification{LaunchTemplateId: lt.LaunchTemplate.LaunchTemplateId, Version: sdk.String("$Latest")},
		Tags: []astypes.Tag{{Key: sdk.String("team"), Value: sdk.String("x"), PropagateAtLaunch: sdk.Bool(true)}, {Key: sdk.String("quiet"), Value: sdk.String("y"), PropagateAtLaunch: sdk.Bool(false)}}}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "two in service", inService(c, 2))
	i := must(c.Group("workers")).Instances[0]
	if i.Zone != *zones.Subnets[1].AvailabilityZone || i.Type != "m6g.xlarge" || i.UserData != "hi" || i.Tags["team"] != "x" || i.Tags["quiet"] != "" {
		t.Errorf("got %+v", i)
	}
	if _, err := api.asg.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: sdk.String("workers"), MaxSize: sdk.Int32(1)}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "one left", inService(c, 1))
	await.True(t, "no activity under way", func() bool {
		for _, a := range must(c.Group("workers")).Activities {
			if a.End.IsZero() {
				return false
			}
		}
		return true
	})
	_, err = api.asg.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: sdk.String("workers")})
	wantCode(t, err, "ResourceInUse")
	if _, err := api.asg.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: sdk.String("workers"), ForceDelete: sdk.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the group gone", func() bool { _, ok := c.Group("workers"); return !ok })
}

func TestSuspendedLaunchLaunchesNothing(t *testing.T) {
	c := start(t, fast())
	workers(t, c, aws.Group{Max: 3, Desired: 1, SuspendedProcesses: []string{"Launch", "AZRebalance"}})
	api := dial(c)
	if _, err := api.asg.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: sdk.String("workers"), ScalingProcesses: []string{"AZRebalance"}}); err != nil {
		t.Fatal(err)
	}
	out, err := api.asg.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
	if err != nil || len(out.AutoScalingGroups[0].SuspendedProcesses) != 1 || *out.AutoScalingGroups[0].SuspendedProcesses[0].ProcessName != "Launch" {
		t.Fatalf("got %v, %v", out, err)
	}
	if n := len(c.Instances()); n != 0 {
		t.Fatalf("%d instances while Launch is suspended", n)
	}
	if _, err := api.asg.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: sdk.String("workers")}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "one in service", inService(c, 1))
}

func TestCallbacksTellOfEveryStateInOrder(t *testing.T) {
	var mu sync.Mutex
	var states []string
	launched := make(chan aws.Instance, 1)
	opts := fast()
	var c *aws.Cloud
	opts.OnLaunch = func(i aws.Instance) { launched <- i }
	opts.OnState = func(i aws.Instance, old, new string) {
		mu.Lock()
		defer mu.Unlock()
		states = append(states, old+">"+new)
	}
	opts.OnReboot = func(i aws.Instance) {
		mu.Lock()
		defer mu.Unlock()
		states = append(states, "reboot")
	}
	c = start(t, opts)
	workers(t, c, aws.Group{Max: 1, Desired: 1})
	i := <-launched
	if i.State != "running" || !strings.Contains(i.UserData, "<joined>") || i.Spec.VCPU != 2 {
		t.Errorf("got %+v", i)
	}
	if err := c.Reboot(i.ID); err != nil {
		t.Fatal(err)
	}
	await.True(t, "in service", inService(c, 1))
	if err := terminate(dial(c), i.ID, true); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint([]string{">pending", "pending>running", "reboot", "running>shutting-down", "shutting-down>terminated"})
	await.True(t, want, func() bool { mu.Lock(); defer mu.Unlock(); return fmt.Sprint(states) == want })
}
