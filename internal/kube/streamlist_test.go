package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// pods are a list of n pods at resource version 70.
func pods(n int) *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "70"}}
	for i := range n {
		list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("p", i), UID: types.UID(strings.Repeat("u", i%50))}})
	}
	return list
}

// protobuf is an object as an API server sends it.
func protobuf(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	raw, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), obj)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func decodePod(raw []byte) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	return p, p.Unmarshal(raw)
}

// names reads a list and returns the names of its pods in order.
func names(t testing.TB, in io.Reader) ([]string, string, error) {
	var mu sync.Mutex
	var out []string
	version, err := readList(t.Context(), in, func(raw []byte) error {
		p, err := decodePod(raw)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		out = append(out, p.Name)
		return nil
	})
	slices.Sort(out)
	return out, version, err
}

// TestReadList: each pod of a list is read once, and what is no whole list is an error.
func TestReadList(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3000} {
		list := pods(n)
		got, version, err := names(t, bytes.NewReader(protobuf(t, list)))
		var want []string
		for i := range list.Items {
			want = append(want, list.Items[i].Name)
		}
		slices.Sort(want)
		if err != nil || version != "70" || !slices.Equal(got, want) {
			t.Errorf("%d pods: read %d at version %q, %v", n, len(got), version, err)
		}
	}
	whole := protobuf(t, pods(20))
	for cut := range len(whole) - 4 { // the last four bytes are empty fields beside the list
		if _, _, err := names(t, bytes.NewReader(whole[:cut])); err == nil {
			t.Fatalf("a list that ends after %d of %d bytes was taken", cut, len(whole))
		}
	}
	part := pods(3)
	part.Continue = "more"
	for what, in := range map[string]string{
		"no protobuf":           `{"kind":"PodList","apiVersion":"v1"}`,
		"read the list":         "k8s\x00\x12\x7f",
		"an object of":          "k8s\x00\x12\x10\x12\x80\x80\x80\x80\x01",
		"wire type":             "k8s\x00\x15\x00",
		"decode an object":      "k8s\x00\x12\x0b\x0a\x04\x12\x0270\x12\x03\xff\xff\xff",
		"a part of a list":      string(protobuf(t, part)),
		"resource version \"\"": "k8s\x00\x12\x02\x0a\x00",
	} {
		if _, _, err := names(t, strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: error %v, want one that says %q", in, err, what)
		}
	}
}

// FuzzReadList: no bytes make the reader hang, and a list that both it and the generated decoder of
// whole lists take has the same number of pods and the same resource version for both.
func FuzzReadList(f *testing.F) {
	whole := protobuf(f, pods(3))
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, in []byte) {
		got, version, err := names(t, bytes.NewReader(in))
		if err != nil {
			return
		}
		list := &corev1.PodList{}
		raw := runtime.Unknown{}
		if raw.Unmarshal(in[len(listMagic):]) != nil || list.Unmarshal(raw.Raw) != nil {
			return // more than the list is broken, which the reader does not look at
		}
		if len(list.Items) != len(got) || list.ResourceVersion != version {
			t.Errorf("%d pods at %q, and client-go reads %d at %q", len(got), version, len(list.Items), list.ResourceVersion)
		}
	})
}

// TestStreamedListWatch: a Reflector gets the pods of a list, then the events from its resource
// version on; where a list breaks off, it gets the server's own watch events.
func TestStreamedListWatch(t *testing.T) {
	const list, from, events = "watch= version= match= initial= limit=", "watch=true version=70 match= initial= limit=", "watch=true version= match=NotOlderThan initial=true limit="
	for _, breaks := range []bool{false, true} {
		t.Run(fmt.Sprintf("breaks=%v", breaks), func(t *testing.T) {
			asked := make(chan string, 10)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				if q.Get("fieldSelector") != "status.phase!=Failed" {
					t.Errorf("asked for %s", r.URL)
				}
				w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
				raw := protobuf(t, pods(500))
				switch {
				case q.Get("watch") == "" && breaks:
					_, _ = w.Write(raw[:len(raw)/2])
					w.(http.Flusher).Flush()
					asked <- list
					panic(http.ErrAbortHandler)
				case q.Get("watch") == "":
					_, _ = w.Write(raw)
				default:
					w.(http.Flusher).Flush()
				}
				asked <- fmt.Sprintf("watch=%s version=%s match=%s initial=%s limit=%s", q.Get("watch"), q.Get("resourceVersion"), q.Get("resourceVersionMatch"), q.Get("sendInitialEvents"), q.Get("limit"))
				if q.Get("watch") != "" {
					<-r.Context().Done()
				}
			}))
			defer srv.Close()
			client, err := New(&rest.Config{Host: srv.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}})
			if err != nil {
				t.Fatal(err)
			}
			lw := StreamedListWatch(client, client.CoreV1().Pods(""), decodePod, func(o *metav1.ListOptions) { o.FieldSelector = "status.phase!=Failed" })
			stored := cache.NewStore(cache.MetaNamespaceKeyFunc)
			r := cache.NewReflector(lw, &corev1.Pod{}, stored, 0)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = r.ListAndWatchWithContext(ctx) }()
			defer func() { stop(); <-done }()
			want, wantPods := []string{list, from}, 500
			if breaks {
				want, wantPods = []string{list, events}, 0 // this server sends no events
			}
			for _, w := range want {
				if got := <-asked; got != w {
					t.Errorf("asked for %s, want %s", got, w)
				}
			}
			for deadline := time.Now().Add(20 * time.Second); len(stored.List()) != wantPods && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if got := len(stored.List()); got != wantPods {
				t.Errorf("%d pods, want %d", got, wantPods)
			}
		})
	}
}

// TestStreamedListAfterBreak: the watch after a list that broke off is the server's own.
func TestStreamedListAfterBreak(t *testing.T) {
	l := &streamedLister[*corev1.Pod, *corev1.PodList]{Lister: refusing{}, from: refusing{}, decode: decodePod}
	initial := true
	o := metav1.ListOptions{SendInitialEvents: &initial}
	w, err := l.Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := <-w.ResultChan()
	if !ok || e.Type != apiwatch.Error || !strings.Contains(fmt.Sprint(e.Object), "breaks") {
		t.Errorf("got %v", e)
	}
	if _, ok := <-w.ResultChan(); ok {
		t.Error("an event after the error")
	}
	if _, err := l.Watch(t.Context(), o); err == nil || err.Error() != "watched, initial events true" {
		t.Errorf("the second watch: %v", err)
	}
}

// refusing streams a list that breaks and refuses watches.
type refusing struct{ Lister[*corev1.PodList] }

func (refusing) Stream(context.Context, metav1.ListOptions) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader(listMagic), brokenReader{})), nil
}

func (refusing) Watch(_ context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	return nil, fmt.Errorf("watched, initial events %v", o.SendInitialEvents != nil && *o.SendInitialEvents)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("it breaks") }
