package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Config is what an operator may set; the environment names are
// AUTOSCALER_OBSERVE_*.
type Config struct {
	// Fast and Slow are the cloud's polling periods: while something comes or goes,
	// and while nothing does.
	Fast time.Duration `default:"2s"`
	Slow time.Duration `default:"30s"`
	// Timeout bounds one read of the cloud.
	Timeout time.Duration `default:"25s"`
	// StaleAfter is how long the API server may be silent before its facts count as
	// old. The Lease is renewed every 2 s, so silence is noticed.
	StaleAfter time.Duration `split_words:"true" default:"15s"`
	// Schedulers are the scheduler names whose Unschedulable verdict is understood.
	Schedulers []string `default:"default-scheduler"`
}

// Observer holds the informers' converted facts and makes Snapshots of them.
type Observer struct {
	cfg       Config
	log       *logrus.Entry
	inventory *Inventory
	store     *Store
	shared    informers.SharedInformerFactory
	pods      informers.SharedInformerFactory
	synced    []cache.InformerSynced
	wakes     map[Urgency]chan struct{}

	mu            sync.Mutex
	lastAnswer    time.Time
	watchFailures map[string]watchFailure
	outcomes      []cluster.Outcome
	corrections   map[string]Correction // by Template.Spec
	corrected     corrected
	loggedAdvice  map[cluster.GroupID]string // of what is learnt, what was logged last
}

type watchFailure struct {
	at              time.Time
	err             error
	resourceVersion string // the informer's resource version when the trouble was seen
	informer        cache.SharedIndexInformer
}

// New builds the informers. shared is the factory that the other services use too
// (built with Strip as its transform); pods have a factory of their own,
// because they are filtered at the server.
func New(cfg Config, client kubernetes.Interface, shared informers.SharedInformerFactory, inv *Inventory, log *logrus.Entry) (*Observer, error) {
	o := &Observer{
		cfg: cfg, log: log, inventory: inv, store: NewStore(cfg.Schedulers), shared: shared,
		pods: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(Strip),
			informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed" })),
		wakes:         map[Urgency]chan struct{}{Soon: make(chan struct{}, 1), Later: make(chan struct{}, 1)},
		watchFailures: map[string]watchFailure{},
		corrections:   map[string]Correction{},
		lastAnswer:    time.Now(),
	}
	w := o.store
	return o, errors.Join(
		watch(o, "nodes", shared.Core().V1().Nodes().Informer(), w.putNode, func(n *corev1.Node) Urgency { return w.dropNode(cluster.NodeName(n.Name)) }),
		watch(o, "pods", o.pods.Core().V1().Pods().Informer(), w.putPod, func(p *corev1.Pod) Urgency {
			return w.dropPod(podKey(p.Namespace, p.Name), cluster.NodeName(p.Spec.NodeName))
		}, ReplacedPod),
		watch(o, "daemonsets", shared.Apps().V1().DaemonSets().Informer(), w.putDaemonSet, func(d *appsv1.DaemonSet) Urgency {
			return w.dropDaemonSet(cluster.PodKey(d.Namespace + "/" + d.Name))
		}),
		watch(o, "replicasets", shared.Apps().V1().ReplicaSets().Informer(), w.putReplicaSet, func(r *appsv1.ReplicaSet) Urgency { return w.DeleteController(cluster.UID(r.UID)) }),
		watch(o, "statefulsets", shared.Apps().V1().StatefulSets().Informer(), w.putStatefulSet, func(s *appsv1.StatefulSet) Urgency { return w.DeleteController(cluster.UID(s.UID)) }),
		watch(o, "jobs", shared.Batch().V1().Jobs().Informer(), w.putJob, func(j *batchv1.Job) Urgency { return w.DeleteController(cluster.UID(j.UID)) }),
		watch(o, "poddisruptionbudgets", shared.Policy().V1().PodDisruptionBudgets().Informer(), w.putBudget, func(b *policyv1.PodDisruptionBudget) Urgency {
			return w.dropBudget(b.Namespace + "/" + b.Name)
		}),
		watch(o, "namespaces", shared.Core().V1().Namespaces().Informer(), w.putNamespace, func(n *corev1.Namespace) Urgency { return w.dropNamespace(n.Name) }),
		watch(o, "persistentvolumeclaims", shared.Core().V1().PersistentVolumeClaims().Informer(), w.putClaim, func(c *corev1.PersistentVolumeClaim) Urgency {
			return w.dropClaim(c.Namespace + "/" + c.Name)
		}),
		watch(o, "persistentvolumes", shared.Core().V1().PersistentVolumes().Informer(), w.putVolume, func(v *corev1.PersistentVolume) Urgency { return w.dropVolume(v.Name) }),
		watch(o, "storageclasses", shared.Storage().V1().StorageClasses().Informer(), w.putStorageClass, func(c *storagev1.StorageClass) Urgency { return w.dropStorageClass(c.Name) }),
		watch(o, "csidrivers", shared.Storage().V1().CSIDrivers().Informer(), w.putDriver, func(d *storagev1.CSIDriver) Urgency { return w.dropDriver(d.Name) }),
		watch(o, "volumeattachments", shared.Storage().V1().VolumeAttachments().Informer(), w.putAttachment, func(v *storagev1.VolumeAttachment) Urgency { return w.dropAttachment(v.Name) }),
		watch(o, "csinodes", shared.Storage().V1().CSINodes().Informer(), w.putCSINode, func(n *storagev1.CSINode) Urgency { return w.dropCSINode(cluster.NodeName(n.Name)) }),
	)
}

