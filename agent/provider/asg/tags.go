package asg

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Prefixes of the tags by which an operator describes the nodes of a group. They
// are Cluster Autoscaler's. Other tags (eks:..., aws:...) are never read as labels.
const (
	tagPrefix    = "k8s.io/cluster-autoscaler/node-template/"
	tagLabel     = tagPrefix + "label/"
	tagTaint     = tagPrefix + "taint/"
	tagResources = tagPrefix + "resources/"
	tagOptions   = tagPrefix + "autoscaling-options/"
)

// hints are what the tags of a group say about its nodes.
type hints struct {
	labels    map[string]string
	taints    []cluster.Taint
	resources map[string]int64 // cpu in thousandths, all others in whole units
	// relevant are the tags that were used, "key=value", sorted.
	relevant []string
	warnings []string
}

var taintForm = regexp.MustCompile(`^(.*):(NoSchedule|NoExecute|PreferNoSchedule)$`)

// parseHints reads the label, taint and resources tags. A tag that cannot be read
// is left out and named in a warning; the group goes on.
func parseHints(tags map[string]string) hints {
	h := hints{labels: map[string]string{}, resources: map[string]int64{}}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		value := tags[key]
		warn := func(format string, args ...any) {
			h.warnings = append(h.warnings, fmt.Sprintf("tag %s=%q is left out: ", key, value)+fmt.Sprintf(format, args...))
		}
		used := true
		if name, ok := strings.CutPrefix(key, tagLabel); ok && name != "" {
			h.labels[name] = value
		} else if name, ok := strings.CutPrefix(key, tagTaint); ok && name != "" {
			m := taintForm.FindStringSubmatch(value)
			if m == nil {
				warn("write value:NoSchedule, value:PreferNoSchedule or value:NoExecute")
				continue
			}
			h.taints = append(h.taints, cluster.Taint{Key: name, Value: m[1], Effect: m[2]})
		} else if name, ok := strings.CutPrefix(key, tagResources); ok && name != "" {
			scale := int64(1)
			if name == "cpu" {
				scale = 1000
			}
			n, err := quantity(value, scale)
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

var quantityForm = regexp.MustCompile(`^([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([eE][+-]?[0-9]{1,2})|([KMGTPE]i|[numkMGTPE])?)$`)

var suffixes = map[string]*big.Rat{
	"": big.NewRat(1, 1), "n": big.NewRat(1, 1e9), "u": big.NewRat(1, 1e6), "m": big.NewRat(1, 1e3),
	"k": big.NewRat(1e3, 1), "M": big.NewRat(1e6, 1), "G": big.NewRat(1e9, 1), "T": big.NewRat(1e12, 1),
	"P": big.NewRat(1e15, 1), "E": big.NewRat(1e18, 1),
	"Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1), "Gi": big.NewRat(1<<30, 1), "Ti": big.NewRat(1<<40, 1),
	"Pi": big.NewRat(1<<50, 1), "Ei": big.NewRat(1<<60, 1),
}

// quantity reads a Kubernetes quantity ("4", "500m", "1.5Gi", "2e3") as a number of
// 1/scale units, rounded down: a node that turns out a little larger does no harm.
func quantity(s string, scale int64) (int64, error) {
	m := quantityForm.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("write a quantity, for example 4, 500m or 16Gi")
	}
	r, ok := new(big.Rat).SetString(m[1] + m[2])
	if !ok {
		return 0, fmt.Errorf("write a quantity, for example 4, 500m or 16Gi")
	}
	r.Mul(r, suffixes[m[3]])
	r.Mul(r, new(big.Rat).SetInt64(scale))
	if r.Sign() < 0 {
		return 0, fmt.Errorf("a quantity cannot be below zero")
	}
	n := new(big.Int).Quo(r.Num(), r.Denom())
	if !n.IsInt64() || n.Int64() > math.MaxInt64/2 {
		return 0, fmt.Errorf("the quantity is too large")
	}
	return n.Int64(), nil
}
