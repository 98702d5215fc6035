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
	if provider.Only(ctx) == nil {
		all, onSpot = startable(readings, templates)
	}
	list, market := p.list.Read(ctx, p.client, p.region, all, p.now()), p.spot.Read(ctx, p.client, onSpot, p.now())
	for i, r := range readings {
		is := price.PerHour(r.source, templates[i].Types, templates[i].Spot, list, market)
		if price.OnSpot(r.source, templates[i].Spot) {
			r.group.SpotTypes = len(templates[i].Types)
		}
		r.group.Price, r.group.PriceSource, r.group.PriceComputed = is.Hour, is.Source, is.Computed
	}
}

// startable are the types that the groups may start, and those of them that a group may start on the spot market.
func startable(readings []*reading, templates []template.Resolved) (all, onSpot []string) {
	for i, r := range readings {
		spot := price.OnSpot(r.source, templates[i].Spot)
		for _, t := range templates[i].Types {
			all = append(all, t.Name)
			if spot {
				onSpot = append(onSpot, t.Name)
			}
		}
	}
	return all, onSpot
}
