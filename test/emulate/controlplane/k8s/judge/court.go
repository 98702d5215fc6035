package judge

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// court is kube-scheduler's framework with the default profile. It is built as
// k8s.io/kubernetes/pkg/scheduler.New builds it, but its informers are never started:
// their stores are filled by hand, world by world.
type court struct {
	framework framework.Framework
	informers informers.SharedInformerFactory
	snapshot  *swapped
	nominated nominations
	filters   []string
	index     map[string]uint8
	words     map[string]uint32
	fresh     []string
	told      bool
	claims    watch
	classes   watch
}

// watch stands in for the informer of a kind where the plugin listens to its events: the assume cache of ResourceClaims, and that of the extended
// resources that DeviceClasses back.
type watch struct {
	handlers []cache.ResourceEventHandler
	known    []any
}

// AddEventHandler takes a listener; nothing waits for a registration.
func (w *watch) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	w.handlers = append(w.handlers, handler)
	return nil, nil
}

// replace tells the listeners that the objects of one world went and that those of another came.
func (w *watch) replace(objects []any) {
	for _, h := range w.handlers {
		for _, c := range w.known {
			h.OnDelete(c)
		}
		for _, o := range objects {
			h.OnAdd(o, false)
		}
	}
	w.known = objects
}

// swapped is the shared lister that every plugin holds; the snapshot below changes
// with the world.
type swapped struct{ fwk.SharedLister }

// nominations are the pods that wait for room that preemption made, by node. The
// scheduler's own nominator asks its queue; here the world says it.
type nominations map[string][]fwk.PodInfo

func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo { return n[node] }

func (nominations) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (nominations) DeleteNominatedPodIfExists(*corev1.Pod)                        {}
func (nominations) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo)      {}

func newCourt(ctx context.Context) (*court, error) {
	metrics.Register()
	klog.SetLogger(klog.Logger{})
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"}) // never dialled
	if err != nil {
		return nil, err
	}
	var versioned configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var cfg schedulerapi.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &cfg, nil); err != nil {
		return nil, fmt.Errorf("default the profile: %w", err)
	}
	c := &court{
		informers: informers.NewSharedInformerFactory(client, 0),
		snapshot:  &swapped{internalcache.NewEmptySnapshot()},
		nominated: nominations{},
		index:     map[string]uint8{},
		words:     map[string]uint32{},
	}
	options := []frameworkruntime.Option{
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(c.informers),
		frameworkruntime.WithSnapshotSharedLister(c.snapshot),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithPodNominator(c.nominated),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(c.informers.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithPodGroupManager(internalcache.New(ctx, nil, utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload))),
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.DynamicResourceAllocation) {
		slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: c.informers.Resource().V1().ResourceSlices()})
		if err != nil {
			return nil, fmt.Errorf("start the tracker of resource slices: %w", err)
		}
		manager := dynamicresources.NewDRAManager(ctx, assumecache.NewAssumeCache(klog.FromContext(ctx), &c.claims, "ResourceClaim", "", nil), slices, c.informers)
		options = append(options, frameworkruntime.WithSharedDRAManager(manager))
		if resolver, ok := manager.DeviceClassResolver().(cache.ResourceEventHandler); ok {
			c.classes.handlers = append(c.classes.handlers, resolver)
		}
	}
	profile := cfg.Profiles[0]
	c.framework, err = frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), &profile, options...)
	if err != nil {
		return nil, fmt.Errorf("build the framework: %w", err)
	}
	for _, p := range c.framework.ListPlugins().Filter.Enabled {
		c.filters = append(c.filters, p.Name)
		c.index[p.Name] = uint8(len(c.filters))
	}
	return c, nil
}

type object[T any] interface {
	*T
	runtime.Object
	Unmarshal([]byte) error
}

func decode[T any, P object[T]](in [][]byte) ([]P, []any, error) {
	out, anys := make([]P, len(in)), make([]any, len(in))
	for i, b := range in {
		o := P(new(T))
		if err := o.Unmarshal(b); err != nil {
			return nil, nil, fmt.Errorf("decode %T %d: %w", o, i, err)
		}
		out[i], anys[i] = o, o
	}
	return out, anys, nil
}

