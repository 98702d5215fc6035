package externalgrpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// maxAnswer bounds the bytes of one response: some 100,000 instances.
const maxAnswer = 32 << 20

// client makes the calls of the generated client over HTTP/2 connections of its own. It
// is the http client of connect and adds what connect does not know: the reason for a
// connection that the server closes at once, and certificates that are read again for
// each connection.
type client struct {
	transport http.RoundTripper
	closeIdle func()
	dial      func(ctx context.Context) (net.Conn, error)
	dialTLS   func(ctx context.Context) (*tls.Conn, error) // nil: the connection is plain
	timeout   time.Duration
	hook      func(method string, took time.Duration, err error)
}

// newClient returns the generated client and the connections below it.
func newClient(c settings) (protos.CloudProviderClient, *client) {
	t := &http.Transport{
		Protocols:          new(http.Protocols),
		DisableCompression: true,
		IdleConnTimeout:    5 * time.Minute,
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, c.network, c.address)
	}
	own := &client{transport: t, closeIdle: t.CloseIdleConnections, dial: dial, timeout: c.timeout}
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
	return protos.NewCloudProviderClient(own, base, connect.WithGRPC(), connect.WithReadMaxBytes(maxAnswer),
		connect.WithAcceptCompression("gzip", nil, nil), connect.WithInterceptors(connect.UnaryInterceptorFunc(own.intercept))), own
}

// intercept gives each call its time limit, and its error the form of a *status.
func (c *client) intercept(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		_, method := path.Split(request.Spec().Procedure)
		request.Header().Set("User-Agent", "autoscaler-agent")
		answer, err := next(ctx, request)
		if err != nil {
			err = statusOf(ctx, method, err)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			// The connection may be dead without notice (a firewall that forgot it): the
			// next call makes a new one.
			c.closeIdle()
		}
		if c.hook != nil {
			c.hook("externalgrpc:"+method, time.Since(start), err)
		}
		return answer, err
	}
}

// Do implements connect.HTTPClient.
func (c *client) Do(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if deadline, ok := ctx.Deadline(); ok {
		// The plug-in gets a little more time than the caller: a call that the plug-in ends
		// first looks like a broken stream.
		left := max(time.Until(deadline)+250*time.Millisecond, time.Millisecond)
		request.Header.Set("Grpc-Timeout", strconv.FormatInt(left.Milliseconds(), 10)+"m")
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, c.rejection(ctx, err))
	}
	if err := httpStatus(response); err != nil {
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

// httpStatus returns the error of a response that is not gRPC, by the table of gRPC's own
// documentation (http-grpc-status-mapping).
func httpStatus(response *http.Response) error {
	kind := response.Header.Get("Content-Type")
	if response.StatusCode == http.StatusOK && strings.HasPrefix(kind, "application/grpc") {
		return nil
	}
	code := connect.CodeUnknown
	switch response.StatusCode {
	case http.StatusBadRequest:
		code = connect.CodeInternal
	case http.StatusUnauthorized:
		code = connect.CodeUnauthenticated
	case http.StatusForbidden:
		code = connect.CodePermissionDenied
	case http.StatusNotFound:
		code = connect.CodeUnimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		code = connect.CodeUnavailable
	}
	return connect.NewWireError(code, fmt.Errorf("HTTP status %d with content type %q: this is no gRPC server", response.StatusCode, kind))
}

// dialTLS makes a connection. The files are read each time, so that renewed certificates
// (cert-manager, a timer) are used without a restart of the agent.
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

// fileError is the error of a certificate or key file on this machine.
type fileError struct{ error }

func (e fileError) Unwrap() error { return e.error }

// The errors of servers that do not speak gRPC without TLS.
var (
	errSpeaksTLS = errors.New("the server at this address speaks TLS, and the agent does not")
	errHTTP1     = errors.New("the server at this address speaks HTTP/1, so it is no gRPC server")
)

// misfit finds the reason for a connection without TLS that broke at once. A server that
// speaks TLS closes it without an answer; a TLS handshake shows whether that is the case,
// and nothing is sent after it.
func (c *client) misfit(ctx context.Context, err error) error {
	var op *net.OpError
	switch {
	case strings.Contains(err.Error(), "looked like an HTTP/1"):
		return errHTTP1
	case ctx.Err() != nil, errors.As(err, &op) && op.Op == "dial":
		return err
	}
	raw, dialled := c.dial(ctx)
	if dialled != nil {
		return err
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(time.Second)) // a connection of package net has deadlines
	// The server's identity does not matter: no data is sent, and no data is used.
	shaken := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx) // #nosec G402 -- see above
	var other tls.RecordHeaderError
	switch {
	case shaken == nil, strings.Contains(shaken.Error(), "remote error: tls:"):
		return errSpeaksTLS
	case errors.As(shaken, &other) && string(other.RecordHeader[:]) == "HTTP/":
		return errHTTP1
	}
	return err
}

// rejection finds the reason for a connection that broke at once. In TLS 1.3 a server that
// refuses the client's certificate sends its alert after the handshake, and a client that
// writes first may see a broken pipe in its place; a connection that only reads gets the
// alert.
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
	_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // a connection of package net has deadlines
	if _, heard := conn.Read(make([]byte, 1)); heard != nil && strings.Contains(heard.Error(), "remote error: tls:") {
		return heard
	}
	return err
}

// plainWords leaves out local ports, so that equal errors have equal texts.
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
