package volumes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Index holds claims, volumes, storage classes and CSI drivers, and which pods use which
// claim. The demand of a pod's volumes changes with these objects, not with the pod.
type Index struct {
	claims            map[string]claim           // by "namespace/name"
	volumes           map[string]volume          // by name
	classes           map[string]storageClass    // by name
	publishesCapacity map[string]bool            // CSI drivers that publish how much room their storage has
	unboundVolumes    map[string]map[string]bool // of each storage class, the names of its unbound volumes
	claimsByVolume    map[string][]string        // claims by the volume that they name
	podsByClaim       map[string][]cluster.PodKey
	usesByPod         map[cluster.PodKey]Use
}

func NewIndex() *Index {
	return &Index{
		claims: map[string]claim{}, volumes: map[string]volume{}, classes: map[string]storageClass{}, publishesCapacity: map[string]bool{}, unboundVolumes: map[string]map[string]bool{},
		claimsByVolume: map[string][]string{}, podsByClaim: map[string][]cluster.PodKey{}, usesByPod: map[cluster.PodKey]Use{},
	}
}

// SetPod stores how a pod uses volumes, in place of its use before, and completes its
// class.
func (x *Index) SetPod(key cluster.PodKey, u Use, class *cluster.PodClass) {
	if len(u.claims) == 0 {
		x.DeletePod(key)
		class.Volumes = u.inline
		return
	}
	u.notUnderstood = class.NotUnderstood
	if old, had := x.usesByPod[key]; !had || !slices.Equal(old.claims, u.claims) {
		x.DeletePod(key)
		for _, c := range u.claims {
			if !slices.Contains(x.podsByClaim[c.claim], key) {
				x.podsByClaim[c.claim] = append(x.podsByClaim[c.claim], key)
			}
		}
	}
	x.usesByPod[key] = u
	x.Complete(key, class)
}

// DeletePod removes a pod.
func (x *Index) DeletePod(key cluster.PodKey) {
	u, had := x.usesByPod[key]
	if !had {
		return
	}
	delete(x.usesByPod, key)
	for _, c := range u.claims {
		left := slices.DeleteFunc(x.podsByClaim[c.claim], func(k cluster.PodKey) bool { return k == key })
		if x.podsByClaim[c.claim] = left; len(left) == 0 {
			delete(x.podsByClaim, c.claim)
		}
	}
}

// Complete sets the volumes of a pod's class to what they demand now. One without claims of volumes stays what it is.
func (x *Index) Complete(key cluster.PodKey, class *cluster.PodClass) {
	u, has := x.usesByPod[key]
	if !has {
		return
	}
	class.Volumes, class.NotUnderstood = slices.Clip(u.inline), u.notUnderstood
	offered := map[string]bool{}
	for _, c := range u.claims {
		v, existing := x.volumeDemand(key, u.uid, c)
		class.Volumes = append(class.Volumes, v)
		for _, name := range existing {
			if offered[name] {
				// Which claim gets which volume decides where the other may go.
				class.NotUnderstood = append(slices.Clip(u.notUnderstood), "several claims that one existing PersistentVolume could serve")
				break
			}
		}
		for _, name := range existing {
			offered[name] = true
		}
		// kube-scheduler holds the claim against CSIStorageCapacity, which no driver has
		// published for a machine that is not there yet.
		capacity := "storage capacity of " + x.capacityDriver(c.claim)
		if v.Refused == "" && x.capacityDriver(c.claim) != "" && !slices.Contains(class.NotUnderstood, capacity) {
			class.NotUnderstood = append(slices.Clip(class.NotUnderstood), capacity)
		}
	}
}

// capacityDriver is the CSI driver whose storage must have room for the volume that the
// claim's class will provision (hasEnoughCapacity); empty: no volume will be
// provisioned, or the driver does not publish its capacity.
func (x *Index) capacityDriver(key string) string {
	c := x.claims[key]
	class := x.classes[c.class]
	if c.bound || c.volume != "" || !class.waitForConsumer || !class.provisions() || !x.publishesCapacity[class.provisioner] {
		return ""
	}
	return class.provisioner
}

