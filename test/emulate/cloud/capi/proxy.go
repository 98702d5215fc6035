package capi

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Proxy stands in front of an API server and answers some requests itself, as the
// server would: throttled, credentials refused, broken. Credentials of the client pass
// through; they must be a bearer token.
type Proxy struct {
	URL string
	CA  []byte // of its own certificate: client-go sends no token without TLS

	server *httptest.Server
	mu     sync.Mutex
	faults map[string]Fault
	calls  map[string]int // by "METHOD path"
}

// Fault answers a request when When says so.
type Fault struct {
	When func(*http.Request) bool // nil: every request
	Code int
	// Cut ends the answer of the server in the middle instead.
	Cut bool
	// After lets the request through, and answers with Code in place of its answer.
	After bool
	// Drop lets the request through and breaks the connection in place of its answer;
	// Hang does neither.
	Drop, Hang bool
	// Once disarms the fault when it has hit.
	Once bool
	// Before is called before the request goes through.
	Before func()
}

// NewProxy starts one; cfg names the server, its credentials are not used.
func NewProxy(cfg *rest.Config) (*Proxy, error) {
	anonymous := rest.AnonymousClientConfig(cfg)
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	p := &Proxy{faults: map[string]Fault{}, calls: map[string]int{}}
	forward := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.calls[r.Method+" "+r.URL.Path]++
		var hit *Fault
		for name, f := range p.faults {
			if f.When == nil || f.When(r) {
				hit = &f
				if f.Once {
					delete(p.faults, name)
				}
			}
		}
		p.mu.Unlock()
		switch {
		case hit == nil:
			forward.ServeHTTP(w, r)
			return
		case hit.Before != nil:
			hit.Before()
		}
		switch {
		case hit.Cut:
			record := httptest.NewRecorder()
			forward.ServeHTTP(record, r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(record.Code)
			_, _ = w.Write(record.Body.Bytes()[:record.Body.Len()/2])
		case hit.Hang:
			<-r.Context().Done()
		case hit.Drop:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case hit.After:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			answer(w, hit.Code)
		case hit.Code != 0:
			answer(w, hit.Code)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	p.URL = p.server.URL
	p.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return p, nil
}

func answer(w http.ResponseWriter, code int) {
	reasons := map[int]metav1.StatusReason{401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError, 504: metav1.StatusReasonTimeout}
	w.Header().Set("Content-Type", "application/json")
	if code == 429 {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
		Reason: reasons[code], Code: int32(code), Message: fmt.Sprintf("%s, by a test", http.StatusText(code))})
}

// Set arms a fault by name; Clear disarms it.
func (p *Proxy) Set(name string, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults[name] = f
}

// Clear disarms a fault.
func (p *Proxy) Clear(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.faults, name)
}

// Calls counts the requests since the last Reset, by "METHOD path".
func (p *Proxy) Calls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]int{}
	for k, v := range p.calls {
		out[k] = v
	}
	return out
}

// Reset forgets the counts.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = map[string]int{}
}

// Close stops it.
func (p *Proxy) Close() { p.server.Close() }
