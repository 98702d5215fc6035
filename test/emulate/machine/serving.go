package machine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// server is a kubelet's TLS port, on loopback: at the machine's own address where that
// is a loopback one. Until a certificate is issued every handshake fails, as with
// serverTLSBootstrap.
type server struct {
	host string
	port int
	http *http.Server

	mu   sync.Mutex
	pair *tls.Certificate
}

func newServer(addresses []netip.Addr) *server {
	for _, a := range addresses {
		if a.IsLoopback() {
			return &server{host: a.String()}
		}
	}
	return &server{host: "127.0.0.1"}
}

func (s *server) address() string { return net.JoinHostPort(s.host, strconv.Itoa(s.port)) }

func (s *server) certificate() *tls.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pair
}

func (s *server) setCertificate(c *tls.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pair = c
}

// listen takes the port of the run before, if it is still free.
func (s *server) listen(k *kubelet) error {
	l, err := net.Listen("tcp", s.address())
	if err != nil && s.port != 0 {
		l, err = net.Listen("tcp", net.JoinHostPort(s.host, "0"))
	}
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	mux.HandleFunc("GET /metrics/resource", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		k.resourceMetrics(w, time.Now())
	})
	mux.HandleFunc("GET /pods", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(k.podList())
	})
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "log of %s/%s/%s on %s\n", r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), k.name())
	})
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0), // failed handshakes are the tests' business
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c := s.certificate(); c != nil {
			return c, nil
		}
		return nil, errors.New("no serving certificate available for the kubelet")
	}}
	go s.http.Serve(tls.NewListener(l, config))
	return nil
}

func (s *server) close() { s.http.Close() }

// serving gets the kubelet its serving certificate. A refused request is followed by
// another, later each time, as in the kubelet's certificate manager.
func (k *kubelet) serving(ctx context.Context) {
	if k.m.cfg.SelfSigned {
		if err := k.signOwn(); err != nil {
			k.m.setErr(err)
		}
		return
	}
	if k.server.certificate() != nil || !k.id.config.ServerTLSBootstrap {
		return
	}
	for wait := 2 * time.Second; ; wait = min(2*wait, 2*time.Minute) {
		var pair keyPair
		key, err := newKey()
		if err == nil {
			pair, err = request(ctx, k.csrs, servingRequest(k.name(), k.addresses()), key, certificatesv1.KubeletServingSignerName,
				[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}, "csr-")
		}
		if err == nil {
			var c *tls.Certificate
			if c, err = pair.tls(); err == nil {
				k.server.setCertificate(c)
				k.m.mark(func(t *Times) {
					if t.ServingCert.IsZero() {
						t.ServingCert = time.Now()
					}
				})
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		fmt.Fprintf(k.m.console, "kubelet: serving certificate: %v\n", err)
		if !pause(ctx, wait) {
			return
		}
	}
}

// signOwn makes a serving certificate that nobody but the machine vouches for.
func (k *kubelet) signOwn() error {
	request := servingRequest(k.name(), k.addresses())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("sign serving certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("sign serving certificate: %w", err)
	}
	k.server.setCertificate(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})
	k.m.mark(func(t *Times) { t.ServingCert = time.Now() })
	return nil
}

// DialServing connects to the kubelet of a Node over loopback, verifies its
// certificate against roots for every address and name that the Node reports, asks
// for /healthz, and returns the certificate.
func DialServing(ctx context.Context, node *corev1.Node, roots *x509.CertPool) (*x509.Certificate, error) {
	address := node.Annotations[Annotation]
	if address == "" {
		return nil, fmt.Errorf("dial kubelet of %s: annotation %s is missing", node.Name, Annotation)
	}
	if len(node.Status.Addresses) == 0 {
		return nil, fmt.Errorf("dial kubelet of %s: the Node reports no address", node.Name)
	}
	var leaf *x509.Certificate
	transport := &http.Transport{
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig: &tls.Config{
			RootCAs: roots, ServerName: node.Status.Addresses[0].Address, MinVersion: tls.VersionTLS12,
			VerifyConnection: func(cs tls.ConnectionState) error {
				leaf = cs.PeerCertificates[0]
				for _, a := range node.Status.Addresses {
					if err := leaf.VerifyHostname(a.Address); err != nil {
						return err
					}
				}
				return nil
			},
		},
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/healthz", nil)
	if err != nil {
		return nil, fmt.Errorf("dial kubelet of %s: %w", node.Name, err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("dial kubelet of %s: %w", node.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("dial kubelet of %s: /healthz: %s", node.Name, resp.Status)
	}
	return leaf, nil
}
