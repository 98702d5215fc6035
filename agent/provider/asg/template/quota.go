package template

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// buckets are the families of instance types that EC2 counts against one vCPU quota
// each (Service Quotas, "Running On-Demand ... instances" and "All ... Spot Instance
// Requests"). Families that have a quota of their own are listed; the letters that are
// left are "standard".
var buckets = []struct{ family, bucket string }{
	{"u-", "high-memory"}, {"u7", "high-memory"}, {"hpc", "hpc"}, {"inf", "inf"}, {"trn", "trn"}, {"dl", "dl"}, {"mac", "mac"},
	{"vt", "g-vt"}, {"g", "g-vt"}, {"p", "p"}, {"x", "x"}, {"f", "f"},
	{"a", "standard"}, {"c", "standard"}, {"d", "standard"}, {"h", "standard"}, {"i", "standard"},
	{"m", "standard"}, {"r", "standard"}, {"t", "standard"}, {"z", "standard"},
}

func bucketOf(typ string) string {
	for _, b := range buckets {
		if strings.HasPrefix(typ, b.family) {
			return b.bucket
		}
	}
	return ""
}

// quota names the quota that the group's machines are counted against; empty when they
// may be counted against several, or against one that is not known here.
func (d *draft) quota() string {
	market := marketOf(d.source.MixedInstancesPolicy)
	bucket := ""
	for i, v := range d.variants {
		m, b := market, bucketOf(v.typ)
		if m == "" && d.source.MixedInstancesPolicy == nil {
			m = "on-demand"
			if spotTemplate(v.template) {
				m = "spot"
			}
		}
		if m == "" || b == "" {
			return ""
		}
		one := m + " " + b
		if i > 0 && one != bucket {
			return ""
		}
		bucket = one
	}
	return bucket
}

// spotTemplate tells a launch template that asks for spot machines.
func spotTemplate(t *launchTemplate) bool {
	o := t.data.InstanceMarketOptions
	return o != nil && o.MarketType == ec2types.MarketTypeSpot
}

// marketOf is the market on which a mixed group buys: "spot", "on-demand", or empty for both and for
// a group that is not mixed.
func marketOf(m *asgtypes.MixedInstancesPolicy) string {
	if m == nil {
		return ""
	}
	d := m.InstancesDistribution
	switch {
	case d == nil, d.OnDemandPercentageAboveBaseCapacity == nil, aws.ToInt32(d.OnDemandPercentageAboveBaseCapacity) == 100:
		return "on-demand" // AWS's default is 100 per cent
	case aws.ToInt32(d.OnDemandPercentageAboveBaseCapacity) == 0 && aws.ToInt32(d.OnDemandBaseCapacity) == 0:
		return "spot"
	}
	return ""
}
