package observe

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
)

func podOn(name, node, uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: uid}, Spec: corev1.PodSpec{NodeName: node}}
}

// end is the bookmark that ends a streamed list.
func end(version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
}

// server answers the watches one after another, and lists where streams are refused.
type server struct {
	watches chan *apiwatch.FakeWatcher
	lists   []corev1.PodList
	streams bool
}

func (s *server) List(metav1.ListOptions) (runtime.Object, error) {
	if len(s.lists) == 0 {
		return nil, errors.New("no list is left")
	}
	list := s.lists[0]
	s.lists = s.lists[1:]
	return &list, nil
}

func (s *server) Watch(o metav1.ListOptions) (apiwatch.Interface, error) {
	if o.SendInitialEvents != nil && !s.streams {
		return nil, errors.New("sendInitialEvents is forbidden")
	}
	return <-s.watches, nil
}

// IsWatchListSemanticsUnSupported lets the Reflector stream.
func (s *server) IsWatchListSemanticsUnSupported() bool { return false }

var _ cache.ListerWatcher = (*server)(nil)

// contents says which pod of which UID is where.
func contents(s *store.Store) map[string]string {
	snapshot, _, _ := s.Snapshot(-1)
	out := map[string]string{}
	for _, p := range snapshot.Pods {
		out[string(p.Key)] = fmt.Sprint(p.Node, " ", p.UID)
	}
	return out
}

// TestPodWatch plays a list, events, the loss of the watch, and a list on which pods are
// gone, moved and new without an event; once streamed and once from a server that only lists.
func TestPodWatch(t *testing.T) {
	first := []*corev1.Pod{podOn("stays", "a", "1"), podOn("goes", "a", "2"), podOn("moves", "a", "3"), podOn("unbound", "", "4")}
	second := []*corev1.Pod{podOn("stays", "a", "1"), podOn("moves", "b", "13"), podOn("unbound", "b", "4"), podOn("new", "", "14")}
	list := func(version string, pods []*corev1.Pod) corev1.PodList {
		out := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
		for _, p := range pods {
			out.Items = append(out.Items, *p.DeepCopy())
		}
		return out
	}
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams=%v", streams), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{streams: streams, watches: make(chan *apiwatch.FakeWatcher), lists: []corev1.PodList{list("10", first), list("20", second)}}
				rows := store.New(nil)
				var woken, failures int
				w := newPodWatch(s, rows, func(u store.Urgency) {
					if u != store.Never {
						woken++
					}
				}, func(error) { failures++ })
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); w.run(ctx) }()
				open := func(version string, pods []*corev1.Pod) *apiwatch.FakeWatcher {
					watch := apiwatch.NewFake()
					s.watches <- watch
					if streams {
						for _, p := range pods {
							watch.Add(p.DeepCopy())
						}
						if version == "10" {
							synctest.Wait()
							if w.hasSynced() || woken > 0 {
								t.Error("half a list is in the store")
							}
						}
						watch.Action(apiwatch.Bookmark, end(version))
					}
					synctest.Wait()
					return watch
				}
				check := func(when string, want map[string]string) {
					t.Helper()
					if got := contents(rows); !w.hasSynced() || woken == 0 || !reflect.DeepEqual(got, want) {
						t.Errorf("%s: synced %v, woken %d times, %v, want %v", when, w.hasSynced(), woken, got, want)
					}
					woken = 0
				}
				watch := open("10", first)
				check("after the list", map[string]string{"ns/stays": "a 1", "ns/goes": "a 2", "ns/moves": "a 3", "ns/unbound": " 4"})
				watch.Add(podOn("late", "", "11"))
				watch.Modify(podOn("late", "a", "11"))
				watch.Delete(podOn("goes", "a", "2"))
				synctest.Wait()
				check("after events", map[string]string{"ns/stays": "a 1", "ns/late": "a 11", "ns/moves": "a 3", "ns/unbound": " 4"})
				watch.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}) // ends ListAndWatch
				open("20", second)
				check("after the second list", map[string]string{"ns/stays": "a 1", "ns/moves": "b 13", "ns/unbound": "b 4", "ns/new": " 14"})
				if failures != 0 || w.reflector.LastSyncResourceVersion() != "20" {
					t.Errorf("%d failures, at resource version %s", failures, w.reflector.LastSyncResourceVersion())
				}
				stop()
				<-done
			})
		})
	}
}

// TestPodWatchTellsFailures: each failure of the list is told, and none makes the watch count
// as synced.
func TestPodWatchTellsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error)
		w := newPodWatch(&server{}, store.New(nil), func(store.Urgency) {}, func(err error) { failed <- err })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }()
		for range 3 {
			if err := <-failed; err == nil || w.hasSynced() {
				t.Errorf("told %v, synced %v", err, w.hasSynced())
			}
		}
		stop()
		<-done
	})
}

// TestPodWatchListsAgain: when there is room for the constraints of pods that were taken up without them,
// they come with another list, and not before a minute has passed.
func TestPodWatchListsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 800 // of 8 KB each: there is room for some 520 of one namespace
		s := &server{streams: true, watches: make(chan *apiwatch.FakeWatcher)}
		rows := store.New(nil)
		w := newPodWatch(s, rows, func(store.Urgency) {}, func(err error) { t.Error(err) })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }()
		pod := func(i int) *corev1.Pod {
			p := podOn(fmt.Sprintf("p-%d", i), "", fmt.Sprint(100+i))
			p.Labels = map[string]string{"x": fmt.Sprintf("%08000d", i)}
			return p
		}
		open := func(version string, from int) *apiwatch.FakeWatcher {
			watch := apiwatch.NewFake()
			s.watches <- watch
			for i := from; i < pods; i++ {
				watch.Add(pod(i))
			}
			watch.Action(apiwatch.Bookmark, end(version))
			synctest.Wait()
			return watch
		}
		held := func() (n int) {
			snapshot, _, _ := rows.Snapshot(-1)
			for i := range snapshot.Pods {
				if snapshot.Classes[snapshot.Pods[i].Class].TooLarge {
					n++
				}
			}
			return n
		}
		watch := open("1000", 0)
		if n := held(); n < pods-530 || n > pods-500 {
			t.Errorf("%d pods are held", n)
		}
		for i := range 500 {
			watch.Delete(pod(i))
		}
		synctest.Wait()
		if watch.IsStopped() {
			t.Error("the pods are listed again within a minute")
		}
		time.Sleep(relistAfter + time.Second)
		watch.Delete(pod(500))
		open("2000", 501)
		if n := held(); n != 0 || !watch.IsStopped() {
			t.Errorf("%d pods are held after the second list", n)
		}
		stop()
		<-done
	})
}
