package asg

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// fleet is an AWS with many groups, each with a launch template of its own that it names by
// $Latest. It counts calls, pages as AWS does and throttles by token buckets.
type fleet struct {
	mu      sync.Mutex
	groups  []asgtypes.AutoScalingGroup
	latest  map[string]int64 // by launch template
	counts  map[string]int
	buckets map[string]*bucket
	late    int // calls that were throttled
}

// bucket is one token bucket. EC2's are in "Request throttling for the Amazon EC2 API":
// 100 tokens and 20 a second for an action that reads and is filtered or paginated, 100 and
// 5 for DescribeSpotInstanceRequests. Those of Auto Scaling are not published: 20 tokens and
// 5 a second are an assumption.
type bucket struct {
	tokens, most, rate float64
	at                 time.Time
}

func newFleet(n, machines int) *fleet {
	f := &fleet{latest: map[string]int64{}, counts: map[string]int{}, buckets: map[string]*bucket{}}
	for i := range n {
		name, id := fmt.Sprintf("g%03d", i), fmt.Sprintf("lt-%03d", i)
		g := asgtypes.AutoScalingGroup{
			AutoScalingGroupName: &name, MinSize: aws.Int32(0), MaxSize: aws.Int32(50), DesiredCapacity: aws.Int32(int32(machines)),
			NewInstancesProtectedFromScaleIn: aws.Bool(true), AvailabilityZones: []string{"eu-west-1a"},
			Tags:           []asgtypes.TagDescription{{Key: aws.String("k8s.io/cluster-autoscaler/enabled")}, {Key: aws.String("k8s.io/cluster-autoscaler/demo")}},
			LaunchTemplate: &asgtypes.LaunchTemplateSpecification{LaunchTemplateId: &id, Version: aws.String("$Latest")},
		}
		for m := range machines {
			g.Instances = append(g.Instances, member(i, m, "InService"))
		}
		f.groups, f.latest[id] = append(f.groups, g), 1
	}
	return f
}

func member(group, n int, life asgtypes.LifecycleState) asgtypes.Instance {
	return asgtypes.Instance{InstanceId: aws.String(fmt.Sprintf("i-%03d-%d", group, n)), LifecycleState: life,
		AvailabilityZone: aws.String("eu-west-1a"), ProtectedFromScaleIn: aws.Bool(true), HealthStatus: aws.String("Healthy"),
		LaunchTemplate: &asgtypes.LaunchTemplateSpecification{LaunchTemplateId: aws.String(fmt.Sprintf("lt-%03d", group)), Version: aws.String("1")}}
}

// take counts a call; the error is AWS's for too many.
func (f *fleet) take(action string) error {
	f.counts[action]++
	b := f.buckets[action]
	if b == nil {
		b = &bucket{most: 100, rate: 20}
		switch {
		case strings.HasPrefix(action, "autoscaling:"):
			b.most, b.rate = 20, 5
		case action == awsapi.ActionDescribeSpot:
			b.rate = 5
		}
		b.tokens, b.at = b.most, time.Now()
		f.buckets[action] = b
	}
	now := time.Now()
	b.tokens, b.at = min(b.most, b.tokens+now.Sub(b.at).Seconds()*b.rate), now
	if b.tokens < 1 {
		f.late++
		if strings.HasPrefix(action, "autoscaling:") {
			return code("Throttling", "Rate exceeded")
		}
		return code("RequestLimitExceeded", "Request limit exceeded.")
	}
	b.tokens--
	return nil
}

// called waits as long as an answer takes and counts the call.
func (f *fleet) called(action string) error {
	time.Sleep(40 * time.Millisecond)
	f.mu.Lock()
	return f.take(action)
}

// paged is one page of a list.
func paged[T any](list []T, token *string, size int32, most int) ([]T, *string) {
	from := 0
	if token != nil {
		_, _ = fmt.Sscan(*token, &from)
	}
	n := most
	if size > 0 {
		n = min(n, int(size))
	}
	if from+n >= len(list) {
		return list[min(from, len(list)):], nil
	}
	return list[from : from+n], aws.String(fmt.Sprint(from + n))
}

