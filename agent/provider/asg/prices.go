package asg

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/price"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// setPrices sets the price of each group whose types are known, and how many it may start on the spot market. A narrowed read of the groups
// takes the spot prices of the last whole read.
func (p *Provider) setPrices(ctx context.Context, readings []*reading, templates []template.Resolved) {
	var types []string
	for i, r := range readings {
		if provider.Only(ctx) == nil && price.OnSpot(r.source, templates[i].Spot) {
			for _, t := range templates[i].Types {
				types = append(types, t.Name)
			}
		}
	}
	market := p.spot.Read(ctx, p.client, types, p.now())
	for i, r := range readings {
		is := price.Of(r.source, templates[i].Types, templates[i].Spot, market)
		if price.OnSpot(r.source, templates[i].Spot) {
			r.group.SpotTypes = len(templates[i].Types)
		}
		r.group.Price, r.group.PriceSource, r.group.PriceComputed = is.Hour, is.Source, is.Computed
	}
}
