package rules

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

var testKey = func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}()

// signedAnew makes a request of a CertificationRequestInfo and signs it, so that nothing but its form is wrong.
func signedAnew(t *testing.T, info, algorithm []byte, behind []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(info)
	signature, err := testKey.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	bits, err := asn1.Marshal(asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)})
	if err != nil {
		t.Fatal(err)
	}
	return tlv(0x30, info, algorithm, bits, behind)
}

// tlv is a value of short or long form.
func tlv(tag byte, parts ...[]byte) []byte {
	var content []byte
	for _, p := range parts {
		content = append(content, p...)
	}
	switch n := len(content); {
	case n < 128:
		return append([]byte{tag, byte(n)}, content...)
	case n < 256:
		return append([]byte{tag, 0x81, byte(n)}, content...)
	default:
		return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, content...)
	}
}

// pieces takes an honest request apart.
func pieces(t *testing.T) (info []asn1.RawValue, algorithm []byte) {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: UserPrefix + host, Organization: []string{NodesGroup}}, DNSNames: []string{host}}, testKey)
	if err != nil {
		t.Fatal(err)
	}
	if why := derFault(der); why != "" {
		t.Fatalf("an honest request: %s", why)
	}
	outer, err := elements(der)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := elements(outer[0].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if info, err = elements(parts[0].Bytes); err != nil {
		t.Fatal(err)
	}
	return info, parts[1].FullBytes
}

