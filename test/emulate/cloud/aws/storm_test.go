package aws_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestAStormEndsWhereTheTargetSays lets several callers do anything in any
// order, through faults, and wants the group to settle at its target with
// nothing lost and nothing twice. The calls are random by the seed that the
// world prints; their interleaving is the scheduler's.
func TestAStormEndsWhereTheTargetSays(t *testing.T) {
	opts := fast()
	opts.Jitter, opts.ReuseIPs, opts.MaxPage = 0.5, true, 7
	c := start(t, opts)
	workers(t, c, aws.Group{Max: 20, Desired: 5})
	c.Inject(aws.Fault{Kind: aws.AnswerLost, Probability: 0.05})
	c.Inject(aws.Fault{Kind: aws.Throttle, Probability: 0.05})
	c.Inject(aws.Fault{Kind: aws.ConnectionReset, Probability: 0.05})
	c.StaleReads(10 * time.Millisecond)
	c.SpoilBoots(3, aws.BootDies)
	api := dial(c)
	var wg sync.WaitGroup
	for n := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(c.Seed(), n))
			for range 40 {
				gust(c, api, r)
			}
		})
	}
	wg.Wait()
	c.ClearFaults()
	c.StaleReads(0)
	if _, err := api.asg.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: sdk.String("workers")}); err != nil {
		t.Fatal(err)
	}
	for _, i := range must(c.Group("workers")).Instances {
		if i.Lifecycle == "Standby" {
			terminate(api, i.ID, true)
		}
	}
	await.True(t, "the group at its target", func() bool {
		g := must(c.Group("workers"))
		return len(g.Instances) == g.Desired && g.Lifecycles()["InService"] == g.Desired
	})
	addresses := map[string]string{}
	running := 0
	for _, i := range c.Instances() {
		if i.State == "terminated" || i.State == "shutting-down" {
			continue
		}
		if other := addresses[i.PrivateIP]; other != "" {
			t.Errorf("%s and %s share %s", i.ID, other, i.PrivateIP)
		}
		addresses[i.PrivateIP] = i.ID
		if running++; i.GroupName != "workers" {
			t.Errorf("%s is %s in no group", i.ID, i.State)
		}
	}
	if g := must(c.Group("workers")); running != g.Desired {
		t.Errorf("%d run, desired is %d", running, g.Desired)
	}
}

// gust does one random thing. Its errors are part of the storm.
func gust(c *aws.Cloud, api clients, r *rand.Rand) {
	id, group := "i-none", sdk.String("workers")
	if all := must(c.Group("workers")).Instances; len(all) > 0 {
		id = all[r.IntN(len(all))].ID
	}
	switch r.IntN(9) {
	case 0, 1:
		set(api, int32(r.IntN(21)), r.IntN(2) == 0)
	case 2:
		terminate(api, id, r.IntN(2) == 0)
	case 3:
		c.StopInstance(id)
	case 4:
		c.TerminateInstance(id)
	case 5:
		api.asg.EnterStandby(ctx, &autoscaling.EnterStandbyInput{AutoScalingGroupName: group, InstanceIds: []string{id}, ShouldDecrementDesiredCapacity: sdk.Bool(true)})
	case 6:
		api.asg.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: group})
	case 7:
		api.asg.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: group})
	case 8:
		api.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	}
}

func TestThreeHundredInstancesAreQuick(t *testing.T) {
	opts := fast()
	opts.Jitter = 0.5
	c := start(t, opts)
	c.StaleReads(100 * time.Millisecond)
	began := time.Now()
	workers(t, c, aws.Group{Max: 300, Desired: 300})
	await.True(t, "three hundred in service", inService(c, 300))
	api := dial(c)
	n := 0
	c.StaleReads(0)
	pages := ec2.NewDescribeInstancesPaginator(api.ec2, &ec2.DescribeInstancesInput{MaxResults: sdk.Int32(100)})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		n += len(p.Reservations)
	}
	if n != 300 {
		t.Errorf("%d listed", n)
	}
	if err := set(api, 0, false); err != nil {
		t.Fatal(err)
	}
	await.True(t, "nobody left", inService(c, 0))
	t.Logf("up and down took %v", time.Since(began))
}
