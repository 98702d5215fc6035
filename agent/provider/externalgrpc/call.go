package externalgrpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// service is the prefix of every method's path.
const service = "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/"

// maxAnswer bounds what one answer may weigh: some 100,000 instances.
const maxAnswer = 32 << 20

// The status codes of gRPC, by its documentation.
const (
	codeOK = iota
	codeCanceled
	codeUnknown
	codeInvalidArgument
	codeDeadlineExceeded
	codeNotFound
	codeAlreadyExists
	codePermissionDenied
	codeResourceExhausted
	codeFailedPrecondition
	codeAborted
	codeOutOfRange
	codeUnimplemented
	codeInternal
	codeUnavailable
	codeDataLoss
	codeUnauthenticated
)

var codeNames = [...]string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
	"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}

// status is how a call ended that did not end well: with the plug-in's own words, or
// with err of the connection.
type status struct {
	method string
	code   int
	text   string
	err    error
}

func (s *status) Error() string {
	name := strconv.Itoa(s.code)
	if s.code >= 0 && s.code < len(codeNames) {
		name = codeNames[s.code]
	}
	text := s.method + ": " + name
	if s.text != "" {
		text += ": " + s.text
	}
	return text
}

func (s *status) Unwrap() error { return s.err }

// client makes unary gRPC calls over Go's own HTTP/2. It is what gRPC is on the wire:
// one POST, a five-byte frame around each message, the status in the trailers. The
// library of that name brings balancers, resolvers and templates that defeat the
// linker: 54 MB of binary for what is here.
type client struct {
	base      string // scheme and authority
	transport *http.Transport
	dialTLS   func(ctx context.Context) (*tls.Conn, error) // nil: the connection is plain
	timeout   time.Duration
	hook      func(method string, took time.Duration, err error)
}

func newClient(c settings) *client {
	t := &http.Transport{
		Protocols:          new(http.Protocols),
		DisableCompression: true,
		IdleConnTimeout:    5 * time.Minute,
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, c.network, c.address)
	}
	own := &client{transport: t, timeout: c.timeout}
	base := "https://" + c.authority
	if c.insecure {
		base = "http://" + c.authority
		t.Protocols.SetUnencryptedHTTP2(true)
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	} else {
		t.Protocols.SetHTTP2(true)
		own.dialTLS = func(ctx context.Context) (*tls.Conn, error) { return c.dialTLS(ctx, dial) }
		t.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return own.dialTLS(ctx) }
	}
	own.base = base
	return own
}

// dialTLS makes a connection. The files are read each time: whoever renews them
// (cert-manager, a timer) need not restart the agent.
func (c settings) dialTLS(ctx context.Context, dial func(context.Context) (net.Conn, error)) (*tls.Conn, error) {
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	raw, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	if p := conn.ConnectionState().NegotiatedProtocol; p != "h2" {
		raw.Close()
		return nil, fmt.Errorf("%s does not offer HTTP/2 (ALPN %q), so it is no gRPC server", c.address, p)
	}
	return conn, nil
}

// tls reads the certificates from their files.
func (c settings) tls() (*tls.Config, error) {
	config := &tls.Config{ServerName: c.serverName, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	if c.ca != "" {
		pem, err := os.ReadFile(c.ca)
		if err != nil {
			return nil, fileError{err}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fileError{fmt.Errorf("%s has no certificate in PEM form", c.ca)}
		}
	}
	if c.cert != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, fileError{fmt.Errorf("certificate %s with key %s: %w", c.cert, c.key, err)}
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// fileError is a certificate or key on this machine that cannot be used.
type fileError struct{ error }

func (e fileError) Unwrap() error { return e.error }

// call makes one call. The error is a *status.
func (c *client) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	start := time.Now()
	answer, s := c.try(ctx, method, request)
	var err error
	if s != nil {
		s.method = method
		err = s
		if errors.Is(err, context.DeadlineExceeded) {
			// The connection may be dead without a word (a firewall that forgot it): the
			// next call makes a new one.
			c.transport.CloseIdleConnections()
		}
	}
	if c.hook != nil {
		c.hook("externalgrpc:"+method, time.Since(start), err)
	}
	return answer, err
}

func (c *client) try(ctx context.Context, method string, request []byte) ([]byte, *status) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	frame := make([]byte, 5, 5+len(request))
	binary.BigEndian.PutUint32(frame[1:], uint32(len(request)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+service+method, bytes.NewReader(append(frame, request...)))
	if err != nil {
		return nil, &status{code: codeInternal, text: err.Error(), err: err}
	}
	// A little more than is left: the caller's own deadline is the first to end, and an
	// end by the plug-in's would look like a broken stream.
	deadline, _ := ctx.Deadline()
	deadline = deadline.Add(250 * time.Millisecond)
	req.Header = http.Header{
		"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"autoscaler-agent"},
		"Grpc-Timeout": {strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 1), 10) + "m"},
	}
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, broken(ctx, c.rejection(ctx, err))
	}
	defer res.Body.Close()
	if s := httpStatus(res); s != nil {
		return nil, s
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, broken(ctx, err)
	}
	if len(body) > maxAnswer {
		return nil, &status{code: codeResourceExhausted, text: fmt.Sprintf("the answer has more than %d bytes", maxAnswer)}
	}
	if s := grpcStatus(res); s.code != codeOK {
		return nil, s
	}
	if len(body) < 5 || uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-5) {
		return nil, &status{code: codeInternal, text: "the answer is not one message", err: errTorn}
	}
	if body[0] != 0 {
		return nil, &status{code: codeInternal, text: "the answer is compressed, which was not asked for"}
	}
	return body[5:], nil
}

