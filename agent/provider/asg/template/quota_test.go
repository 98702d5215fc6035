package template

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
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
