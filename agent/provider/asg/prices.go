package asg

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/price"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// setPrices sets the price of each group whose types are known, and how many it may start on the spot market. A narrowed read of the groups
// takes the prices of the last whole read.
func (p *Provider) setPrices(ctx context.Context, readings []*reading, templates []template.Resolved) {
	var all, onSpot []string
	for i, r := range readings {
		if provider.Only(ctx) != nil {
			break
		}
		spot := price.OnSpot(r.source, templates[i].Spot)
		for _, t := range templates[i].Types {
			all = append(all, t.Name)
			if spot {
				onSpot = append(onSpot, t.Name)
			}
		}
	}
	list, market := p.list.Read(ctx, p.client, p.region, all, p.now()), p.spot.Read(ctx, p.client, onSpot, p.now())
	for i, r := range readings {
		is := price.Of(r.source, templates[i].Types, templates[i].Spot, list, market)
		if price.OnSpot(r.source, templates[i].Spot) {
			r.group.SpotTypes = len(templates[i].Types)
		}
		r.group.Price, r.group.PriceSource, r.group.PriceComputed = is.Hour, is.Source, is.Computed
	}
}