// broken is a call without an answer.
func broken(ctx context.Context, err error) *status {
	if cause := ctx.Err(); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return &status{code: codeCanceled, text: cause.Error(), err: cause}
		}
		return &status{code: codeDeadlineExceeded, text: "no answer in time", err: cause}
	}
	return &status{code: codeUnavailable, text: plainWords(err), err: err}
}

// Servers that are no plain gRPC server.
var (
	errSpeaksTLS = errors.New("the server at this address speaks TLS, and the agent does not")
	errHTTP1     = errors.New("the server at this address speaks HTTP/1, so it is no gRPC server")
)

// misfit finds out why a connection without TLS broke at once. A server that speaks TLS
// closes it without a word; whether it does is asked by a handshake, after which nothing
// is sent.
func (c *client) misfit(ctx context.Context, err error) error {
	var op *net.OpError
	switch {
	case strings.Contains(err.Error(), "looked like an HTTP/1"):
		return errHTTP1
	case ctx.Err() != nil, errors.As(err, &op) && op.Op == "dial":
		return err
	}
	raw, dialled := c.transport.DialContext(ctx, "", "")
	if dialled != nil {
		return err
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(time.Second)) // a connection without deadlines cannot be one of the net package's
	// Who the server is does not matter: it is told nothing and believed nothing.
	shaken := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
	var other tls.RecordHeaderError
	switch {
	case shaken == nil, strings.Contains(shaken.Error(), "remote error: tls:"):
		return errSpeaksTLS
	case errors.As(shaken, &other) && string(other.RecordHeader[:]) == "HTTP/":
		return errHTTP1
	}
	return err
}

// rejection finds out why a connection broke at once. In TLS 1.3 a server that does not
// take the client's certificate says so after the handshake, and whoever writes first
// may see a broken pipe in place of its words; a connection that only listens hears them.
func (c *client) rejection(ctx context.Context, err error) error {
	if c.dialTLS == nil {
		return c.misfit(ctx, err)
	}
	var dialing *net.OpError
	if ctx.Err() != nil || errors.As(err, &dialing) && dialing.Op != "write" && dialing.Op != "read" {
		return err
	}
	conn, dialled := c.dialTLS(ctx)
	if dialled != nil {
		return dialled
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // a connection without deadlines cannot be one of the net package's
	if _, heard := conn.Read(make([]byte, 1)); heard != nil && strings.Contains(heard.Error(), "remote error: tls:") {
		return heard
	}
	return err
}

// plainWords leaves out local ports, which would make equal errors look different.
func plainWords(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op != "remote error" {
		where := ""
		if op.Addr != nil {
			where = " " + op.Addr.String()
		}
		return op.Op + where + ": " + op.Err.Error()
	}
	return err.Error()
}

// httpStatus judges an answer that is not gRPC's, by the mapping of gRPC's own
// documentation (http-grpc-status-mapping).
func httpStatus(res *http.Response) *status {
	if res.StatusCode == http.StatusOK && strings.HasPrefix(res.Header.Get("Content-Type"), "application/grpc") {
		return nil
	}
	s := &status{code: codeUnknown, text: fmt.Sprintf("HTTP status %d with content type %q: this is no gRPC server", res.StatusCode, res.Header.Get("Content-Type"))}
	switch res.StatusCode {
	case http.StatusBadRequest:
		s.code = codeInternal
	case http.StatusUnauthorized:
		s.code = codeUnauthenticated
	case http.StatusForbidden:
		s.code = codePermissionDenied
	case http.StatusNotFound:
		s.code = codeUnimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		s.code = codeUnavailable
	}
	return s
}

// grpcStatus reads the status from the trailers, or from the headers of an answer that
// has nothing else.
func grpcStatus(res *http.Response) *status {
	from := res.Trailer
	if from.Get("Grpc-Status") == "" {
		from = res.Header
	}
	code, err := strconv.Atoi(from.Get("Grpc-Status"))
	if err != nil {
		return &status{code: codeUnavailable, text: "the answer ended without a status", err: errTorn}
	}
	text := from.Get("Grpc-Message")
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return &status{code: code, text: text}
}
