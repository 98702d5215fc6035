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

// TestASGPriceList: a group has the price of the region's own list, which is read once a day; without the right to read it, or where
// the list does not have the type, that of the table, and the source says so.
func TestASGPriceList(t *testing.T) {
	w := newWorld(t)
	region := "AWS price list of " + w.Region()
	w.SetListPrice("m5.large", 0.107)
	w.SetListPrice("c5.large", 0.096) // of no group: it is not asked for
	p := w.connect(t, byTag)
	for range 3 {
		if g := groups(t, p)[providertest.Workers]; g.Price != 0.107 || g.PriceSource != region || g.PriceComputed {
			t.Errorf("%g %q", g.Price, g.PriceSource)
		}
	}
	if n := w.Counts()["pricing:GetProducts"]; n != 1 {
		t.Errorf("%d reads of the price list by three reads of the groups", n)
	}
	for _, kind := range []aws.Kind{aws.Forbidden, aws.Throttle, aws.ServerError500, aws.ConnectionReset, aws.TruncatedBody} {
		w.fault("list", true, aws.Fault{Action: "GetProducts", Kind: kind})
		g := groups(t, w.connect(t, byTag))[providertest.Workers]
		if g.Price != 0.096 || !strings.HasPrefix(g.PriceSource, "AWS price list of us-east-1 (that of "+w.Region()+": ") || !strings.Contains(g.PriceSource, "read the price list") || g.TemplateStale != "" {
			t.Errorf("%s: %g %q", kind, g.Price, g.PriceSource)
		}
		w.fault("list", false, aws.Fault{})
	}
}

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
