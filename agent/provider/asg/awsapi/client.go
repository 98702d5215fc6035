package awsapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
)

// Scaling is the part of EC2 Auto Scaling that is used. A test scripts it.
type Scaling interface {
	DescribeAutoScalingGroups(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error)
	DescribeScalingActivities(context.Context, *autoscaling.DescribeScalingActivitiesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeScalingActivitiesOutput, error)
	DescribeInstanceRefreshes(context.Context, *autoscaling.DescribeInstanceRefreshesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeInstanceRefreshesOutput, error)
	CreateAutoScalingGroup(context.Context, *autoscaling.CreateAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.CreateAutoScalingGroupOutput, error)
	SetDesiredCapacity(context.Context, *autoscaling.SetDesiredCapacityInput, ...func(*autoscaling.Options)) (*autoscaling.SetDesiredCapacityOutput, error)
	UpdateAutoScalingGroup(context.Context, *autoscaling.UpdateAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error)
	TerminateInstanceInAutoScalingGroup(context.Context, *autoscaling.TerminateInstanceInAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error)
}

// Compute is the part of EC2 that is used.
type Compute interface {
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	DescribeSpotPriceHistory(context.Context, *ec2.DescribeSpotPriceHistoryInput, ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error)
	DescribeSpotInstanceRequests(context.Context, *ec2.DescribeSpotInstanceRequestsInput, ...func(*ec2.Options)) (*ec2.DescribeSpotInstanceRequestsOutput, error)
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeLaunchTemplates(context.Context, *ec2.DescribeLaunchTemplatesInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error)
	DescribeLaunchTemplateVersions(context.Context, *ec2.DescribeLaunchTemplateVersionsInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error)
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	GetInstanceTypesFromInstanceRequirements(context.Context, *ec2.GetInstanceTypesFromInstanceRequirementsInput, ...func(*ec2.Options)) (*ec2.GetInstanceTypesFromInstanceRequirementsOutput, error)
}

// Pricing is the part of the price list service that is used.
type Pricing interface {
	GetProducts(context.Context, *pricing.GetProductsInput, ...func(*pricing.Options)) (*pricing.GetProductsOutput, error)
}

// A Call is one finished call to AWS.
type Call struct {
	Action string // as IAM writes it: "autoscaling:SetDesiredCapacity"
	Took   time.Duration
	Err    error // as the SDK returned it, nil on success
}

// ErrLate is the cause with which a caller cancels a call that it no longer waits for.
var ErrLate = fmt.Errorf("the time for this call is over: %w", context.DeadlineExceeded)

// Client makes the calls, each under the configured time limit. It has the SDK's method
// names, so that the SDK's paginators work on it.
type Client struct {
	Scaling Scaling
	Compute Compute
	Pricing Pricing // nil: there is none
	Timeout time.Duration
	Hook    func(Call) // called after every call, from the goroutine that made it; may be nil
}

// call makes one call to AWS.
func call[In, Out, Opt any](ctx context.Context, c *Client, action string,
	do func(context.Context, *In, ...func(*Opt)) (*Out, error), in *In, opts []func(*Opt)) (*Out, error) {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	start := time.Now()
	out, err := do(limited, in, opts...)
	if cause := context.Cause(limited); err != nil && errors.Is(cause, ErrLate) {
		err = cause
	}
	if c.Hook != nil {
		c.Hook(Call{Action: action, Took: time.Since(start), Err: err})
	}
	return out, err
}

// DescribeAutoScalingGroups calls EC2 Auto Scaling.
func (c *Client) DescribeAutoScalingGroups(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, opts ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	return call(ctx, c, ActionDescribeGroups, c.Scaling.DescribeAutoScalingGroups, in, opts)
}

// DescribeScalingActivities calls EC2 Auto Scaling.
func (c *Client) DescribeScalingActivities(ctx context.Context, in *autoscaling.DescribeScalingActivitiesInput, opts ...func(*autoscaling.Options)) (*autoscaling.DescribeScalingActivitiesOutput, error) {
	return call(ctx, c, ActionDescribeActivities, c.Scaling.DescribeScalingActivities, in, opts)
}

// DescribeInstanceRefreshes calls EC2 Auto Scaling.
func (c *Client) DescribeInstanceRefreshes(ctx context.Context, in *autoscaling.DescribeInstanceRefreshesInput, opts ...func(*autoscaling.Options)) (*autoscaling.DescribeInstanceRefreshesOutput, error) {
	return call(ctx, c, ActionDescribeRefreshes, c.Scaling.DescribeInstanceRefreshes, in, opts)
}

