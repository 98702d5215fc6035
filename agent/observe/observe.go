package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Config is the part of the configuration with the environment names
// AUTOSCALER_OBSERVE_*.
type Config struct {
	// Fast and Slow are the periods of reading the cloud: while instances come or go,
	// and otherwise.
	Fast time.Duration `default:"2s" range:"100ms..1h" desc:"Time between two reads of the cloud while machines come or go."`
	Slow time.Duration `default:"30s" range:"100ms..24h" desc:"Time between two reads of the cloud otherwise."`
	// Timeout bounds one read of the cloud.
	Timeout time.Duration `default:"25s" range:"1s..10m" desc:"Longest time of one read of the cloud."`
	// StaleAfter is how long the API server may be silent before its facts count as
	// old. The Lease is renewed every 2 s, so silence is noticed.
	StaleAfter time.Duration `split_words:"true" default:"15s" range:"1s..1h" desc:"Silence of the API server after which its facts count as old."`
	// Schedulers are the scheduler names whose Unschedulable verdict is understood.
	Schedulers []string `default:"default-scheduler" form:"word" desc:"Schedulers whose verdict Unschedulable asks for machines, comma-separated."`
}

// The urgencies of a wake-up.
const (
	Later = store.Later
	Soon  = store.Soon
)

// Observer connects the informers to a store and makes Snapshots of the store and the
// inventory.
type Observer struct {
	// ProvisionTime is how long a machine may take to become what its group's machines are, where
	// its group does not say; to be set before Start.
	ProvisionTime time.Duration

	cfg       Config
	log       *logrus.Entry
	inventory *inventory.Inventory
	store     *store.Store
	shared    *kube.Informers
	client    *kube.Client
	pods      *podWatch
	synced    []cache.InformerSynced
	// devicesTried tells that claims of pods are read, or cannot be.
	devicesTried atomic.Bool
	wakes        map[store.Urgency]chan struct{}

	mu            sync.Mutex
	lastAnswer    time.Time
	watchFailures map[string]watchFailure
	without       map[string]bool // dispensable watches that are forbidden
	outcomes      []cluster.Outcome
	corrections   map[string]template.Correction // by Template.Spec
	corrected     corrected
	loggedAdvice  map[cluster.GroupID]string // the advice logged last, by group
	version       string                     // of the API server
}

// New builds the informers. shared are the informers that the other services use too, with
// convert.Strip as their transform; that of DaemonSets counts them as well. Pods have a watch of their own (podWatch).
func New(cfg Config, client *kube.Client, shared *kube.Informers, inv *inventory.Inventory, log *logrus.Entry) (*Observer, error) {
	o := &Observer{
		cfg: cfg, log: log, inventory: inv, store: store.New(cfg.Schedulers), shared: shared, client: client,
		wakes:         map[store.Urgency]chan struct{}{store.Soon: make(chan struct{}, 1), store.Later: make(chan struct{}, 1)},
		watchFailures: map[string]watchFailure{}, without: map[string]bool{},
		corrections: map[string]template.Correction{},
		lastAnswer:  time.Now(),
	}
	s := o.store
	o.pods = newPodWatch(livePods(client), s, o.Wake, func(err error) { o.watchFailed("pods", o.pods.reflector, err) })
	o.synced = append(o.synced, o.pods.hasSynced, func() bool {
		_, perhaps := s.WantsDevices()
		return o.devicesTried.Load() || o.pods.hasSynced() && !perhaps
	})
	return o, errors.Join(
		shared.DaemonSets().SetTransform(s.StripDaemonSet),
		watch(o, "nodes", shared.Nodes(), s.PutNode, func(n *corev1.Node) store.Urgency { return s.DeleteNode(cluster.NodeName(n.Name)) }),
		watch(o, "daemonsets", shared.DaemonSets(), s.PutDaemonSet, func(d *appsv1.DaemonSet) store.Urgency {
			return s.DeleteDaemonSet(cluster.PodKey(d.Namespace + "/" + d.Name))
		}),
		watch(o, "limitranges", shared.LimitRanges(), s.PutLimitRange, func(l *corev1.LimitRange) store.Urgency { return s.DeleteLimitRange(l.Namespace, l.Name) }),
		watch(o, "resourcequotas", shared.ResourceQuotas(), s.PutQuota, func(q *corev1.ResourceQuota) store.Urgency { return s.DeleteQuota(q.Namespace, q.Name) }),
		watch(o, "runtimeclasses", shared.RuntimeClasses(), s.PutRuntimeClass, func(c *nodev1.RuntimeClass) store.Urgency { return s.DeleteRuntimeClass(c.Name) }),
		watch(o, "replicasets", shared.ReplicaSets(), s.PutReplicaSet, func(r *appsv1.ReplicaSet) store.Urgency { return s.DeleteController(cluster.UID(r.UID)) }),
		watch(o, "statefulsets", shared.StatefulSets(), s.PutStatefulSet, func(set *appsv1.StatefulSet) store.Urgency { return s.DeleteController(cluster.UID(set.UID)) }),
		watch(o, "jobs", shared.Jobs(), s.PutJob, func(j *batchv1.Job) store.Urgency { return s.DeleteController(cluster.UID(j.UID)) }),
		watch(o, "poddisruptionbudgets", shared.PodDisruptionBudgets(), s.PutBudget, func(b *policyv1.PodDisruptionBudget) store.Urgency {
			return s.DeleteBudget(b.Namespace + "/" + b.Name)
		}),
		watch(o, "namespaces", shared.Namespaces(), s.PutNamespace, func(n *corev1.Namespace) store.Urgency { return s.DeleteNamespace(n.Name) }),
		watch(o, "persistentvolumeclaims", shared.PersistentVolumeClaims(), s.PutClaim, func(c *corev1.PersistentVolumeClaim) store.Urgency {
			return s.DeleteClaim(c.Namespace + "/" + c.Name)
		}),
		watch(o, "persistentvolumes", shared.PersistentVolumes(), s.PutVolume, func(v *corev1.PersistentVolume) store.Urgency { return s.DeleteVolume(v.Name) }),
		watch(o, "storageclasses", shared.StorageClasses(), s.PutStorageClass, func(c *storagev1.StorageClass) store.Urgency { return s.DeleteStorageClass(c.Name) }),
		watch(o, "csidrivers", shared.CSIDrivers(), s.PutCSIDriver, func(d *storagev1.CSIDriver) store.Urgency { return s.DeleteCSIDriver(d.Name) }),
		watch(o, "volumeattachments", shared.VolumeAttachments(), s.PutAttachment, func(v *storagev1.VolumeAttachment) store.Urgency { return s.DeleteAttachment(v.Name) }),
		watch(o, "csinodes", shared.CSINodes(), s.PutCSINode, func(n *storagev1.CSINode) store.Urgency { return s.DeleteCSINode(cluster.NodeName(n.Name)) }),
	)
}

