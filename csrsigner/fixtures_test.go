package csrsigner

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// The values below are those of the tests of package rules: one machine, its request and
// the names that R9 protects.

const (
	host         = "ip-10-0-0-5.ec2.internal"
	ownID        = cluster.InstanceID("aws:///us-east-1a/i-0a")
	nextID       = cluster.InstanceID("aws:///us-east-1a/i-0b")
	workersGroup = "system:bootstrappers:autoscaler-agent:workers"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func ownInstance() *cluster.Instance {
	return &cluster.Instance{ID: ownID, Phase: cluster.PhaseRunning, Member: true, Created: noon.Add(-time.Minute),
		NodeNames: []string{host, "i-0a.ec2.internal"}, Names: []string{host, "i-0a.ec2.internal", "ec2-203-0-113-5.compute-1.amazonaws.com"},
		Addresses: []netip.Addr{addr("10.0.0.5"), addr("203.0.113.5"), addr("2001:db8::5")}}
}

func clusterNames() *rules.Forbidden {
	return &rules.Forbidden{Names: []string{"api.example.com", "leader"}, Addresses: []netip.Addr{addr("10.0.0.1")},
		Ranges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd00:96::/108")}, DNSDomain: "cluster.local"}
}

func request(tb testing.TB, change func(*x509.CertificateRequest)) []byte {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: rules.UserPrefix + host, Organization: []string{rules.NodesGroup}},
		DNSNames: []string{host}, IPAddresses: []net.IP{net.ParseIP("10.0.0.5")}}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func selfSigned(tb testing.TB) []byte { return request(tb, nil) }
