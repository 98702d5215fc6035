package apiserver

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// watcher is a watch: the events that its client has not read, as bytes.
type watcher struct {
	server     *Server
	collection *collection
	matches    func(Object) bool
	protobuf   bool
	bookmarks  bool
	timer      *time.Timer // of the end
	bookmark   *time.Timer

	mu    sync.Mutex
	ready chan struct{} // holds one while there is something to read
	out   []byte
	over  error
}

// see is told of an event; the caller holds the server's lock.
func (w *watcher) see(ev event) {
	is := w.matches(ev.entry.Object)
	was := ev.old != nil && w.matches(ev.old)
	switch {
	case ev.kind == watch.Deleted && was, ev.kind != watch.Deleted && was && !is:
		w.send(watch.Deleted, ev.entry)
	case ev.kind == watch.Deleted:
	case is && !was:
		w.send(watch.Added, ev.entry)
	case is:
		w.send(watch.Modified, ev.entry)
	}
}

func (w *watcher) send(what watch.EventType, e *entry) {
	if w.protobuf {
		w.write(frame(what, e.bytes()))
		return
	}
	w.write(line(what, e.Object))
}

func (w *watcher) sendOther(what watch.EventType, o runtime.Object) {
	if w.protobuf {
		w.write(frame(what, encode(o)))
		return
	}
	w.write(line(what, o))
}

func frame(what watch.EventType, object []byte) []byte {
	e := metav1.WatchEvent{Type: string(what), Object: runtime.RawExtension{Raw: object}}
	n := e.Size()
	out := make([]byte, 4+n)
	binary.BigEndian.PutUint32(out, uint32(n))
	if _, err := e.MarshalTo(out[4:]); err != nil {
		panic(err) // into a buffer of its size
	}
	return out
}

func line(what watch.EventType, o runtime.Object) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // each kind can
	}
	out, _ := json.Marshal(metav1.WatchEvent{Type: string(what), Object: runtime.RawExtension{Raw: raw}})
	return append(out, '\n')
}

func (w *watcher) write(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return
	}
	w.out = append(w.out, b...)
	w.wake()
}

func (w *watcher) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// mark sends a bookmark; the caller holds the server's lock.
func (w *watcher) mark(initial bool) {
	o, err := scheme.Scheme.New(w.collection.kind.gvk())
	if err != nil {
		panic(err) // each kind has one
	}
	m := o.(Object)
	m.GetObjectKind().SetGroupVersionKind(w.collection.kind.gvk())
	m.SetResourceVersion(strconv.FormatInt(w.server.version, 10))
	if initial {
		m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	w.sendOther(watch.Bookmark, m)
}

// fail ends the watch with an error; the caller holds the server's lock.
func (w *watcher) fail(err interface{ Status() metav1.Status }) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.sendOther(watch.Error, &status)
	w.end()
}

// end ends the watch; what was sent can be read. The caller holds the server's lock.
func (w *watcher) end() {
	delete(w.collection.watchers, w)
	w.timer.Stop()
	if w.bookmark != nil {
		w.bookmark.Stop()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over == nil {
		w.over = io.EOF
	}
	w.wake()
}

// Read implements io.Reader.
func (w *watcher) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		if len(w.out) > 0 {
			n := copy(p, w.out)
			if w.out = w.out[n:]; len(w.out) == 0 {
				w.out = nil
			}
			w.mu.Unlock()
			return n, nil
		}
		over := w.over
		w.mu.Unlock()
		if over != nil {
			return 0, over
		}
		<-w.ready
	}
}

// Close implements io.Closer: the client has gone.
func (w *watcher) Close() error {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.mu.Lock()
	w.out, w.over = nil, io.ErrClosedPipe
	w.mu.Unlock()
	w.end()
	return nil
}
