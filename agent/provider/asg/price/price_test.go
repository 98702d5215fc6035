package price

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
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
		got := PerHour(test.group, test.types, test.spot, Listed{}, test.market)
		if math.Abs(got.Hour-test.price) > 1e-9 || got.Source != test.source || got.Computed != test.computed {
			t.Errorf("%s: got %+v, want %g %q %v", test.name, got, test.price, test.source, test.computed)
		}
	}
}

func spot(typ, zone, price string) ec2types.SpotPrice {
	return ec2types.SpotPrice{InstanceType: ec2types.InstanceType(typ), AvailabilityZone: aws.String(zone), SpotPrice: aws.String(price)}
}

// TestListed: the region's own list counts before the table, and other types cost what the table says times what the region asks.
func TestListed(t *testing.T) {
	m5, c5, odd := Type{Name: "m5.large", Capacity: size(2, 8)}, Type{Name: "c5.large", Capacity: size(2, 4)}, Type{Name: "zz9.large", Capacity: size(2, 8)}
	list := Listed{Region: "eu-west-1", by: map[string]float64{}}
	for _, text := range []string{
		`{"product": {"attributes": {"instanceType": "m5.large"}}, "terms": {"OnDemand": {"a": {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": "0.1200000000"}}}}}, "Reserved": {"a": {"priceDimensions": {"b": {"unit": "Quantity", "pricePerUnit": {"USD": "501"}}}}}}}`,
		`{"product": {"attributes": {"instanceType": "c5.large"}}, "terms": {"OnDemand": {"a": {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": "0.0000000000"}}}}}}}`,
		`{"product": {}, "terms": {"OnDemand": {"a": {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": "3"}}}}}}}`,
		`not JSON`,
	} {
		list.take(text)
	}
	if list.factor = beside(list.by); len(list.by) != 1 || math.Abs(list.factor-1.25) > 1e-9 {
		t.Fatalf("%+v", list)
	}
	refused := list
	refused.Err = errors.New("no right")
	for _, test := range []struct {
		name     string
		list     Listed
		types    []Type
		price    float64
		source   string
		computed bool
	}{
		{"in the list", list, []Type{m5}, 0.12, "AWS price list of eu-west-1", false},
		{"in the table alone", list, []Type{c5}, 0.085 * 1.25, "AWS price list of us-east-1, times 1.25 as for other types in eu-west-1", false},
		{"in none", list, []Type{odd}, provider.ComputedPrice(size(2, 8)) * 1.25, "computed from the size of zz9.large, which the price list of this version does not have, times 1.25 as for other types in eu-west-1", true},
		{"the source of several types is the least certain", list, []Type{c5, m5}, (0.085*1.25 + 0.12) / 2, "AWS price list of us-east-1, times 1.25 as for other types in eu-west-1", false},
		{"computed first", list, []Type{odd, m5}, (provider.ComputedPrice(size(2, 8))*1.25 + 0.12) / 2, "computed from the size of zz9.large, which the price list of this version does not have, times 1.25 as for other types in eu-west-1", true},
		{"an old list, and a refusal", refused, []Type{m5}, 0.12, "AWS price list of eu-west-1", false},
		{"refused", Listed{Region: "eu-west-1", Err: refused.Err}, []Type{m5}, 0.096, "AWS price list of us-east-1 (that of eu-west-1: no right)", false},
		{"no service", Listed{}, []Type{m5}, 0.096, "AWS price list of us-east-1", false},
	} {
		got := PerHour(asgtypes.AutoScalingGroup{}, test.types, false, test.list, Market{})
		if math.Abs(got.Hour-test.price) > 1e-9 || got.Source != test.source || got.Computed != test.computed {
			t.Errorf("%s: got %+v, want %g %q %v", test.name, got, test.price, test.source, test.computed)
		}
	}
}

// script answers the price list service's calls.
type script struct {
	asked []string
	err   error
	hangs bool
}

func (s *script) GetProducts(ctx context.Context, in *pricing.GetProductsInput, _ ...func(*pricing.Options)) (*pricing.GetProductsOutput, error) {
	for _, f := range in.Filters {
		if aws.ToString(f.Field) == "instanceType" {
			s.asked = append(s.asked, aws.ToString(f.Value))
		}
	}
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &pricing.GetProductsOutput{}, s.err
}

// TestListIsReadOnceADay: whatever AWS answers, a day passes until the next read, unless there is a new type; and a read that is
// not answered ends after three seconds.
func TestListIsReadOnceADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		var l List
		client := &awsapi.Client{Pricing: s, Timeout: time.Minute}
		read := func(names ...string) Listed { return l.Read(t.Context(), client, "eu-west-1", names, time.Now()) }
		calls := func(want int, when string) {
			t.Helper()
			if len(s.asked) != want {
				t.Errorf("%s: %d calls, want %d: %q", when, len(s.asked), want, s.asked)
			}
		}
		read()
		calls(0, "without types")
		read("m5.large", "c5.large", "m5.large")
		read("c5.large")
		calls(1, "the same types again")
		if s.asked[0] != "c5.large,m5.large" {
			t.Errorf("asked for %q", s.asked[0])
		}
		s.err = errors.New("refused")
		if got := read("c5.large", "r5.large"); got.Err == nil {
			t.Error("a refusal is not told")
		}
		read("c5.large", "r5.large")
		calls(2, "refused")
		time.Sleep(listEvery)
		s.hangs = true
		began := time.Now()
		if got := read("c5.large"); !errors.Is(got.Err, awsapi.ErrLate) || time.Since(began) != listWait {
			t.Errorf("no answer: %v after %s", got.Err, time.Since(began))
		}
		calls(3, "a day later")
		var many []string
		for i := range 101 {
			many = append(many, fmt.Sprintf("x%d-flex.metal-48xl", i))
		}
		s.hangs, s.err = false, nil
		read(many...)
		calls(6, "101 types")
		for _, value := range s.asked {
			if len(value) > 1024 {
				t.Errorf("a filter of %d characters", len(value))
			}
		}
		client.Pricing = nil
		read("z1.large")
		calls(6, "a region without the service")
	})
}
