package aws

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// spotPrice is the price of a type in a zone of the spot market.
type spotPrice struct {
	typ, zone string
	price     float64
}

// SetSpotPrice sets what a type costs an hour on the spot market of a zone. A zone without a
// price has none of the type.
func (c *Cloud) SetSpotPrice(typ, zone string, price float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spotPrices = slices.DeleteFunc(c.spotPrices, func(p spotPrice) bool { return p.typ == typ && p.zone == zone })
	c.spotPrices = append(c.spotPrices, spotPrice{typ, zone, price})
	slices.SortFunc(c.spotPrices, func(a, b spotPrice) int { return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.zone, b.zone)) })
}

// describeSpotPrices tells the prices as they are now: the history of each type and zone has one
// entry, which is older than any start time, as EC2 gives it for a start time of now.
func (c *Cloud) describeSpotPrices(r *request) ([]el, *apiError) {
	types, products, zone := r.p.strs("InstanceType"), r.p.strs("ProductDescription"), r.p.str("AvailabilityZone")
	var found []spotPrice
	for _, p := range c.spotPrices {
		if (len(types) == 0 || slices.Contains(types, p.typ)) && (zone == "" || zone == p.zone) && (len(products) == 0 || slices.Contains(products, "Linux/UNIX")) {
			found = append(found, p)
		}
	}
	found, next, err := page(c, r, "DescribeSpotPriceHistory", found, "MaxResults", 1000, 1000)
	if err != nil {
		return nil, err
	}
	return []el{each("spotPriceHistorySet", "item", found, func(p spotPrice) []el {
		return []el{x("instanceType", p.typ), x("productDescription", "Linux/UNIX"), x("spotPrice", fmt.Sprintf("%.6f", p.price)), x("availabilityZone", p.zone), x("timestamp", time.Now().Truncate(time.Hour))}
	}), opt("nextToken", next)}, nil
}
