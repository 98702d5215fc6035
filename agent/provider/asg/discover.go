package asg

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// namesPerCall is the most group names that one DescribeAutoScalingGroups takes: 50, and
// as many as MaxRecords, at most 100, with that (API reference, AutoScalingGroupNames).
const namesPerCall = 100

// listed lists the groups that a read is to tell of, each once. nil means that nothing at
// all could be read.
func (p *Provider) listed(ctx context.Context) ([]asgtypes.AutoScalingGroup, error) {
	only := provider.Only(ctx)
	if only == nil {
		found, err := p.discover(ctx)
		if err != nil || found == nil {
			return found, err // a group that is not listed may be there
		}
		return p.addPools(ctx, found)
	}
	out := []asgtypes.AutoScalingGroup{}
	var errs []error
	for ids := range slices.Chunk(only, namesPerCall) {
		in := &autoscaling.DescribeAutoScalingGroupsInput{}
		for _, id := range ids {
			in.AutoScalingGroupNames = append(in.AutoScalingGroupNames, string(id))
		}
		groups, err := p.describe(ctx, in)
		if err != nil {
			errs = append(errs, err)
		} else {
			groups = p.addMissing(groups, ids)
		}
		out = append(out, slices.DeleteFunc(groups, func(g asgtypes.AutoScalingGroup) bool { return !p.ours(g) })...)
	}
	if len(errs) > 0 && len(out) == 0 {
		return nil, errors.Join(errs...)
	}
	return out, errors.Join(errs...)
}

// discover lists the groups of all rules and names, each once. nil means that
// nothing at all could be read.
func (p *Provider) discover(ctx context.Context) ([]asgtypes.AutoScalingGroup, error) {
	var (
		found = map[string]bool{}
		out   []asgtypes.AutoScalingGroup
		errs  []error
		whole int // reads that ended well
	)
	add := func(groups []asgtypes.AutoScalingGroup, keep func(asgtypes.AutoScalingGroup) bool) {
		for _, g := range groups {
			name := aws.ToString(g.AutoScalingGroupName)
			if !found[name] && keep(g) {
				found[name] = true
				out = append(out, g)
			}
		}
	}
	for _, rule := range p.rules {
		groups, err := p.describe(ctx, &autoscaling.DescribeAutoScalingGroupsInput{Filters: filters(rule)})
		// AWS's documents leave open how several tag-key filters combine; the answer
		// is checked, so that a lenient server cannot make a foreign group ours.
		add(groups, func(g asgtypes.AutoScalingGroup) bool { return rule.matches(awsapi.TagsOf(g)) })
		if err != nil {
			err.Err = fmt.Errorf("groups with %s: %w", rule, err.Err)
			errs = append(errs, err)
			continue
		}
		whole++
	}
	for names := range slices.Chunk(p.names, namesPerCall) {
		in := &autoscaling.DescribeAutoScalingGroupsInput{}
		for _, n := range names {
			in.AutoScalingGroupNames = append(in.AutoScalingGroupNames, string(n.id))
		}
		groups, err := p.describe(ctx, in)
		add(groups, func(asgtypes.AutoScalingGroup) bool { return true })
		if err != nil {
			errs = append(errs, err)
			continue
		}
		whole++
		for _, n := range names {
			if !found[string(n.id)] {
				errs = append(errs, p.noGroup("read", n.id))
			}
		}
	}
	if whole == 0 && len(out) == 0 {
		return nil, errors.Join(errs...)
	}
	if out == nil {
		out = []asgtypes.AutoScalingGroup{}
	}
	return out, errors.Join(errs...)
}

// describe reads all pages. What was read before an error is returned with it.
func (p *Provider) describe(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput) ([]asgtypes.AutoScalingGroup, *provider.Error) {
	in.MaxRecords = aws.Int32(100)
	pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(p.client, in)
	var out []asgtypes.AutoScalingGroup
	for page := 1; pages.HasMorePages(); page++ {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			e := awsapi.Classify("read", "", awsapi.ActionDescribeGroups, err)
			if page > 1 {
				e.Err = fmt.Errorf("page %d of the groups (those not listed are unknown, not gone): %w", page, e.Err)
			}
			return out, e
		}
		out = append(out, answer.AutoScalingGroups...)
	}
	return out, nil
}

// one reads a single group by name, for a write.
func (p *Provider) one(ctx context.Context, op string, id cluster.GroupID) (asgtypes.AutoScalingGroup, error) {
	answer, err := p.client.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{string(id)}})
	if err != nil {
		return asgtypes.AutoScalingGroup{}, awsapi.Classify(op, id, awsapi.ActionDescribeGroups, err)
	}
	for _, g := range answer.AutoScalingGroups {
		if aws.ToString(g.AutoScalingGroupName) == string(id) && p.ours(g) {
			p.pools.found(id)
			return g, nil
		}
	}
	if g, ok := p.pools.of(id); ok && len(answer.AutoScalingGroups) == 0 {
		return p.pools.asMade(id, g, p.now()), nil
	}
	return asgtypes.AutoScalingGroup{}, p.noGroup(op, id)
}

// ours reports whether the configuration gives the group to this agent. A group that
// is not ours is never written to, whatever the IAM policy allows.
func (p *Provider) ours(g asgtypes.AutoScalingGroup) bool {
	for _, n := range p.names {
		if string(n.id) == aws.ToString(g.AutoScalingGroupName) {
			return true
		}
	}
	tags := awsapi.TagsOf(g)
	return slices.ContainsFunc(p.rules, func(r tagRule) bool { return r.matches(tags) })
}

func (p *Provider) noGroup(op string, id cluster.GroupID) error {
	return &provider.Error{Op: op, Group: id, Kind: provider.NotFound,
		Err:    fmt.Errorf("region %s has no Auto Scaling group of this name that the agent manages", p.region),
		Remedy: "check the name in AUTOSCALER_AWS_GROUPS, the group's tags and AUTOSCALER_AWS_REGION"}
}

func filters(rule tagRule) []asgtypes.Filter {
	var out []asgtypes.Filter
	for _, m := range rule {
		if m.anyValue {
			out = append(out, asgtypes.Filter{Name: aws.String("tag-key"), Values: []string{m.key}})
		} else {
			out = append(out, asgtypes.Filter{Name: aws.String("tag:" + m.key), Values: []string{m.value}})
		}
	}
	return out
}
