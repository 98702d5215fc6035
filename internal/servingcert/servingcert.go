// Package servingcert reads the certificate that an API server shows to its
// clients. Its names are those that no worker may ever get a certificate for
// (csrsigner, rule R9) and those that a join endpoint must be one of (bootstrap).
//
// Small and apart: csrsigner, bootstrap and check read it. It refuses to believe a certificate that the client configuration's own CA does
// not vouch for, and sends no request: the handshake is all.
package servingcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"

	"k8s.io/client-go/rest"
)

// Fetch returns the leaf certificate of the server that config leads to. A config
// without TLS (plain http) is an error.
func Fetch(ctx context.Context, config *rest.Config) (*x509.Certificate, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's certificate: %w", err)
	}
	settings, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's certificate: %w", err)
	}
	if base.Scheme != "https" {
		return nil, fmt.Errorf("read the API server's certificate: %s is not served over TLS", base)
	}
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if settings.ServerName == "" {
		settings.ServerName = base.Hostname()
	}
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", hostPort(base))
	if err != nil {
		return nil, fmt.Errorf("read the API server's certificate: %w", err)
	}
	tlsConn := tls.Client(conn, settings)
	defer func() { _ = tlsConn.Close() }()
	if err := tlsConn.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("read the API server's certificate: %w", err)
	}
	if len(tlsConn.ConnectionState().PeerCertificates) == 0 {
		return nil, errors.New("read the API server's certificate: none was shown")
	}
	return tlsConn.ConnectionState().PeerCertificates[0], nil
}

func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), "443")
}
