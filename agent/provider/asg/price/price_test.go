package price

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

func size(cores, gib int64) cluster.Resources {
	return cluster.Resources{MilliCPU: cores * 1000, Memory: gib << 30}
}

// TestTable wants every field of the table to be a price, and no type twice.
func TestTable(t *testing.T) {
	fields, seen := 0, map[string]bool{}
	for line := range strings.Lines(table) {
		parts := strings.Fields(line)
		if len(parts) == 0 || parts[0] == "#" {
			continue
		}
		for _, f := range parts[1:] {
			size, _, ok := strings.Cut(f, "=")
			name := parts[0] + "." + size
			if p := onDemand()[name]; !ok || seen[name] || p < 0.001 || p > 500 {
				t.Errorf("%q of family %s: price %g", f, parts[0], p)
			}
			seen[name] = true
			fields++
		}
	}
	if fields < 1000 || fields != len(onDemand()) {
		t.Errorf("%d prices of %d fields", len(onDemand()), fields)
	}
}

// TestComputedPrice holds the constants of provider.ComputedPrice against the table.
func TestComputedPrice(t *testing.T) {
	n := 0
	for family, gib := range map[string]int64{"c": 4, "m": 8, "r": 16} {
		for _, generation := range []string{"5", "6i", "7i", "6a", "7a", "6g", "7g", "8g", "8i", "8a"} {
			name := family + generation + ".large"
			listed, ok := onDemand()[name]
			if !ok {
				continue
			}
			n++
			if got := provider.ComputedPrice(size(2, gib)); math.Abs(got/listed-1) > 0.25 {
				t.Errorf("%s: computed %.4f, listed %.4f", name, got, listed)
			}
		}
	}
	if n != 30 {
		t.Errorf("%d types", n)
	}
	gpu := size(4, 16)
	gpu.Extended = map[string]int64{"nvidia.com/gpu": 1, "example.com/dongle": 9}
	if got := provider.ComputedPrice(gpu); got < 0.9 || got > 1.1 {
		t.Errorf("g5.xlarge: computed %.4f, listed %.4f", got, onDemand()["g5.xlarge"])
	}
	if got := provider.ComputedPrice(cluster.Resources{}); got != 0 {
		t.Errorf("no size: %g", got)
	}
}

func TestOf(t *testing.T) {
	m5, c5, odd := Type{"m5.large", size(2, 8)}, Type{"c5.large", size(2, 4)}, Type{"zz9.large", size(2, 8)}
	at := time.Date(2026, 11, 27, 14, 2, 0, 0, time.UTC)
	market := Market{At: at}
	market.by = map[string]map[string]float64{}
	market.take([]ec2types.SpotPrice{spot("m5.large", "z1", "0.03"), spot("m5.large", "z1", "0.99"), spot("m5.large", "z2", "0.05"), spot("m5.large", "z3", "9"), spot("c5.large", "z1", "0.02"), spot("c5.large", "z2", "worth nothing")})
	mixed := func(onDemand int32, onDemandRule, spotRule string) asgtypes.AutoScalingGroup {
		return asgtypes.AutoScalingGroup{AvailabilityZones: []string{"z1", "z2"}, MixedInstancesPolicy: &asgtypes.MixedInstancesPolicy{InstancesDistribution: &asgtypes.InstancesDistribution{
			OnDemandPercentageAboveBaseCapacity: aws.Int32(onDemand), OnDemandAllocationStrategy: aws.String(onDemandRule), SpotAllocationStrategy: aws.String(spotRule)}}}
	}
	plain := asgtypes.AutoScalingGroup{AvailabilityZones: []string{"z1", "z2"}}
	tests := []struct {
		name     string
		group    asgtypes.AutoScalingGroup
		types    []Type
		spot     bool
		market   Market
		price    float64
		source   string
		computed bool
	}{
		{"nothing is known", plain, nil, false, market, 0, "", false},
		{"one type", plain, []Type{m5}, false, market, 0.096, "AWS price list of us-east-1", false},
		{"a type that the list lacks", plain, []Type{odd}, false, market, provider.ComputedPrice(size(2, 8)), "computed from the size of zz9.large, which the price list of this version does not have", true},
		{"the launch template asks for spot", plain, []Type{m5}, true, market, 0.04, "AWS price list of us-east-1, 100 % of it on the spot market as of 14:02", false},
		{"spot, and EC2 tells no price", plain, []Type{m5}, true, Market{At: at, Err: errors.New("no right")}, 0.096 * 0.35, "AWS price list of us-east-1, 100 % of it on the spot market, which counts for 35 %: no right", false},
		{"the mean of two types", mixed(100, "", ""), []Type{m5, c5}, false, market, 0.0905, "AWS price list of us-east-1", false},
		{"the first of two types", mixed(100, "prioritized", ""), []Type{m5, c5}, false, market, 0.096, "AWS price list of us-east-1", false},
		{"the cheaper of two types", mixed(100, "lowest-price", ""), []Type{m5, c5}, false, market, 0.085, "AWS price list of us-east-1", false},
		{"half on the spot market", mixed(50, "", ""), []Type{m5, c5}, false, market, (0.0905 + 0.03) / 2, "AWS price list of us-east-1, 50 % of it on the spot market as of 14:02", false},
		{"the cheaper on the spot market", mixed(0, "", "lowest-price"), []Type{m5, c5}, false, market, 0.02, "AWS price list of us-east-1, 100 % of it on the spot market as of 14:02", false},
		{"a mixed group without a distribution", asgtypes.AutoScalingGroup{MixedInstancesPolicy: &asgtypes.MixedInstancesPolicy{}}, []Type{m5}, true, market, 0.096, "AWS price list of us-east-1", false},
	}
	for _, test := range tests {
		got := Of(test.group, test.types, test.spot, test.market)
		if math.Abs(got.Hour-test.price) > 1e-9 || got.Source != test.source || got.Computed != test.computed {
			t.Errorf("%s: got %+v, want %g %q %v", test.name, got, test.price, test.source, test.computed)
		}
	}
}

func spot(typ, zone, price string) ec2types.SpotPrice {
	return ec2types.SpotPrice{InstanceType: ec2types.InstanceType(typ), AvailabilityZone: aws.String(zone), SpotPrice: aws.String(price)}
}
