//go:debug rsa1024min=0

package services

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"net/netip"
	"slices"
	"sync"
	"testing"
)

// pkcs10 is a certificate request put together byte by byte: crypto/x509 refuses to
// make most of what an attacker would send.
type pkcs10 struct {
	subject    [][]attribute // relative names, each of one attribute or several
	names      [][]byte      // general names of the subject alternative name
	extensions [][]byte      // further requested extensions
	attributes [][]byte      // further attributes
	sanTwice   bool          // the SAN extension stands twice in one extension request
	noSAN      bool          // no SAN extension, not an empty one
	rawSAN     []byte        // instead of names
	twoAsks    bool          // two extension requests, the second with the names
	critical   bool          // the SAN extension is critical
	key        crypto.Signer
	publicKey  []byte // instead of key's, DER
	algorithm  []byte // of the signature, DER; nil: what fits key
	digest     crypto.Hash
	spoil      bool   // flips a bit of the signature
	after      []byte // DER behind the request
}

type attribute struct {
	oid   asn1.ObjectIdentifier
	tag   byte // of the string
	value string
}

const (
	tagSequence  = 0x30
	tagSet       = 0x31
	tagUTF8      = 0x0c
	tagPrintable = 0x13
	tagBMP       = 0x1e
)

var (
	oidCN            = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidO             = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidOU            = asn1.ObjectIdentifier{2, 5, 4, 11}
	oidC             = asn1.ObjectIdentifier{2, 5, 4, 6}
	oidSerial        = asn1.ObjectIdentifier{2, 5, 4, 5}
	oidUID           = asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}
	oidK8sUID        = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}
	oidEmail         = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}
	oidExtRequest    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
	oidChallenge     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}
	oidUnstructured  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 2}
	oidMSExtRequest  = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 2, 1, 14}
	oidSANExtension  = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidIssuerAltName = asn1.ObjectIdentifier{2, 5, 29, 18}
	oidBasic         = asn1.ObjectIdentifier{2, 5, 29, 19}
	oidKeyUsage      = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidExtKeyUsage   = asn1.ObjectIdentifier{2, 5, 29, 37}
	oidNameLimits    = asn1.ObjectIdentifier{2, 5, 29, 30}
	oidSubjectKeyID  = asn1.ObjectIdentifier{2, 5, 29, 14}
	oidUnknown       = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 1}
)

// tlv is one DER value.
func tlv(tag byte, parts ...[]byte) []byte {
	body := slices.Concat(parts...)
	out := []byte{tag}
	switch n := len(body); {
	case n < 0x80:
		out = append(out, byte(n))
	case n < 0x100:
		out = append(out, 0x81, byte(n))
	case n < 0x10000:
		out = append(out, 0x82, byte(n>>8), byte(n))
	default:
		out = append(out, 0x83, byte(n>>16), byte(n>>8), byte(n))
	}
	return append(out, body...)
}

func oid(id asn1.ObjectIdentifier) []byte {
	b, err := asn1.Marshal(id)
	if err != nil {
		panic(err)
	}
	return b
}

func dnsName(s string) []byte       { return tlv(0x82, []byte(s)) }
func emailName(s string) []byte     { return tlv(0x81, []byte(s)) }
func uriName(s string) []byte       { return tlv(0x86, []byte(s)) }
func addressBytes(b ...byte) []byte { return tlv(0x87, b) }
func directoryName(cn string) []byte {
	return tlv(0xa4, tlv(tagSequence, tlv(tagSet, tlv(tagSequence, oid(oidCN), tlv(tagUTF8, []byte(cn))))))
}
func otherName(s string) []byte {
	return tlv(0xa0, oid(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 20, 2, 3}), tlv(0xa0, tlv(tagUTF8, []byte(s))))
}
func registeredID() []byte { return tlv(0x88, oid(oidUnknown)[2:]) }

// ipName takes the address in the length that it is written in.
func ipName(s string) []byte { return addressBytes(netip.MustParseAddr(s).AsSlice()...) }

func extension(id asn1.ObjectIdentifier, critical bool, value []byte) []byte {
	parts := [][]byte{oid(id)}
	if critical {
		parts = append(parts, []byte{1, 1, 0xff})
	}
	return tlv(tagSequence, append(parts, tlv(4, value))...)
}

func attributeOf(id asn1.ObjectIdentifier, values ...[]byte) []byte {
	return tlv(tagSequence, oid(id), tlv(tagSet, values...))
}

