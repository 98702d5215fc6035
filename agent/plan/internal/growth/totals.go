package growth

import (
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// KeepsTotals says which minimum of the whole cluster the removal of a node would go below;
// empty: none.
func KeepsTotals(w *round.State, n *round.Node) string {
	if w.Policy.MinCoresTotal <= 0 && w.Policy.MinMemoryTotal <= 0 && !slices.ContainsFunc(w.Policy.GPUTotal, func(b decision.Bound) bool { return b.Min > 0 }) {
		return ""
	}
	have, removing := w.Capacity(), w.CapacityRemoving()
	c := &n.Capacity
	if limit := w.Policy.MinCoresTotal; limit > 0 && have.MilliCPU-removing.MilliCPU-c.MilliCPU < limit*1000 {
		return fmt.Sprintf("without it the cluster would have less than its least of %d cores", limit)
	}
	if limit := w.Policy.MinMemoryTotal; limit > 0 && have.Memory-removing.Memory-c.Memory < limit<<30 {
		return fmt.Sprintf("without it the cluster would have less than its least of %d GiB", limit)
	}
	for _, b := range w.Policy.GPUTotal {
		if gone := c.Extended[b.Resource]; gone > 0 && have.Extended[b.Resource]-removing.Extended[b.Resource]-gone < b.Min {
			return fmt.Sprintf("without it the cluster would have less than its least of %d %s", b.Min, b.Resource)
		}
	}
	return ""
}
