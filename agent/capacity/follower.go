package capacity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

const (
	group = "autoscaling.x-k8s.io"
	// again is the time between two questions whether the API server serves buffers by now.
	again = 5 * time.Minute
	// most bounds the objects of a kind that are read, and with them the watches of what they name.
	most = 500
	// settle gathers the events of one change.
	settle = 100 * time.Millisecond
	beats  = 20 * time.Second
)

// Deps are what a Watch works with.
type Deps struct {
	Client  *kube.Client
	Dynamic dynamic.Interface
	// Informers has the LimitRanges and RuntimeClasses, which complete the pods of a template.
	Informers  *kube.Informers
	Schedulers []string
	Log        *logrus.Entry
	Wake       func()                // asks for a round
	MayAct     func() (bool, string) // asked before each write
}

// follower follows the objects of one kind of the API group, and the pod templates that these name.
type follower struct {
	Deps
	resource string // "capacitybuffers"
	read     func(ctx context.Context, kind schema.GroupVersionResource, objects []any)
	forget   func() // the kind is not served any more
	changed  chan struct{}
	refs     map[reference]*referred // of Run's goroutine
	named    map[reference]bool      // references that the current read has met
	kinds    map[string]schema.GroupVersionResource
}

func newFollower(d Deps, resource string) follower {
	return follower{Deps: d, resource: resource, changed: make(chan struct{}, 1), refs: map[reference]*referred{}, kinds: map[string]schema.GroupVersionResource{}}
}

// look asks Run to read everything again.
func (w *follower) look() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run follows the objects until ctx ends.
func (w *follower) Run(ctx context.Context, beat func()) error {
	for ctx.Err() == nil {
		if version := w.served(ctx); version != "" {
			w.follow(ctx, schema.GroupVersionResource{Group: group, Version: version, Resource: w.resource}, beat)
		}
		for until := time.Now().Add(again); ctx.Err() == nil && time.Now().Before(until); beat() {
			w.pause(ctx, beats)
		}
	}
	return nil
}

func (w *follower) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// served is the version of the kind that the API server prefers; empty: it serves none, or may not be asked.
func (w *follower) served(ctx context.Context) string {
	for _, version := range w.versions(ctx, group) {
		if list, err := w.Client.Resources(ctx, group+"/"+version); err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == w.resource }) {
			return version
		}
	}
	return ""
}

// versions are those of an API group, the preferred one first.
func (w *follower) versions(ctx context.Context, group string) []string {
	raw, err := w.Client.REST.Get().AbsPath("/apis/"+group).SetHeader("Accept", "application/json").Do(ctx).Raw()
	var g metav1.APIGroup
	if err != nil || json.Unmarshal(raw, &g) != nil {
		return nil
	}
	out := []string{g.PreferredVersion.Version}
	for _, v := range g.Versions {
		if v.Version != out[0] {
			out = append(out, v.Version)
		}
	}
	return out
}

// follow returns when the API server does not serve the kind any more, or refuses it.
func (w *follower) follow(ctx context.Context, kind schema.GroupVersionResource, beat func()) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	informer := w.informer(w.Dynamic.Resource(kind), "")
	_ = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { // fails for a started informer only
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			w.Log.WithField("why", apierror.Text(err)).Warnf("%s are served and cannot be watched (rights: kubectl apply -f rbac-capacity.yaml); tried again in %s", w.resource, again)
			stop()
		}
	})
	go informer.RunWithContext(ctx)
	defer w.drop()
	for ctx.Err() == nil && cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		w.named = map[reference]bool{}
		w.read(ctx, kind, informer.GetStore().List())
		for ref, r := range w.refs {
			if !w.named[ref] {
				r.stop()
				delete(w.refs, ref)
			}
		}
		beat()
		select {
		case <-ctx.Done():
		case <-time.After(beats):
		case <-w.changed:
			w.pause(ctx, settle)
		}
	}
}

// drop forgets the objects and ends the watches of what they named.
func (w *follower) drop() {
	for _, r := range w.refs {
		r.stop()
	}
	clear(w.refs)
	clear(w.kinds)
	w.forget()
}

