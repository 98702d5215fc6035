package openstack

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Front is the stack's public side: a proxy between its clients and its services, as every
// cloud has one, which does what such proxies do to clients (they throttle, hang and lose
// answers) and what services on loopback never do by themselves. The services ask one
// another past it.
type Front struct {
	server  *http.Server
	address string

	mu     sync.Mutex
	faults []*Fault
	// watch is told of every answer; nil: nobody is.
	watch func(r *http.Request, body []byte, status int)
}

// Kind is what a Fault does.
type Kind int

// The kinds of faults.
const (
	Throttle     Kind = iota // 429
	Unauthorized             // 401
	Unavailable              // 503
	Hang                     // no answer until the fault is taken back, or the client leaves
	LoseAnswer               // done, and the connection ends instead of an answer
)

// Fault lets requests fail.
type Fault struct {
	Kind  Kind
	Match func(*http.Request) bool // nil: every request; the path begins with the service's name
	After int                      // so many that match pass first
	Times int                      // so many fail; 0: all
	Then  func()                   // called when it was done and its answer is lost
	over  chan struct{}
}

// public are the services that the front has, by their type in the catalog.
var public = map[string]string{"compute": "nova", "image": "glance", "network": "neutron", "container-infra": "magnum"}

// openFront starts the front and writes it into the catalog.
func (s *Stack) openFront(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f := &Front{address: "http://" + l.Addr().String()}
	proxies := map[string]http.Handler{}
	for _, name := range []string{"keystone", "nova", "glance", "neutron", "magnum"} {
		to, err := url.Parse(s.url(name, ""))
		if err != nil {
			return err
		}
		proxies[name] = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Path = strings.TrimPrefix(r.Out.URL.Path, "/"+name)
			r.Out.URL.RawPath = strings.TrimPrefix(r.Out.URL.RawPath, "/"+name)
			r.SetURL(to)
		}}
	}
	f.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, proxies) })}
	go func() { _ = f.server.Serve(l) }()
	s.Front = f
	return s.publish(ctx)
}

// publish lets the catalog's public side be the front.
func (s *Stack) publish(ctx context.Context) error {
	var doc struct {
		Services  []struct{ ID, Type string }
		Endpoints []struct {
			ID, URL string
			Service string `json:"service_id"`
		}
	}
	for _, at := range []string{"/v3/services", "/v3/endpoints?interface=public"} {
		if _, err := s.seed.admin.do(ctx, "GET", s.url("keystone", at), nil, &doc); err != nil {
			return err
		}
	}
	for _, service := range doc.Services {
		for _, e := range doc.Endpoints {
			name := public[service.Type]
			if e.Service != service.ID || name == "" {
				continue
			}
			before, err := url.Parse(e.URL)
			if err != nil {
				return err
			}
			path := strings.TrimPrefix(before.Path, "/"+name)
			if _, err := s.seed.admin.do(ctx, "PATCH", s.url("keystone", "/v3/endpoints/"+e.ID), object{"endpoint": object{"url": s.Front.address + "/" + name + path}}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// Inject lets requests fail until the returned function is called.
func (f *Front) Inject(fault Fault) (stop func()) {
	fault.over = make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault)
	return sync.OnceFunc(func() {
		close(fault.over)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.faults = slices.DeleteFunc(f.faults, func(one *Fault) bool { return one == &fault })
	})
}

// Watch lets a function see every request with its body and what became of it.
func (f *Front) Watch(see func(r *http.Request, body []byte, status int)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = see
}

// fault is the one that a request falls to; nil: none.
func (f *Front) fault(r *http.Request) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, one := range f.faults {
		if one.Match != nil && !one.Match(r) {
			continue
		}
		if one.After > 0 {
			one.After--
			continue
		}
		if one.Times == 1 {
			f.faults = slices.Delete(f.faults, i, i+1)
		}
		one.Times = max(0, one.Times-1)
		return one
	}
	return nil
}

func (f *Front) serve(w http.ResponseWriter, r *http.Request, proxies map[string]http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	to := proxies[name]
	if to == nil {
		http.NotFound(w, r)
		return
	}
	asked := r.Clone(r.Context()) // the proxy changes what it is given
	fault := f.fault(r)
	if fault != nil && fault.Kind != LoseAnswer {
		fault.play(w, r)
		return
	}
	answer := httptest.NewRecorder()
	to.ServeHTTP(answer, r)
	f.mu.Lock()
	watch := f.watch
	f.mu.Unlock()
	if watch != nil {
		watch(asked, body, answer.Code)
	}
	if fault != nil {
		if fault.Then != nil {
			fault.Then()
		}
		panic(http.ErrAbortHandler)
	}
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// play answers in place of the service.
func (f *Fault) play(w http.ResponseWriter, r *http.Request) {
	switch f.Kind {
	case Throttle:
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"overLimit": {"code": 429, "message": "This request was rate-limited."}}`, http.StatusTooManyRequests)
	case Unauthorized:
		http.Error(w, `{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}`, http.StatusUnauthorized)
	case Unavailable:
		http.Error(w, `{"error": {"code": 503, "title": "Service Unavailable", "message": "The server is currently unavailable."}}`, http.StatusServiceUnavailable)
	case Hang:
		select {
		case <-f.over:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}
}

// close ends the front.
func (f *Front) close() {
	if f != nil {
		_ = f.server.Close()
	}
}
