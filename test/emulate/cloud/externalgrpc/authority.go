package externalgrpc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs the certificates of a plug-in and of its clients. Its files are in
// PEM form in one directory.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

// NewAuthority makes one, with its certificate in dir.
func NewAuthority(dir string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	own := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, own, own, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a := &Authority{key: key, dir: dir}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return a, a.write("ca.pem", "CERTIFICATE", der)
}

// File is the authority's own certificate.
func (a *Authority) File() string { return filepath.Join(a.dir, "ca.pem") }

func (a *Authority) write(name, kind string, der []byte) error {
	return os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// Issue writes a certificate and its key and returns their files. It is good for a
// server at 127.0.0.1 or plugin.test and for a client, until the given time.
func (a *Authority) Issue(name string, until time.Time) (cert, key string, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until, DNSNames: []string{"plugin.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.cert, k.Public(), a.key)
	if err != nil {
		return "", "", err
	}
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return "", "", err
	}
	if err := a.write(name+".pem", "CERTIFICATE", der); err != nil {
		return "", "", err
	}
	return filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+"-key.pem"), a.write(name+"-key.pem", "EC PRIVATE KEY", raw)
}

// Server is the configuration of a plug-in that wants a certificate of its clients.
func (a *Authority) Server() (*tls.Config, error) {
	cert, key, err := a.Issue("server", time.Now().Add(24*time.Hour))
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}, nil
}