func (f *fleet) DescribeAutoScalingGroups(_ context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, _ ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	err := f.called(awsapi.ActionDescribeGroups)
	defer f.mu.Unlock()
	found := slices.DeleteFunc(slices.Clone(f.groups), func(g asgtypes.AutoScalingGroup) bool {
		return len(in.AutoScalingGroupNames) > 0 && !slices.Contains(in.AutoScalingGroupNames, *g.AutoScalingGroupName)
	})
	page, next := paged(found, in.NextToken, aws.ToInt32(in.MaxRecords), 100)
	page = slices.Clone(page)
	for i := range page {
		page[i].Instances = slices.Clone(page[i].Instances)
	}
	return &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: page, NextToken: next}, err
}

func (f *fleet) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	err := f.called(awsapi.ActionDescribeInstances)
	defer f.mu.Unlock()
	var found []ec2types.Instance
	for _, g := range f.groups {
		if !slices.Contains(in.Filters[0].Values, *g.AutoScalingGroupName) {
			continue
		}
		for _, m := range g.Instances {
			state := ec2types.InstanceStateNameRunning
			if m.LifecycleState == "Pending" {
				state = ec2types.InstanceStateNamePending
			}
			if len(in.Filters) > 1 && !slices.Contains(in.Filters[1].Values, string(state)) {
				continue
			}
			found = append(found, ec2types.Instance{InstanceId: m.InstanceId, State: &ec2types.InstanceState{Name: state},
				Tags: []ec2types.Tag{{Key: aws.String(groupTag), Value: g.AutoScalingGroupName}}})
		}
	}
	page, next := paged(found, in.NextToken, aws.ToInt32(in.MaxResults), 1000)
	return &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{Instances: page}}, NextToken: next}, err
}

func (f *fleet) DescribeLaunchTemplates(_ context.Context, in *ec2.DescribeLaunchTemplatesInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	err := f.called(awsapi.ActionDescribeTemplates)
	defer f.mu.Unlock()
	out := &ec2.DescribeLaunchTemplatesOutput{}
	for _, id := range in.LaunchTemplateIds {
		if f.latest[id] == 0 {
			return nil, code("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID "+id+", does not exist.")
		}
		out.LaunchTemplates = append(out.LaunchTemplates, ec2types.LaunchTemplate{LaunchTemplateId: &id, LatestVersionNumber: aws.Int64(f.latest[id]), DefaultVersionNumber: aws.Int64(1)})
	}
	return out, err
}

func (f *fleet) DescribeLaunchTemplateVersions(_ context.Context, in *ec2.DescribeLaunchTemplateVersionsInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error) {
	err := f.called(awsapi.ActionDescribeVersions)
	defer f.mu.Unlock()
	var found []ec2types.LaunchTemplateVersion
	for _, id := range slices.Sorted(maps.Keys(f.latest)) {
		if in.LaunchTemplateId == nil || *in.LaunchTemplateId == id {
			found = append(found, ec2types.LaunchTemplateVersion{LaunchTemplateId: &id, LaunchTemplateName: aws.String("name of " + id), VersionNumber: aws.Int64(f.latest[id]),
				LaunchTemplateData: &ec2types.ResponseLaunchTemplateData{InstanceType: "m5.large", ImageId: aws.String("ami-1"), UserData: aws.String(fmt.Sprint(id, f.latest[id]))}})
		}
	}
	page, next := paged(found, in.NextToken, aws.ToInt32(in.MaxResults), 200)
	return &ec2.DescribeLaunchTemplateVersionsOutput{LaunchTemplateVersions: page, NextToken: next}, err
}

func (f *fleet) DescribeScalingActivities(_ context.Context, in *autoscaling.DescribeScalingActivitiesInput, _ ...func(*autoscaling.Options)) (*autoscaling.DescribeScalingActivitiesOutput, error) {
	err := f.called(awsapi.ActionDescribeActivities)
	defer f.mu.Unlock()
	return &autoscaling.DescribeScalingActivitiesOutput{Activities: []asgtypes.Activity{{ActivityId: in.AutoScalingGroupName, Description: aws.String("Launching a new EC2 instance"),
		StatusCode: asgtypes.ScalingActivityStatusCodeFailed, StatusMessage: aws.String("InsufficientInstanceCapacity"), StartTime: aws.Time(time.Unix(1, 0))}}}, err
}

func (f *fleet) DescribeInstanceRefreshes(context.Context, *autoscaling.DescribeInstanceRefreshesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeInstanceRefreshesOutput, error) {
	err := f.called(awsapi.ActionDescribeRefreshes)
	defer f.mu.Unlock()
	return &autoscaling.DescribeInstanceRefreshesOutput{}, err
}

