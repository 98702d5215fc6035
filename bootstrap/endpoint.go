package bootstrap

import (
	"context"
	"crypto/x509"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Endpoint is where workers reach the API server.
type Endpoint struct {
	// Address is host:port of the discovery, and Source where it is configured.
	Address, Source string
	// Server is the URL in cluster-info, which a joined kubelet keeps. CA is its bundle.
	Server string
	CA     []byte
}

// ReadEndpoint finds the endpoint that cfg would publish.
func ReadEndpoint(ctx context.Context, client *kube.Client, cfg Config) (Endpoint, error) {
	info, err := readClusterInfo(ctx, client)
	if err != nil {
		return Endpoint{}, err
	}
	s := &Service{cfg: cfg, deps: Deps{Client: client}}
	address, source, err := s.endpoint(ctx, info)
	return Endpoint{Address: address, Source: source, Server: info.server, CA: info.ca}, err
}

// Covers is an error unless the API server's certificate is valid for the endpoint.
func (e Endpoint) Covers(cert *x509.Certificate) error { return covered(cert, e.Address, e.Source) }