// watch connects one informer to the world. An update for which one of others holds
// is another object of the same name: the old one is dropped first.
func watch[T any](o *Observer, name string, informer cache.SharedIndexInformer, put, drop func(*T) Urgency, others ...func(old, now *T) bool) error {
	reg, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if t, ok := obj.(*T); ok {
				o.wake(put(t))
			}
		},
		UpdateFunc: func(before, obj any) {
			t, ok := obj.(*T)
			if !ok {
				return
			}
			if old, ok := before.(*T); ok && slices.ContainsFunc(others, func(is func(old, now *T) bool) bool { return is(old, t) }) {
				o.wake(drop(old))
			}
			o.wake(put(t))
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if t, ok := obj.(*T); ok {
				o.wake(drop(t))
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	o.synced = append(o.synced, reg.HasSynced)
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { o.watchFailed(name, informer, err) }); err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	return nil
}

// Start starts the informers and returns at once.
func (o *Observer) Start(stop <-chan struct{}) {
	o.shared.Start(stop)
	o.pods.Start(stop)
}

// WaitForSync returns when every watch has told its whole list, or with ctx's end.
func (o *Observer) WaitForSync(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), o.synced...) {
		return fmt.Errorf("wait for caches: %w", context.Cause(ctx))
	}
	return nil
}

// Wakes returns the channel that receives after a change of the given urgency.
func (o *Observer) WakeUps(u Urgency) <-chan struct{} { return o.wakes[u] }

// Wake asks for a round with the given urgency, for changes that no watch here tells.
func (o *Observer) Wake(u Urgency) { o.wake(u) }

func (o *Observer) wake(u Urgency) {
	if ch, ok := o.wakes[u]; ok {
		notify(ch)
	}
}

// Heard notes that the API server answered just now (the Lease was read or
// renewed).
func (o *Observer) APIServerAnswered() {
	o.mu.Lock()
	o.lastAnswer = time.Now()
	o.mu.Unlock()
}

func (o *Observer) watchFailed(name string, informer cache.SharedIndexInformer, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watchFailures[name] = watchFailure{at: time.Now(), err: err, resourceVersion: informer.LastSyncResourceVersion(), informer: informer}
}

// Stale says why the Kubernetes facts may be old; empty when they are live. A watch
// that stumbled counts as broken until it has moved on or been quiet for a minute,
// which is longer than the reflector's longest pause between attempts.
func (o *Observer) Stale() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if silent := now.Sub(o.lastAnswer); silent > o.cfg.StaleAfter {
		return fmt.Sprintf("the API server has not answered since %s", o.lastAnswer.UTC().Format(time.RFC3339))
	}
	var texts, remedies []string
	names := map[string][]string{}
	for _, name := range sortedKeys(o.watchFailures) {
		t := o.watchFailures[name]
		if now.Sub(t.at) > time.Minute || t.informer.LastSyncResourceVersion() != t.resourceVersion {
			delete(o.watchFailures, name)
			continue
		}
		if now.Sub(t.at) > o.cfg.StaleAfter || t.resourceVersion == "" {
			text, remedy := ExplainAPIError(t.err)
			if names[text] == nil {
				texts = append(texts, text)
			}
			names[text] = append(names[text], name)
			if remedy != "" && !slices.Contains(remedies, remedy) {
				remedies = append(remedies, remedy)
			}
		}
	}
	for i, text := range texts {
		texts[i] = "watch " + strings.Join(names[text], ", ") + ": " + text
	}
	if len(remedies) > 0 {
		texts = append(texts, "remedy: "+strings.Join(remedies, "; "))
	}
	return strings.Join(texts, "; ")
}

