package kube

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// frame is an event as an API server sends it.
func frame(t testing.TB, kind apiwatch.EventType, obj runtime.Object) []byte {
	t.Helper()
	e := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: protobuf(t, obj)}}
	raw, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}

// eventsOf reads a watch and returns each event with the name of its pod.
func eventsOf(in []byte) (out []string, err error) {
	err = readEvents(bytes.NewReader(in), func(what apiwatch.EventType, raw []byte) error {
		p, err := decodePod(raw)
		out = append(out, fmt.Sprint(what, " ", p.Name))
		return err
	})
	return out, err
}

// TestReadEvents: each whole event is read, a watch may end anywhere, and what is no watch is an
// error.
func TestReadEvents(t *testing.T) {
	all := pods(3).Items
	all[1].Annotations = map[string]string{"large": strings.Repeat("x", 100_000)}
	var whole []byte
	var want []string
	ends := []int{0}
	for i, what := range []apiwatch.EventType{apiwatch.Added, apiwatch.Modified, apiwatch.Deleted} {
		whole = append(whole, frame(t, what, &all[i])...)
		want, ends = append(want, fmt.Sprint(what, " ", all[i].Name)), append(ends, len(whole))
	}
	for cut := 0; cut <= len(whole); cut += 1 + cut%97 {
		got, err := eventsOf(whole[:cut])
		n, is := slices.BinarySearch(ends, cut)
		if !is {
			n--
		}
		if err != nil || !slices.Equal(got, want[:n]) {
			t.Fatalf("after %d bytes: %v, %v; want %v", cut, got, err, want[:n])
		}
	}
	for what, in := range map[string]string{
		"is no protobuf":           `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`,
		"object is no protobuf":    "\x00\x00\x00\x0b\x0a\x05ADDED\x12\x02\x0a\x00",
		"read an event of a watch": "\x00\x00\x00\x02\x0a\x05",
		"proto":                    string(frame(t, apiwatch.Added, &all[0])[:4]) + strings.Repeat("\xff", len(frame(t, apiwatch.Added, &all[0]))-4),
	} {
		if _, err := eventsOf([]byte(in)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: error %v, want one that says %q", in, err, what)
		}
	}
}

// FuzzReadEvents: no bytes make the reader hang or panic.
func FuzzReadEvents(f *testing.F) {
	f.Add(frame(f, apiwatch.Added, &pods(2).Items[1]))
	f.Fuzz(func(_ *testing.T, in []byte) { _, _ = eventsOf(in) })
}

// TestStreamedWatch: a watch from a resource version on delivers the server's events and its error; a
// server that answers with JSON is asked once for a stream, and client-go's watch reads its next
// answer.
func TestStreamedWatch(t *testing.T) {
	list := pods(2)
	expired := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone}
	json := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("watch") != "true" || q.Get("resourceVersion") != "70" || q.Get("timeoutSeconds") != "300" || q.Get("allowWatchBookmarks") != "true" {
			t.Errorf("asked for %s", r.URL)
		}
		if json {
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			_, _ = w.Write([]byte(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"by-json"}}}`))
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
		for _, raw := range [][]byte{frame(t, apiwatch.Added, &list.Items[0]), frame(t, apiwatch.Bookmark, &list.Items[1]), frame(t, apiwatch.Error, expired)} {
			_, _ = w.Write(raw)
		}
	}))
	defer srv.Close()
	client, err := New(&rest.Config{Host: srv.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}})
	if err != nil {
		t.Fatal(err)
	}
	lw := cache.ToListerWatcherWithContext(StreamedListWatch(client, client.CoreV1().Pods(""), decodePod, nil))
	seconds := int64(300)
	watched := func() (out []string) {
		w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "70", TimeoutSeconds: &seconds, AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			switch obj := e.Object.(type) {
			case *corev1.Pod:
				out = append(out, fmt.Sprint(e.Type, " ", obj.Name))
			case *metav1.Status:
				out = append(out, fmt.Sprint(e.Type, " ", obj.Code))
			}
		}
		return out
	}
	if got, want := watched(), []string{"ADDED p0", "BOOKMARK p1", "ERROR 410"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	json = true
	if got, want := watched(), []string{"ERROR 429"}; !slices.Equal(got, want) {
		t.Errorf("a stream of JSON: got %v, want %v", got, want)
	}
	if got, want := watched(), []string{"ADDED by-json"}; !slices.Equal(got, want) {
		t.Errorf("after it: got %v, want %v", got, want)
	}
}
