// Package wire carries HTTP between the parts of a simulated world, in memory: a request is handed to
// the handler of its host, and each way takes the time that the world gives it. A goroutine that waits here waits durably, so
// that the clock of a testing/synctest bubble goes on.
//
// It carries requests, not bytes: there are no connections, TLS or HTTP/2 below it, so that what breaks with
// these is not played. It refuses a host that nobody serves.
package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Fault is what happens to one request. The zero value is none.
type Fault struct {
	Delay  time.Duration // before it arrives
	Hang   bool          // it is never answered, and does not arrive
	Cut    bool          // the connection breaks before it arrives
	Refuse bool          // nobody listens
	Lost   bool          // it arrives, and the connection breaks before the answer
	Late   time.Duration // it arrives, and the answer takes so long
	Twice  bool          // it arrives twice; the second answer is the one that is given
	Flight time.Duration // it arrives after so long, also when its client has given it up or was killed meanwhile
	Status int           // it is answered with this, and does not arrive
}

// Far is the other end of a wire.
type Far struct {
	http.Handler
	// Stream serves a request whose answer does not end by itself; nil, nil: Handler serves it.
	Stream func(*http.Request) (*http.Response, error)
}

// Wire is an http.RoundTripper of one client.
type Wire struct {
	Hosts   map[string]Far
	Latency time.Duration               // of each request
	Fault   func(r *http.Request) Fault // nil: there are none

	mu   sync.Mutex
	cut  bool
	open map[io.Closer]bool
}

var errReset = syscall.ECONNRESET

// Cut breaks the wire for good: nothing that its client sends arrives any more, as when it was killed.
func (w *Wire) Cut() {
	w.mu.Lock()
	w.cut = true
	open := w.open
	w.open = nil
	w.mu.Unlock()
	for c := range open {
		_ = c.Close()
	}
}

// Reset breaks the streams that are open.
func (w *Wire) Reset() {
	w.mu.Lock()
	open := w.open
	w.open = nil
	w.mu.Unlock()
	for c := range open {
		_ = c.Close()
	}
}

func (w *Wire) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RoundTrip implements http.RoundTripper.
func (w *Wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	far, ok := w.Hosts[r.URL.Host]
	if !ok {
		return nil, fmt.Errorf("dial %s: %w", r.URL.Host, syscall.EHOSTUNREACH)
	}
	var f Fault
	if w.Fault != nil {
		seen := r.Clone(r.Context())
		seen.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		f = w.Fault(seen)
	}
	ctx := r.Context()
	if f.Hang {
		if err := wait(ctx, hangs); err != nil {
			return nil, err
		}
		return nil, errReset
	}
	if f.Flight > 0 {
		return w.fly(far, r, body, f.Flight)
	}
	if err := wait(ctx, w.Latency+f.Delay); err != nil {
		return nil, err
	}
	switch {
	case f.Refuse:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case f.Cut || w.isCut():
		return nil, errReset
	case f.Status != 0:
		return failed(r, f.Status), nil
	}
	if f.Twice {
		_, _ = w.serve(far, r, body)
	}
	res, err := w.serve(far, r, body)
	if err == nil && (f.Lost || w.isCut()) {
		_ = res.Body.Close()
		res, err = nil, errReset
	}
	if f.Late > 0 {
		if late := wait(ctx, f.Late); late != nil {
			if err == nil {
				_ = res.Body.Close()
			}
			return nil, late
		}
	}
	return res, err
}

// fly carries a request whose client may not wait for it.
func (w *Wire) fly(far Far, r *http.Request, body []byte, d time.Duration) (*http.Response, error) {
	own := r.Clone(context.WithValue(context.WithoutCancel(r.Context()), inFlight{}, time.Now()))
	landed := make(chan func() (*http.Response, error), 1)
	time.AfterFunc(d, func() {
		res, err := w.serve(far, own, body)
		landed <- func() (*http.Response, error) { return res, err }
	})
	select {
	case answer := <-landed:
		if w.isCut() {
			return nil, errReset
		}
		return answer()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type inFlight struct{}

// hangs is when a connection that carries nothing any more is given up by who has no deadline of his own: client-go pings one
// after 30 seconds, and waits for 15.
const hangs = 45 * time.Second

// Flies tells the far end of a request that arrives later than its client may have waited, and when it was sent.
func Flies(r *http.Request) (sent time.Time, flies bool) {
	sent, flies = r.Context().Value(inFlight{}).(time.Time)
	return sent, flies
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// serve has the far end answer.
func (w *Wire) serve(far Far, r *http.Request, body []byte) (res *http.Response, err error) {
	own := r.Clone(r.Context())
	own.Body, own.Host, own.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.Host, r.URL.RequestURI()
	if r.Host != "" {
		own.Host = r.Host
	}
	own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	if far.Stream != nil {
		if res, err := far.Stream(own); res != nil || err != nil {
			return w.stream(r, res, err)
		}
	}
	rec := &recorder{header: http.Header{}}
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				panic(p)
			}
			res, err = rec.response(r, true), nil
			if rec.code == 0 {
				res, err = nil, errReset
			}
		}
	}()
	far.ServeHTTP(rec, own)
	return rec.response(r, false), nil
}

// stream hands a stream on until the client ends it or the wire breaks.
func (w *Wire) stream(r *http.Request, res *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		_ = res.Body.Close()
		return nil, errReset
	}
	s := &stream{ReadCloser: res.Body, wire: w}
	s.stop = context.AfterFunc(r.Context(), func() { _ = s.ReadCloser.Close() })
	if w.open == nil {
		w.open = map[io.Closer]bool{}
	}
	w.open[s.ReadCloser] = true
	res.Body, res.Request = s, r
	return res, nil
}

type stream struct {
	io.ReadCloser
	wire *Wire
	stop func() bool
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = errReset
	}
	return n, err
}

func (s *stream) Close() error {
	s.stop()
	s.wire.mu.Lock()
	delete(s.wire.open, s.ReadCloser)
	s.wire.mu.Unlock()
	return s.ReadCloser.Close()
}

// recorder is the answer of a handler.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

func (r *recorder) FlushError() error { return nil }

// response is what was recorded; a broken one ends with an error in place of its end.
func (r *recorder) response(req *http.Request, broken bool) *http.Response {
	r.WriteHeader(http.StatusOK)
	var body io.Reader = bytes.NewReader(r.body.Bytes())
	if broken {
		body = io.MultiReader(body, ended{})
	}
	return &http.Response{Status: http.StatusText(r.code), StatusCode: r.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header, Body: io.NopCloser(body), ContentLength: -1, Request: req}
}

type ended struct{}

func (ended) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// failed is an answer without a body that an API would send.
func failed(r *http.Request, status int) *http.Response {
	return &http.Response{Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(bytes.NewReader([]byte(http.StatusText(status)))), Request: r}
}
