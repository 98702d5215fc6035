package fit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const (
	wordsOnePod   = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
	wordsLimit    = "node(s) exceed max volume count"
	wordsVolume   = "node(s) didn't match PersistentVolume's node affinity"
	wordsTopology = "node(s) didn't find available persistent volumes to bind"
	wordsZone     = "node(s) had no available volume zone"
)

// volumes compiles what the classes' volumes ask.
func (b *build) volumes() {
	only := map[string]int32{}
	for tie := range int32(len(b.first)) {
		for _, v := range b.example(tie).Volumes {
			if _, has := only[v.Claim]; v.OnePod && !has {
				only[v.Claim] = int32(len(b.s.claims))
				b.s.claims = append(b.s.claims, 0)
			}
		}
	}
	var uses [][2]int32
	for tie := range int32(len(b.first)) {
		volumes := b.example(tie).Volumes
		for j := range volumes {
			v := &volumes[j]
			b.volume(tie, v)
			if id, ok := only[v.Claim]; ok {
				if v.OnePod {
					a := b.volumesOf(tie)
					a.onePod = append(a.onePod, id)
				}
				uses = append(uses, [2]int32{tie, id})
			}
		}
	}
	b.usesStart, b.uses = columns(len(b.first), uses)
}

func (b *build) volume(tie int32, v *cluster.Volume) {
	a := b.volumesOf(tie)
	a.refused = cmp.Or(a.refused, v.Refused)
	if v.Affinity != nil || v.Topologies != nil || len(v.Zones) > 0 {
		a.volumes = append(a.volumes, v)
	}
	if v.Handle == "" {
		return
	}
	driver, fresh := b.intern(cluster.AppendString(append(b.buf[:0], 'd'), v.Driver), len(b.drivers))
	if fresh {
		b.drivers = append(b.drivers, v.Driver)
	}
	handle, fresh := b.intern(cluster.AppendString(cluster.AppendString(append(b.buf[:0], 'h'), v.Driver), v.Handle), len(b.driverOf))
	if fresh {
		b.driverOf = append(b.driverOf, driver)
	}
	if !slices.Contains(a.attaches, handle) {
		a.attaches = append(a.attaches, handle)
	}
}

// putVolumes counts claims and handles. A handle counts once on a node, however many
// pods use it there.
func (s *State) putVolumes(class, node, n int) {
	for _, claim := range s.usesOf(class) {
		s.claims[claim] += int32(n)
	}
	a := s.constraintsOf(class)
	if a == nil {
		return
	}
	for _, handle := range a.attaches {
		at := uint64(node)<<32 | uint64(handle)
		before := s.handles[at]
		after := before + int32(n)
		if after == 0 {
			delete(s.handles, at)
		} else {
			s.handles[at] = after
		}
		count := &s.attached[node*len(s.drivers)+int(s.driverOf[handle])]
		switch {
		case before == 0:
			*count++
		case after == 0:
			*count--
		}
	}
}

func (s *State) restricted(a *constraints, _ int) string {
	if s.claimsFree(a) {
		return ""
	}
	return wordsOnePod
}

// claimsFree: a ReadWriteOncePod claim in use anywhere keeps the pod off every node.
func (s *State) claimsFree(a *constraints) bool {
	for _, claim := range a.onePod {
		if s.claims[claim] > 0 {
			return false
		}
	}
	return true
}

func (s *State) limited(a *constraints, node int) string {
	if s.attachable(a, node, nil) {
		return ""
	}
	return wordsLimit
}

// PassesVolumes tells whether F7 to F10 and F13 let one more pod of the class onto the node, also where its volumes and others that
// come before them are so many of a driver.
func (s *State) PassesVolumes(class, node int, volumes map[string]int) bool {
	a := s.constraintsOf(class)
	return a == nil || s.passesVolumes(a, node, volumes)
}

func (s *State) passesVolumes(a *constraints, node int, volumes map[string]int) bool {
	return a.refused == "" && s.claimsFree(a) && s.attachable(a, node, volumes) && s.reachable(a, node) && s.allocatable(a, node) == ""
}

// attachable follows CSILimits.Filter: of every driver that the pod brings new
// volumes for, old and new ones stay within the node's limit, with the volumes of other pods that come before.
func (s *State) attachable(a *constraints, node int, volumes map[string]int) bool {
	for i, handle := range a.attaches {
		driver := s.driverOf[handle]
		limit := s.limits[node*len(s.drivers)+int(driver)]
		if limit < 0 {
			continue
		}
		brings := int64(0) // at the first handle of the driver all that it brings
		for _, h := range a.attaches[i:] {
			if s.driverOf[h] == driver && s.handles[uint64(node)<<32|uint64(h)] == 0 {
				brings++
			}
		}
		if brings > 0 && int64(s.attached[node*len(s.drivers)+int(driver)])+max(brings, int64(volumes[s.drivers[driver]])) > limit {
			return false
		}
	}
	return true
}

