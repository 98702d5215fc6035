package kube

import (
	"context"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// object is what a resource sends and fills.
type object interface {
	runtime.Object
	metav1.Object
}

// resource is a Kind over REST. client-go has the same as package gentype, which links its
// fake clients, server-side apply and OpenAPI: 0.3 MB of package variables.
type resource[T object, L runtime.Object] struct {
	rest            rest.Interface
	name, namespace string
	one             func() T
	list            func() L
}

func (r resource[T, L]) request(verb *rest.Request) *rest.Request {
	return verb.UseProtobufAsDefault().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name)
}

// Get implements Kind.
func (r resource[T, L]) Get(ctx context.Context, name string, o metav1.GetOptions) (T, error) {
	out := r.one()
	return out, r.request(r.rest.Get()).Name(name).VersionedParams(&o, parameters).Do(ctx).Into(out)
}

// List implements Kind.
func (r resource[T, L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	out := r.list()
	return out, r.request(r.rest.Get()).VersionedParams(&o, parameters).Timeout(limitOf(o)).Do(ctx).Into(out)
}

// Stream implements streamer: the answer is protobuf.
func (r resource[T, L]) Stream(ctx context.Context, o metav1.ListOptions) (io.ReadCloser, error) {
	return r.request(r.rest.Get()).VersionedParams(&o, parameters).Stream(ctx)
}

// Watch implements Kind.
func (r resource[T, L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return r.request(r.rest.Get()).VersionedParams(&o, parameters).Timeout(limitOf(o)).Watch(ctx)
}

func limitOf(o metav1.ListOptions) time.Duration {
	if o.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*o.TimeoutSeconds) * time.Second
}

// Create implements Kind.
func (r resource[T, L]) Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error) {
	out := r.one()
	return out, r.request(r.rest.Post()).VersionedParams(&o, parameters).Body(object).Do(ctx).Into(out)
}

// Update implements Kind.
func (r resource[T, L]) Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	return r.put(ctx, object, o)
}

// put replaces an object, or a subresource of it.
func (r resource[T, L]) put(ctx context.Context, object T, o metav1.UpdateOptions, subresource ...string) (T, error) {
	out := r.one()
	return out, r.request(r.rest.Put()).Name(object.GetName()).SubResource(subresource...).VersionedParams(&o, parameters).Body(object).Do(ctx).Into(out)
}

// Patch implements Kind.
func (r resource[T, L]) Patch(ctx context.Context, name string, as types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (T, error) {
	out := r.one()
	return out, r.request(r.rest.Patch(as)).Name(name).SubResource(subresources...).VersionedParams(&o, parameters).Body(patch).Do(ctx).Into(out)
}

// Delete implements Kind.
func (r resource[T, L]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return r.request(r.rest.Delete()).Name(name).Body(&o).Do(ctx).Error()
}
