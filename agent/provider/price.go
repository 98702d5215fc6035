package provider

import "github.com/autoscaler-agent/autoscaler-agent/agent/cluster"

// The price of an hour by the size of a machine, in USD: least squares of the relative error over
// 30 general, compute and memory types of AWS in us-east-1 (5th to 8th generation, July 2026),
// whose prices it meets within 24 %. An accelerator is the median of what eight types with
// accelerators cost beyond that.
const (
	pricePerCore        = 0.0343
	pricePerGiB         = 0.0033
	pricePerAccelerator = 0.8
)

// ComputedPrice is what a machine of a size would cost an hour: it orders groups of which no
// price is known, and is no bill. 0: the size is not known.
func ComputedPrice(c cluster.Resources) float64 {
	price := float64(c.MilliCPU)/1000*pricePerCore + float64(c.Memory)/(1<<30)*pricePerGiB
	for name, n := range c.Extended {
		if cluster.Accelerator(name) {
			price += float64(n) * pricePerAccelerator
		}
	}
	return price
}
