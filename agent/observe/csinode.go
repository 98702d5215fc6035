package observe

import (
	"maps"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// volumeLimits are the drivers of a node that attach no more than so many volumes to it
// (nodevolumelimits.getVolumeLimits).
func volumeLimits(n *storagev1.CSINode) map[string]int64 {
	var out map[string]int64
	for i := range n.Spec.Drivers {
		d := &n.Spec.Drivers[i]
		if d.Allocatable == nil || d.Allocatable.Count == nil {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		out[d.Name] = int64(*d.Allocatable.Count)
	}
	return out
}

func (w *world) putCSINode(n *storagev1.CSINode) Urgency {
	return w.limit(cluster.NodeName(n.Name), volumeLimits(n))
}

func (w *world) dropCSINode(name cluster.NodeName) Urgency { return w.limit(name, nil) }

// limit notes a node's limits, which may be known before the node is.
func (w *world) limit(name cluster.NodeName, limits map[string]int64) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if maps.Equal(w.limits[name], limits) {
		return Never
	}
	if limits == nil {
		delete(w.limits, name)
	} else {
		w.limits[name] = limits
	}
	return w.relimit(name)
}

// leastLimits are the limits that hold on every one of a template's nodes. While a node
// is young, those of drivers that were known before and that no node shows hold on: a
// driver registers some time after its node is Ready. undiminished are the limits of
// nodes whose rows have some room taken off.
func leastLimits(known map[string]int64, nodes []*cluster.Node, undiminished map[cluster.NodeName]map[string]int64, now time.Time) map[string]int64 {
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
		limits, taken := undiminished[n.Name]
		if !taken {
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