// informer watches objects of a kind; name: one of them alone.
func (w *follower) informer(kind dynamic.ResourceInterface, name string) cache.SharedIndexInformer {
	tweak := func(o *metav1.ListOptions) {}
	if name != "" {
		tweak = kube.Named(name)
	}
	informer := kube.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			tweak(&o)
			return kind.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			tweak(&o)
			return kind.Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}, convert.Strip)
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails for an informer that has ended only
		AddFunc: func(any) { w.look() }, UpdateFunc: func(any, any) { w.look() }, DeleteFunc: func(any) { w.look() },
	})
	return informer
}

// admission is what the API server completes a pod of the namespace with.
func (w *follower) admission(namespace string, t *corev1.PodTemplateSpec) (a convert.Admission) {
	ranges, _ := w.Informers.LimitRanges().GetIndexer().ByIndex(cache.NamespaceIndex, namespace) // the index exists
	for _, o := range ranges {
		if l, ok := o.(*corev1.LimitRange); ok {
			a.LimitRanges = append(a.LimitRanges, l)
		}
	}
	slices.SortFunc(a.LimitRanges, func(x, y *corev1.LimitRange) int { return cmp.Compare(x.Name, y.Name) })
	if name := t.Spec.RuntimeClassName; name != nil {
		if o, found, _ := w.Informers.RuntimeClasses().GetIndexer().GetByKey(*name); found {
			a.RuntimeClass, _ = o.(*nodev1.RuntimeClass)
		}
	}
	return a
}

// room is headroom of count pods of the template.
func (w *follower) room(name, namespace string, t *corev1.PodTemplateSpec, count int) (cluster.Headroom, error) {
	h := cluster.Headroom{Name: name, Count: count}
	p, err := pod(namespace, t, w.admission(namespace, t))
	if err != nil {
		return h, err
	}
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimTemplateName == nil {
			return h, fmt.Errorf("claim %s of the pod template is of one pod: name a ResourceClaimTemplate", c.Name)
		}
		h.Templates = append(h.Templates, namespace+"/"+*c.ResourceClaimTemplateName)
	}
	p.Spec.ResourceClaims = nil
	if h.Piece = convert.PodClass(p, w.Schedulers); len(h.Piece.NotUnderstood) > 0 {
		err = fmt.Errorf("the pod template asks for what is not understood: %s", strings.Join(h.Piece.NotUnderstood, ", "))
	}
	return h, err
}

// ordered reads the objects that are meant, in the order of their keys.
func ordered[T any](objects []any, key func(*T) (string, bool)) (list []*T) {
	for _, o := range objects {
		one := new(T)
		if u, ok := o.(*unstructured.Unstructured); ok && remarshal(u.Object, one) == nil {
			if _, meant := key(one); meant {
				list = append(list, one)
			}
		}
	}
	slices.SortFunc(list, func(a, b *T) int {
		x, _ := key(a)
		y, _ := key(b)
		return cmp.Compare(x, y)
	})
	return list
}

// patch writes a status onto the version of the object that it is of: another writer's is not overwritten.
func (w *follower) patch(ctx context.Context, kind schema.GroupVersionResource, of *metav1.ObjectMeta, status any) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": of.ResourceVersion}, "status": status})
	if err == nil {
		_, err = w.Dynamic.Resource(kind).Namespace(of.Namespace).Patch(ctx, of.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsConflict(err) { // the newer version is on its way
		w.Log.WithField("why", apierror.Text(err)).Warnf("the status of %s %s/%s is not written", kind.Resource, of.Namespace, of.Name)
	}
}

// remarshal reads an object that a watch has delivered into a type.
func remarshal(from any, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

// pod is a pod of the template as the API server would complete it, without its volumes: no claim exists for it.
func pod(namespace string, t *corev1.PodTemplateSpec, admission convert.Admission) (*corev1.Pod, error) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: t.Labels, Annotations: t.Annotations}, Spec: *t.Spec.DeepCopy()}
	p.Spec.Volumes, p.Spec.NodeName = nil, ""
	convert.Admit(p, admission)
	_, err := convert.Strip(p)
	return p, err
}
