package groups

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// The values of AUTOSCALER_PRICES: which prices of groups count.
const (
	PricesTyped    = "typed"    // those of groups.yaml
	PricesTold     = "told"     // and those that the cloud, its price list or a plug-in tells
	PricesComputed = "computed" // and, where there is none, one that is computed from the machine's size
)

const (
	typedSource    = "groups.yaml"
	computedSource = "computed from the machine's cpu, memory and accelerators"
)

// scale is the median of what groups with a price cost beside what their size would: computed
// prices are laid beside the others by it, so that groups.yaml may have any currency. 1: no
// group has a price. It costs G log G.
func scale(list []cluster.NodeGroup) float64 {
	var all []float64
	for i := range list {
		g := &list[i]
		if c := provider.ComputedPrice(g.Template.Capacity); g.Price > 0 && !g.PriceComputed && c > 0 {
			all = append(all, g.Price/c)
		}
	}
	if len(all) == 0 {
		return 1
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// setPrices leaves the prices that count, and computes those that are missing, times by.
func setPrices(list []cluster.NodeGroup, which string, by float64) {
	for i := range list {
		g := &list[i]
		if g.Price > 0 && g.PriceSource == "" {
			g.PriceSource = typedSource
		}
		switch {
		case which == PricesTyped && g.PriceSource != typedSource, which == PricesTold && g.PriceComputed, g.Price <= 0:
			g.Price, g.PriceSource, g.PriceComputed = 0, "", false
		}
		if g.Price > 0 && !g.PriceComputed || which != PricesComputed {
			continue
		}
		price := g.Price // of a size that the provider knows better
		if price <= 0 {
			price = provider.ComputedPrice(g.Template.Capacity)
		}
		if price > 0 {
			g.Price, g.PriceComputed = price*by, true
			if g.PriceSource == "" {
				g.PriceSource = computedSource
			}
		}
	}
}
