package magnum

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/quantity"
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

var taintForm = regexp.MustCompile(`^(.*):(NoSchedule|NoExecute|PreferNoSchedule)$`)

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
		h.labels[name] = value
		return true, nil
	}
	if name, ok := after(hintTaint); ok {
		m := taintForm.FindStringSubmatch(value)
		if m == nil {
			return false, fmt.Errorf("write value:NoSchedule, value:PreferNoSchedule or value:NoExecute")
		}
		h.taints = append(h.taints, cluster.Taint{Key: name, Value: m[1], Effect: m[2]})
		return true, nil
	}
	if name, ok := after(hintResources); ok {
		h.resources[name], err = quantity.Parse(name, value)
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
		return true, h.kubelet(value)
	case labelZone:
		h.zone = value
		return true, nil
	case labelBootVolume:
		h.bootGiB, err = strconv.ParseInt(value, 10, 32)
		return true, err
	}
	return false, nil
}

// kubelet reads the flags that show on the Node.
func (h *hints) kubelet(flags string) error {
	words := strings.Fields(flags)
	for i, word := range words {
		name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !has && i+1 < len(words) {
			value = words[i+1]
		}
		switch name {
		case "node-labels":
			for pair := range strings.SplitSeq(value, ",") {
				if k, v, _ := strings.Cut(pair, "="); k != "" {
					h.labels[k] = v
				}
			}
		case "register-with-taints":
			for text := range strings.SplitSeq(value, ",") {
				m := taintForm.FindStringSubmatch(text)
				if m == nil {
					return fmt.Errorf("taint %q is not of the form key=value:effect", text)
				}
				k, v, _ := strings.Cut(m[1], "=")
				h.taints = append(h.taints, cluster.Taint{Key: k, Value: v, Effect: m[2]})
			}
		case "max-pods":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n <= 0 {
				return fmt.Errorf("max-pods %q is no number of pods", value)
			}
			h.resources["pods"] = n
		}
	}
	return nil
}

// apply lays the resources hints over a capacity.
func (h hints) apply(r cluster.Resources) cluster.Resources {
	return provider.LayResources(r, h.resources)
}
