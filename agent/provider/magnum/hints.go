package magnum

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
)

// Labels of a node group that describe its nodes. Magnum's labels configure the
// driver (kube_tag and so on) and are no labels of Nodes; these keys, which Cluster
// Autoscaler reads from tags on AWS, say what the Nodes will have.
const (
	hintPrefix    = "k8s.io/cluster-autoscaler/node-template/"
	hintLabel     = hintPrefix + "label/"
	hintTaint     = hintPrefix + "taint/"
	hintResources = hintPrefix + "resources/"
	hintOptions   = hintPrefix + "autoscaling-options/"
)

// Labels by which Magnum's own drivers configure the nodes, as far as they show on
// the Node.
const (
	labelKubelet    = "kubelet_options"   // flags of the workers' kubelets
	labelZone       = "availability_zone" // of the nodes
	labelBootVolume = "boot_volume_size"  // GiB of the root volume; 0 or none: the flavor's disk
)

// hints are the facts about a node group's nodes in its labels.
type hints struct {
	labels    map[string]string
	taints    []cluster.Taint
	resources map[string]int64 // cpu in thousandths, all others in whole units
	options   cluster.Options
	zone      string
	bootGiB   int64
	relevant  []string // what was used, "key=value", sorted
	warnings  []string
}

// parseHints reads a node group's labels. What cannot be read is left out and named in
// a warning; the group is still scaled.
func parseHints(labels map[string]string) hints {
	h := hints{labels: map[string]string{}, resources: map[string]int64{}}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		used, err := h.read(key, labels[key])
		if err != nil {
			h.warnings = append(h.warnings, fmt.Sprintf("label %s=%q of the node group is left out: %v", key, labels[key], err))
		} else if used {
			h.relevant = append(h.relevant, key+"="+labels[key])
		}
	}
	return h
}

func (h *hints) read(key, value string) (used bool, err error) {
	after := func(prefix string) (string, bool) {
		name, ok := strings.CutPrefix(key, prefix)
		return name, ok && name != ""
	}
	if name, ok := after(hintLabel); ok {
		if err := nodespec.Label(name, value); err != nil {
			return false, err
		}
		h.labels[name] = value
		return true, nil
	}
	if name, ok := after(hintTaint); ok {
		taint, err := nodespec.TaintOf(name, value)
		if err != nil {
			return false, err
		}
		h.taints = append(h.taints, taint)
		return true, nil
	}
	if name, ok := after(hintResources); ok {
		h.resources[name], err = nodespec.Amount(name, value)
		if err != nil {
			delete(h.resources, name)
		}
		return true, err
	}
	if name, ok := after(hintOptions); ok {
		return false, provider.SetOption(&h.options, name, value)
	}
	switch key {
	case labelKubelet:
		h.kubelet(value)
		return true, nil
	case labelZone:
		h.zone = value
		return true, nil
	case labelBootVolume:
		h.bootGiB, err = strconv.ParseInt(value, 10, 32)
		return true, err
	}
	return false, nil
}

// kubelet reads the flags that show on the Node. What no Node can have is left out and named in
// a warning; the other flags count.
func (h *hints) kubelet(flags string) {
	leftOut := func(flag, text string, err error) {
		h.warnings = append(h.warnings, fmt.Sprintf("--%s=%s in the label %s of the node group is left out: %v", flag, text, labelKubelet, err))
	}
	words := strings.Fields(flags)
	for i, word := range words {
		name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !has && i+1 < len(words) {
			value = words[i+1]
		}
		switch name {
		case "node-labels":
			for pair := range strings.SplitSeq(value, ",") {
				k, v, _ := strings.Cut(pair, "=")
				if err := nodespec.Label(k, v); err != nil && pair != "" {
					leftOut(name, pair, err)
				} else if k != "" {
					h.labels[k] = v
				}
			}
		case "register-with-taints":
			for text := range strings.SplitSeq(value, ",") {
				if t, err := nodespec.ParseTaint(text); err != nil {
					leftOut(name, text, err)
				} else {
					h.taints = append(h.taints, t)
				}
			}
		case "max-pods":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n <= 0 {
				leftOut(name, value, errors.New("write a number of pods, for example 110"))
				continue
			}
			h.resources["pods"] = n
		}
	}
}

// apply lays the resources hints over a capacity.
func (h hints) apply(r cluster.Resources) cluster.Resources {
	return provider.LayResources(r, h.resources)
}
