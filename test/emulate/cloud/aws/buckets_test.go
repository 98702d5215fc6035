package aws_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
)

// TestBuckets: an action is throttled once its own bucket is empty, and no other action is.
func TestBuckets(t *testing.T) {
	opts := fast()
	opts.Buckets = true
	c := start(t, opts)
	api := dial(c)
	code := func(err error) string {
		var e smithy.APIError
		if errors.As(err, &e) {
			return e.ErrorCode()
		}
		return ""
	}
	var got string
	for n := 0; n < 1000 && got == ""; n++ {
		_, err := api.asg.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
		got = code(err)
	}
	if got != "Throttling" || c.Throttled()["autoscaling:DescribeAutoScalingGroups"] == 0 {
		t.Errorf("code %q, throttled %v", got, c.Throttled())
	}
	if _, err := api.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{}); err != nil {
		t.Errorf("another action: %v", err)
	}
}
