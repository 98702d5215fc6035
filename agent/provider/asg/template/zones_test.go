package template

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// TestZones: a group of one zone promises it, and a group of several tells them.
func TestZones(t *testing.T) {
	rs := &Resolver{region: "eu-west-1"}
	rs.facts.types = map[string]typeFact{"m5.large": {vcpus: 2, memoryMiB: 8192, archs: []string{"amd64"}}}
	for _, zones := range [][]string{{"eu-west-1b"}, {"eu-west-1b", "eu-west-1a"}} {
		d := &draft{source: asgtypes.AutoScalingGroup{AutoScalingGroupName: aws.String("w"), AvailabilityZones: zones}, variants: []variant{{template: &launchTemplate{}, typ: "m5.large"}}}
		rs.finish(d, nil, map[string]*provider.Error{})
		got := d.out.Template
		if one := len(zones) == 1; got.Unknown != "" || one != (got.Labels[zoneLabels[0]] == "eu-west-1b" && got.Labels[zoneLabels[1]] == "eu-west-1b") || one == slices.Equal(got.Zones, []string{"eu-west-1a", "eu-west-1b"}) || one != (len(got.ZoneLabels) == 0) {
			t.Errorf("%v: %+v", zones, got)
		}
	}
}