// Report hands over what became of a plan's actions; they appear in the next
// Snapshot.
func (o *Observer) AddOutcomes(outcomes []cluster.Outcome) {
	o.mu.Lock()
	o.outcomes = append(o.outcomes, outcomes...)
	o.mu.Unlock()
}

// Waiting returns since when, by this machine's clock, a pod that no earlier call
// covered has been seen Unschedulable; zero when none has. It resets the mark.
func (o *Observer) TakeUnschedulableSince() time.Time {
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	since := o.store.unschedulableSince
	o.store.unschedulableSince = time.Time{}
	return since
}

// Snapshot returns the world of this moment and takes the reported outcomes along.
// It never waits for the cloud: groups are as last read, stamped with when.
func (o *Observer) Snapshot() cluster.Snapshot {
	s := o.ReadOnlySnapshot()
	o.mu.Lock()
	s.Outcomes, o.outcomes = o.outcomes, nil
	o.mu.Unlock()
	return s
}

// Look is Snapshot for onlookers: it leaves the outcomes for the scaler.
func (o *Observer) ReadOnlySnapshot() cluster.Snapshot {
	groups, facts := o.inventory.Current()
	stale := o.Stale()
	w := o.store
	w.mu.Lock()
	s := w.snapshot()
	looks := w.nodes.version
	var births map[cluster.NodeName]firstSeen
	var undiminished map[cluster.NodeName]map[string]int64
	s.Now, s.Stale = time.Now(), stale
	o.mu.Lock()
	defer o.mu.Unlock()
	standing := o.corrected.inventoryVersion == facts && o.corrected.nodeVersion == looks && s.Now.Before(o.corrected.validUntil)
	if !standing {
		births, undiminished = maps.Clone(w.firstSeen), maps.Clone(w.fullLimits)
	}
	w.mu.Unlock()
	if !standing {
		o.correctGroups(groups, s.Nodes, births, undiminished, s.Now)
		o.corrected.inventoryVersion, o.corrected.nodeVersion = facts, looks
	}
	s.Groups = o.corrected.withReadTimes(groups)
	return s
}

// taught are the groups with their templates corrected by what their nodes show. They
// stand as long as neither the cloud's facts nor the nodes change, and until time itself
// has a say.
type corrected struct {
	inventoryVersion, nodeVersion int
	validUntil                    time.Time
	groups                        []cluster.NodeGroup
}

// teach corrects the groups' templates. Callers hold o.mu.
func (o *Observer) correctGroups(groups []cluster.NodeGroup, nodes []*cluster.Node, births map[cluster.NodeName]firstSeen, undiminished map[cluster.NodeName]map[string]int64, now time.Time) {
	groups, advice := correctTemplates(slices.Clone(groups), nodes, o.inventory.Specs(), births, undiminished, o.corrections, now)
	for g, text := range advice {
		if o.loggedAdvice[g] != text {
			o.log.WithFields(logrus.Fields{"group": string(g), "why": text}).Warn("the group's nodes are not what its template says; pods are judged by the nodes")
		}
	}
	o.loggedAdvice = advice
	o.corrected = corrected{groups: groups, validUntil: now.Truncate(timeStep).Add(timeStep)}
	for _, n := range nodes {
		if due := n.ReadySince.Add(settleTime); due.After(now) && due.Before(o.corrected.validUntil) {
			o.corrected.validUntil = due
		}
	}
}

// asOf returns the groups with the moments of their last reads.
func (t *corrected) withReadTimes(read []cluster.NodeGroup) []cluster.NodeGroup {
	same := func(a, b cluster.NodeGroup) bool { return a.ReadAt.Equal(b.ReadAt) }
	if !slices.EqualFunc(t.groups, read, same) {
		t.groups = WithReadTimes(t.groups, read)
	}
	return t.groups
}

// Lessons returns what nodes taught about their templates, by Template.Spec.
func (o *Observer) Corrections() map[string]Correction {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.corrections)
}

// Remember gives back what Lessons returned before a restart.
func (o *Observer) RestoreCorrections(lessons map[string]Correction) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.corrections, lessons)
	o.corrected = corrected{}
}

func splitKey(key cluster.PodKey) (namespace, name string, ok bool) {
	return strings.Cut(string(key), "/")
}
