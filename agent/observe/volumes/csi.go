package volumes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// noProvisioner is the provisioner of a StorageClass whose volumes are made by hand.
const noProvisioner = "kubernetes.io/no-provisioner"

// migrated are the in-tree plugins whose volumes kube-scheduler counts as volumes of a
// CSI driver (nodevolumelimits.isCSIMigrationOn), by the name of their provisioner.
var migrated = map[string]string{
	"kubernetes.io/aws-ebs":         "ebs.csi.aws.com",
	"kubernetes.io/azure-disk":      "disk.csi.azure.com",
	"kubernetes.io/cinder":          "cinder.csi.openstack.org",
	"kubernetes.io/gce-pd":          "pd.csi.storage.gke.io",
	"kubernetes.io/portworx-volume": "pxd.portworx.com",
}

// unmigrated are in-tree plugins with a CSI driver that kube-scheduler does not count
// as that driver.
var unmigrated = []string{"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume", noProvisioner}

// provisionedBy is the CSI driver whose limit a volume yet to be provisioned counts
// against; empty for none.
func provisionedBy(provisioner string) string {
	if driver, ok := migrated[provisioner]; ok {
		return driver
	}
	if slices.Contains(unmigrated, provisioner) {
		return ""
	}
	return provisioner
}

// attachment is what a volume counts against: a CSI driver and the handle of the volume.
// zoneKey is the label by which the driver names zones, for an in-tree volume that
// counts as the driver's.
type attachment struct{ driver, handle, zoneKey string }

// attached follows csi-translation-lib of kube-scheduler as far as driver, handle and
// zone. Every kubelet of this version declares these plugins migrated; a CSINode that
// does not is not read.
func attached(pv *corev1.PersistentVolume) attachment {
	s := &pv.Spec.PersistentVolumeSource
	switch {
	case s.CSI != nil:
		return attachment{driver: s.CSI.Driver, handle: s.CSI.VolumeHandle}
	case s.AWSElasticBlockStore != nil:
		return attachment{"ebs.csi.aws.com", ebsID(s.AWSElasticBlockStore.VolumeID), "topology.ebs.csi.aws.com/zone"}
	case s.AzureDisk != nil && (s.AzureDisk.Kind == nil || strings.EqualFold(string(*s.AzureDisk.Kind), "Managed")):
		return attachment{driver: "disk.csi.azure.com", handle: s.AzureDisk.DataDiskURI}
	case s.Cinder != nil:
		return attachment{"cinder.csi.openstack.org", s.Cinder.VolumeID, "topology.cinder.csi.openstack.org/zone"}
	case s.GCEPersistentDisk != nil:
		zones := pv.Labels[corev1.LabelFailureDomainBetaZone]
		if zones == "" {
			zones = pv.Labels[corev1.LabelTopologyZone]
		}
		return attachment{"pd.csi.storage.gke.io", gceID(s.GCEPersistentDisk.PDName, strings.Split(zones, zoneDelimiter)), "topology.gke.io/zone"}
	case s.PortworxVolume != nil:
		return attachment{driver: "pxd.portworx.com", handle: s.PortworxVolume.VolumeID}
	}
	return attachment{}
}

// attachedInline is attached for a volume that the pod itself defines.
func attachedInline(v *corev1.Volume) attachment {
	s := &v.VolumeSource
	switch {
	case s.AWSElasticBlockStore != nil:
		return attachment{driver: "ebs.csi.aws.com", handle: ebsID(s.AWSElasticBlockStore.VolumeID)}
	case s.AzureDisk != nil && (s.AzureDisk.Kind == nil || strings.EqualFold(string(*s.AzureDisk.Kind), "Managed")):
		return attachment{driver: "disk.csi.azure.com", handle: s.AzureDisk.DataDiskURI}
	case s.Cinder != nil:
		return attachment{driver: "cinder.csi.openstack.org", handle: s.Cinder.VolumeID}
	case s.GCEPersistentDisk != nil:
		return attachment{driver: "pd.csi.storage.gke.io", handle: gceID(s.GCEPersistentDisk.PDName, nil)}
	case s.PortworxVolume != nil:
		return attachment{driver: "pxd.portworx.com", handle: s.PortworxVolume.VolumeID}
	}
	return attachment{}
}

