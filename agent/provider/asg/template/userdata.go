package template

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// UserData returns the user data of a group's launch template: of the version that instance
// ("i-...") was launched with, where the group still lists it, else of the version of its next
// machine. from names that version.
func UserData(ctx context.Context, client *awsapi.Client, group cluster.GroupID, instance string) (text []byte, from string, err error) {
	answer, err := client.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{string(group)}})
	if err != nil {
		return nil, "", awsapi.Classify("read the user data", group, awsapi.ActionDescribeGroups, err)
	}
	if len(answer.AutoScalingGroups) != 1 {
		return nil, "", fmt.Errorf("read the user data: there is no Auto Scaling group %s", group)
	}
	use := launchedWith(&answer.AutoScalingGroups[0], instance)
	if use == nil {
		return nil, "", fmt.Errorf("read the user data: group %s has no launch template", group)
	}
	in := &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: use.LaunchTemplateId, Versions: []string{aws.ToString(use.Version)}}
	if in.Versions[0] == "" {
		in.Versions[0] = "$Default"
	}
	if in.LaunchTemplateId == nil {
		in.LaunchTemplateName = use.LaunchTemplateName
	}
	versions, err := client.DescribeLaunchTemplateVersions(ctx, in)
	if err != nil {
		return nil, "", awsapi.Classify("read the user data", group, awsapi.ActionDescribeVersions, err)
	}
	if len(versions.LaunchTemplateVersions) == 0 || versions.LaunchTemplateVersions[0].LaunchTemplateData == nil {
		return nil, "", fmt.Errorf("read the user data: the launch template of group %s has no version %s", group, in.Versions[0])
	}
	v := versions.LaunchTemplateVersions[0]
	from = fmt.Sprintf("launch template %s version %d", aws.ToString(v.LaunchTemplateName), aws.ToInt64(v.VersionNumber))
	text, err = base64.StdEncoding.DecodeString(strings.TrimSpace(aws.ToString(v.LaunchTemplateData.UserData)))
	if err != nil {
		return nil, from, fmt.Errorf("read the user data: %s: %w", from, err)
	}
	return text, from, nil
}

// launchedWith is what an instance was launched with, else what the group's next one is.
func launchedWith(g *asgtypes.AutoScalingGroup, instance string) *asgtypes.LaunchTemplateSpecification {
	for _, in := range g.Instances {
		if instance != "" && aws.ToString(in.InstanceId) == instance && in.LaunchTemplate != nil {
			return in.LaunchTemplate
		}
	}
	if m := g.MixedInstancesPolicy; m != nil && m.LaunchTemplate != nil {
		return m.LaunchTemplate.LaunchTemplateSpecification
	}
	return g.LaunchTemplate
}
