package capacity

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
)

// errNotRead is not told: the answer of the API server is on its way.
var errNotRead = errors.New("the object that the buffer names is not read yet")

// reference is the object that a buffer names.
type reference struct {
	kind            schema.GroupVersionResource
	namespace, name string
}

// referred is the watch of one object.
type referred struct {
	stop     context.CancelFunc
	informer cache.SharedIndexInformer
	refused  atomic.Pointer[string] // why it cannot be watched
}

// template is what a referenced object says.
type template struct {
	template   *corev1.PodTemplateSpec
	generation int64
}

// source is the pod template of what is referred to, and the size of the controller; nil: it is a PodTemplate.
func (w *follower) source(ctx context.Context, namespace string, one *localRef, controller *scalable) (template, *int32, error) {
	kind, name, err := w.kindOf(ctx, one, controller)
	if err != nil {
		return template{}, nil, err
	}
	object, err := w.object(ctx, reference{kind, namespace, name})
	if err != nil {
		return template{}, nil, err
	}
	var o struct {
		Metadata metav1.ObjectMeta
		Template *corev1.PodTemplateSpec // of a PodTemplate
		Spec     struct {
			Template              *corev1.PodTemplateSpec
			Replicas, Parallelism *int32
		}
	}
	if err := remarshal(object.Object, &o); err != nil {
		return template{}, nil, fmt.Errorf("%s %s is not read: %w", kind.Resource, name, err)
	}
	if one != nil {
		o.Spec.Template = o.Template
	}
	if o.Spec.Template == nil {
		return template{}, nil, fmt.Errorf("%s %s has no pod template: refer to a PodTemplate, or to a controller with spec.template", kind.Resource, name)
	}
	if one != nil {
		return template{o.Spec.Template, o.Metadata.Generation}, nil, nil
	}
	size := int32(1) // the API's default of both fields
	for _, n := range []*int32{o.Spec.Replicas, o.Spec.Parallelism} {
		if n != nil {
			size = *n
		}
	}
	return template{o.Spec.Template, o.Metadata.Generation}, &size, nil
}

// kindOf is what is referred to.
func (w *follower) kindOf(ctx context.Context, one *localRef, r *scalable) (schema.GroupVersionResource, string, error) {
	switch {
	case (one == nil) == (r == nil):
		return schema.GroupVersionResource{}, "", errors.New("set one of spec.podTemplateRef and spec.scalableRef")
	case one != nil:
		return corev1.SchemeGroupVersion.WithResource("podtemplates"), one.Name, nil
	}
	key := r.APIGroup + "/" + r.Kind
	if known, ok := w.kinds[key]; ok {
		return known, r.Name, nil
	}
	versions := []string{"v1"}
	if r.APIGroup != "" {
		versions = w.versions(ctx, r.APIGroup)
	}
	for _, v := range versions {
		gv := schema.GroupVersion{Group: r.APIGroup, Version: v}
		list, err := w.Client.Resources(ctx, gv.String())
		if err != nil {
			continue
		}
		for _, k := range list.APIResources {
			if k.Kind == r.Kind && k.Namespaced && k.Group == "" { // the subresources of a kind may have kinds of other groups
				w.kinds[key] = gv.WithResource(k.Name)
				return w.kinds[key], r.Name, nil
			}
		}
	}
	return schema.GroupVersionResource{}, "", fmt.Errorf("the API server serves no kind %q in the group %q: correct spec.scalableRef", r.Kind, r.APIGroup)
}

// object is the referenced object, whose watch begins with the first question.
func (w *follower) object(ctx context.Context, ref reference) (*unstructured.Unstructured, error) {
	w.named[ref] = true
	r := w.refs[ref]
	if r == nil {
		r = &referred{informer: w.informer(w.Dynamic.Resource(ref.kind).Namespace(ref.namespace), ref.name)}
		_ = r.informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { // fails for a started informer only
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				text := apierror.Text(err)
				r.refused.Store(&text)
				w.look()
			}
		})
		own, stop := context.WithCancel(ctx)
		r.stop, w.refs[ref] = stop, r
		go r.informer.RunWithContext(own)
	}
	if found, has, _ := r.informer.GetStore().GetByKey(ref.namespace + "/" + ref.name); has {
		return found.(*unstructured.Unstructured), nil
	}
	switch why := r.refused.Load(); {
	case r.informer.HasSynced():
		return nil, fmt.Errorf("there is no %s %s in the namespace: create it", ref.kind.Resource, ref.name)
	case why != nil:
		return nil, fmt.Errorf("%s %s cannot be watched, grant get, list and watch to the agent: %s", ref.kind.Resource, ref.name, *why)
	}
	return nil, errNotRead
}
