package kube

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// streamer is a Kind whose lists can be read while they arrive: resource, and no fake.
type streamer interface {
	Stream(ctx context.Context, o metav1.ListOptions) (io.ReadCloser, error)
}

// StreamedListWatch is ListWatch for a kind with very many objects. Where the Reflector asks for
// a list as watch events, the list is read as one compressed answer, its objects are decoded side
// by side while they arrive, and each becomes an event: a few of them are in memory at once.
// The server's own watch events of a list took it half as much time again, since each is sent
// for itself, and uncompressed (docs/performance.md).
//
// A list must end within the server's --request-timeout, which a watch need not. Where one has
// broken off, the server is asked for watch events from then on.
func StreamedListWatch[T decodable, L runtime.Object](client *Client, kind Lister[L], one func() T, tweak func(*metav1.ListOptions)) cache.ListerWatcher {
	from, ok := kind.(streamer)
	if !ok {
		return ListWatch(client, kind, tweak)
	}
	return ListWatch(client, &streamedLister[T, L]{Lister: kind, from: from, one: one}, tweak)
}

// streamedLister answers a watch that asks for the objects that are there with a list and the
// watch from there on.
type streamedLister[T decodable, L runtime.Object] struct {
	Lister[L]
	from   streamer
	one    func() T
	broken atomic.Bool // a list broke off
}

// Watch implements Lister.
func (l *streamedLister[T, L]) Watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	if o.SendInitialEvents == nil || !*o.SendInitialEvents || l.broken.Load() {
		return l.Lister.Watch(ctx, o)
	}
	o.SendInitialEvents, o.ResourceVersionMatch = nil, ""
	list := metav1.ListOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, ResourceVersion: o.ResourceVersion}
	if o.ResourceVersion != "" {
		list.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	ctx, stop := context.WithCancel(ctx)
	body, err := l.from.Stream(ctx, list)
	if err != nil {
		stop()
		return nil, err
	}
	w := &listedWatch{events: make(chan apiwatch.Event), stop: stop}
	go func() {
		defer close(w.events)
		defer stop()
		if err := l.run(ctx, body, o, w); err != nil && ctx.Err() == nil {
			w.send(ctx, apiwatch.Event{Type: apiwatch.Error, Object: statusOf(err)})
		}
	}()
	return w, nil
}

// run sends the objects of a list, the bookmark that ends them, and the events from there on.
func (l *streamedLister[T, L]) run(ctx context.Context, body io.ReadCloser, o metav1.ListOptions, w *listedWatch) error {
	version, err := readList(ctx, body, func(raw []byte) error {
		obj := l.one()
		if err := obj.Unmarshal(raw); err != nil {
			return err
		}
		w.send(ctx, apiwatch.Event{Type: apiwatch.Added, Object: obj})
		return nil
	})
	_ = body.Close()
	if err != nil {
		l.broken.Store(ctx.Err() == nil) // a watch that was stopped is no list that broke off
		return err
	}
	end := l.one()
	end.SetResourceVersion(version)
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	w.send(ctx, apiwatch.Event{Type: apiwatch.Bookmark, Object: end})
	o.ResourceVersion = version
	events, err := l.Lister.Watch(ctx, o)
	if err != nil {
		return err
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if !w.send(ctx, e) {
			return nil
		}
	}
	return nil
}

// statusOf is an error as a watch tells it. An error that is no answer of the server asks the Reflector
// to watch again: after another error it lists by itself, and decodes the whole list at once.
func statusOf(err error) runtime.Object {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		answer = apierrors.NewTooManyRequests(err.Error(), 1)
	}
	status := answer.Status()
	return &status
}

// listedWatch is a watch that began as a list.
type listedWatch struct {
	events chan apiwatch.Event
	stop   context.CancelFunc
}

// Stop implements watch.Interface.
func (w *listedWatch) Stop() { w.stop() }

// ResultChan implements watch.Interface.
func (w *listedWatch) ResultChan() <-chan apiwatch.Event { return w.events }

// send hands one event on; false: the watch was stopped.
func (w *listedWatch) send(ctx context.Context, e apiwatch.Event) bool {
	select {
	case w.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}
