package asg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

var _ provider.Witness = (*Provider)(nil)

// idsPerCall is how many instances one DescribeInstances names; AWS takes a thousand and
// advises to ask for few.
const idsPerCall = 100

var ec2Form = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

// ec2Forms finds the IDs in the words of an error.
var ec2Forms = regexp.MustCompile(`\bi-[0-9a-f]{8,17}\b`)

// Instances implements provider.Witness by DescribeInstances with InstanceIds. EC2 answers
// NotFound for an instance of another region or account, too: only IDs whose zone is of
// this region are asked for, and the caller proves that the account is the right one.
func (p *Provider) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	out := map[cluster.InstanceID]cluster.Testimony{}
	byShort := map[string][]cluster.InstanceID{}
	for _, id := range ids {
		if !strings.HasPrefix(string(id), "aws://") {
			continue
		}
		short, why := p.local(id)
		if why != "" {
			out[id] = cluster.Testimony{Why: why}
			continue
		}
		byShort[short] = append(byShort[short], id)
	}
	var errs []error
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(byShort)), idsPerCall) {
		said, err := p.existences(ctx, chunk)
		if err != nil {
			errs = append(errs, err)
		}
		for _, short := range chunk {
			for _, id := range byShort[short] {
				out[id] = said[short]
			}
		}
	}
	return out, errors.Join(errs...)
}

// local is the EC2 ID of a provider ID of this region; why is why there is none.
func (p *Provider) local(id cluster.InstanceID) (short, why string) {
	short, ok := parseProviderID(id)
	if !ok || !ec2Form.MatchString(short) {
		return "", "the provider ID is not of the form aws:///ZONE/i-..."
	}
	zone, _, _ := strings.Cut(strings.TrimPrefix(string(id), "aws:///"), "/")
	rest, ok := strings.CutPrefix(zone, p.region)
	// eu-west-1a, us-west-2-lax-1a; never us-east-11a in us-east-1.
	if !ok || rest == "" || rest[0] >= '0' && rest[0] <= '9' {
		return "", fmt.Sprintf("zone %q of the provider ID is not in region %s, which the agent asks", zone, p.region)
	}
	return short, ""
}

// existences asks for instances of this region. EC2 refuses a call with unknown IDs and
// names them in its error: the other IDs are asked for again.
func (p *Provider) existences(ctx context.Context, left []string) (map[string]cluster.Testimony, error) {
	out := make(map[string]cluster.Testimony, len(left))
	for len(left) > 0 {
		machines, err := p.named(ctx, left)
		if err != nil {
			said := refused(err)
			rest := slices.DeleteFunc(slices.Clone(left), func(id string) bool { _, ok := said[id]; return ok })
			if len(rest) < len(left) {
				maps.Copy(out, said)
				left = rest
				continue
			}
			e := awsapi.Classify("ask for instances", "", awsapi.ActionDescribeInstances, err)
			for _, id := range left {
				out[id] = cluster.Testimony{Why: e.Error()}
			}
			return out, e
		}
		for _, id := range left {
			// EC2 answers an unknown ID with an error; a missing entry proves nothing.
			out[id] = cluster.Testimony{Why: "EC2 did not say what became of it"}
			if m, ok := machines[id]; ok {
				out[id] = existence(stateOf(m))
			}
		}
		return out, nil
	}
	return out, nil
}

// named reads machines by their IDs, to the last page.
func (p *Provider) named(ctx context.Context, ids []string) (map[string]ec2types.Instance, error) {
	out := map[string]ec2types.Instance{}
	pages := ec2.NewDescribeInstancesPaginator(p.client, &ec2.DescribeInstancesInput{InstanceIds: ids})
	for pages.HasMorePages() {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, reservation := range answer.Reservations {
			for _, m := range reservation.Instances {
				out[aws.ToString(m.InstanceId)] = m
			}
		}
	}
	return out, nil
}

// refused are the testimonies in an error, by the IDs that it names.
func refused(err error) map[string]cluster.Testimony {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return nil
	}
	said := cluster.Testimony{Existence: cluster.InstanceNotFound, Why: "EC2: " + api.ErrorCode()}
	switch api.ErrorCode() {
	case "InvalidInstanceID.NotFound":
	case "InvalidInstanceID.Malformed":
		said.Existence = cluster.ExistenceUnknown
	default:
		return nil
	}
	out := map[string]cluster.Testimony{}
	for _, id := range ec2Forms.FindAllString(api.ErrorMessage(), -1) {
		out[id] = said
	}
	return out
}

func existence(state ec2types.InstanceStateName) cluster.Testimony {
	switch state {
	case "":
		return cluster.Testimony{Why: "EC2 gives no state for it"}
	case ec2types.InstanceStateNameTerminated:
		return cluster.Testimony{Existence: cluster.InstanceTerminated, Why: "EC2: terminated"}
	}
	return cluster.Testimony{Existence: cluster.InstanceExists, Why: "EC2: " + string(state)}
}