func (f *fleet) DescribeSpotPriceHistory(context.Context, *ec2.DescribeSpotPriceHistoryInput, ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	err := f.called(awsapi.ActionDescribeSpotPrices)
	defer f.mu.Unlock()
	return &ec2.DescribeSpotPriceHistoryOutput{}, err
}

func (f *fleet) DescribeSpotInstanceRequests(context.Context, *ec2.DescribeSpotInstanceRequestsInput, ...func(*ec2.Options)) (*ec2.DescribeSpotInstanceRequestsOutput, error) {
	err := f.called(awsapi.ActionDescribeSpot)
	defer f.mu.Unlock()
	return &ec2.DescribeSpotInstanceRequestsOutput{}, err
}

func (f *fleet) DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	err := f.called(awsapi.ActionDescribeTypes)
	defer f.mu.Unlock()
	m5 := info(2, 8192, "x86_64")
	m5.InstanceType = "m5.large"
	return &ec2.DescribeInstanceTypesOutput{InstanceTypes: []ec2types.InstanceTypeInfo{m5}}, err
}

func (f *fleet) DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	err := f.called(awsapi.ActionDescribeImages)
	defer f.mu.Unlock()
	return &ec2.DescribeImagesOutput{Images: []ec2types.Image{{Architecture: "x86_64", RootDeviceName: aws.String("/dev/xvda")}}}, err
}

func (f *fleet) GetInstanceTypesFromInstanceRequirements(context.Context, *ec2.GetInstanceTypesFromInstanceRequirementsInput, ...func(*ec2.Options)) (*ec2.GetInstanceTypesFromInstanceRequirementsOutput, error) {
	panic("no group has requirements")
}

func (f *fleet) UpdateAutoScalingGroup(context.Context, *autoscaling.UpdateAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error) {
	panic("no round changes what a group starts")
}

func (f *fleet) CreateAutoScalingGroup(context.Context, *autoscaling.CreateAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.CreateAutoScalingGroupOutput, error) {
	panic("no pool is configured")
}
func (f *fleet) SetDesiredCapacity(context.Context, *autoscaling.SetDesiredCapacityInput, ...func(*autoscaling.Options)) (*autoscaling.SetDesiredCapacityOutput, error) {
	panic("a read writes")
}

func (f *fleet) TerminateInstanceInAutoScalingGroup(context.Context, *autoscaling.TerminateInstanceInAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error) {
	panic("a read writes")
}

// calls is how many there were, and resets the counts.
func (f *fleet) calls() (total int, by map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.counts {
		total += n
	}
	by, f.counts = f.counts, map[string]int{}
	return total, by
}

// follow runs an inventory of the fleet with the agent's default periods.
func (f *fleet) follow(t *testing.T) (*inventory.Inventory, func()) {
	t.Helper()
	p := newProvider(Config{ClusterName: "demo", Timeout: 10 * time.Second}, cluster.Reservation{MaxPods: 110}, "eu-west-1", f, f)
	requests := int64(0)
	var mu sync.Mutex
	p.client.Hook = func(Call) { mu.Lock(); requests++; mu.Unlock() }
	log := logrus.New()
	log.SetOutput(io.Discard)
	i := inventory.New(p, 2*time.Second, 30*time.Second, 25*time.Second, log.WithField("service", "test"))
	i.Requests = func() int64 { mu.Lock(); defer mu.Unlock(); return requests }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx, func() {}) }()
	return i, func() {
		cancel()
		<-done
		time.Sleep(time.Minute) // a read outlives who asked for it
	}
}

// waitFor makes every group wait without an end.
func (f *fleet) waitFor(i *inventory.Inventory, n int) {
	w := inventory.Waiting{Groups: map[cluster.GroupID]time.Time{}}
	for _, g := range f.groups[:n] {
		w.Groups[cluster.GroupID(*g.AutoScalingGroupName)] = time.Time{}
	}
	i.SetWaiting(w)
}

