package attest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// ServerName is the one name in the listener's certificate, which every machine asks for
// whatever the address that it connects to. No client takes a server of this name for the API
// server, and no other certificate of the cluster's CA (the API server's, a kubelet's) has it:
// neither key can be used in the place of the other. RFC 6761 keeps "invalid" out of DNS.
const ServerName = "autoscaler-agent-attest.invalid"

// DefaultFile holds certificate and key, so that a renewal replaces both at once.
const DefaultFile = "/etc/autoscaler-agent/attest.pem"

// AuthorityFile is where kubeadm keeps the certificate of the cluster's CA.
const AuthorityFile = "/etc/kubernetes/pki/ca.crt"

// certificateLife is how long a certificate lasts; it is renewed in its last third.
const certificateLife = 365 * 24 * time.Hour

// Issue has the cluster's CA sign a new key for the listener, and returns certificate and key
// in PEM. authorities may hold several certificates; the one of authorityKey signs.
func Issue(authorities, authorityKey []byte, now time.Time) ([]byte, error) {
	ca, signer, err := authority(authorities, authorityKey)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the listener's key: %w", err)
	}
	form := &x509.Certificate{
		Subject: pkix.Name{CommonName: "autoscaler-agent-attest"}, DNSNames: []string{ServerName},
		NotBefore: now.Add(-maxSkew), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if ca.NotAfter.Before(form.NotAfter) {
		form.NotAfter = ca.NotAfter
	}
	if !form.NotAfter.After(now) {
		return nil, fmt.Errorf("the cluster's CA ended at %s", ca.NotAfter.UTC().Format(time.RFC3339))
	}
	der, err := x509.CreateCertificate(rand.Reader, form, ca, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("sign the listener's certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the listener's key: %w", err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...), nil
}

// authority finds the certificate that a key belongs to.
func authority(authorities, key []byte) (*x509.Certificate, crypto.Signer, error) {
	var err error
	for block, rest := pem.Decode(authorities); block != nil; block, rest = pem.Decode(rest) {
		var pair tls.Certificate
		if pair, err = tls.X509KeyPair(pem.EncodeToMemory(block), key); err == nil {
			signer, ok := pair.PrivateKey.(crypto.Signer)
			if !ok || !pair.Leaf.IsCA {
				return nil, nil, errors.New("the certificate of the cluster's CA may not sign")
			}
			return pair.Leaf, signer, nil
		}
	}
	if err == nil {
		err = errors.New("there is no certificate")
	}
	return nil, nil, fmt.Errorf("the cluster's CA: %w", err)
}

// Judge tells why the listener's certificate has to be made anew; empty: it has not. Without
// authorities nobody's signature is looked at.
func Judge(pair tls.Certificate, authorities []byte, now time.Time) (why string) {
	leaf := pair.Leaf
	if leaf.VerifyHostname(ServerName) != nil {
		return "it is not for the name " + ServerName
	}
	if len(authorities) > 0 {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authorities)
		// The end is judged below, in words of its own.
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: leaf.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
			return "this cluster's CA did not sign it"
		}
	}
	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		return "it ended at " + leaf.NotAfter.UTC().Format(time.RFC3339)
	case left < leaf.NotAfter.Sub(leaf.NotBefore)/3:
		return "it ends at " + leaf.NotAfter.UTC().Format(time.RFC3339)
	}
	return ""
}
