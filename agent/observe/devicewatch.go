package observe

import (
	"context"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/devices"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

const (
	deviceLook = time.Second     // whether a pod has claims is looked up in the store
	classLook  = 5 * time.Minute // whether there are DeviceClasses is asked of the API server
)

// watchDevices watches the kinds of dynamic resource allocation until ctx ends, from when a pod has claims or there are DeviceClasses.
// Before, it asks the API server once in five minutes.
func (o *Observer) watchDevices(ctx context.Context) {
	cache.WaitForCacheSync(ctx.Done(), o.pods.hasSynced)
	unread := store.Changing(o.store, (*devices.Index).SetUnread)
	var next time.Time
	for asked, looked := false, false; ctx.Err() == nil; {
		claims, perhaps := o.store.WantsDevices()
		if now := time.Now(); !now.Before(next) || claims && !asked || perhaps && !looked {
			next, asked, looked = now.Add(classLook), claims, perhaps
			if served, why := o.devicesServed(ctx, claims); served {
				o.Wake(unread(o.followDevices(ctx)))
			} else {
				o.Wake(unread(why))
			}
			o.devicesTried.Store(true)
		}
		select {
		case <-ctx.Done():
		case <-time.After(deviceLook):
		}
	}
}

// devicesServed tells whether the kinds are served, and there or wanted; why not, in words that follow "the objects are".
func (o *Observer) devicesServed(ctx context.Context, wanted bool) (served bool, why string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if !o.serves(ctx, resourcev1.SchemeGroupVersion.String(), "resourceslices") {
		return false, "not read: the API server does not serve them; it is asked again in " + classLook.String()
	}
	if wanted {
		return true, ""
	}
	some, err := o.client.ResourceV1().DeviceClasses().List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil && len(some.Items) > 0, "being read"
}

// serves tells whether the API server serves a kind.
func (o *Observer) serves(ctx context.Context, version, kind string) bool {
	list, err := o.client.Resources(ctx, version)
	return err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind })
}

// followDevices returns when a kind may not be watched, or is not served any more, with why, in words that follow "the objects are".
func (o *Observer) followDevices(ctx context.Context) (why string) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := o.client.ResourceV1()
	claims, templates := r.ResourceClaims(metav1.NamespaceAll), r.ResourceClaimTemplates(metav1.NamespaceAll)
	synced := []cache.InformerSynced{
		follow(ctx, o, stop, kube.ListWatch(o.client, r.DeviceClasses(), nil), (*devices.Index).PutClass, (*devices.Index).DeleteClass),
		follow(ctx, o, stop, kube.ListWatch(o.client, r.ResourceSlices(), nil), (*devices.Index).PutSlice, (*devices.Index).DeleteSlice),
		follow(ctx, o, stop, kube.ListWatch(o.client, claims, nil), (*devices.Index).PutClaim, (*devices.Index).DeleteClaim),
		follow(ctx, o, stop, kube.ListWatch(o.client, templates, nil), (*devices.Index).PutTemplate, (*devices.Index).DeleteTemplate),
	}
	if rules := resourcev1beta2.SchemeGroupVersion.String(); o.serves(ctx, rules, "devicetaintrules") { // kube-scheduler 1.36 follows them with a gate that is off by default, as the API is
		synced = append(synced, follow(ctx, o, stop, kube.ListWatch(o.client, r.DeviceTaintRules(), nil), (*devices.Index).PutRule, (*devices.Index).DeleteRule))
	}
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		o.Wake(store.Changing(o.store, (*devices.Index).SetUnread)(""))
		o.devicesTried.Store(true)
		<-ctx.Done()
	}
	return "not read: they cannot be watched (rights: kubectl apply -f rbac.yaml); tried again in " + classLook.String()
}

// follow runs an informer of one kind. What it held is forgotten when it ends.
func follow[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, o *Observer, stop func(), list cache.ListerWatcher, put func(*devices.Index, *T), remove func(*devices.Index, string)) cache.InformerSynced {
	forget := store.Changing(o.store, func(x *devices.Index, t *T) {
		key, _ := cache.MetaNamespaceKeyFunc(t) // a *T is an object
		remove(x, key)
	})
	informer := kube.NewInformer(list, P(new(T)), convert.Strip)
	reg, _ := informer.AddEventHandler(events(o, store.Changing(o.store, put), forget)) // fails for an informer that has ended only
	_ = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {             // fails for a started informer only
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			o.log.WithField("why", apierror.Text(err)).Warnf("pods with resourceClaims are held: the objects of resource.k8s.io cannot be watched (rights: kubectl apply -f rbac.yaml); tried again in %s", classLook)
			stop()
		}
	})
	go func() {
		informer.RunWithContext(ctx)
		for _, obj := range informer.GetStore().List() {
			if t, ok := obj.(*T); ok {
				forget(t)
			}
		}
	}()
	return reg.HasSynced
}
