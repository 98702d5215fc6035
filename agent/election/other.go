package election

import (
	"context"
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/internal/bounded"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// OtherLease is the Lease of an in-cluster Cluster Autoscaler, in the same
// namespace as ours. While somebody renews it this agent acts on nothing.
const OtherLease = "cluster-autoscaler"

// WatchOther watches the Lease of an in-cluster Cluster Autoscaler. Nothing may act before
// the returned function says that it was looked for: an agent that cannot see the other
// must not act beside it. refused is told when the API server forbids the watch.
func (g *Leadership) WatchOther(ctx context.Context, client *kube.Client, refused func(why string)) (cache.InformerSynced, error) {
	informer := kube.NewInformer(kube.ListWatch(client, client.CoordinationV1().Leases(g.cfg.Namespace), kube.Named(OtherLease)), &coordinationv1.Lease{}, convert.Strip)
	see := func(obj any, first bool) {
		if l, ok := obj.(*coordinationv1.Lease); ok && l.Name == OtherLease {
			g.saw(l, first)
		}
	}
	reg, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { see(obj, true) },
		UpdateFunc: func(old, obj any) {
			// A watch that starts again tells the same Lease again: no sign of life.
			if was, ok := old.(*coordinationv1.Lease); !ok || was.ResourceVersion != resourceVersion(obj) {
				see(obj, false)
			}
		},
		DeleteFunc: func(any) { g.saw(nil, false) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch lease %s: %w", OtherLease, err)
	}
	err = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			refused(err.Error())
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch lease %s: %w", OtherLease, err)
	}
	go informer.RunWithContext(ctx)
	return reg.HasSynced, nil
}

func resourceVersion(obj any) string {
	if l, ok := obj.(*coordinationv1.Lease); ok {
		return l.ResourceVersion
	}
	return ""
}

// saw notes a state of the other autoscaler's Lease. On the first sight its own
// stamp counts, later ones are by this machine's clock.
func (g *Leadership) saw(l *coordinationv1.Lease, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.other, g.otherLasts = "", 20*time.Second
	if l == nil || l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil {
		return
	}
	now := time.Now()
	g.other, g.otherSeen = shown(*l.Spec.HolderIdentity), now
	if first {
		ago, wrong := bounded.In("the age of the renewal of Lease "+OtherLease, now.Sub(l.Spec.RenewTime.Time), -longest, math.MaxInt64, 0)
		g.tell(wrong)
		g.otherSeen = now.Add(-ago)
	}
	if d := l.Spec.LeaseDurationSeconds; d != nil {
		g.otherLasts = g.lasts("Lease "+OtherLease, *d, g.otherLasts) + 5*time.Second
	}
}

// beside says which other autoscaler is at work; empty: none. The caller holds the mutex.
func (g *Leadership) beside() string {
	if g.other == "" || time.Since(g.otherSeen) >= g.otherLasts {
		return ""
	}
	return fmt.Sprintf("another autoscaler is at work: %s holds Lease %s/%s; stop it (kubectl -n %s scale deployment cluster-autoscaler --replicas=0) or stop this agent",
		g.other, g.cfg.Namespace, OtherLease, g.cfg.Namespace)
}

// OtherAtWork says which other autoscaler renews a Lease that was just read, in the words
// of MayAct; empty: none does.
func OtherAtWork(cfg Config, lease *coordinationv1.Lease) string {
	g := New(cfg, Deps{})
	g.saw(lease, true)
	return g.beside()
}
