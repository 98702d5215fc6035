package scaleup

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// TestDimensionsAreBounded: thousands of classes with anti-affinity on hosts do not make thousands of
// dimensions of each packing, and machines are bought all the same.
func TestDimensionsAreBounded(t *testing.T) {
	const classes = 3_000
	w := burst(1, classes, classes, 2, 1)
	w.packer.Topology = topology.Compile(w.State)
	const most = 4_000_000/classes + 10 // numbers in all, and those of resources
	if n := len(w.packer.Size(0)); n > most {
		t.Errorf("%d dimensions, at most %d are right", n, most)
	}
	w = burst(1, classes, classes, 2, 1)
	w.Decide()
	for i := range w.Groups {
		if w.Groups[i].Grow > 0 {
			return
		}
	}
	t.Error("nothing is bought")
}
