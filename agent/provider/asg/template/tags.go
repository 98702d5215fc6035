package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
)

// Prefixes of the tags by which an operator describes the nodes of a group. They
// are Cluster Autoscaler's. Other tags (eks:..., aws:...) are never read as labels.
const (
	tagPrefix    = "k8s.io/cluster-autoscaler/node-template/"
	tagLabel     = tagPrefix + "label/"
	tagTaint     = tagPrefix + "taint/"
	tagResources = tagPrefix + "resources/"
)

// hints are the facts about a group's nodes in its tags.
type hints struct {
	labels    map[string]string
	taints    []cluster.Taint
	resources map[string]int64 // cpu in thousandths, all others in whole units
	// relevant are the tags that were used, "key=value", sorted.
	relevant []string
	warnings []string
}

// parseHints reads the label, taint and resources tags. A tag that cannot be read
// is left out and named in a warning; the group is still scaled.
func parseHints(tags map[string]string) hints {
	h := hints{labels: map[string]string{}, resources: map[string]int64{}}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		value := tags[key]
		warn := func(format string, args ...any) {
			h.warnings = append(h.warnings, fmt.Sprintf("tag %s=%q is left out: ", key, value)+fmt.Sprintf(format, args...))
		}
		used := true
		if name, ok := strings.CutPrefix(key, tagLabel); ok && name != "" {
			if err := nodespec.Label(name, value); err != nil {
				warn("%v", err)
				continue
			}
			h.labels[name] = value
		} else if name, ok := strings.CutPrefix(key, tagTaint); ok && name != "" {
			taint, err := nodespec.TaintOf(name, value)
			if err != nil {
				warn("%v", err)
				continue
			}
			h.taints = append(h.taints, taint)
		} else if name, ok := strings.CutPrefix(key, tagResources); ok && name != "" {
			n, err := nodespec.Amount(name, value)
			if err != nil {
				warn("%v", err)
				continue
			}
			h.resources[name] = n
		} else {
			used = false
		}
		if used {
			h.relevant = append(h.relevant, key+"="+value)
		}
	}
	return h
}

// apply lays the resources tags over a capacity.
func (h hints) apply(r cluster.Resources) cluster.Resources {
	return provider.LayResources(r, h.resources)
}
