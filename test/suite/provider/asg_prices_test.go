package provider_test

import (
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestASGPrices: a group has the price of AWS's list; where its machines are on the spot market, that
// market's. Without the right to read it nothing fails, and the source says which right is lacking.
func TestASGPrices(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	g := groups(t, p)[providertest.Workers]
	if g.Price <= 0 || g.PriceSource != "AWS price list of us-east-1" || g.PriceComputed {
		t.Errorf("%g %q %v", g.Price, g.PriceSource, g.PriceComputed)
	}
	if n := w.Counts()["ec2:DescribeSpotPriceHistory"]; n != 0 {
		t.Errorf("the spot market was read %d times without a group on it", n)
	}
	listed := g.Price
	_, err := w.admin.UpdateAutoScalingGroup(t.Context(), &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: sdk.String(string(providertest.Workers)),
		MixedInstancesPolicy: &asgtypes.MixedInstancesPolicy{
			LaunchTemplate:        &asgtypes.LaunchTemplate{LaunchTemplateSpecification: &asgtypes.LaunchTemplateSpecification{LaunchTemplateName: sdk.String("worker")}},
			InstancesDistribution: &asgtypes.InstancesDistribution{OnDemandPercentageAboveBaseCapacity: sdk.Int32(0)}}})
	must(t, err)
	w.fault("prices", true, aws.Fault{Action: "DescribeSpotPriceHistory", Kind: aws.Forbidden})
	g = groups(t, w.connect(t, byTag))[providertest.Workers]
	if g.Price != listed*0.35 || !strings.Contains(g.PriceSource, "ec2:DescribeSpotPriceHistory") || g.TemplateStale != "" {
		t.Errorf("refused: %g of %g, %q", g.Price, listed, g.PriceSource)
	}
	w.fault("prices", false, aws.Fault{})
	for _, zone := range []string{"a", "b", "c"} {
		w.SetSpotPrice("m5.large", w.Region()+zone, 0.0123)
	}
	p = w.connect(t, byTag)
	before := w.Counts()["ec2:DescribeSpotPriceHistory"]
	for range 3 {
		g = groups(t, p)[providertest.Workers]
	}
	if g.Price != 0.0123 || !strings.Contains(g.PriceSource, "on the spot market as of") {
		t.Errorf("told: %g %q", g.Price, g.PriceSource)
	}
	if n := w.Counts()["ec2:DescribeSpotPriceHistory"] - before; n != 1 {
		t.Errorf("the spot market was read %d times by three reads of the groups", n)
	}
}
