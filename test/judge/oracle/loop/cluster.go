package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
)

// snapshot is the cluster as the agent sees it.
func (l *loop) snapshot(ctx context.Context) (cluster.Snapshot, error) {
	var objects store.Objects
	core, storage := l.client.CoreV1(), l.client.StorageV1()
	nodes, err := core.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	pods, err := core.Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	namespaces, err := core.Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	claims, err := core.PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	volumes, err := core.PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	classes, err := storage.StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	csi, err := storage.CSINodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	attached, err := storage.VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	objects.Nodes, objects.Pods, objects.Namespaces = refs(nodes.Items), refs(pods.Items), refs(namespaces.Items)
	objects.Claims, objects.Volumes, objects.StorageClasses = refs(claims.Items), refs(volumes.Items), refs(classes.Items)
	objects.CSINodes, objects.Attachments = refs(csi.Items), refs(attached.Items)
	s := store.FromObjects(objects)
	s.Now = time.Now()
	s.Groups = slices.Clone(l.groups)
	for i := range s.Groups {
		s.Groups[i].ReadAt = s.Now
	}
	return s, nil
}

func refs[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// clean removes everything that the mix made and waits for the nodes and pods to go.
func (l *loop) clean(ctx context.Context) {
	now, all := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}
	core, storage := l.client.CoreV1(), l.client.StorageV1()
	_ = core.Pods(l.ns).DeleteCollection(ctx, now, all)
	_ = core.PersistentVolumeClaims(l.ns).DeleteCollection(ctx, now, all)
	_ = core.PersistentVolumes().DeleteCollection(ctx, now, all)
	_ = core.Nodes().DeleteCollection(ctx, now, all)
	_ = storage.CSINodes().DeleteCollection(ctx, now, all)
	_ = storage.StorageClasses().DeleteCollection(ctx, now, all)
	_ = storage.VolumeAttachments().DeleteCollection(ctx, now, all)
	_ = core.Namespaces().Delete(ctx, l.ns, now)
	_ = until(ctx, 20*time.Second, func() (bool, error) {
		pods, err := l.pods(ctx)
		nodes, err2 := core.Nodes().List(ctx, all)
		return err == nil && err2 == nil && len(pods)+len(nodes.Items) == 0, nil
	})
}

// errLate says that a condition did not come in its time.
var errLate = errors.New("not in time")

// until polls a condition.
func until(ctx context.Context, patience time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ctx.Err() != nil && (err != nil || !ok) {
			return errLate
		}
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return errLate
		case <-tick.C:
		}
	}
}

// provision does what a storage driver's provisioner does: for a claim that
// kube-scheduler has chosen a node for it makes a volume in that node's zone.
func (l *loop) provision(ctx context.Context) error {
	claims, err := l.client.CoreV1().PersistentVolumeClaims(l.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		chosen := c.Annotations["volume.kubernetes.io/selected-node"]
		if chosen == "" || c.Spec.VolumeName != "" {
			continue
		}
		n, err := l.client.CoreV1().Nodes().Get(ctx, chosen, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = l.client.CoreV1().PersistentVolumes().Create(ctx, volume(c, n), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func volume(c *corev1.PersistentVolumeClaim, n *corev1.Node) *corev1.PersistentVolume {
	name := "pv-" + c.Namespace + "-" + c.Name
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provider}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: *c.Spec.StorageClassName, AccessModes: c.Spec.AccessModes, Capacity: c.Spec.Resources.Requests,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: provider, VolumeHandle: name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{n.Labels[zoneKey]}}}}}}},
		},
	}
}