// der builds and signs the request.
func (p pkcs10) der(t testing.TB) []byte {
	t.Helper()
	var rdns [][]byte
	for _, rdn := range p.subject {
		var set [][]byte
		for _, a := range rdn {
			tag := a.tag
			if tag == 0 {
				tag = tagUTF8
			}
			set = append(set, tlv(tagSequence, oid(a.oid), tlv(tag, []byte(a.value))))
		}
		rdns = append(rdns, tlv(tagSet, set...))
	}
	public := p.publicKey
	if public == nil {
		var err error
		if public, err = x509.MarshalPKIXPublicKey(p.key.Public()); err != nil {
			t.Fatal(err)
		}
	}
	tbs := tlv(tagSequence, []byte{2, 1, 0}, tlv(tagSequence, rdns...), public, tlv(0xa0, p.asks()...))
	algorithm, signature := p.sign(t, tbs)
	if p.spoil {
		signature[len(signature)/2] ^= 0x40
	}
	return append(tlv(tagSequence, tbs, algorithm, tlv(3, []byte{0}, signature)), p.after...)
}

// asks are the attributes: the extension request first.
func (p pkcs10) asks() [][]byte {
	value := p.rawSAN
	if value == nil {
		value = tlv(tagSequence, p.names...)
	}
	san := extension(oidSANExtension, p.critical, value)
	list := slices.Clone(p.extensions)
	var out [][]byte
	switch {
	case p.noSAN:
	case p.twoAsks:
		out = append(out, attributeOf(oidExtRequest, tlv(tagSequence, san)))
		list = append(list, san)
	case p.sanTwice:
		list = append(list, san, san)
	default:
		list = append([][]byte{san}, list...)
	}
	if len(list) > 0 {
		out = append(out, attributeOf(oidExtRequest, tlv(tagSequence, list...)))
	}
	return append(out, p.attributes...)
}

var signatureOIDs = map[string]asn1.ObjectIdentifier{
	"RSA SHA-1": {1, 2, 840, 113549, 1, 1, 5}, "RSA SHA-256": {1, 2, 840, 113549, 1, 1, 11},
	"ECDSA SHA-1": {1, 2, 840, 10045, 4, 1}, "ECDSA SHA-256": {1, 2, 840, 10045, 4, 3, 2}, "Ed25519": {1, 3, 101, 112},
}

func (p pkcs10) sign(t testing.TB, tbs []byte) (algorithm, signature []byte) {
	t.Helper()
	kind, null := "ECDSA", []byte(nil)
	switch p.key.(type) {
	case *rsa.PrivateKey:
		kind, null = "RSA", []byte{5, 0}
	case ed25519.PrivateKey:
		kind = "Ed25519"
	}
	message, digest := tbs, crypto.Hash(0)
	switch {
	case kind == "Ed25519":
	case p.digest == crypto.SHA1:
		sum := sha1.Sum(tbs)
		message, digest, kind = sum[:], crypto.SHA1, kind+" SHA-1"
	default:
		sum := sha256.Sum256(tbs)
		message, digest, kind = sum[:], crypto.SHA256, kind+" SHA-256"
	}
	signature, err := p.key.Sign(rand.Reader, message, digest)
	if err != nil {
		t.Fatal(err)
	}
	if p.algorithm != nil {
		return p.algorithm, signature
	}
	return tlv(tagSequence, oid(signatureOIDs[kind]), null), signature
}

func armour(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func newKey(c elliptic.Curve) crypto.Signer {
	k, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		panic(err)
	}
	return k
}

// publicOf is a key's public half as a request holds it.
func publicOf(k crypto.Signer) []byte {
	b, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		panic(err)
	}
	return b
}

// spki is a public key of n random bytes of any kind.
func spki(kind asn1.ObjectIdentifier, parameters []byte, n int) []byte {
	point := make([]byte, n)
	_, _ = rand.Read(point)
	point[0] = 4
	return tlv(tagSequence, tlv(tagSequence, oid(kind), parameters), tlv(3, []byte{0}, point))
}

// hugeRSA is a public key with which to verify takes seconds.
func hugeRSA(bits int) []byte {
	n := make([]byte, bits/8)
	_, _ = rand.Read(n)
	n[0], n[len(n)-1] = 0x7f, n[len(n)-1]|1
	key := tlv(tagSequence, tlv(2, n), tlv(2, n))
	return tlv(tagSequence, tlv(tagSequence, oid(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}), []byte{5, 0}), tlv(3, []byte{0}, key))
}

var edKey = func() crypto.Signer {
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return k
}()

// rsaKeys are made once each: 4096 bits take a second.
var rsaKeys sync.Map // bits to func() crypto.Signer

func rsaKey(bits int) crypto.Signer {
	make, _ := rsaKeys.LoadOrStore(bits, sync.OnceValue(func() crypto.Signer {
		k, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			panic(err)
		}
		return k
	}))
	return make.(func() crypto.Signer)()
}
