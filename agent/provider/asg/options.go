package asg

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// tagOptions is the prefix of the tags by which an operator sets options of one group. It
// is Cluster Autoscaler's.
const tagOptions = "k8s.io/cluster-autoscaler/node-template/autoscaling-options/"

// parseOptions reads the autoscaling-options tags.
func parseOptions(tags map[string]string) (cluster.Options, []string) {
	var (
		o        cluster.Options
		warnings []string
	)
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		name, ok := strings.CutPrefix(key, tagOptions)
		if !ok {
			continue
		}
		value := tags[key]
		if err := provider.SetOption(&o, name, value); err != nil {
			warnings = append(warnings, fmt.Sprintf("tag %s=%q is left out: %v", key, value, err))
		}
	}
	return o, warnings
}
