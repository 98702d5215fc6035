package oracle

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// World is one moment of a cluster in the API's own objects, and the pods that are to
// be judged against every node. The judged pods are not in each other's way: each is
// judged as if it were the only one.
type World struct {
	Nodes      []*corev1.Node                  `json:"nodes,omitempty"`
	Pods       []*corev1.Pod                   `json:"pods,omitempty"`    // bound
	Waiting    []*corev1.Pod                   `json:"waiting,omitempty"` // judged
	Nominated  []*corev1.Pod                   `json:"nominated,omitempty"`
	Namespaces []*corev1.Namespace             `json:"namespaces,omitempty"`
	Claims     []*corev1.PersistentVolumeClaim `json:"claims,omitempty"`
	Volumes    []*corev1.PersistentVolume      `json:"volumes,omitempty"`
	Classes    []*storagev1.StorageClass       `json:"classes,omitempty"`
	CSINodes   []*storagev1.CSINode            `json:"csiNodes,omitempty"`
	Drivers    []*storagev1.CSIDriver          `json:"drivers,omitempty"`
	Attached   []*storagev1.VolumeAttachment   `json:"attached,omitempty"`
	Capacity   []*storagev1.CSIStorageCapacity `json:"capacity,omitempty"`
	// ReplicaSets own some of the pods: kube-scheduler spreads these by its own defaults.
	ReplicaSets []*appsv1.ReplicaSet `json:"replicaSets,omitempty"`

	DeviceClasses []*resourcev1.DeviceClass   `json:"deviceClasses,omitempty"`
	DeviceClaims  []*resourcev1.ResourceClaim `json:"deviceClaims,omitempty"`
	DeviceSlices  []*resourcev1.ResourceSlice `json:"deviceSlices,omitempty"`
}

// wireWorld is a World on its way to the judge (test/emulate/controlplane/k8s/judge): every
// object as its protobuf form.
type wireWorld struct {
	Nodes, Pods, Waiting, Nominated           [][]byte
	Namespaces, Claims, Volumes, Classes      [][]byte
	CSINodes, Drivers, Attachments, Capacity  [][]byte
	ReplicaSets                               [][]byte
	DeviceClasses, DeviceClaims, DeviceSlices [][]byte
	Bind                                      bool
	Seed                                      uint64
}

type marshaler interface{ Marshal() ([]byte, error) }

func encodeAll[T marshaler](to *[][]byte, objects []T, err *error) {
	for _, o := range objects {
		b, failed := o.Marshal()
		if failed != nil && *err == nil {
			*err = fmt.Errorf("encode %T: %w", o, failed)
		}
		*to = append(*to, b)
	}
}

// wire encodes a world. Pods that have ended are left out, because kube-scheduler's
// informer asks the API server to leave them out, and pods of nodes that are gone,
// because its snapshot has none.
func (w *World) wire() (*wireWorld, error) {
	var out wireWorld
	var err error
	nodes := map[string]bool{}
	for _, n := range w.Nodes {
		nodes[n.Name] = true
	}
	var live []*corev1.Pod
	for _, p := range w.Pods {
		if !ended(p) && nodes[p.Spec.NodeName] {
			live = append(live, p)
		}
	}
	encodeAll(&out.Nodes, w.Nodes, &err)
	encodeAll(&out.Pods, live, &err)
	encodeAll(&out.Waiting, w.Waiting, &err)
	encodeAll(&out.Nominated, w.Nominated, &err)
	encodeAll(&out.Namespaces, w.Namespaces, &err)
	encodeAll(&out.Claims, w.Claims, &err)
	encodeAll(&out.Volumes, w.Volumes, &err)
	encodeAll(&out.Classes, w.Classes, &err)
	encodeAll(&out.CSINodes, w.CSINodes, &err)
	encodeAll(&out.Drivers, w.Drivers, &err)
	encodeAll(&out.Attachments, w.Attached, &err)
	encodeAll(&out.Capacity, w.Capacity, &err)
	encodeAll(&out.ReplicaSets, w.ReplicaSets, &err)
	encodeAll(&out.DeviceClasses, w.DeviceClasses, &err)
	encodeAll(&out.DeviceClaims, w.DeviceClaims, &err)
	encodeAll(&out.DeviceSlices, w.DeviceSlices, &err)
	return &out, err
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
