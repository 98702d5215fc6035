package price

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

const (
	// listEvery is how often the price list is read, whether it answers or not: prices on demand change a few times a year.
	listEvery = 24 * time.Hour
	// listWait is the longest time that a read of the groups waits for the price list service. Leaders whose network
	// has only VPC endpoints cannot reach it, and lose this time once a day.
	listWait = 3 * time.Second
	// typesAtOnce is how many types one call asks for: a filter takes 1,024 characters (Price List Query API, Filter).
	typesAtOnce = 50
)

// Listed is one read of AWS's price list of a region. Once it is handed out, nothing writes to it.
type Listed struct {
	Region string
	Err    error
	by     map[string]float64 // by type
	factor float64            // the mean of a price of the region by that of us-east-1; 0: not known
}

// hour is the price of a type on demand: that of the region's list, else that of the table in the program, else computed from
// its size; the last two times what the region asks beside us-east-1 for other types.
func (l Listed) hour(t Type) Price {
	if p, told := l.by[t.Name]; told {
		return Price{Hour: p, Source: "AWS price list of " + l.Region}
	}
	out := Price{Source: "AWS price list of us-east-1"}
	var known bool
	if out.Hour, known = onDemand()[t.Name]; !known {
		out.Hour, out.Computed = provider.ComputedPrice(t.Capacity), true
		out.Source = "computed from the size of " + t.Name + ", which the price list of this version does not have"
	}
	if l.factor > 0 {
		out.Hour *= l.factor
		out.Source += ", times " + strconv.FormatFloat(l.factor, 'f', 2, 64) + " as for other types in " + l.Region
	}
	if l.Err != nil {
		out.Source += " (that of " + l.Region + ": " + l.Err.Error() + ")"
	}
	return out
}

// List keeps the last read of the price list. It is safe for concurrent use.
type List struct{ reads reads[Listed] }

// Read reads the price list of a region where its last read is older than a day or lacks a type. Where AWS does not answer, the
// prices of the read before it go on counting. It makes one call for each 50 types.
func (l *List) Read(ctx context.Context, client *awsapi.Client, region string, names []string, now time.Time) Listed {
	last, names := l.reads.due(names, listEvery, now)
	if client.Pricing == nil || len(names) == 0 {
		return last
	}
	next := Listed{Region: region, by: map[string]float64{}}
	ctx, cancel := context.WithTimeoutCause(ctx, listWait, awsapi.ErrLate)
	defer cancel()
	for part := range slices.Chunk(names, typesAtOnce) {
		if next.Err = next.ask(ctx, client, part); next.Err != nil {
			break
		}
	}
	if next.Err != nil && len(next.by) == 0 {
		next.by = last.by
	}
	next.factor = beside(next.by)
	l.reads.keep(next, names, now)
	return next
}

// ask reads the prices of some types.
func (l *Listed) ask(ctx context.Context, client *awsapi.Client, names []string) error {
	in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), FormatVersion: aws.String("aws_v1"), MaxResults: aws.Int32(100)}
	for _, f := range [][2]string{{"regionCode", l.Region}, {"operatingSystem", "Linux"}, {"preInstalledSw", "NA"}, {"tenancy", "Shared"}, {"capacitystatus", "Used"}, {"marketoption", "OnDemand"}} {
		in.Filters = append(in.Filters, types.Filter{Type: types.FilterTypeTermMatch, Field: aws.String(f[0]), Value: aws.String(f[1])})
	}
	in.Filters = append(in.Filters, types.Filter{Type: types.FilterTypeAnyOf, Field: aws.String("instanceType"), Value: aws.String(strings.Join(names, ","))})
	for pages := pricing.NewGetProductsPaginator(client, in); pages.HasMorePages(); {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			return awsapi.Classify("read the price list", "", awsapi.ActionPrices, err)
		}
		for _, text := range answer.PriceList {
			l.take(text)
		}
	}
	return nil
}

// offer is what is read of a product of the price list.
type offer struct {
	Product struct {
		Attributes struct{ InstanceType string }
	}
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				Unit         string
				PricePerUnit map[string]string // by currency: one, CNY in China
			}
		}
	}
}

// take adds the price of a product. One that cannot be read is left out.
func (l *Listed) take(text string) {
	var o offer
	if json.Unmarshal([]byte(text), &o) != nil || o.Product.Attributes.InstanceType == "" {
		return
	}
	for _, term := range o.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			for _, amount := range d.PricePerUnit {
				if p, err := strconv.ParseFloat(amount, 64); err == nil && p > 0 && d.Unit == "Hrs" {
					l.by[o.Product.Attributes.InstanceType] = p
				}
			}
		}
	}
}

// beside is the mean of prices by those of the same types in the table; 0: none is in it.
func beside(by map[string]float64) float64 {
	sum, n := 0.0, 0
	for name, p := range by {
		if base := onDemand()[name]; base > 0 {
			sum, n = sum+p/base, n+1
		}
	}
	return sum / float64(max(n, 1))
}
