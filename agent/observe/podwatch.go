package observe

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// podWatch keeps the pods of the store current. An informer would hold every pod a second
// time as a corev1.Pod, which was nine tenths of the agent's memory: podWatch is the store
// of a Reflector instead, and keeps no pod itself. The Reflector calls it from one goroutine.
type podWatch struct {
	reflector *cache.Reflector
	store     *store.Store
	wake      func(store.Urgency)
	failed    func(error)
	synced    atomic.Bool
	relist    func() // ends the watch that runs
	listed    time.Time
}

func newPodWatch(pods cache.ListerWatcher, s *store.Store, wake func(store.Urgency), failed func(error)) *podWatch {
	w := &podWatch{store: s, wake: wake, failed: failed}
	w.reflector = cache.NewReflectorWithOptions(pods, &corev1.Pod{}, w, cache.ReflectorOptions{Name: "pods"})
	return w
}

// livePods lists and watches the pods that have not ended; the server filters them.
func livePods(client *kube.Client) cache.ListerWatcher {
	const live = "status.phase!=Succeeded,status.phase!=Failed"

	return kube.StreamedListWatch(client, client.CoreV1().Pods(metav1.NamespaceAll), convert.DecodePod, func(o *metav1.ListOptions) { o.FieldSelector = live })
}

// relistAfter is the least time between two lists for the sake of pods for which the store had no room.
const relistAfter = time.Minute

// calmAfter is how long a watch must have lasted for the pauses to start anew.
const calmAfter = 2 * time.Minute

// run lists and watches until ctx ends, with the pauses of client-go's informers.
func (w *podWatch) run(ctx context.Context) {
	pauses := func() wait.Backoff {
		return wait.Backoff{Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 38, Factor: 2, Jitter: 1}
	}
	pause := pauses()
	for ctx.Err() == nil {
		began := time.Now()
		if err := w.listAndWatch(ctx); err != nil {
			w.failed(err)
		}
		if time.Since(began) > calmAfter {
			pause = pauses()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause.Step()):
		}
	}
}

// listAndWatch lists and watches until the watch ends, or until the store has room for pods that it holds
// without their constraints: these come with the next list.
func (w *podWatch) listAndWatch(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w.relist = stop
	w.listed = time.Now()
	if err := w.reflector.ListAndWatchWithContext(ctx); ctx.Err() == nil {
		return err
	}
	return nil // it was stopped
}

// tell wakes the rounds for a change of the store.
func (w *podWatch) tell(u store.Urgency) {
	w.wake(u)
	if w.relist != nil && time.Since(w.listed) > relistAfter && w.store.TakeRoomAgain() {
		w.relist()
	}
}

// hasSynced reports that the first list is in the store.
func (w *podWatch) hasSynced() bool { return w.synced.Load() }

// Transformer implements cache.TransformingStore: the Reflector holds a list that is
// streamed as rows, until the list is complete.
func (w *podWatch) Transformer() cache.TransformFunc {
	reader := w.store.PodReader() // lives as long as the list
	return func(obj any) (any, error) {
		p, ok := obj.(*corev1.Pod)
		if !ok {
			return obj, nil
		}
		return reader.Read(stripped(p)), nil
	}
}

// stripped drops what no decision reads, as from every object that an informer holds.
func stripped(p *corev1.Pod) *corev1.Pod {
	_, _ = convert.Strip(p) // it changes p in place and fails for no Pod
	return p
}

// Add implements cache.ReflectorStore.
func (w *podWatch) Add(obj any) error { return w.Update(obj) }

// Update implements cache.ReflectorStore.
func (w *podWatch) Update(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("the API server sent a %T in place of a Pod", obj)
	}
	w.tell(w.store.PutPod(stripped(p)))
	return nil
}

// Delete implements cache.ReflectorStore.
func (w *podWatch) Delete(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("the API server sent a %T in place of a Pod", obj)
	}
	w.tell(w.store.DeletePod(cluster.PodKey(p.Namespace+"/"+p.Name), cluster.NodeName(p.Spec.NodeName)))
	return nil
}

// Replace implements cache.ReflectorStore. The list is one of rows if it was streamed, and
// of Pods if the server does not stream.
func (w *podWatch) Replace(list []any, _ string) error {
	reader := w.store.PodReader()
	rows := make([]*store.PodRow, 0, len(list))
	for _, obj := range list {
		switch p := obj.(type) {
		case *store.PodRow:
			rows = append(rows, p)
		case *corev1.Pod:
			rows = append(rows, reader.Read(stripped(p)))
		default:
			return fmt.Errorf("the API server listed a %T in place of a Pod", obj)
		}
	}
	w.wake(w.store.ReplacePods(rows))
	w.synced.Store(true)
	return nil
}

// Resync implements cache.ReflectorStore: there is nothing to tell again.
func (w *podWatch) Resync() error { return nil }
