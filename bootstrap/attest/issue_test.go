package attest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// newAuthority is a cluster's CA, its key in the form that kubeadm or another tool writes.
func newAuthority(t *testing.T, form string, end time.Time) (certificate, key []byte) {
	t.Helper()
	var signer crypto.Signer
	var err error
	if strings.HasPrefix(form, "RSA") {
		signer, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "PRIVATE KEY"}
	switch k := signer.(type) {
	case *rsa.PrivateKey:
		if block.Bytes, err = x509.MarshalPKCS8PrivateKey(k); form == "RSA" {
			block.Type, block.Bytes = "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k)
		}
	case *ecdsa.PrivateKey:
		block.Type = "EC PRIVATE KEY"
		block.Bytes, err = x509.MarshalECPrivateKey(k)
	}
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: end.Add(-10 * 365 * 24 * time.Hour), NotAfter: end,
		IsCA: form != "EC, no CA", BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(block)
}

func pairOf(t *testing.T, data []byte) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestIssue: every form of a CA's key signs, also one in a bundle, and the certificate serves
// one name and nothing else.
func TestIssue(t *testing.T) {
	now := time.Now()
	old, _ := newAuthority(t, "EC", now.Add(time.Hour))
	for _, form := range []string{"RSA", "RSA, PKCS 8", "EC"} {
		ca, key := newAuthority(t, form, now.Add(5*365*24*time.Hour))
		for name, bundle := range map[string][]byte{"alone": ca, "behind the old one": slices.Concat(old, ca), "before the old one": slices.Concat(ca, old)} {
			data, err := Issue(bundle, key, now)
			if err != nil {
				t.Errorf("%s %s: %v", form, name, err)
				continue
			}
			pair := pairOf(t, data)
			leaf := pair.Leaf
			if why := Judge(pair, bundle, now); why != "" {
				t.Errorf("%s %s: a new one is refused: %s", form, name, why)
			}
			if !slices.Equal(leaf.DNSNames, []string{ServerName}) || len(leaf.IPAddresses) > 0 || leaf.IsCA || !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
				t.Errorf("%s %s: names %v %v, CA %t, usages %v", form, name, leaf.DNSNames, leaf.IPAddresses, leaf.IsCA, leaf.ExtKeyUsage)
			}
		}
	}
}

// TestIssueRefuses: a key of another CA, half a bundle, a CA that may not sign and one that
// has ended are told of.
func TestIssueRefuses(t *testing.T) {
	now := time.Now()
	ca, key := newAuthority(t, "EC", now.Add(time.Hour))
	_, other := newAuthority(t, "EC", now.Add(time.Hour))
	ended, endedKey := newAuthority(t, "EC", now.Add(-time.Hour))
	leaf, leafKey := newAuthority(t, "EC, no CA", now.Add(time.Hour))
	for name, c := range map[string]struct {
		ca, key []byte
		want    string
	}{
		"another key":  {ca, other, "private key does not match public key"},
		"no key":       {ca, nil, "failed to find any PEM data in key input"},
		"an empty CA":  {nil, key, "there is no certificate"},
		"half a CA":    {ca[:len(ca)/2], key, "there is no certificate"},
		"its end":      {ended, endedKey, "the cluster's CA ended at"},
		"no authority": {leaf, leafKey, "may not sign"},
	} {
		if _, err := Issue(c.ca, c.key, now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	short, err := Issue(ca, key, now)
	if err != nil || pairOf(t, short).Leaf.NotAfter.After(now.Add(time.Hour)) {
		t.Errorf("the certificate outlives its CA: %v", err)
	}
}

// TestJudge: what makes a certificate useless, or nearly so, is named.
func TestJudge(t *testing.T) {
	now := time.Now()
	ca, key := newAuthority(t, "EC", now.Add(5*365*24*time.Hour))
	foreign, _ := newAuthority(t, "EC", now.Add(time.Hour))
	data, err := Issue(ca, key, now)
	if err != nil {
		t.Fatal(err)
	}
	pair := pairOf(t, data)
	api := pairOf(t, data)
	api.Leaf = &x509.Certificate{DNSNames: []string{"k8s.example.net"}, NotAfter: now.Add(time.Hour)}
	for name, c := range map[string]struct {
		pair tls.Certificate
		ca   []byte
		at   time.Time
		want string
	}{
		"new":             {pair, ca, now, ""},
		"after 8 months":  {pair, ca, now.Add(certificateLife * 65 / 100), ""},
		"after 9 months":  {pair, ca, now.Add(certificateLife * 3 / 4), "it ends at"},
		"over":            {pair, ca, now.Add(certificateLife + time.Second), "it ended at"},
		"another cluster": {pair, foreign, now, "this cluster's CA did not sign it"},
		"no cluster":      {pair, nil, now, ""},
		"another name":    {api, ca, now, "it is not for the name " + ServerName},
	} {
		if why := Judge(c.pair, c.ca, c.at); !strings.HasPrefix(why, c.want) || (why == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
}