// TestCallsInAnHour counts what an hour of following groups costs, with the agent's default
// periods, and under token buckets that throttle whatever is too much.
func TestCallsInAnHour(t *testing.T) {
	for _, c := range []struct {
		groups, machines int
		fast             bool // all groups lack a machine that does not come
		most             int
	}{
		{groups: 1, machines: 3, most: 370},
		{groups: 20, machines: 3, most: 370},
		{groups: 200, machines: 3, most: 500},
		{groups: 200, machines: 25, most: 550},
		{groups: 1, machines: 3, fast: true, most: 3200},
		{groups: 20, machines: 3, fast: true, most: 6000},
		{groups: 200, machines: 3, fast: true, most: 6000},
	} {
		t.Run(fmt.Sprintf("%d groups of %d, fast %v", c.groups, c.machines, c.fast), func(t *testing.T) {
			if testing.Short() && (c.fast && c.groups > 20 || c.machines > 3) {
				t.Skip("minutes under the race detector; make check plays it, and the smaller fleets have the same goroutines")
			}
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(c.groups, c.machines)
				i, stop := f.follow(t)
				defer stop()
				time.Sleep(5 * time.Second)
				if c.fast {
					f.mu.Lock()
					for n := range f.groups {
						f.groups[n].DesiredCapacity = aws.Int32(int32(c.machines) + 1)
					}
					f.mu.Unlock()
					f.waitFor(i, c.groups)
				}
				n, by := f.calls()
				if !c.fast && n > 20 {
					t.Errorf("the start costs %d calls: %v", n, by)
				}
				longest := time.Duration(0)
				for range 360 {
					time.Sleep(10 * time.Second)
					groups, _, err := i.Last()
					if err != nil || len(groups) != c.groups {
						t.Fatalf("%d groups, %v", len(groups), err)
					}
					for _, g := range groups {
						if g.Stale+g.TemplateStale+g.FailuresStale != "" || g.Template.Unknown != "" || len(g.Instances) != c.machines {
							t.Fatalf("%+v", g)
						}
						longest = max(longest, time.Since(g.ReadAt))
					}
				}
				n, by = f.calls()
				t.Logf("%d calls in an hour: %v; no fact is older than %s", n, by, longest)
				if n > c.most || f.late > 0 {
					t.Errorf("%d calls, at most %d wanted; %d throttled: %v", n, c.most, f.late, by)
				}
				if longest > 45*time.Second {
					t.Errorf("a group was not read for %s", longest)
				}
			})
		})
	}
}

// TestNewsOfWaitingGroups: a machine that comes in one of many waiting groups is seen at the
// fast pace; a new version of a launch template at the slow pace, for one call.
func TestNewsOfWaitingGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(200, 3)
		i, stop := f.follow(t)
		defer stop()
		time.Sleep(time.Minute)
		f.waitFor(i, 10)
		time.Sleep(5 * time.Second)
		seen := func(ok func(cluster.NodeGroup) bool) time.Duration {
			since := time.Now()
			for time.Since(since) < 2*time.Minute {
				groups, _, _ := i.Last()
				if k := slices.IndexFunc(groups, func(g cluster.NodeGroup) bool { return g.ID == "g007" }); ok(groups[k]) {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			return time.Since(since)
		}
		f.mu.Lock()
		f.groups[7].Instances = append(f.groups[7].Instances, member(7, 3, "Pending"))
		f.mu.Unlock()
		if took := seen(func(g cluster.NodeGroup) bool {
			return len(g.Instances) == 4 && g.Instances[3].Phase == cluster.PhasePending
		}); took > 2300*time.Millisecond {
			t.Errorf("a pending machine is seen after %s", took)
		}
		f.mu.Lock()
		f.groups[7].Instances[3].LifecycleState = "InService"
		f.mu.Unlock()
		if took := seen(func(g cluster.NodeGroup) bool { return g.Instances[3].Phase == cluster.PhaseRunning }); took > 2300*time.Millisecond {
			t.Errorf("a running machine is seen after %s", took)
		}
		f.calls()
		f.mu.Lock()
		f.latest["lt-007"] = 2
		f.mu.Unlock()
		before := ""
		groups, _, _ := i.Last()
		before = groups[7].Template.Spec
		if took := seen(func(g cluster.NodeGroup) bool { return g.Template.Spec != before }); took > 31*time.Second {
			t.Errorf("a new version is seen after %s", took)
		}
		if _, by := f.calls(); by[awsapi.ActionDescribeVersions] != 1 {
			t.Errorf("the contents were asked for %d times", by[awsapi.ActionDescribeVersions])
		}
	})
}
