package oracle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	ebs           = "ebs.csi.aws.com"
	ebsZone       = "topology.ebs.csi.aws.com/zone"
	cinder        = "cinder.csi.openstack.org"
	bindCompleted = "pv.kubernetes.io/bind-completed"
	selectedNode  = "volume.kubernetes.io/selected-node"
)

// claimsPer is how many claims every namespace has: few, so that pods share them.
const claimsPer = 7

// storage makes classes, claims with their volumes, and what each node can attach.
func (g *generator) storage() {
	if g.odds["volumes"]+g.odds["ephemeral"] == 0 {
		return
	}
	g.storageClasses()
	for _, ns := range namespaces {
		for i := range claimsPer {
			g.w.Claims = append(g.w.Claims, g.claim(ns, fmt.Sprintf("c%d", i)))
		}
	}
	for i := range g.IntN(6) {
		g.w.Volumes = append(g.w.Volumes, g.free(fmt.Sprintf("free%d", i)))
	}
	for _, n := range g.w.Nodes {
		if g.one(5) && !g.inTree {
			continue
		}
		c := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Annotations: map[string]string{
			corev1.MigratedPluginsAnnotationKey: "kubernetes.io/aws-ebs,kubernetes.io/cinder,kubernetes.io/gce-pd"}}}
		for _, driver := range []string{ebs, cinder} {
			if g.one(4) {
				continue
			}
			d := storagev1.CSINodeDriver{Name: driver, NodeID: n.Name, TopologyKeys: []string{zone}}
			switch g.IntN(4) {
			case 0:
				d.Allocatable = &storagev1.VolumeNodeResources{}
			case 1, 2:
				d.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(g.IntN(4)))}
			}
			c.Spec.Drivers = append(c.Spec.Drivers, d)
		}
		g.w.CSINodes = append(g.w.CSINodes, c)
	}
}

func (g *generator) storageClasses() {
	later, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	in := func(key string, values ...string) corev1.TopologySelectorLabelRequirement {
		return corev1.TopologySelectorLabelRequirement{Key: key, Values: values}
	}
	term := func(r ...corev1.TopologySelectorLabelRequirement) corev1.TopologySelectorTerm {
		return corev1.TopologySelectorTerm{MatchLabelExpressions: r}
	}
	add := func(name, provisioner string, mode *storagev1.VolumeBindingMode, terms ...corev1.TopologySelectorTerm) {
		g.w.Classes = append(g.w.Classes, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: mode, AllowedTopologies: terms})
	}
	add("anywhere", ebs, &later)
	add("some-zones", ebs, &later, term(in(zone, some(g, zones, 1)...)))
	add("two-terms", cinder, &later, term(in(zone, pick(g, zones)), in(rack, pick(g, racks))), term(in(region, "west")))
	add("now", ebs, &now)
	add("local", "kubernetes.io/no-provisioner", &later)
	if g.one(3) {
		add("empty-term", ebs, &later, term())
	}
	if g.likely("capacity") {
		g.capacity()
	}
}

// capacity makes a driver tell how much room its storage has, zone by zone.
func (g *generator) capacity() {
	g.w.Drivers = append(g.w.Drivers, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: cinder}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}},
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: ebs}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(g.one(4))}})
	for i, z := range zones {
		g.w.Capacity = append(g.w.Capacity, &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprintf("cap%d", i)}, StorageClassName: "two-terms",
			NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{zone: z}}, Capacity: new(resource.MustParse(pick(g, []string{"1Gi", "50Gi"})))})
	}
}

func (g *generator) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: g.uid()}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if g.one(4) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	c.Spec.StorageClassName = new(pick(g, []string{"anywhere", "anywhere", "some-zones", "some-zones", "two-terms"}))
	c.Status.Phase = corev1.ClaimPending
	switch n := g.IntN(104); {
	case n >= 100:
		c.Spec.StorageClassName = new("local")
	case n < 55:
		v := g.volume("v-" + namespace + "-" + name)
		v.Spec.StorageClassName = *c.Spec.StorageClassName
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: c.UID}
		v.Status.Phase = corev1.VolumeBound
		g.w.Volumes = append(g.w.Volumes, v)
		c.Spec.VolumeName, c.Annotations, c.Status.Phase = v.Name, map[string]string{bindCompleted: "yes"}, corev1.ClaimBound
	case n < 85: // waits for its first consumer
	case n < 88:
		c.Spec.VolumeName, c.Annotations = "gone", map[string]string{bindCompleted: "yes"}
	case n < 90:
		c.Spec.VolumeName = "v-not-yet"
	case n < 92:
		c.Spec.StorageClassName = new("now")
	case n < 93:
		c.Spec.StorageClassName = new("unheard-of")
	case n < 94:
		c.Spec.StorageClassName = nil
		if g.one(2) {
			c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "anywhere"}
		}
	case n < 95:
		c.Status.Phase = corev1.ClaimLost
	case n < 96:
		c.DeletionTimestamp = &metav1.Time{Time: epoch}
	case n < 98:
		c.Annotations = map[string]string{selectedNode: g.w.Nodes[g.IntN(len(g.w.Nodes))].Name}
	case n < 99:
		c.Spec.StorageClassName = new("local")
		if g.one(3) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"medium": "fast"}}
		}
		if g.one(6) {
			c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		}
		if g.one(6) {
			c.Spec.VolumeAttributesClassName = new("gold")
		}
	default:
		c.Spec.StorageClassName = new("empty-term")
	}
	return c
}

