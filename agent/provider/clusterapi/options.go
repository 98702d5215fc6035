package clusterapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// parseOptions reads the autoscaling-options annotations. One that cannot be read is
// left out and named in a warning.
func parseOptions(prefix string, annotations map[string]string) (cluster.Options, []string) {
	var (
		o        cluster.Options
		warnings []string
	)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		value := annotations[key]
		if err := provider.SetOption(&o, name, value); err != nil {
			warnings = append(warnings, leftOut(key, value, err))
		}
	}
	return o, warnings
}

func leftOut(key, value string, err error) string {
	return fmt.Sprintf("annotation %s=%q is left out: %v", key, value, err)
}
