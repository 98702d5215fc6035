package csrsigner

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The cases of this file are those that make mutants found no test for: each stands
// for one condition.

func der(t *testing.T, value any, params string) []byte {
	t.Helper()
	b, err := asn1.MarshalWithParams(value, params)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func general(t *testing.T, names ...asn1.RawValue) []byte { return der(t, names, "") }

func TestOtherNames(t *testing.T) {
	dns := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte("a.b")}
	good := general(t, dns, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 7, Bytes: []byte{10, 0, 0, 5}})
	if got := otherNames(good); len(got) != 0 {
		t.Errorf("DNS and IP: %q", got)
	}
	for name, san := range map[string][]byte{
		"nothing":             {},
		"bytes behind":        append(bytes.Clone(good), 5, 0),
		"a set":               der(t, []asn1.RawValue{dns}, "set"),
		"cut short":           good[:len(good)-1],
		"name cut short":      {0x30, 0x03, 0x82, 0x05, 'a'},
		"universal class":     general(t, asn1.RawValue{Class: asn1.ClassUniversal, Tag: 2, Bytes: []byte{1}}),
		"application class":   general(t, asn1.RawValue{Class: asn1.ClassApplication, Tag: 2, Bytes: []byte("a.b")}),
		"constructed":         general(t, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, IsCompound: true, Bytes: []byte{0x16, 1, 'a'}}),
		"email":               general(t, dns, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 1, Bytes: []byte("a@b")}),
		"a number, no names":  {0x02, 0x01, 0x05},
		"sequence in a wrong": {0x31, 0x00},
	} {
		if got := otherNames(san); len(got) == 0 {
			t.Errorf("%s passes", name)
		}
	}
}

// attributes wraps them in what a request's signature covers.
func attributes(t *testing.T, list ...[]byte) []byte {
	t.Helper()
	body := append(append([]byte{2, 1, 0}, 0x30, 0, 0x30, 0), der(t, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: bytes.Join(list, nil)}, "")...)
	return der(t, asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: body}, "")
}

func attributeOf(t *testing.T, id asn1.ObjectIdentifier, values ...int) []byte {
	t.Helper()
	return der(t, struct {
		ID     asn1.ObjectIdentifier
		Values []int `asn1:"set"`
	}{id, values}, "")
}

func TestOtherAttributes(t *testing.T) {
	request := attributeOf(t, oidExtensionRequest, 1)
	for name, c := range map[string]struct {
		tbs  []byte
		want string // part of what is found; empty: nothing
	}{
		"none":              {attributes(t), ""},
		"one request":       {attributes(t, request), ""},
		"two requests":      {attributes(t, request, request), "several extension requests"},
		"request of two":    {attributes(t, attributeOf(t, oidExtensionRequest, 1, 2)), "several extension requests"},
		"request of no set": {attributes(t, der(t, struct{ ID asn1.ObjectIdentifier }{oidExtensionRequest}, "")), "several extension requests"},
		"bytes behind the set": {attributes(t, der(t, struct {
			ID     asn1.ObjectIdentifier
			Values []int `asn1:"set"`
			More   int
		}{oidExtensionRequest, []int{1}, 5}, "")), "several extension requests"},
		"challenge password": {attributes(t, request, attributeOf(t, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}, 1)), "1.2.840.113549.1.9.7"},
		"no OID":             {attributes(t, request, []byte{0x30, 0x03, 0x02, 0x01, 0x05}), "unreadable attribute"},
		"nothing to read":    {[]byte{1, 2, 3}, "unreadable attributes"},
	} {
		got := strings.Join(otherAttributes(c.tbs), ", ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// signed is a request put together by hand: spki is its key's, sign makes the signature.
func signed(t *testing.T, spki []byte, algorithm asn1.ObjectIdentifier, sign func([]byte) []byte) []byte {
	t.Helper()
	subject := der(t, pkix.Name{CommonName: userPrefix + host, Organization: []string{nodesGroup}}.ToRDNSequence(), "")
	body := bytes.Join([][]byte{{2, 1, 0}, subject, spki, {0xa0, 0}}, nil)
	tbs := der(t, asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: body}, "")
	signature := sign(tbs)
	whole := bytes.Join([][]byte{tbs, der(t, pkix.AlgorithmIdentifier{Algorithm: algorithm}, ""), der(t, asn1.BitString{Bytes: signature, BitLength: len(signature) * 8}, "")}, nil)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der(t, asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: whole}, "")})
}

func rsaKeyOf(t *testing.T, bits int) []byte {
	t.Helper()
	n := new(big.Int).SetBit(big.NewInt(1), bits-1, 1)
	return der(t, struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}{pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue},
		func() asn1.BitString {
			b := der(t, struct {
				N *big.Int
				E int
			}{n, 65537}, "")
			return asn1.BitString{Bytes: b, BitLength: len(b) * 8}
		}()}, "")
}

// TestParseEdges has keys and signatures that crypto/x509 does not make.
func TestParseEdges(t *testing.T) {
	none := func([]byte) []byte { return []byte{1} }
	shaWithRSA := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}
	for bits, want := range map[int]string{maxRSABits: "not signed by its own key", maxRSABits + 1: "bits, more than"} {
		if p := parse(signed(t, rsaKeyOf(t, bits), shaWithRSA, none)); !strings.Contains(p.Problem, want) {
			t.Errorf("RSA of %d bits: %q, want %q", bits, p.Problem, want)
		}
	}
	ecKey, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rsaKey, err2 := rsa.GenerateKey(rand.Reader, 2048)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key       crypto.Signer
		algorithm asn1.ObjectIdentifier
	}{{ecKey, asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 1}}, {rsaKey, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 5}}} {
		spki, err := x509.MarshalPKIXPublicKey(c.key.Public())
		if err != nil {
			t.Fatal(err)
		}
		p := parse(signed(t, spki, c.algorithm, func(tbs []byte) []byte {
			sum := sha1.Sum(tbs)
			signature, err := c.key.Sign(rand.Reader, sum[:], crypto.SHA1)
			if err != nil {
				t.Fatal(err)
			}
			return signature
		}))
		if !strings.Contains(p.Problem, "SHA-1") {
			t.Errorf("a signature with SHA-1 passes: %q", p.Problem)
		}
	}
	sound := request(t, nil)
	if p := parse(append(bytes.Repeat([]byte("\n"), maxRequestBytes-len(sound)), sound...)); p.Problem != "" {
		t.Errorf("a request of exactly %d bytes: %s", maxRequestBytes, p.Problem)
	}
	if p := parse(append(append(bytes.Clone(sound[:80]), '\n'), sound...)); p.Problem == "" {
		t.Error("half a block before the request passes")
	}
}

func TestSettledAndNode(t *testing.T) {
	now := metav1.Now()
	for want, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"":         {},
		"issued":   {Status: certificatesv1.CertificateSigningRequestStatus{Certificate: []byte{1}}},
		"deleting": {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}},
		"approved": {Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}}},
		"denied":   {Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}}},
		"failed":   {Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed}}}},
	} {
		if got := settled(csr); got != want {
			t.Errorf("settled: %q, want %q", got, want)
		}
	}
	for label, want := range map[string]bool{"node-role.kubernetes.io/control-plane": true, "node-role.kubernetes.io/master": true, "node-role.kubernetes.io/worker": false} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: ""}}}
		if toNode(n).ControlPlane != want {
			t.Errorf("label %s: control plane %t", label, !want)
		}
	}
}
