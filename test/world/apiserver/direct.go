package apiserver

import (
	"bytes"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func schemaOf(group, resource string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: resource}
}

// The models of a simulated cluster read and write without HTTP. What they are given is the stored object, which
// nobody may change; what they write is theirs no more.

// Get is a stored object; nil: there is none.
func Get[T Object](s *Server, resource, namespace, name string) (out T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.collectionOf(resource).objects[keyOf(namespace, name)]; e != nil {
		out = e.Object.(T)
	}
	return out
}

// List are the stored objects of a namespace, all with "", by key.
func List[T Object](s *Server, resource, namespace string) (out []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.collectionOf(resource)
	for _, key := range sh.keys(namespace) {
		out = append(out, sh.objects[key].Object.(T))
	}
	return out
}

// Create stores a new object; a user of a certificate request is the object's own.
func (s *Server) Create(resource string, o Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.create(s.collectionOf(resource), o, false)
	return err
}

// Update stores a new version of an object; subresource is "" or "status".
func (s *Server) Update(resource string, o Object, subresource string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.update(s.collectionOf(resource), o, subresource, false)
	return err
}

// Delete deletes an object; with a grace of 0 it is gone at once.
func (s *Server) Delete(resource, namespace, name string, grace *int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.remove(s.collectionOf(resource), namespace, name, metav1.DeleteOptions{GracePeriodSeconds: grace})
	return err
}

// Bind puts a pod on a node.
func (s *Server) Bind(namespace, pod, node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bind(namespace, pod, node)
}

// IsWatch tells a request that Watch answers.
func IsWatch(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Get("watch") == "true"
}

// Stream is Watch for a wire: nil, nil for a request that ServeHTTP answers.
func (s *Server) Stream(r *http.Request) (*http.Response, error) {
	if !IsWatch(r) {
		return nil, nil
	}
	res, err := s.Watch(r)
	if err == nil {
		return res, nil
	}
	rec := &refusal{header: http.Header{}}
	(&call{Request: r, w: rec, wants: wantsProtobuf(r)}).fail(err)
	return &http.Response{Status: http.StatusText(rec.code), StatusCode: rec.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: rec.header,
		Body: io.NopCloser(bytes.NewReader(rec.body)), ContentLength: int64(len(rec.body)), Request: r}, nil
}

// refusal is the answer to a watch that does not begin.
type refusal struct {
	header http.Header
	code   int
	body   []byte
}

func (r *refusal) Header() http.Header  { return r.header }
func (r *refusal) WriteHeader(code int) { r.code = code }
func (r *refusal) Write(b []byte) (int, error) {
	r.body = append(r.body, b...)
	return len(b), nil
}
