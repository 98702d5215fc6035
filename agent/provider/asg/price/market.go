package price

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// readEvery is how often the spot market is read. Spot prices move slowly (EC2 User Guide,
// "Spot Instance pricing history"), and a decision needs their order only.
const readEvery = time.Hour

// Market is one read of the spot market. Once it is handed out, nothing writes to it.
type Market struct {
	At  time.Time
	Err error
	by  map[string]map[string]float64 // by type and zone
}

// of is the mean price of a type in some zones.
func (m Market) of(typ string, zones []string) (price float64, told bool) {
	sum, n := 0.0, 0
	for zone, p := range m.by[typ] {
		if slices.Contains(zones, zone) {
			sum, n = sum+p, n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// Spot keeps the last read of the spot market. It is safe for concurrent use.
type Spot struct{ reads reads[Market] }

// Read reads the market where its last read is older than an hour or lacks a type. Where EC2
// does not answer, the prices of the read before it go on counting for as long as the types are the same. It makes
// one call for each thousand prices.
func (s *Spot) Read(ctx context.Context, client *awsapi.Client, types []string, now time.Time) Market {
	last, types := s.reads.due(types, readEvery, now)
	if len(types) == 0 {
		return last
	}
	next := Market{At: now, by: map[string]map[string]float64{}}
	in := &ec2.DescribeSpotPriceHistoryInput{ProductDescriptions: []string{"Linux/UNIX"}, StartTime: aws.Time(now), MaxResults: aws.Int32(1000)}
	for _, t := range types {
		in.InstanceTypes = append(in.InstanceTypes, ec2types.InstanceType(t))
	}
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(client, in)
	for next.Err == nil && pages.HasMorePages() {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			next.Err, next.by = awsapi.Classify("read spot prices", "", awsapi.ActionDescribeSpotPrices, err), last.by
			break
		}
		next.take(answer.SpotPriceHistory)
	}
	s.reads.keep(next, types, now)
	return next
}

// take adds the prices of a page. The newest of a type and zone comes first.
func (m *Market) take(list []ec2types.SpotPrice) {
	for _, x := range list {
		typ, zone := string(x.InstanceType), aws.ToString(x.AvailabilityZone)
		price, err := strconv.ParseFloat(aws.ToString(x.SpotPrice), 64)
		if _, has := m.by[typ][zone]; err != nil || price <= 0 || has {
			continue
		}
		if m.by[typ] == nil {
			m.by[typ] = map[string]float64{}
		}
		m.by[typ][zone] = price
	}
}
