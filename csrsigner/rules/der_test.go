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
	"slices"
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
	cn := func(kind byte, value string) []byte {
		return tlv(0x30, []byte{6, 3, 0x55, 4, 3}, tlv(kind, []byte(value)))
	}
	o := tlv(0x30, []byte{6, 3, 0x55, 4, 10}, tlv(0x13, []byte(NodesGroup)))
	subject := func(parts ...[]byte) []byte {
		return signedAnew(t, tlv(0x30, version, tlv(0x30, parts...), key, attributes), algorithm, nil)
	}
	keyed := func(algorithm, bits []byte) []byte {
		return tlv(0x30, version, name, tlv(0x30, algorithm, bits), attributes)
	}
	if p := parsed(subject(tlv(0x31, o), tlv(0x31, cn(0x0c, UserPrefix+host)))); p.Problem != "" {
		t.Errorf("a subject in UTF8String: %s", p.Problem)
	}
	ecSHA256 := algorithm[2:]
	for what, der := range map[string][]byte{
		"a common name in a TeletexString":         subject(tlv(0x31, o), tlv(0x31, cn(0x14, UserPrefix+host))),
		"a common name in an IA5String":            subject(tlv(0x31, o), tlv(0x31, cn(0x16, UserPrefix+host))),
		"a common name in a BMPString":             subject(tlv(0x31, o), tlv(0x31, cn(0x1e, "\x00x"))),
		"two attributes in one set":                subject(tlv(0x31, o, cn(0x13, UserPrefix+host))),
		"an empty set in the subject":              subject(tlv(0x31, o), tlv(0x31), tlv(0x31, cn(0x13, UserPrefix+host))),
		"an attribute of three parts":              subject(tlv(0x31, o), tlv(0x31, tlv(0x30, []byte{6, 3, 0x55, 4, 3}, tlv(0x13, []byte(UserPrefix+host)), tlv(0x13, []byte("kubernetes"))))),
		"a NULL with a signature of ECDSA":         signedAnew(t, honest, tlv(0x30, ecSHA256, []byte{5, 0}), nil),
		"a curve with a signature of ECDSA":        signedAnew(t, honest, tlv(0x30, ecSHA256, []byte{6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}), nil),
		"a text with a signature of ECDSA":         signedAnew(t, honest, tlv(0x30, ecSHA256, tlv(0x0c, []byte("kubernetes"))), nil),
		"a key of ECDSA with a sequence of curves": signedAnew(t, keyed(tlv(0x30, []byte{6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1}, tlv(0x30, []byte{6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7})), keyParts[1].FullBytes), algorithm, nil),
		"a key of Ed25519 with NULL":               signedAnew(t, keyed(tlv(0x30, []byte{6, 3, 0x2b, 0x65, 0x70, 5, 0}), keyParts[1].FullBytes), algorithm, nil),
		"a key of RSA without NULL":                signedAnew(t, keyed(tlv(0x30, []byte{6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1}), tlv(3, []byte{0}, rsaNumbers)), algorithm, nil),
		"bytes behind the request":                 append(signedAnew(t, honest, algorithm, nil), 0),
		"a value behind the signature":             signedAnew(t, honest, algorithm, extra),
		"zeros behind the signature":               signedAnew(t, honest, algorithm, []byte{0, 0}),
		"a value behind the attributes":            signedAnew(t, tlv(0x30, version, name, key, attributes, extra), algorithm, nil),
		"a second list of attributes":              signedAnew(t, tlv(0x30, version, name, key, attributes, attributes), algorithm, nil),
		"a value behind the algorithm":             signedAnew(t, honest, tlv(0x30, algorithm[2:], []byte{5, 0}, extra), nil),
		"a value behind the key":                   signedAnew(t, tlv(0x30, version, name, tlv(0x30, keyParts[0].FullBytes, keyParts[1].FullBytes, extra), attributes), algorithm, nil),
		"a value behind an attribute":              signedAnew(t, tlv(0x30, version, name, key, tlv(0xa0, tlv(0x30, attributeParts[0].FullBytes, attributeParts[1].FullBytes, extra))), algorithm, nil),
		"version 1":                                signedAnew(t, tlv(0x30, []byte{2, 1, 1}, name, key, attributes), algorithm, nil),
		"a length that is not the shortest":        append([]byte{0x30, 0x83, 0}, signedAnew(t, honest, algorithm, nil)[2:]...),
		"an indefinite length":                     append(append([]byte{0x30, 0x80}, signedAnew(t, honest, algorithm, nil)[4:]...), 0, 0),
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

// rsaNumbers is the key of a request of RSA.
var rsaNumbers = tlv(0x30, tlv(2, append([]byte{0, 0x80}, make([]byte, 255)...)), tlv(2, []byte{1, 0, 1}))

// TestKeysOfRSAHaveTwoNumbers: crypto/x509 reads past what stands behind the exponent.
func TestKeysOfRSAHaveTwoNumbers(t *testing.T) {
	info, algorithm := pieces(t)
	for want, bits := range map[string][]byte{
		"not signed": rsaNumbers,
		"modulus":    tlv(0x30, rsaNumbers[4:], tlv(0x0c, []byte("kubernetes"))),
		"modulus ":   append(rsaNumbers[:len(rsaNumbers):len(rsaNumbers)], 5, 0),
		" modulus":   tlv(0x30, tlv(2, []byte{1, 0, 1})),
	} {
		key := tlv(0x30, tlv(0x30, []byte{6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0}), tlv(3, []byte{0}, bits))
		p := parsed(signedAnew(t, tlv(0x30, info[0].FullBytes, info[1].FullBytes, key, info[3].FullBytes), algorithm, nil))
		if !strings.Contains(p.Problem, strings.TrimSpace(want)) {
			t.Errorf("%q, want %q", p.Problem, want)
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
	p, next := strong.Primes[0], new(big.Int).Add(strong.Primes[0], big.NewInt(1<<20))
	for !next.ProbablyPrime(0) {
		next.Add(next, big.NewInt(2))
	}
	prime, err := rand.Prime(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	product := func(of ...*big.Int) *rsa.PublicKey {
		n := big.NewInt(1)
		for _, f := range of {
			n.Mul(n, f)
		}
		return &rsa.PublicKey{N: n, E: 65537}
	}
	for what, key := range map[string]any{
		"exponent 3":     &rsa.PublicKey{N: strong.N, E: 3},
		"exponent 1":     &rsa.PublicKey{N: strong.N, E: 1},
		"even exponent":  &rsa.PublicKey{N: strong.N, E: 65538},
		"exponent 65535": &rsa.PublicKey{N: strong.N, E: 65535},
		"a prime":        product(prime), "a square": product(p, p), "a cube": product(p, p, p), "close primes": product(p, next), "a square of two primes": product(strong.N, strong.N), "of ROCA": rocaKey(t),
		"even modulus": &rsa.PublicKey{N: even, E: 65537},
		"factor 751":   &rsa.PublicKey{N: new(big.Int).Mul(strong.N, big.NewInt(751)), E: 65537},
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

// rocaKey is of two primes as the library of CVE-2017-15361 made them: 65537 to a power modulo the product of small primes, plus
// a multiple of that product.
func rocaKey(t *testing.T) *rsa.PublicKey {
	t.Helper()
	primorial := big.NewInt(1)
	for p := int64(2); p <= rocaPrimes; p++ {
		if big.NewInt(p).ProbablyPrime(0) {
			primorial.Mul(primorial, big.NewInt(p))
		}
	}
	made := func() *big.Int {
		for {
			k, err1 := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(1024-primorial.BitLen())))
			a, err2 := rand.Int(rand.Reader, primorial)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			p := new(big.Int).Exp(big.NewInt(65537), a, primorial)
			if p.Add(p, k.Mul(k, primorial)).ProbablyPrime(0) {
				return p
			}
		}
	}
	return &rsa.PublicKey{N: new(big.Int).Mul(made(), made()), E: 65537}
}

// TestSmallSecrets: whoever counts finds the secret of these keys, on each curve and from either end.
func TestSmallSecrets(t *testing.T) {
	for _, c := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		for _, secret := range []int64{1, 2, nearSecrets, nearSecrets + 1, 2 * nearSecrets, 3*nearSecrets + 7, 12345, smallSecrets - 1, -1, -2, -40000, -smallSecrets + 1} {
			k := new(big.Int).Mod(big.NewInt(secret), c.Params().N)
			x, y := curve(c).ScalarBaseMult(k.Bytes())
			size := (c.Params().BitSize + 7) / 8
			key, err := ecdsa.ParseUncompressedPublicKey(c, slices.Concat([]byte{4}, x.FillBytes(make([]byte, size)), y.FillBytes(make([]byte, size))))
			if err != nil {
				t.Fatal(err)
			}
			if weakness(key) == "" {
				t.Errorf("%s: the secret %d passes", c.Params().Name, secret)
			}
		}
		strong, err := ecdsa.GenerateKey(c, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if why := weakness(&strong.PublicKey); why != "" {
			t.Errorf("%s: %s", c.Params().Name, why)
		}
	}
}
