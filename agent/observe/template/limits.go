package template

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// leastLimits are the volume limits that hold on every node of a template. While a node
// is young, limits of drivers that no node shows yet are kept from known: a driver
// registers some time after its node is Ready. full has the limits of nodes whose
// VolumeLimits show less.
func leastLimits(known map[string]int64, nodes []*cluster.Node, full map[cluster.NodeName]map[string]int64, now time.Time) map[string]int64 {
	var out map[string]int64
	show := func(driver string, limit int64) {
		if out == nil {
			out = map[string]int64{}
		}
		if old, seen := out[driver]; !seen || limit < old {
			out[driver] = limit
		}
	}
	young := false
	for _, n := range nodes {
		young = young || !settled(n, now)
		limits, has := full[n.Name]
		if !has {
			limits = n.VolumeLimits
		}
		for driver, limit := range limits {
			show(driver, limit)
		}
	}
	if !young {
		return out
	}
	for driver, limit := range known {
		if _, shown := out[driver]; !shown {
			show(driver, limit)
		}
	}
	return out
}
