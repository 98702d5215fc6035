package asg

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestQuotaOfAGroup(t *testing.T) {
	mixed := func(base, above int32) *asgtypes.MixedInstancesPolicy {
		return &asgtypes.MixedInstancesPolicy{InstancesDistribution: &asgtypes.InstancesDistribution{OnDemandBaseCapacity: aws.Int32(base), OnDemandPercentageAboveBaseCapacity: aws.Int32(above)}}
	}
	spot := &launchTemplate{}
	spot.data.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptions{MarketType: types.MarketTypeSpot}
	for _, c := range []struct {
		types  string
		mixed  *asgtypes.MixedInstancesPolicy
		lt     *launchTemplate
		expect string
	}{
		{"m5.large", nil, nil, "on-demand standard"},
		{"t3.micro", nil, spot, "spot standard"},
		{"m5.large,c6i.large,r7g.large", &asgtypes.MixedInstancesPolicy{}, nil, "on-demand standard"},
		{"m5.large,c5.large", mixed(0, 0), nil, "spot standard"},
		{"m5.large", mixed(1, 0), nil, ""},
		{"m5.large", mixed(0, 50), nil, ""},
		{"m5.large", mixed(0, 100), nil, "on-demand standard"},
		{"g5.xlarge,g4dn.xlarge,vt1.3xlarge", nil, nil, "on-demand g-vt"},
		{"p4d.24xlarge", nil, nil, "on-demand p"},
		{"inf2.xlarge", nil, nil, "on-demand inf"},
		{"u-6tb1.112xlarge", nil, nil, "on-demand high-memory"},
		{"dl1.24xlarge", nil, nil, "on-demand dl"},
		{"d3.xlarge", nil, nil, "on-demand standard"},
		{"hpc6a.48xlarge", nil, nil, "on-demand hpc"},
		{"h1.2xlarge", nil, nil, "on-demand standard"},
		{"trn1.2xlarge", nil, nil, "on-demand trn"},
		{"m5.large,g5.xlarge", nil, nil, ""},
		{"zz9.large,q1.large", nil, nil, ""},
	} {
		d := &draft{}
		d.source.MixedInstancesPolicy = c.mixed
		lt := c.lt
		if lt == nil {
			lt = &launchTemplate{}
		}
		for typ := range strings.SplitSeq(c.types, ",") {
			d.variants = append(d.variants, variant{template: lt, typ: typ})
		}
		if got := d.quota(); got != c.expect {
			t.Errorf("%s: %q, want %q", c.types, got, c.expect)
		}
	}
}

// TestOptionsByTags reads every autoscaling-options tag of Cluster Autoscaler.
func TestOptionsByTags(t *testing.T) {
	tag := func(name, value string) map[string]string { return map[string]string{tagOptions + name: value} }
	for name, c := range map[string]struct{ good, bad string }{
		"scaledownutilizationthreshold":    {"0.7", "70"},
		"scaledowngpuutilizationthreshold": {"0", "-1"},
		"scaledownunneededtime":            {"10m0s", "10"},
		"scaledownunreadytime":             {"1h", "-1h"},
		"maxnodeprovisiontime":             {"3m", "soon"},
		"maxnodestartuptime":               {"3m", "soon"},
		"ignoredaemonsetsutilization":      {"true", "maybe"},
	} {
		o, warnings := parseOptions(tag(name, c.good))
		if o == (cluster.Options{}) || len(warnings) > 0 {
			t.Errorf("%s=%s: %+v, %v", name, c.good, o, warnings)
		}
		if o, warnings := parseOptions(tag(name, c.bad)); o != (cluster.Options{}) || len(warnings) != 1 || !strings.Contains(warnings[0], name) {
			t.Errorf("%s=%s: %+v, %v", name, c.bad, o, warnings)
		}
	}
	if _, warnings := parseOptions(tag("scaledownunneeded", "1m")); len(warnings) != 1 || !strings.Contains(warnings[0], "maxnodestartuptime") {
		t.Errorf("an unknown option: %v", warnings)
	}
}
