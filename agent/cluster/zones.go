package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// LabelsOfZone are Kubernetes' own labels of a zone, the newer one first.
var LabelsOfZone = []string{"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"}

// SpannedZones are the zones over which the group's machines are spread and of which it promises
// none to a pod: as its provider tells, or else as its instances and their Nodes show. None: its
// template names a zone, or only one zone is known. node returns the Node of an instance; nil:
// no Node is known.
func (g *NodeGroup) SpannedZones(node func(InstanceID) *Node) []string {
	if len(g.Template.Zones) > 1 {
		return g.Template.Zones
	}
	if slices.ContainsFunc(LabelsOfZone, func(key string) bool { return g.Template.Labels[key] != "" }) {
		return nil
	}
	seen := map[string]bool{}
	for i := range g.Instances {
		in := &g.Instances[i]
		zone := in.Zone
		if node != nil && zone == "" {
			if n := node(in.ID); n != nil {
				zone = n.Labels[LabelsOfZone[0]]
			}
		}
		if in.Member && zone != "" {
			seen[zone] = true
		}
	}
	if len(seen) < 2 {
		return nil
	}
	return slices.Sorted(maps.Keys(seen))
}

// Plural writes a number of things: "1 pod", "2 pods".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// InWords writes names as a person would: "a, b and c".
func InWords(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