// CreateAutoScalingGroup calls EC2 Auto Scaling.
func (c *Client) CreateAutoScalingGroup(ctx context.Context, in *autoscaling.CreateAutoScalingGroupInput, opts ...func(*autoscaling.Options)) (*autoscaling.CreateAutoScalingGroupOutput, error) {
	return call(ctx, c, ActionCreateGroup, c.Scaling.CreateAutoScalingGroup, in, opts)
}

// SetDesiredCapacity calls EC2 Auto Scaling.
func (c *Client) SetDesiredCapacity(ctx context.Context, in *autoscaling.SetDesiredCapacityInput, opts ...func(*autoscaling.Options)) (*autoscaling.SetDesiredCapacityOutput, error) {
	return call(ctx, c, ActionSetDesired, c.Scaling.SetDesiredCapacity, in, opts)
}

// UpdateAutoScalingGroup calls EC2 Auto Scaling.
func (c *Client) UpdateAutoScalingGroup(ctx context.Context, in *autoscaling.UpdateAutoScalingGroupInput, opts ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error) {
	return call(ctx, c, ActionUpdateGroup, c.Scaling.UpdateAutoScalingGroup, in, opts)
}

// TerminateInstanceInAutoScalingGroup calls EC2 Auto Scaling.
func (c *Client) TerminateInstanceInAutoScalingGroup(ctx context.Context, in *autoscaling.TerminateInstanceInAutoScalingGroupInput, opts ...func(*autoscaling.Options)) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error) {
	return call(ctx, c, ActionTerminate, c.Scaling.TerminateInstanceInAutoScalingGroup, in, opts)
}

// DescribeInstances calls EC2.
func (c *Client) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, opts ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return call(ctx, c, ActionDescribeInstances, c.Compute.DescribeInstances, in, opts)
}

// DescribeSpotPriceHistory calls EC2.
func (c *Client) DescribeSpotPriceHistory(ctx context.Context, in *ec2.DescribeSpotPriceHistoryInput, opts ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	return call(ctx, c, ActionDescribeSpotPrices, c.Compute.DescribeSpotPriceHistory, in, opts)
}

// DescribeSpotInstanceRequests calls EC2.
func (c *Client) DescribeSpotInstanceRequests(ctx context.Context, in *ec2.DescribeSpotInstanceRequestsInput, opts ...func(*ec2.Options)) (*ec2.DescribeSpotInstanceRequestsOutput, error) {
	return call(ctx, c, ActionDescribeSpot, c.Compute.DescribeSpotInstanceRequests, in, opts)
}

// DescribeInstanceTypes calls EC2.
func (c *Client) DescribeInstanceTypes(ctx context.Context, in *ec2.DescribeInstanceTypesInput, opts ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	return call(ctx, c, ActionDescribeTypes, c.Compute.DescribeInstanceTypes, in, opts)
}

// DescribeLaunchTemplates calls EC2.
func (c *Client) DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, opts ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return call(ctx, c, ActionDescribeTemplates, c.Compute.DescribeLaunchTemplates, in, opts)
}

// DescribeLaunchTemplateVersions calls EC2.
func (c *Client) DescribeLaunchTemplateVersions(ctx context.Context, in *ec2.DescribeLaunchTemplateVersionsInput, opts ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error) {
	return call(ctx, c, ActionDescribeVersions, c.Compute.DescribeLaunchTemplateVersions, in, opts)
}

// DescribeImages calls EC2.
func (c *Client) DescribeImages(ctx context.Context, in *ec2.DescribeImagesInput, opts ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	return call(ctx, c, ActionDescribeImages, c.Compute.DescribeImages, in, opts)
}

// GetInstanceTypesFromInstanceRequirements calls EC2.
func (c *Client) GetInstanceTypesFromInstanceRequirements(ctx context.Context, in *ec2.GetInstanceTypesFromInstanceRequirementsInput, opts ...func(*ec2.Options)) (*ec2.GetInstanceTypesFromInstanceRequirementsOutput, error) {
	return call(ctx, c, ActionMatchTypes, c.Compute.GetInstanceTypesFromInstanceRequirements, in, opts)
}

// GetProducts calls the price list service.
func (c *Client) GetProducts(ctx context.Context, in *pricing.GetProductsInput, opts ...func(*pricing.Options)) (*pricing.GetProductsOutput, error) {
	return call(ctx, c, ActionPrices, c.Pricing.GetProducts, in, opts)
}
