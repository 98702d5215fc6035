// Package volumes computes what the volumes of a pod demand of its node: the node
// affinity and zones of a bound volume, the topologies in which an unbound claim can get
// one, and the CSI driver whose attach limit the volume counts against. It follows
// kube-scheduler's plugins VolumeRestrictions, VolumeBinding, VolumeZone and
// NodeVolumeLimits, in their order and with their messages.
//
// An Index holds the claims, volumes, storage classes and CSI drivers of the cluster, and
// which pods use which claim. A change of any of these objects returns the claims whose
// demand may have changed; Complete then fills in the class of a pod that uses them.
//
// The package refuses to bind a claim, and to guess which of two claims gets a volume
// that could serve both: such a pod is listed in PodClass.NotUnderstood. An Index is not
// safe for concurrent use.
package volumes
