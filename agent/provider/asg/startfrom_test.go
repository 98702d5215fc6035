package asg

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

func templateOf(id, version string) *asgtypes.LaunchTemplateSpecification {
	return &asgtypes.LaunchTemplateSpecification{LaunchTemplateId: aws.String(id), LaunchTemplateName: aws.String("name of " + id), Version: aws.String(version)}
}

// TestStartFrom: what a group starts is set to an earlier version, all else of a mixed instances policy stays, and the command says the
// same.
func TestStartFrom(t *testing.T) {
	mixed := func(base string, overrides ...asgtypes.LaunchTemplateOverrides) func(*asgtypes.AutoScalingGroup) {
		return func(g *asgtypes.AutoScalingGroup) {
			g.LaunchTemplate = nil
			g.MixedInstancesPolicy = &asgtypes.MixedInstancesPolicy{
				InstancesDistribution: &asgtypes.InstancesDistribution{OnDemandPercentageAboveBaseCapacity: aws.Int32(0), SpotAllocationStrategy: aws.String("price-capacity-optimized")},
				LaunchTemplate:        &asgtypes.LaunchTemplate{LaunchTemplateSpecification: templateOf(base, "$Latest"), Overrides: overrides},
			}
		}
	}
	const head = "aws autoscaling update-auto-scaling-group --region region-1 --auto-scaling-group-name 'pool' "
	const distribution = `"InstancesDistribution":{"OnDemandPercentageAboveBaseCapacity":0,"SpotAllocationStrategy":"price-capacity-optimized"}`
	for name, c := range map[string]struct {
		group   func(*asgtypes.AutoScalingGroup)
		command string
		changed bool
	}{
		"a template":  {func(g *asgtypes.AutoScalingGroup) { g.LaunchTemplate = templateOf("lt-1", "$Latest") }, "--launch-template 'LaunchTemplateId=lt-1,Version=2'", true},
		"another one": {func(g *asgtypes.AutoScalingGroup) { g.LaunchTemplate = templateOf("lt-9", "2") }, "--launch-template 'LaunchTemplateId=lt-1,Version=2'", true},
		"so before":   {func(g *asgtypes.AutoScalingGroup) { g.LaunchTemplate = templateOf("lt-1", "2") }, "--launch-template 'LaunchTemplateId=lt-1,Version=2'", false},
		"a mixed instances policy": {mixed("lt-1", asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large")}),
			"--mixed-instances-policy '{" + distribution + `,"LaunchTemplate":{"LaunchTemplateSpecification":{"LaunchTemplateId":"lt-1","Version":"2"},"Overrides":[{"InstanceType":"m5.large"}]}}'`, true},
		"one of its overrides": {mixed("lt-0", asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m6g.large"), LaunchTemplateSpecification: templateOf("lt-1", "3")}),
			"--mixed-instances-policy '{" + distribution + `,"LaunchTemplate":{"LaunchTemplateSpecification":{"LaunchTemplateId":"lt-0","Version":"$Latest"},"Overrides":[{"InstanceType":"m6g.large","LaunchTemplateSpecification":{"LaunchTemplateId":"lt-1","Version":"2"}}]}}'`, true},
	} {
		for _, dry := range []bool{true, false} {
			s, p := stage()
			c.group(&s.groups[0])
			command, changed, err := p.StartFrom(background, "pool", cluster.Origin{Template: "lt-1", Version: "2"}, dry)
			if err != nil || changed != c.changed || command != strings.ReplaceAll(head, "region-1", p.region)+c.command {
				t.Errorf("%s: %v, changed %v\n%s", name, err, changed, command)
			}
			if (s.updated != nil) != (changed && !dry) {
				t.Errorf("%s, dry %v: sent %v", name, dry, s.updated)
			}
			if m := s.updated; m != nil && m.MixedInstancesPolicy != nil && (m.LaunchTemplate != nil || m.MixedInstancesPolicy.InstancesDistribution == nil || len(m.MixedInstancesPolicy.LaunchTemplate.Overrides) != 1) {
				t.Errorf("%s: sent %+v", name, m)
			}
		}
	}
	s, p := stage()
	s.groups[0].LaunchTemplate = templateOf("lt-1", "3")
	s.fail[awsapi.ActionUpdateGroup] = code("AccessDenied", "no")
	command, changed, err := p.StartFrom(background, "pool", cluster.Origin{Template: "lt-1", Version: "2"}, false)
	if provider.KindOf(err) != provider.Denied || changed || !strings.HasSuffix(command, "Version=2'") || !strings.Contains(err.Error(), awsapi.ActionUpdateGroup) {
		t.Errorf("denied: %v, changed %v\n%s", err, changed, command)
	}
	if _, _, err := p.StartFrom(background, "other", cluster.Origin{Template: "lt-1", Version: "2"}, false); provider.KindOf(err) != provider.NotFound || s.updated != nil {
		t.Errorf("a group of somebody else: %v", err)
	}
}
