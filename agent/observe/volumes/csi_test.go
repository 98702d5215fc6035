package volumes

import (
	"reflect"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestInTreeVolumesAreTheirDrivers(t *testing.T) {
	labelled := map[string]string{corev1.LabelTopologyZone: "r-a"}
	for name, c := range map[string]struct {
		volume corev1.PersistentVolume
		want   volume
	}{
		"EBS with zones in its labels": {corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: labelled}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://r-a/vol-1"}}}},
			volume{attachment: attachment{driver: "ebs.csi.aws.com", handle: "vol-1"}, affinity: terms(in("topology.ebs.csi.aws.com/zone", "r-a"))}},
		"EBS with zones in its affinity": {corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: labelled}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: inZone(corev1.LabelFailureDomainBetaZone, "r-b"),
			PersistentVolumeSource: corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}}},
			volume{attachment: attachment{driver: "ebs.csi.aws.com", handle: "vol-1"}, affinity: terms(in("topology.ebs.csi.aws.com/zone", "r-b"))}},
		"GCE in one zone": {corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: labelled}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}}}},
			volume{attachment: attachment{driver: "pd.csi.storage.gke.io", handle: "projects/UNSPECIFIED/zones/r-a/disks/d"}, affinity: terms(in("topology.gke.io/zone", "r-a"))}},
		"Cinder": {corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "c"}}}},
			volume{attachment: attachment{driver: "cinder.csi.openstack.org", handle: "c"}}},
		"Azure": {corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: labelled}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DataDiskURI: "u"}}}},
			volume{attachment: attachment{driver: "disk.csi.azure.com", handle: "u"}}},
		"local": {corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: inZone("host", "n"), PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{}}}},
			volume{affinity: terms(in("host", "n"))}},
	} {
		before := c.volume.DeepCopy()
		got := newVolume(&c.volume)
		if got.driver != c.want.driver || got.handle != c.want.handle || !reflect.DeepEqual(got.affinity, c.want.affinity) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
		if !reflect.DeepEqual(before, &c.volume) {
			t.Errorf("%s: the object was changed", name)
		}
	}
}

func in(key string, values ...string) cluster.Requirement {
	return cluster.Requirement{Key: key, Operator: "In", Values: values}
}

func terms(rs ...cluster.Requirement) []cluster.NodeTerm {
	return []cluster.NodeTerm{{Labels: rs}}
}

func inZone(key string, zones ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: "In", Values: zones}}}}}}
}