// ebsID reads aws://ZONE/vol-1 and aws:///vol-1 as vol-1.
func ebsID(id string) string {
	if rest, ok := strings.CutPrefix(id, "aws://"); ok {
		return rest[strings.LastIndexByte(rest, '/')+1:]
	}
	return id
}

// gceID is the full name of a disk in one zone, in the region of several, or in none
// that is known.
func gceID(name string, zones []string) string {
	place := "zones/UNSPECIFIED"
	switch {
	case len(zones) == 1 && zones[0] != "":
		place = "zones/" + zones[0]
	case len(zones) > 1:
		place = "regions/" + zones[0]
		if i := strings.LastIndexByte(zones[0], '-'); i > 0 {
			place = "regions/" + zones[0][:i]
		}
	}
	return "projects/UNSPECIFIED/" + place + "/disks/" + name
}

// migrateZones follows translateTopologyFromInTreeToCSI: the zones of an in-tree
// volume, in its node affinity or else in its labels, become those of its driver.
func migrateZones(terms []cluster.NodeTerm, labels map[string]string, key string) []cluster.NodeTerm {
	zone, region := zoneLabel(terms, labels)
	found := renameLabel(terms, zone, key)
	if region == corev1.LabelFailureDomainBetaRegion {
		renameLabel(terms, region, corev1.LabelTopologyRegion)
	}
	zones := splitZones(labels[zone])
	if found || len(zones) == 0 {
		return terms
	}
	if len(terms) == 0 {
		terms = make([]cluster.NodeTerm, 1)
	}
	for i := range terms {
		terms[i].Labels = append(terms[i].Labels, cluster.Requirement{Key: key, Operator: "In", Values: zones})
	}
	return terms
}

// renameLabel renames a label in terms that give values for it (getTopologyValues:
// DoesNotExist alone does not).
func renameLabel(terms []cluster.NodeTerm, from, to string) bool {
	var of []*cluster.Requirement
	values := 0
	for i := range terms {
		for j := range terms[i].Labels {
			if r := &terms[i].Labels[j]; r.Key == from {
				of, values = append(of, r), values+len(r.Values)
			}
		}
	}
	if values == 0 {
		return false
	}
	for _, r := range of {
		r.Key = to
	}
	return true
}

// zoneLabel returns the zone and region labels that a volume uses: the current ones or
// the beta ones.
func zoneLabel(terms []cluster.NodeTerm, labels map[string]string) (zone, region string) {
	asks := func(key string) bool {
		return slices.ContainsFunc(terms, func(t cluster.NodeTerm) bool {
			return slices.ContainsFunc(t.Labels, func(r cluster.Requirement) bool { return r.Key == key })
		})
	}
	_, today := labels[corev1.LabelTopologyZone]
	_, old := labels[corev1.LabelFailureDomainBetaZone]
	if !asks(corev1.LabelTopologyZone) && (asks(corev1.LabelFailureDomainBetaZone) || !today && old) {
		return corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion
	}
	return corev1.LabelTopologyZone, corev1.LabelTopologyRegion
}

// zoneDelimiter parts the zones of a volume that is in several (LabelMultiZoneDelimiter).
const zoneDelimiter = "__"

// splitZones reads a zone or region label of a volume; one with an empty part is no
// such label (LabelZonesToSet).
func splitZones(value string) []string {
	zones := strings.Split(value, zoneDelimiter)
	for i, z := range zones {
		if zones[i] = strings.TrimSpace(z); zones[i] == "" {
			return nil
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}