// reachable tells whether the node can reach the class's volumes and claims.
func (s *State) reachable(a *constraints, node int) bool {
	if len(a.volumes) == 0 {
		return true
	}
	return inEachZone(s.shapes[s.shapeOf[node]], func(in *NodeInfo) bool {
		return volumesNear(a, in) && claimsServed(a, in) && zonesMatch(a, in)
	})
}

// bound says both of VolumeBinding's reasons where both hold, as FindPodVolumes does.
func (s *State) bound(a *constraints, node int) string {
	shape := s.shapes[s.shapeOf[node]]
	near := inEachZone(shape, func(in *NodeInfo) bool { return volumesNear(a, in) })
	served := inEachZone(shape, func(in *NodeInfo) bool { return claimsServed(a, in) })
	switch {
	case !near && !served:
		return wordsVolume + ", " + wordsTopology
	case !near:
		return wordsVolume
	case !served:
		return wordsTopology
	}
	return ""
}

// volumesNear: node affinity of bound volumes.
func volumesNear(a *constraints, shape *NodeInfo) bool {
	for i := range a.volumes {
		if terms := a.volumes[i].Affinity; terms != nil && !slices.ContainsFunc(terms, func(t cluster.NodeTerm) bool { return volumeTerm(&t, shape) }) {
			return false
		}
	}
	return true
}

// volumeTerm is term for a volume's node affinity: CheckNodeAffinity shows it a node
// of labels alone, so that matchFields are checked for form only.
func volumeTerm(t *cluster.NodeTerm, shape *NodeInfo) bool {
	for i := range t.Fields {
		if f := &t.Fields[i]; len(f.Values) != 1 || f.Operator != "In" && f.Operator != "NotIn" {
			return false
		}
	}
	for i := range t.Labels {
		if !label(&t.Labels[i], shape.Labels) {
			return false
		}
	}
	return len(t.Labels)+len(t.Fields) > 0
}

// claimsServed: topologies of claims that wait for their first consumer.
func claimsServed(a *constraints, shape *NodeInfo) bool {
	for i := range a.volumes {
		if terms := a.volumes[i].Topologies; terms != nil && !slices.ContainsFunc(terms, func(t cluster.NodeTerm) bool { return term(&t, shape) }) {
			return false
		}
	}
	return true
}

func (s *State) placed(a *constraints, node int) string {
	if inEachZone(s.shapes[s.shapeOf[node]], func(in *NodeInfo) bool { return zonesMatch(a, in) }) {
		return ""
	}
	return wordsZone
}

// zoneLabels are the labels that VolumeZone reads, each with the newer name of it.
var zoneLabels = [...][2]string{
	{"topology.kubernetes.io/zone", "topology.kubernetes.io/zone"},
	{"topology.kubernetes.io/region", "topology.kubernetes.io/region"},
	{"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
	{"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
}

// zonesMatch follows VolumeZone.Filter: a node with none of the labels takes every
// volume; a volume's old label is met by the node's new one.
func zonesMatch(a *constraints, shape *NodeInfo) bool {
	if !zoned(shape.Labels) {
		return true
	}
	for i := range a.volumes {
		for j := range a.volumes[i].Zones {
			if z := &a.volumes[i].Zones[j]; !zoneMatches(z, shape.Labels) {
				return false
			}
		}
	}
	return true
}

func zoned(labels map[string]string) bool {
	for i := range zoneLabels {
		if _, has := labels[zoneLabels[i][0]]; has {
			return true
		}
	}
	return false
}

// zoneMatches holds one of the volume's labels against the node's.
func zoneMatches(z *cluster.Requirement, labels map[string]string) bool {
	known := slices.IndexFunc(zoneLabels[:], func(l [2]string) bool { return l[0] == z.Key })
	if known < 0 || !zonesReadable(z.Values) {
		return true
	}
	value, has := labels[z.Key]
	if !has {
		value = labels[zoneLabels[known][1]] // or none, which no readable zone is
	}
	return slices.ContainsFunc(z.Values, func(zones string) bool { return zoneAmong(zones, value) })
}

// zonesReadable: a label with an empty zone in it is ignored (LabelZonesToSet).
func zonesReadable(values []string) bool {
	for _, v := range values {
		for zone := range strings.SplitSeq(v, zoneDelimiter) {
			if strings.TrimSpace(zone) == "" {
				return false
			}
		}
	}
	return true
}

// zoneAmong tells whether a label value, one zone or several, has the zone.
func zoneAmong(zones, zone string) bool {
	for z := range strings.SplitSeq(zones, zoneDelimiter) {
		if strings.TrimSpace(z) == zone {
			return true
		}
	}
	return false
}

// zoneDelimiter joins the zones of a volume that lives in several.
const zoneDelimiter = "__"
