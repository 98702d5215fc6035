package kube

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// ListWatch lists and watches a kind with the options that tweak sets; nil: as they are.
// A server that streams lists is asked to.
func ListWatch[L runtime.Object](client *Client, kind Lister[L], tweak func(*metav1.ListOptions)) cache.ListerWatcher {
	if tweak == nil {
		tweak = func(*metav1.ListOptions) {}
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			tweak(&o)
			return kind.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			tweak(&o)
			return kind.Watch(ctx, o)
		},
	}, client)
}

// Named is the tweak that lists one object.
func Named(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + name }
}

// NewInformer makes an informer of its own for what list lists; transform sees each object
// before it is stored, nil: none.
func NewInformer(list cache.ListerWatcher, example runtime.Object, transform cache.TransformFunc) cache.SharedIndexInformer {
	out := cache.NewSharedIndexInformer(list, example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if transform != nil {
		_ = out.SetTransform(transform) // fails for a started informer only
	}
	return out
}

// Informers are the informers that the services share, one for each kind. An informer is
// made when it is first asked for.
type Informers struct {
	client    *Client
	transform cache.TransformFunc

	mu      sync.Mutex
	made    map[string]cache.SharedIndexInformer
	started map[string]bool
	running sync.WaitGroup
}

// NewInformers makes the Informers; transform sees each object before it is stored, nil: none.
func NewInformers(client *Client, transform cache.TransformFunc) *Informers {
	return &Informers{client: client, transform: transform, made: map[string]cache.SharedIndexInformer{}, started: map[string]bool{}}
}

// Start runs each informer that was asked for and does not run yet, and returns.
func (i *Informers) Start(ctx context.Context) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for resource, informer := range i.made {
		if !i.started[resource] {
			i.started[resource] = true
			i.running.Go(func() { informer.RunWithContext(ctx) })
		}
	}
}

// Wait returns when every informer has ended; the context of Start has ended before.
func (i *Informers) Wait() { i.running.Wait() }

func informer[T, L runtime.Object](i *Informers, resource string, kind Lister[L], example T) cache.SharedIndexInformer {
	i.mu.Lock()
	defer i.mu.Unlock()
	if made := i.made[resource]; made != nil {
		return made
	}
	made := NewInformer(ListWatch(i.client, kind, nil), example, i.transform)
	i.made[resource] = made
	return made
}

// Nodes are the Nodes.
func (i *Informers) Nodes() cache.SharedIndexInformer {
	return informer(i, "nodes", i.client.Core.Nodes(), &corev1.Node{})
}

// NodeLister reads the Nodes that the informer holds.
func (i *Informers) NodeLister() corelisters.NodeLister {
	return corelisters.NewNodeLister(i.Nodes().GetIndexer())
}

// Namespaces are the Namespaces.
func (i *Informers) Namespaces() cache.SharedIndexInformer {
	return informer(i, "namespaces", i.client.Core.Namespaces(), &corev1.Namespace{})
}

// PersistentVolumes are the PersistentVolumes.
func (i *Informers) PersistentVolumes() cache.SharedIndexInformer {
	return informer(i, "persistentvolumes", i.client.Core.PersistentVolumes(), &corev1.PersistentVolume{})
}

// PersistentVolumeClaims are the claims of all namespaces.
func (i *Informers) PersistentVolumeClaims() cache.SharedIndexInformer {
	return informer(i, "persistentvolumeclaims", i.client.Core.PersistentVolumeClaims(metav1.NamespaceAll), &corev1.PersistentVolumeClaim{})
}

// DaemonSets are the DaemonSets of all namespaces.
func (i *Informers) DaemonSets() cache.SharedIndexInformer {
	return informer(i, "daemonsets", i.client.Apps.DaemonSets(metav1.NamespaceAll), &appsv1.DaemonSet{})
}

// LimitRanges are the LimitRanges of all namespaces.
func (i *Informers) LimitRanges() cache.SharedIndexInformer {
	return informer(i, "limitranges", i.client.Core.LimitRanges(metav1.NamespaceAll), &corev1.LimitRange{})
}

// ResourceQuotas are the ResourceQuotas of all namespaces.
func (i *Informers) ResourceQuotas() cache.SharedIndexInformer {
	return informer(i, "resourcequotas", i.client.Core.ResourceQuotas(metav1.NamespaceAll), &corev1.ResourceQuota{})
}

// RuntimeClasses are the RuntimeClasses.
func (i *Informers) RuntimeClasses() cache.SharedIndexInformer {
	return informer(i, "runtimeclasses", i.client.Node.RuntimeClasses(), &nodev1.RuntimeClass{})
}

// ReplicaSets are the ReplicaSets of all namespaces.
func (i *Informers) ReplicaSets() cache.SharedIndexInformer {
	return informer(i, "replicasets", i.client.Apps.ReplicaSets(metav1.NamespaceAll), &appsv1.ReplicaSet{})
}

// StatefulSets are the StatefulSets of all namespaces.
func (i *Informers) StatefulSets() cache.SharedIndexInformer {
	return informer(i, "statefulsets", i.client.Apps.StatefulSets(metav1.NamespaceAll), &appsv1.StatefulSet{})
}

// Jobs are the Jobs of all namespaces.
func (i *Informers) Jobs() cache.SharedIndexInformer {
	return informer(i, "jobs", i.client.Batch.Jobs(metav1.NamespaceAll), &batchv1.Job{})
}

// PodDisruptionBudgets are the budgets of all namespaces.
func (i *Informers) PodDisruptionBudgets() cache.SharedIndexInformer {
	return informer(i, "poddisruptionbudgets", i.client.Policy.PodDisruptionBudgets(metav1.NamespaceAll), &policyv1.PodDisruptionBudget{})
}

// StorageClasses are the StorageClasses.
func (i *Informers) StorageClasses() cache.SharedIndexInformer {
	return informer(i, "storageclasses", i.client.Storage.StorageClasses(), &storagev1.StorageClass{})
}

// CSIDrivers are the CSIDrivers.
func (i *Informers) CSIDrivers() cache.SharedIndexInformer {
	return informer(i, "csidrivers", i.client.Storage.CSIDrivers(), &storagev1.CSIDriver{})
}

// CSINodes are the CSINodes.
func (i *Informers) CSINodes() cache.SharedIndexInformer {
	return informer(i, "csinodes", i.client.Storage.CSINodes(), &storagev1.CSINode{})
}

// VolumeAttachments are the VolumeAttachments.
func (i *Informers) VolumeAttachments() cache.SharedIndexInformer {
	return informer(i, "volumeattachments", i.client.Storage.VolumeAttachments(), &storagev1.VolumeAttachment{})
}

// VolumeAttachmentLister reads the VolumeAttachments that the informer holds.
func (i *Informers) VolumeAttachmentLister() storagelisters.VolumeAttachmentLister {
	return storagelisters.NewVolumeAttachmentLister(i.VolumeAttachments().GetIndexer())
}