// free makes a volume that waits for a claim: what FindMatchingVolume chooses from.
func (g *generator) free(name string) *corev1.PersistentVolume {
	v := g.volume(name)
	v.Spec.StorageClassName, v.Status.Phase = pick(g, []string{"local", "local", "some-zones"}), corev1.VolumeAvailable
	v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse(pick(g, []string{"1Gi", "10Gi", "100Gi"}))
	v.Labels["medium"] = pick(g, []string{"fast", "slow"})
	switch g.IntN(12) {
	case 0:
		v.Status.Phase = corev1.VolumeReleased
	case 1:
		v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	case 2:
		v.DeletionTimestamp = &metav1.Time{Time: epoch}
	case 3:
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	case 4, 5:
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: pick(g, namespaces), Name: fmt.Sprintf("c%d", g.IntN(claimsPer))}
		if g.one(3) {
			v.Spec.ClaimRef.UID = "another"
		}
	case 6:
		v.Spec.VolumeAttributesClassName = new("gold")
	}
	return v
}

func (g *generator) volume(name string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	switch g.IntN(7) {
	case 6:
		if !g.inTree {
			break // of no kind that anybody looks at
		}
		v.Spec.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: pick(g, []string{"", "aws://a/", "aws:///"}) + "vol-" + name}
	case 0:
		v.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/"}
	case 1:
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: cinder, VolumeHandle: name}
	default:
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: ebs, VolumeHandle: name}
	}
	if v.Spec.CSI != nil && g.one(10) {
		v.Spec.CSI.VolumeHandle = "shared" // two volumes may name one disk
	}
	z := pick(g, zones)
	if g.one(2) {
		required := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: zone, Operator: corev1.NodeSelectorOpIn, Values: []string{z, pick(g, zones)}}}}}}
		if g.one(4) {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, g.nodeTerm())
		}
		if g.one(6) {
			required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{g.nodeRequirement()}}}
		}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: required}
	}
	if g.one(3) {
		v.Labels[pick(g, []string{zone, zone, corev1.LabelFailureDomainBetaZone})] = pick(g, []string{z, z, "a__b", "b__c"})
	}
	if g.one(8) {
		v.Labels[pick(g, []string{region, corev1.LabelFailureDomainBetaRegion})] = pick(g, []string{"east", "west"})
	}
	return v
}

// claims gives a pod volumes.
func (g *generator) claims(p *corev1.Pod) {
	add := func(s corev1.VolumeSource) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("vol%d", len(p.Spec.Volumes)), VolumeSource: s})
	}
	if g.one(4) {
		add(pick(g, []corev1.VolumeSource{
			{EmptyDir: &corev1.EmptyDirVolumeSource{}}, {HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}},
			{ConfigMap: &corev1.ConfigMapVolumeSource{}}, {Secret: &corev1.SecretVolumeSource{SecretName: "s"}},
			{CSI: &corev1.CSIVolumeSource{Driver: ebs}}, {NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}}))
	}
	if g.likely("held") { // a disk that stands in the pod itself: fit holds such pods by name
		add(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: pick(g, []string{"vol-1", "vol-2"})}})
	}
	for n := 0; n < 3 && g.likely("volumes"); n++ {
		name := fmt.Sprintf("c%d", g.IntN(claimsPer))
		if g.one(60) {
			name = "missing"
		}
		add(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
	}
	if g.likely("ephemeral") {
		add(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}})
		c := g.claim(p.Namespace, p.Name+"-"+p.Spec.Volumes[len(p.Spec.Volumes)-1].Name)
		if !g.one(8) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}}
		}
		if !g.one(8) {
			g.w.Claims = append(g.w.Claims, c)
		}
	}
}

// attachments tells of volumes that are attached to nodes, with and without a pod
// that uses them.
func (g *generator) attachments() {
	if g.odds["volumes"] == 0 || !g.one(2) {
		return
	}
	for i, v := range g.w.Volumes {
		if g.one(8) && v.Spec.CSI != nil {
			g.w.Attached = append(g.w.Attached, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("va%d", i)},
				Spec: storagev1.VolumeAttachmentSpec{Attacher: v.Spec.CSI.Driver, NodeName: g.w.Nodes[g.IntN(len(g.w.Nodes))].Name,
					Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(v.Name)}}})
		}
	}
}
