package volumes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// claim is a PersistentVolumeClaim as far as it decides where its pods may run.
type claim struct {
	uid, owner   cluster.UID // owner: its controller, a pod for an ephemeral volume
	volume       string      // spec.volumeName
	bound        bool        // volume is named and the binding is complete
	lost         bool
	deleting     bool
	oncePod      bool // ReadWriteOncePod
	class        string
	selectedNode string
	needs        volumeSpec
	selector     labels.Selector // nil: any volume
}

// volumeSpec is what a claim asks of a volume, or what a volume offers.
type volumeSpec struct {
	size       int64 // bytes
	block      bool
	modes      string // access modes, sorted, one letter each
	attributes string // VolumeAttributesClass
}

// satisfies reports whether a volume that offers v is enough for claim c.
func (v volumeSpec) satisfies(c volumeSpec) bool {
	if v.size < c.size || v.block != c.block || v.attributes != c.attributes {
		return false
	}
	for i := range len(c.modes) {
		if !slices.Contains([]byte(v.modes), c.modes[i]) {
			return false
		}
	}
	return true
}

// volume is a PersistentVolume as far as it decides where pods may run.
type volume struct {
	attachment
	csi      bool // it is the driver's own, not one that is taken for the driver's
	affinity []cluster.NodeTerm
	// reach is the affinity that a volume is chosen by while it is unbound: that of an
	// in-tree volume is not translated then (FindMatchingVolume).
	bindingAffinity []cluster.NodeTerm
	zones           []cluster.Requirement
	class           string
	claim           string // of claimRef, "namespace/name"; empty: none
	claimUID        cluster.UID
	available       bool // phase Available
	unbound         bool // phase other than Bound
	deleting        bool
	offers          volumeSpec
	labels          map[string]string
}

// storageClass is a StorageClass as far as it decides where pods may run.
type storageClass struct {
	provisioner     string
	waitForConsumer bool               // WaitForFirstConsumer
	topologies      []cluster.NodeTerm // allowedTopologies; nil: anywhere
}

func newClaim(c *corev1.PersistentVolumeClaim) claim {
	out := claim{
		uid: cluster.UID(c.UID), volume: c.Spec.VolumeName, deleting: c.DeletionTimestamp != nil, lost: c.Status.Phase == corev1.ClaimLost,
		selectedNode: c.Annotations[convert.AnnotationSelectedNode],
		needs:        volumeSpec{block: isBlock(c.Spec.VolumeMode), modes: accessModes(c.Spec.AccessModes)},
		oncePod:      slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod),
	}
	_, completed := c.Annotations[convert.AnnotationBindCompleted]
	out.bound = completed && out.volume != ""
	if ref := metav1.GetControllerOfNoCopy(c); ref != nil {
		out.owner = cluster.UID(ref.UID)
	}
	if c.Spec.StorageClassName != nil {
		out.class = *c.Spec.StorageClassName
	}
	if beta, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		out.class = beta
	}
	if out.bound {
		out.needs = volumeSpec{} // a bound claim asks for no volume
		return out
	}
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	out.needs.size = size.Value()
	if c.Spec.VolumeAttributesClassName != nil {
		out.needs.attributes = *c.Spec.VolumeAttributesClassName
	}
	if c.Spec.Selector != nil {
		out.selector = labels.Nothing()
		if s, err := metav1.LabelSelectorAsSelector(c.Spec.Selector); err == nil {
			out.selector = s
		}
	}
	return out
}

func newVolume(v *corev1.PersistentVolume) volume {
	out := volume{
		attachment: attached(v), csi: v.Spec.CSI != nil, class: v.Spec.StorageClassName, deleting: v.DeletionTimestamp != nil,
		available: v.Status.Phase == corev1.VolumeAvailable, unbound: v.Status.Phase != corev1.VolumeBound,
	}
	if beta, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		out.class = beta
	}
	if ref := v.Spec.ClaimRef; ref != nil {
		out.claim, out.claimUID = ref.Namespace+"/"+ref.Name, cluster.UID(ref.UID)
	}
	for _, key := range []string{corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		if value, ok := v.Labels[key]; ok {
			if zones := splitZones(value); zones != nil {
				out.zones = append(out.zones, cluster.Requirement{Key: key, Operator: "In", Values: zones})
			}
		}
	}
	if a := v.Spec.NodeAffinity; a != nil && a.Required != nil {
		out.affinity = convert.NodeTerms(a.Required.NodeSelectorTerms)
	}
	out.bindingAffinity = out.affinity
	if out.zoneKey != "" {
		if out.affinity != nil {
			out.affinity = convert.NodeTerms(v.Spec.NodeAffinity.Required.NodeSelectorTerms) // migrateZones writes to it
		}
		out.affinity = migrateZones(out.affinity, v.Labels, out.zoneKey)
	}
	if out.unbound {
		size := v.Spec.Capacity[corev1.ResourceStorage]
		out.offers = volumeSpec{size: size.Value(), block: isBlock(v.Spec.VolumeMode), modes: accessModes(v.Spec.AccessModes)}
		if v.Spec.VolumeAttributesClassName != nil {
			out.offers.attributes = *v.Spec.VolumeAttributesClassName
		}
		out.labels = v.Labels
	}
	return out
}

func newStorageClass(c *storagev1.StorageClass) storageClass {
	out := storageClass{provisioner: c.Provisioner, waitForConsumer: c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer}
	for _, t := range c.AllowedTopologies {
		var term cluster.NodeTerm
		for _, e := range t.MatchLabelExpressions {
			term.Labels = append(term.Labels, cluster.Requirement{Key: e.Key, Operator: "In", Values: e.Values})
		}
		out.topologies = append(out.topologies, term)
	}
	return out
}

// provisions reports whether a claim of the class may get a volume of its own.
func (c storageClass) provisions() bool { return c.provisioner != "" && c.provisioner != noProvisioner }

func isBlock(m *corev1.PersistentVolumeMode) bool {
	return m != nil && *m == corev1.PersistentVolumeBlock
}

func accessModes(in []corev1.PersistentVolumeAccessMode) string {
	var out []byte
	for _, m := range in {
		switch m {
		case corev1.ReadWriteOnce:
			out = append(out, 'o')
		case corev1.ReadOnlyMany:
			out = append(out, 'r')
		case corev1.ReadWriteMany:
			out = append(out, 'm')
		case corev1.ReadWriteOncePod:
			out = append(out, 'p')
		default:
			out = append(out, '?')
		}
	}
	slices.Sort(out)
	return string(slices.Compact(out))
}