func parsed(der []byte) Parsed {
	return Parse(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// TestRequestsAreDERToTheLastByte: each of these is signed by its own key, and a reader that passes over what it does not
// know takes it.
func TestRequestsAreDERToTheLastByte(t *testing.T) {
	info, algorithm := pieces(t)
	version, name, key, attributes := info[0].FullBytes, info[1].FullBytes, info[2].FullBytes, info[3].FullBytes
	extra := tlv(0x30, tlv(0x0c, []byte("kubernetes.default.svc")))
	honest := tlv(0x30, version, name, key, attributes)
	if p := parsed(signedAnew(t, honest, algorithm, nil)); p.Problem != "" || len(p.DNS) != 1 {
		t.Fatalf("the honest request: %+v", p)
	}
	keyParts, err := elements(info[2].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	attribute, err := elements(info[3].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	attributeParts, err := elements(attribute[0].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for what, der := range map[string][]byte{
		"bytes behind the request":          append(signedAnew(t, honest, algorithm, nil), 0),
		"a value behind the signature":      signedAnew(t, honest, algorithm, extra),
		"zeros behind the signature":        signedAnew(t, honest, algorithm, []byte{0, 0}),
		"a value behind the attributes":     signedAnew(t, tlv(0x30, version, name, key, attributes, extra), algorithm, nil),
		"a second list of attributes":       signedAnew(t, tlv(0x30, version, name, key, attributes, attributes), algorithm, nil),
		"a value behind the algorithm":      signedAnew(t, honest, tlv(0x30, algorithm[2:], []byte{5, 0}, extra), nil),
		"a value behind the key":            signedAnew(t, tlv(0x30, version, name, tlv(0x30, keyParts[0].FullBytes, keyParts[1].FullBytes, extra), attributes), algorithm, nil),
		"a value behind an attribute":       signedAnew(t, tlv(0x30, version, name, key, tlv(0xa0, tlv(0x30, attributeParts[0].FullBytes, attributeParts[1].FullBytes, extra))), algorithm, nil),
		"version 1":                         signedAnew(t, tlv(0x30, []byte{2, 1, 1}, name, key, attributes), algorithm, nil),
		"a length that is not the shortest": append([]byte{0x30, 0x83, 0}, signedAnew(t, honest, algorithm, nil)[2:]...),
		"an indefinite length":              append(append([]byte{0x30, 0x80}, signedAnew(t, honest, algorithm, nil)[4:]...), 0, 0),
		"deep nesting": signedAnew(t, tlv(0x30, version, name, key, tlv(0xa0, func() []byte {
			v := []byte{5, 0}
			for range 40 {
				v = tlv(0x30, v)
			}
			return v
		}())), algorithm, nil),
	} {
		p := parsed(der)
		if p.Problem == "" && len(p.OtherExtensions) == 0 {
			t.Errorf("%s: passes", what)
		}
	}
}

// TestExtensionsHaveTheirThreeParts: a name that stands behind the bytes of an extension is no part of it to one reader
// and may be one to another.
func TestExtensionsHaveTheirThreeParts(t *testing.T) {
	info, algorithm := pieces(t)
	attribute, err := elements(info[3].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := elements(attribute[0].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	san := tlv(0x04, tlv(0x30, tlv(0x82, []byte(host))))
	oid := []byte{0x06, 3, 0x55, 0x1d, 0x11}
	for what, extension := range map[string][]byte{
		"": tlv(0x30, oid, san), "TRUE": tlv(0x30, oid, []byte{1, 1, 0xff}, san),
		"a second value": tlv(0x30, oid, san, tlv(0x04, tlv(0x30, tlv(0x82, []byte("kubernetes"))))),
		"FALSE":          tlv(0x30, oid, []byte{1, 1, 0}, san),
		"a TRUE of 1":    tlv(0x30, oid, []byte{1, 1, 1}, san),
		"no bytes":       tlv(0x30, oid),
	} {
		set := tlv(0x31, tlv(0x30, extension))
		der := signedAnew(t, tlv(0x30, info[0].FullBytes, info[1].FullBytes, info[2].FullBytes, tlv(0xa0, tlv(0x30, parts[0].FullBytes, set))), algorithm, nil)
		p := parsed(der)
		refused := p.Problem != "" || len(p.OtherExtensions)+len(p.OtherNames) > 0
		if honest := what == "" || what == "TRUE"; refused == honest {
			t.Errorf("extension with %q: refused %t (%+v)", what, refused, p)
		}
	}
}

// TestWeakKeys: keys of strong kinds and sizes for which others can sign.
func TestWeakKeys(t *testing.T) {
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	identity := func(text string) ed25519.PublicKey {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != 32 {
			t.Fatal(err, len(b))
		}
		return b
	}
	honest, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for what, key := range map[string]any{"an honest RSA key": &strong.PublicKey, "an honest Ed25519 key": honest, "an honest ECDSA key": &testKey.PublicKey} {
		if why := weakness(key); why != "" {
			t.Errorf("%s: %s", what, why)
		}
	}
	even := new(big.Int).Lsh(strong.N, 1)
	for what, key := range map[string]any{
		"exponent 3":     &rsa.PublicKey{N: strong.N, E: 3},
		"exponent 1":     &rsa.PublicKey{N: strong.N, E: 1},
		"even exponent":  &rsa.PublicKey{N: strong.N, E: 65538},
		"exponent 65535": &rsa.PublicKey{N: strong.N, E: 65535},
		"even modulus":   &rsa.PublicKey{N: even, E: 65537},
		"factor 751":     &rsa.PublicKey{N: new(big.Int).Mul(strong.N, big.NewInt(751)), E: 65537},
	} {
		if weakness(key) == "" {
			t.Errorf("%s: passes", what)
		}
	}
	for _, p := range smallOrderPoints {
		for _, sign := range []string{p, p[:62] + hex.EncodeToString([]byte{identity(p)[31] | 0x80})} {
			if weakness(identity(sign)) == "" {
				t.Errorf("the point %s of small order passes", sign)
			}
		}
	}
	// The identity with a signature that needs no secret, as a request: crypto/ed25519 takes the signature.
	forged := make([]byte, 64)
	forged[0] = 1
	if !ed25519.Verify(identity(smallOrderPoints[1]), []byte("anything"), forged) {
		t.Fatal("the forged signature is not what this test takes it for")
	}
	if do, why := key(Request{Parsed: Parsed{Key: "Ed25519", Weakness: weakness(identity(smallOrderPoints[1]))}}, Facts{}); do != Deny || !strings.Contains(why, "small order") {
		t.Errorf("%v %q", do, why)
	}
}
