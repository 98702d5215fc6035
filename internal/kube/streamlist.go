package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// streamer is a Kind whose answers can be read while they arrive: resource, and no fake.
type streamer interface {
	Stream(ctx context.Context, o metav1.ListOptions) (io.ReadCloser, error)
}

// StreamedListWatch is ListWatch for a kind with very many objects, which decode reads from their
// protobuf form; the bytes are valid until it returns, and of no bytes it makes an empty object.
// Where the Reflector asks for a list as watch events, the list is read as one compressed answer, its
// objects are decoded side by side while they arrive, and each becomes an event: a few of them are in
// memory at once. The server's own watch events of a list took it half as much time again, since
// each is sent for itself, and uncompressed.
//
// A list must end within the server's --request-timeout, which a watch need not. Where a list or an event
// could not be read, client-go's own watch is used from then on.
func StreamedListWatch[T object, L runtime.Object](client *Client, kind Lister[L], decode func(raw []byte) (T, error), tweak func(*metav1.ListOptions)) cache.ListerWatcher {
	from, ok := kind.(streamer)
	if !ok {
		return ListWatch(client, kind, tweak)
	}
	return ListWatch(client, &streamedLister[T, L]{Lister: kind, from: from, decode: decode}, tweak)
}

// streamedLister reads the watches of a Lister by itself. It answers one that asks for the objects
// that are there with a list and the watch from there on.
type streamedLister[T object, L runtime.Object] struct {
	Lister[L]
	from   streamer
	decode func(raw []byte) (T, error)
	broken atomic.Bool // a list or an event could not be read
}

// Watch implements Lister.
func (l *streamedLister[T, L]) Watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	if l.broken.Load() {
		return l.Lister.Watch(ctx, o)
	}
	first, then := o, o
	first.Watch, then.Watch = true, true
	listed := o.SendInitialEvents != nil && *o.SendInitialEvents
	if listed {
		then.SendInitialEvents, then.ResourceVersionMatch = nil, ""
		first = metav1.ListOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, ResourceVersion: o.ResourceVersion}
		if o.ResourceVersion != "" {
			first.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		}
	}
	ctx, stop := context.WithCancel(ctx)
	body, err := l.from.Stream(ctx, first)
	if err != nil {
		stop()
		return nil, err
	}
	w := &streamedWatch{events: make(chan apiwatch.Event), stop: stop}
	go func() {
		defer close(w.events)
		defer stop()
		var err error
		if listed {
			then.ResourceVersion, err = l.list(ctx, body, w)
			if err == nil {
				body, err = l.from.Stream(ctx, then)
			}
		}
		if err == nil {
			err = l.watch(ctx, body, w)
		}
		if err != nil && ctx.Err() == nil {
			w.send(ctx, apiwatch.Event{Type: apiwatch.Error, Object: statusOf(err)})
		}
	}()
	return w, nil
}

// list sends the objects of a list and the bookmark that ends them. It returns the resource version
// of the list.
func (l *streamedLister[T, L]) list(ctx context.Context, body io.ReadCloser, w *streamedWatch) (version string, err error) {
	version, err = readList(ctx, body, func(raw []byte) error {
		obj, err := l.decode(raw)
		if err == nil {
			w.send(ctx, apiwatch.Event{Type: apiwatch.Added, Object: obj})
		}
		return err
	})
	_ = body.Close()
	if err != nil {
		l.broken.Store(ctx.Err() == nil) // a watch that was stopped is no list that broke off
		return "", err
	}
	end, err := l.decode(nil)
	if err != nil {
		return "", err
	}
	end.SetResourceVersion(version)
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	w.send(ctx, apiwatch.Event{Type: apiwatch.Bookmark, Object: end})
	return version, nil
}

// watch sends the events of a watch until it ends, which every watch does.
func (l *streamedLister[T, L]) watch(ctx context.Context, body io.ReadCloser, w *streamedWatch) error {
	defer func() { _ = body.Close() }()
	err := readEvents(body, func(what apiwatch.EventType, raw []byte) error {
		if what == apiwatch.Error {
			status := &metav1.Status{}
			if err := status.Unmarshal(raw); err != nil {
				return fmt.Errorf("decode an error of a watch: %w", err)
			}
			w.send(ctx, apiwatch.Event{Type: what, Object: status})
			return nil
		}
		obj, err := l.decode(raw)
		if err != nil {
			return fmt.Errorf("decode an object of a watch: %w", err)
		}
		w.send(ctx, apiwatch.Event{Type: what, Object: obj})
		return nil
	})
	if err != nil {
		l.broken.Store(true)
	}
	return err
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

// streamedWatch is a watch that streamedLister reads.
type streamedWatch struct {
	events chan apiwatch.Event
	stop   context.CancelFunc
}

// Stop implements watch.Interface.
func (w *streamedWatch) Stop() { w.stop() }

// ResultChan implements watch.Interface.
func (w *streamedWatch) ResultChan() <-chan apiwatch.Event { return w.events }

// send hands one event on; false: the watch was stopped.
func (w *streamedWatch) send(ctx context.Context, e apiwatch.Event) bool {
	select {
	case w.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}
