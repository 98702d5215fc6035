package asg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/logging"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// scalingAPI is what we use of EC2 Auto Scaling. A test scripts it.
type scalingAPI interface {
	DescribeAutoScalingGroups(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error)
	DescribeScalingActivities(context.Context, *autoscaling.DescribeScalingActivitiesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeScalingActivitiesOutput, error)
	DescribeInstanceRefreshes(context.Context, *autoscaling.DescribeInstanceRefreshesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeInstanceRefreshesOutput, error)
	SetDesiredCapacity(context.Context, *autoscaling.SetDesiredCapacityInput, ...func(*autoscaling.Options)) (*autoscaling.SetDesiredCapacityOutput, error)
	TerminateInstanceInAutoScalingGroup(context.Context, *autoscaling.TerminateInstanceInAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error)
}

// computeAPI is what we use of EC2.
type computeAPI interface {
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	DescribeSpotInstanceRequests(context.Context, *ec2.DescribeSpotInstanceRequestsInput, ...func(*ec2.Options)) (*ec2.DescribeSpotInstanceRequestsOutput, error)
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeLaunchTemplateVersions(context.Context, *ec2.DescribeLaunchTemplateVersionsInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error)
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	GetInstanceTypesFromInstanceRequirements(context.Context, *ec2.GetInstanceTypesFromInstanceRequirementsInput, ...func(*ec2.Options)) (*ec2.GetInstanceTypesFromInstanceRequirementsOutput, error)
}

// A Call tells of one finished call to AWS.
type Call struct {
	Action string // as IAM writes it: "autoscaling:SetDesiredCapacity"
	Took   time.Duration
	Err    error // as the SDK returned it, nil on success
}

// Option changes how New builds a Provider.
type Option func(*Provider)

// WithCallHook has f called after every call to AWS, from the goroutine that made
// it; f must be safe for concurrent use.
func WithCallHook(f func(Call)) Option { return func(p *Provider) { p.hook = f } }

// call makes one call to AWS under the configured time limit.
func call[In, Out, Opt any](ctx context.Context, p *Provider, action string,
	do func(context.Context, *In, ...func(*Opt)) (*Out, error), in *In, opts ...func(*Opt)) (*Out, error) {
	limited, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	start := p.now()
	out, err := do(limited, in, opts...)
	if cause := context.Cause(limited); err != nil && errors.Is(cause, errLate) {
		err = cause
	}
	if p.hook != nil {
		p.hook(Call{Action: action, Took: p.now().Sub(start), Err: err})
	}
	return out, err
}

// retryer repeats a broken connection or a 5xx once and soon. Throttling is not
// repeated: it is a fact that the next round should see at once.
func retryer() aws.Retryer {
	throttles := retry.IsErrorThrottles(retry.DefaultThrottles)
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 2
		o.MaxBackoff = 200 * time.Millisecond
		o.Retryables = append([]retry.IsErrorRetryable{
			retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				if throttles.IsErrorThrottle(err) == aws.TrueTernary {
					return aws.FalseTernary
				}
				return aws.UnknownTernary
			}),
		}, o.Retryables...)
	})
}

// loadAWS runs the SDK's default chain and finds the region.
func loadAWS(ctx context.Context, c Config) (aws.Config, error) {
	// A provider logs nothing itself: what matters is in its errors.
	opts := []func(*config.LoadOptions) error{config.WithRetryer(retryer), config.WithLogger(logging.Nop{})}
	if c.Region != "" {
		opts = append(opts, config.WithRegion(c.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return cfg, &provider.Error{Op: "load AWS configuration", Kind: provider.Invalid, Err: err,
			Remedy: "mend the AWS_* variables or the shared AWS files that it names"}
	}
	if cfg.Region == "" {
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		answer, err := imds.NewFromConfig(cfg).GetRegion(limited, &imds.GetRegionInput{})
		if err != nil {
			return cfg, &provider.Error{Op: "load AWS configuration", Kind: provider.Invalid,
				Err:    fmt.Errorf("no region is configured and the instance metadata service gave none: %w", shorten(err)),
				Remedy: "set AUTOSCALER_AWS_REGION, for example to eu-west-1"}
		}
		cfg.Region = answer.Region
	}
	return cfg, nil
}

// shorten drops the SDK's list of attempts from err where the cause says it all.
func shorten(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	return err
}