// volumeDemand is what one claim demands of its pod's node, in the order and with the
// messages of kube-scheduler's VolumeRestrictions, VolumeBinding and VolumeZone.
// existing are the unbound volumes that may serve the claim.
func (x *Index) volumeDemand(pod cluster.PodKey, uid cluster.UID, u claimUse) (v cluster.Volume, existing []string) {
	v.Claim = u.claim
	namespace, name, _ := strings.Cut(u.claim, "/")
	c, ok := x.claims[u.claim]
	if !ok {
		if v.Refused = fmt.Sprintf("persistentvolumeclaim %q not found", name); u.ephemeral {
			v.Refused = fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
		}
		return v, nil
	}
	v.OnePod = c.oncePod && !u.ephemeral // of ephemeral volumes VolumeRestrictions knows nothing
	v.Driver, v.Handle = x.countedVolume(u.claim, c)
	class, known := x.classes[c.class]
	switch {
	case c.lost:
		v.Refused = fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name, c.volume)
	case c.deleting:
		v.Refused = fmt.Sprintf("persistentvolumeclaim %q is being deleted", name)
	case u.ephemeral && c.owner != uid:
		v.Refused = fmt.Sprintf("PVC %s/%s was not created for pod %s (pod is not owner)", namespace, name, pod)
	case c.bound:
		x.boundVolume(&v, c, u.ephemeral)
	case c.volume == "" && c.class != "" && known && class.waitForConsumer:
		existing = x.unboundTopologies(&v, c, class)
	default:
		v.Refused = "pod has unbound immediate PersistentVolumeClaims"
	}
	return v, existing
}

// countedVolume is the driver and handle that a claim counts against on its node: those
// of its volume, or of the volume that its class will provision.
func (x *Index) countedVolume(key string, c claim) (driver, handle string) {
	if v, ok := x.volumes[c.volume]; ok && c.volume != "" {
		return v.driver, v.handle
	}
	class, ok := x.classes[c.class]
	if !ok || c.class == "" {
		return "", ""
	}
	if driver = provisionedBy(class.provisioner); driver == "" {
		return "", ""
	}
	return driver, "claim " + key
}

// boundVolume sets the demand of a bound claim: the node affinity and the zones of its
// volume.
func (x *Index) boundVolume(v *cluster.Volume, c claim, ephemeral bool) {
	pv, ok := x.volumes[c.volume]
	switch {
	case ok:
		v.Affinity = pv.affinity
		if !ephemeral { // VolumeZone does not look at ephemeral volumes
			v.Zones = pv.zones
		}
	case ephemeral:
		v.Refused = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
	default:
		v.Refused = fmt.Sprintf("persistentvolume %q not found", c.volume)
	}
}

// unboundTopologies sets the topologies in which a claim that waits for its first
// consumer may get a volume: in reach of an existing one, or where its class provisions
// one.
func (x *Index) unboundTopologies(v *cluster.Volume, c claim, class storageClass) (existing []string) {
	if c.selectedNode != "" {
		v.Topologies = []cluster.NodeTerm{}
		if class.provisions() {
			v.Topologies = onNode(cluster.NodeName(c.selectedNode), class.topologies)
		}
		return nil
	}
	existing = x.candidates(v.Claim, c)
	if class.provisions() && class.topologies == nil {
		return existing
	}
	terms := []cluster.NodeTerm{}
	for _, name := range existing {
		pv := x.volumes[name]
		if pv.bindingAffinity == nil {
			return existing
		}
		for _, t := range pv.bindingAffinity {
			// A volume's affinity is judged by a node's labels alone (CheckNodeAffinity).
			if len(t.Labels) == 0 && len(t.Fields) > 0 {
				return existing
			}
			terms = append(terms, cluster.NodeTerm{Labels: t.Labels})
		}
	}
	if class.provisions() {
		terms = append(terms, class.topologies...)
	}
	v.Topologies = terms
	return existing
}

// onNode narrows terms to one node.
func onNode(node cluster.NodeName, terms []cluster.NodeTerm) []cluster.NodeTerm {
	field := []cluster.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{string(node)}}}
	if terms == nil {
		return []cluster.NodeTerm{{Fields: field}}
	}
	out := []cluster.NodeTerm{}
	for _, t := range terms {
		if len(t.Labels) > 0 { // an empty term selects nothing
			out = append(out, cluster.NodeTerm{Labels: t.Labels, Fields: field})
		}
	}
	return out
}

// candidates are the names of the volumes that volume.FindMatchingVolume would give to a
// claim on a node in their reach. A volume that is reserved for the claim is the only
// candidate.
func (x *Index) candidates(key string, c claim) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(x.unboundVolumes[c.class])) {
		v := x.volumes[name]
		reserved := v.claim == key && (v.claimUID == "" || v.claimUID == c.uid)
		modes := c.needs.modes
		want := c.needs
		if want.modes = ""; v.deleting || !v.offers.satisfies(want) || v.claim != "" && !reserved {
			continue
		}
		if reserved {
			return []string{name}
		}
		if want.modes = modes; v.available && (c.selector == nil || c.selector.Matches(labels.Set(v.labels))) && v.offers.satisfies(want) {
			out = append(out, name)
		}
	}
	return out
}
