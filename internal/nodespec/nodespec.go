// Package nodespec tells what a Node can carry: the labels, taints and amounts of resources that
// the API server takes. Tags, labels of a cloud, annotations, groups.yaml and templates of
// plug-ins describe the Nodes of a group, and a description that no Node can have must not be
// counted on: a pod that selects it would get machines that it cannot use (issue 39).
//
// The errors say what to write; callers say where the text stands. It refuses to correct what it
// reads, and to know which labels the kubelet may set on its own Node.
package nodespec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/quantity"
)

// Label says why no Node can have a label; nil: one can.
func Label(key, value string) error { return pair("label", key, value) }

func pair(noun, key, value string) error {
	if len(validation.IsQualifiedName(key)) > 0 {
		return fmt.Errorf("%q cannot be the key of a %s: write letters, digits, -, _ and . (63 at most), behind a domain and / where it has one", key, noun)
	}
	if len(validation.IsValidLabelValue(value)) > 0 {
		return fmt.Errorf("%q cannot be the value of a %s: write at most 63 letters, digits, -, _ and ., with a letter or digit at both ends", value, noun)
	}
	return nil
}

// effects are those that a taint can have.
var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// Taint says why no Node can have a taint; nil: one can.
func Taint(t cluster.Taint) error {
	if err := pair("taint", t.Key, t.Value); err != nil {
		return err
	}
	if !slices.Contains(effects, t.Effect) {
		return fmt.Errorf("%q is no effect of a taint: write NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
	}
	return nil
}

// ParseTaint reads kubectl's form of a taint, key=value:Effect or key:Effect.
func ParseTaint(text string) (cluster.Taint, error) {
	head, effect, ok := cutLast(text)
	key, value, _ := strings.Cut(head, "=")
	if !ok || key == "" || !slices.Contains(effects, effect) {
		return cluster.Taint{}, fmt.Errorf("%q is no taint: write key=value:NoSchedule, :PreferNoSchedule or :NoExecute", text)
	}
	t := cluster.Taint{Key: key, Value: value, Effect: effect}
	return t, Taint(t)
}

// TaintOf reads the value of a tag whose name holds the key of a taint: value:Effect, as Cluster
// Autoscaler does.
func TaintOf(key, text string) (cluster.Taint, error) {
	value, effect, ok := cutLast(text)
	if !ok || !slices.Contains(effects, effect) {
		return cluster.Taint{}, fmt.Errorf("%q is no value and effect of a taint: write value:NoSchedule, value:PreferNoSchedule or value:NoExecute", text)
	}
	t := cluster.Taint{Key: key, Value: value, Effect: effect}
	return t, Taint(t)
}

// cutLast cuts around the last colon.
func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// resources are the names without a domain that a Node's capacity can have.
var resources = []string{"cpu", "memory", "ephemeral-storage", "pods"}

// Resource says why no Node can have a resource of this name; nil: one can. A name without a
// domain is the kubelet's own, or one of huge pages or attachable volumes.
func Resource(name string) error {
	qualified := len(validation.IsQualifiedName(name)) == 0
	switch {
	case slices.Contains(resources, name):
		return nil
	case qualified && (strings.HasPrefix(name, "hugepages-") || strings.HasPrefix(name, "attachable-volumes-")):
		return nil
	case qualified && strings.Contains(name, "/") && !strings.HasPrefix(name, "requests."):
		return nil
	}
	return fmt.Errorf("%q is no name of a resource: write cpu, memory, ephemeral-storage, pods, or an extended resource with its domain such as nvidia.com/gpu", name)
}

// Amount reads an amount of a resource, as quantity.Parse does. Resources that are counted, which
// are pods and extended ones, have whole amounts only.
func Amount(name, text string) (int64, error) {
	if err := Resource(name); err != nil {
		return 0, err
	}
	if name == "pods" || strings.Contains(name, "/") {
		return quantity.Count(text)
	}
	return quantity.Parse(name, text)
}

// Clean leaves out of a template what no Node can carry, and says of each what was left out and
// why, in the order of their names. Amounts are not looked at.
func Clean(t *cluster.Template) (leftOut []string) {
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if err := Label(key, t.Labels[key]); err != nil {
			leftOut = append(leftOut, fmt.Sprintf("label %s=%q is left out: %v", key, t.Labels[key], err))
			delete(t.Labels, key)
		}
	}
	t.Taints = slices.DeleteFunc(t.Taints, func(x cluster.Taint) bool {
		err := Taint(x)
		if err != nil {
			leftOut = append(leftOut, fmt.Sprintf("taint %s=%s:%s is left out: %v", x.Key, x.Value, x.Effect, err))
		}
		return err != nil
	})
	for _, name := range slices.Sorted(maps.Keys(t.Capacity.Extended)) {
		if err := Resource(name); err != nil {
			leftOut = append(leftOut, fmt.Sprintf("resource %s is left out: %v", name, err))
			delete(t.Capacity.Extended, name)
			delete(t.Allocatable.Extended, name)
		}
	}
	return leftOut
}