// watch connects one informer to the store.
func watch[T any](o *Observer, name string, informer cache.SharedIndexInformer, put, remove func(*T) store.Urgency) error {
	reg, err := informer.AddEventHandler(events(o, put, remove))
	if err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	o.synced = append(o.synced, func() bool { return reg.HasSynced() || o.doesWithout(name) })
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { o.watchFailed(name, informer, err) }); err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	return nil
}

// events hands the events of an informer to the store.
func events[T any](o *Observer, put, remove func(*T) store.Urgency) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if t, ok := obj.(*T); ok {
				o.Wake(put(t))
			}
		},
		UpdateFunc: func(_, obj any) {
			if t, ok := obj.(*T); ok {
				o.Wake(put(t))
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if t, ok := obj.(*T); ok {
				o.Wake(remove(t))
			}
		},
	}
}

// Start starts the informers and returns at once.
func (o *Observer) Start(ctx context.Context) {
	o.shared.Start(ctx)
	go o.pods.run(ctx)
	go o.watchDevices(ctx)
}

// WaitForSync returns when every watch has delivered its initial list, or when ctx ends.
func (o *Observer) WaitForSync(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), o.synced...) {
		return fmt.Errorf("wait for caches: %w", context.Cause(ctx))
	}
	return nil
}

// WakeUps returns the channel that receives after a change of the given urgency.
func (o *Observer) WakeUps(u store.Urgency) <-chan struct{} { return o.wakes[u] }

// Wake asks for a round with the given urgency, for a change that no watch of the
// Observer delivers.
func (o *Observer) Wake(u store.Urgency) {
	select {
	case o.wakes[u] <- struct{}{}: // a nil channel (Never) is never ready
	default:
	}
}

// AddOutcomes adds the outcomes of a plan's actions to the next Snapshot.
func (o *Observer) AddOutcomes(outcomes []cluster.Outcome) {
	o.mu.Lock()
	o.outcomes = append(o.outcomes, outcomes...)
	o.mu.Unlock()
}

// TakeUnschedulableSince returns since when, by this machine's clock, a pod that no
// earlier call covered has been seen Unschedulable; zero when none has. It resets the
// mark.
func (o *Observer) TakeUnschedulableSince() time.Time { return o.store.TakeUnschedulableSince() }

// SetControlPlaneVersion notes the version of the API server, as somebody has asked for it.
func (o *Observer) SetControlPlaneVersion(version string) {
	o.mu.Lock()
	o.version = version
	o.mu.Unlock()
}

// Snapshot returns the cluster of this moment and takes the outcomes out of the
// Observer. It never waits for the cloud: each group carries the time of its last read.
func (o *Observer) Snapshot() cluster.Snapshot {
	s := o.ReadOnlySnapshot()
	o.mu.Lock()
	s.Outcomes, o.outcomes = o.outcomes, nil
	o.mu.Unlock()
	return s
}

// CompleteHeadroom is Store.CompleteHeadroom. It asks for a round where the nodes' devices are not known.
func (o *Observer) CompleteHeadroom(list []cluster.Headroom) (out []cluster.Headroom, known bool) {
	if out, known = o.store.CompleteHeadroom(list); !known {
		o.Wake(Soon)
	}
	return out, known
}

// ReadOnlySnapshot is Snapshot without the outcomes: they stay for the scaler.
func (o *Observer) ReadOnlySnapshot() cluster.Snapshot {
	groups, version := o.inventory.Current()
	stale := o.Stale()
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now() // of templates and decision alike: a node is young for both or for neither
	known := o.corrected.nodeVersion
	if o.corrected.inventoryVersion != version || !now.Before(o.corrected.validUntil) {
		known = -1
	}
	s, nodeVersion, evidence := o.store.Snapshot(known)
	s.Now, s.Stale, s.ControlPlaneVersion = now, stale, o.version
	if evidence != nil {
		o.correctGroups(groups, *evidence, s.Now)
		o.corrected.inventoryVersion, o.corrected.nodeVersion = version, nodeVersion
	}
	s.Groups = o.corrected.withReadTimes(groups)
	return s
}
