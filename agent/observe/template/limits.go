package template

import (
	"maps"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// attachable begins the name of the resource by which a node of Kubernetes told how many volumes a
// CSI driver attaches before there were CSINodes. An operator tells the limit of a group's machines
// by it, where the cloud cannot: else the first machine is bought for more volumes than it takes
// (kubernetes-sigs/karpenter#2891).
const attachable = "attachable-volumes-csi-"

// withToldLimits takes the volume limits out of the resources that a template promises. What nodes
// of the group show outranks them.
func withToldLimits(t cluster.Template) cluster.Template {
	told := map[string]int64{}
	for name, n := range t.Capacity.Extended {
		if driver, ok := strings.CutPrefix(name, attachable); ok && driver != "" {
			told[driver] = n
		}
	}
	if len(told) == 0 {
		return t
	}
	for driver, n := range t.VolumeLimits {
		if _, ok := told[driver]; !ok {
			told[driver] = n
		}
	}
	t.VolumeLimits = told
	for _, r := range []*cluster.Resources{&t.Capacity, &t.Allocatable} {
		r.Extended = maps.Clone(r.Extended)
		maps.DeleteFunc(r.Extended, func(name string, _ int64) bool { return strings.HasPrefix(name, attachable) })
	}
	return t
}
