package purchaseprice

import (
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// TestOf: a machine more counts for a quarter of the cheapest one, and what has no price has none.
func TestOf(t *testing.T) {
	var groups []round.Group
	for _, price := range []float64{0.5, 0, 0.25} {
		groups = append(groups, round.Group{NodeGroup: &cluster.NodeGroup{Price: price}})
	}
	if got, want := Of(groups), []float64{0.5625, 0, 0.3125}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Of(groups[1:2]); got[0] != 0 {
		t.Errorf("no group has a price, and %v", got)
	}
}