// stage puts a world where the plugins look for it.
func (c *court) stage(w *World) (waiting, nominated []*corev1.Pod, err error) {
	nodes, nodeObjects, err := decode[corev1.Node](w.Nodes)
	if err != nil {
		return nil, nil, err
	}
	pods, podObjects, err := decode[corev1.Pod](w.Pods)
	if err != nil {
		return nil, nil, err
	}
	if waiting, _, err = decode[corev1.Pod](w.Waiting); err != nil {
		return nil, nil, err
	}
	if nominated, _, err = decode[corev1.Pod](w.Nominated); err != nil {
		return nil, nil, err
	}
	core, storage := c.informers.Core().V1(), c.informers.Storage().V1()
	fill := func(i cache.SharedIndexInformer, objects []any, failed error) {
		if err == nil && failed == nil {
			failed = i.GetIndexer().Replace(objects, "")
		}
		if err == nil {
			err = failed
		}
	}
	fill(core.Nodes().Informer(), nodeObjects, nil)
	fill(core.Pods().Informer(), podObjects, nil)
	_, objects, failed := decode[corev1.Namespace](w.Namespaces)
	fill(core.Namespaces().Informer(), objects, failed)
	_, objects, failed = decode[corev1.PersistentVolumeClaim](w.Claims)
	fill(core.PersistentVolumeClaims().Informer(), objects, failed)
	_, objects, failed = decode[corev1.PersistentVolume](w.Volumes)
	fill(core.PersistentVolumes().Informer(), objects, failed)
	_, objects, failed = decode[storagev1.StorageClass](w.Classes)
	fill(storage.StorageClasses().Informer(), objects, failed)
	_, objects, failed = decode[storagev1.CSINode](w.CSINodes)
	fill(storage.CSINodes().Informer(), objects, failed)
	_, objects, failed = decode[storagev1.CSIDriver](w.Drivers)
	fill(storage.CSIDrivers().Informer(), objects, failed)
	_, objects, failed = decode[storagev1.VolumeAttachment](w.Attachments)
	fill(storage.VolumeAttachments().Informer(), objects, failed)
	_, objects, failed = decode[storagev1.CSIStorageCapacity](w.Capacity)
	fill(storage.CSIStorageCapacities().Informer(), objects, failed)
	_, objects, failed = decode[appsv1.ReplicaSet](w.ReplicaSets)
	fill(c.informers.Apps().V1().ReplicaSets().Informer(), objects, failed)
	_, objects, failed = decode[resourcev1.DeviceClass](w.DeviceClasses)
	fill(c.informers.Resource().V1().DeviceClasses().Informer(), objects, failed)
	c.classes.replace(objects)
	_, objects, failed = decode[resourcev1.ResourceSlice](w.DeviceSlices)
	fill(c.informers.Resource().V1().ResourceSlices().Informer(), objects, failed)
	if _, objects, failed = decode[resourcev1.ResourceClaim](w.DeviceClaims); failed != nil && err == nil {
		err = failed
	}
	c.claims.replace(objects)
	c.snapshot.SharedLister = internalcache.NewSnapshot(pods, nodes)
	return waiting, nominated, err
}

// judge answers one world.
func (c *court) judge(ctx context.Context, w *World) *Verdicts {
	c.fresh = nil
	v := &Verdicts{}
	if !c.told {
		v.Filters, c.told = c.filters, true
	}
	waiting, nominated, err := c.stage(w)
	if err != nil {
		v.Error = err.Error()
		return v
	}
	clear(c.nominated)
	for _, p := range nominated {
		info, err := framework.NewPodInfo(p)
		if err != nil {
			v.Error = err.Error()
			return v
		}
		c.nominated[p.Status.NominatedNodeName] = append(c.nominated[p.Status.NominatedNodeName], info)
	}
	nodes, _ := c.snapshot.NodeInfos().List()
	byName := map[string]fwk.NodeInfo{}
	for _, n := range nodes {
		byName[n.Node().Name] = n
	}
	if w.Bind {
		v.Bindings, err = c.bind(ctx, w, waiting, byName)
		if err != nil {
			v.Error = err.Error()
		}
		return v
	}
	for _, p := range waiting {
		c.judgePod(ctx, p, w, byName, v)
	}
	v.Words = c.fresh
	return v
}

func (c *court) judgePod(ctx context.Context, p *corev1.Pod, w *World, nodes map[string]fwk.NodeInfo, v *Verdicts) {
	state := framework.NewCycleState()
	result, status, _ := c.framework.RunPreFilterPlugins(ctx, state, p)
	var skipped uint64
	for name := range state.GetSkipFilterPlugins() {
		skipped |= 1 << c.index[name]
	}
	v.Skipped = append(v.Skipped, skipped)
	// The informer's list keeps no order; the caller's order of nodes is the order of
	// the cells.
	names := c.order(w)
	for _, name := range names {
		switch {
		case !status.IsSuccess():
			v.Cells = append(v.Cells, Cell{Filter: c.filter(status.Plugin()), Early: true, Reason: c.word(status)})
		case !result.AllNodes() && !result.NodeNames.Has(name):
			v.Cells = append(v.Cells, Cell{Filter: c.filter("NodeAffinity"), Early: true, Reason: c.say("not among the nodes that PreFilter left")})
		default:
			got := c.framework.RunFilterPluginsWithNominatedPods(ctx, state, p, nodes[name])
			if got.IsSuccess() {
				v.Cells = append(v.Cells, Cell{})
				continue
			}
			v.Cells = append(v.Cells, Cell{Filter: c.filter(got.Plugin()), Reason: c.word(got)})
		}
	}
}

func (c *court) order(w *World) []string {
	var names []string
	for _, b := range w.Nodes {
		var n corev1.Node
		if n.Unmarshal(b) == nil {
			names = append(names, n.Name)
		}
	}
	return names
}

func (c *court) filter(name string) uint8 {
	if i, ok := c.index[name]; ok {
		return i
	}
	return 255
}

func (c *court) word(s *fwk.Status) uint32 {
	if s.Code() == fwk.Error {
		return c.say("error: " + s.Message())
	}
	return c.say(strings.Join(s.Reasons(), "; "))
}

// say numbers a reason; names are left out, so that reasons can be counted.
func (c *court) say(reason string) uint32 {
	if at := strings.Index(reason, "PVC "); at >= 0 && strings.HasSuffix(reason, "(pod is not owner)") {
		reason = reason[:at] + "PVC was not created for pod (pod is not owner)"
	}
	parts := strings.Split(reason, `"`)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "..."
	}
	reason = strings.Join(parts, `"`)
	n, ok := c.words[reason]
	if !ok {
		n = uint32(len(c.words))
		c.words[reason] = n
		c.fresh = append(c.fresh, reason)
	}
	return n
}
