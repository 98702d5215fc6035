package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// authority is the cluster's CA, which the controller manager signs with.
type authority struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	pem     []byte
	serving tls.Certificate // of the API server
	serial  int64
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key}
	der, err := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, &key.PublicKey, 10*365*24*time.Hour)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: []net.IP{net.ParseIP("192.168.0.10"), net.ParseIP("10.96.0.1")},
		DNSNames: []string{"kubernetes", "kubernetes.default.svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, &own.PublicKey, 10*365*24*time.Hour)
	a.serving = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}
	return a, err
}

// sign issues a certificate for a public key.
func (a *authority) sign(t *x509.Certificate, public *ecdsa.PublicKey, life time.Duration) ([]byte, error) {
	a.serial++
	t.SerialNumber, t.NotBefore, t.NotAfter = big.NewInt(a.serial), time.Now().Add(-5*time.Minute), time.Now().Add(life)
	parent := a.cert
	if parent == nil {
		parent = t
	}
	return x509.CreateCertificate(rand.Reader, t, parent, public, a.key)
}

// issue signs a certificate request as the controller manager does.
func (a *authority) issue(request []byte, usage x509.ExtKeyUsage) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil, fmt.Errorf("the request is no PEM")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	public, ok := r.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("a key of type %T", r.PublicKey)
	}
	der, err := a.sign(&x509.Certificate{Subject: r.Subject, DNSNames: r.DNSNames, IPAddresses: r.IPAddresses, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage}}, public, 365*24*time.Hour)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}
