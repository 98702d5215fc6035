// Package price says what a machine of an Auto Scaling group costs an hour: by AWS's price list
// of the region, where the price list service may be asked; else by that of us-east-1, which is
// part of the program; and by the spot market's own prices, which EC2 tells. Prices of other
// regions differ by nearly the same factor for all types, so that the order of a region's groups
// is right with the table alone.
//
// It refuses to know savings plans, reserved instances and negotiated prices: those stand in
// groups.yaml.
package price

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

//go:embed ondemand.txt
var table string

// onDemand is the table by type. A line has a family, and SIZE=PRICE for each of its types.
var onDemand = sync.OnceValue(func() map[string]float64 {
	out := map[string]float64{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		for _, f := range fields[1:] {
			size, text, _ := strings.Cut(f, "=")
			if price, err := strconv.ParseFloat(text, 64); err == nil {
				out[fields[0]+"."+size] = price
			}
		}
	}
	return out
})

// spotShare is what a spot machine costs beside one on demand where EC2 does not tell it: AWS
// publishes savings of 50 to 80 per cent for most types (Spot Instance advisor).
const spotShare = 0.35

// Type is an instance type that a group may start.
type Type struct {
	Name     string
	Capacity cluster.Resources
}

// Price is what a group's next machine costs.
type Price struct {
	Hour     float64 // 0: not known
	Source   string  // in words
	Computed bool    // by the size of a type that the list does not have
}

// PerHour is the price of a group's next machine. spot says that its launch template asks for spot
// machines; list and market are the last reads of the price list and of the spot market.
//
// A group of several types counts for their mean, or for the cheapest or the first where its
// allocation strategy says that AWS starts that one; one of both markets, for the share of
// each beyond its base capacity.
func PerHour(source asgtypes.AutoScalingGroup, types []Type, spot bool, list Listed, market Market) Price {
	if len(types) == 0 {
		return Price{}
	}
	share := onDemandShare(source, spot)
	var listed, bid []float64
	var out Price
	seen := true // by the spot market, of all types
	for _, t := range types {
		p := list.hour(t)
		if _, told := list.by[t.Name]; out.Source == "" || p.Computed || !told && !out.Computed {
			out.Source, out.Computed = p.Source, p.Computed // the least certain of all types
		}
		s, told := market.of(t.Name, source.AvailabilityZones)
		if !told {
			s, seen = p.Hour*spotShare, false
		}
		listed, bid = append(listed, p.Hour), append(bid, s)
	}
	onDemandRule, spotRule := "", ""
	if d := distribution(source); d != nil {
		onDemandRule, spotRule = aws.ToString(d.OnDemandAllocationStrategy), aws.ToString(d.SpotAllocationStrategy)
	}
	out.Hour = share*started(listed, onDemandRule) + (1-share)*started(bid, spotRule)
	if share < 1 {
		out.Source += spotSource(market, share, seen)
	}
	return out
}

func distribution(source asgtypes.AutoScalingGroup) *asgtypes.InstancesDistribution {
	if m := source.MixedInstancesPolicy; m != nil {
		return m.InstancesDistribution
	}
	return nil
}

// onDemandShare is the share of a group's machines beyond its base capacity that are on demand.
func onDemandShare(source asgtypes.AutoScalingGroup, spot bool) float64 {
	if source.MixedInstancesPolicy == nil {
		if spot {
			return 0
		}
		return 1
	}
	if d := distribution(source); d != nil && d.OnDemandPercentageAboveBaseCapacity != nil {
		return float64(aws.ToInt32(d.OnDemandPercentageAboveBaseCapacity)) / 100
	}
	return 1 // AWS's default
}

// OnSpot tells a group that starts machines on the spot market; spot says that its launch
// template asks for them.
func OnSpot(source asgtypes.AutoScalingGroup, spot bool) bool { return onDemandShare(source, spot) < 1 }

func spotSource(market Market, share float64, seen bool) string {
	words := ", " + strconv.FormatFloat((1-share)*100, 'f', 0, 64) + " % of it on the spot market"
	if seen {
		return words + " as of " + market.At.UTC().Format("15:04")
	}
	words += ", which counts for " + strconv.FormatFloat(spotShare*100, 'f', 0, 64) + " %"
	if market.Err != nil {
		words += ": " + market.Err.Error()
	}
	return words
}

// started is the price of the type that AWS starts by an allocation strategy.
func started(prices []float64, strategy string) float64 {
	least, sum := prices[0], 0.0
	for _, p := range prices {
		least, sum = min(least, p), sum+p
	}
	switch strategy {
	case "lowest-price":
		return least
	case "prioritized":
		return prices[0]
	}
	return sum / float64(len(prices))
}
