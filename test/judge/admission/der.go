package admission

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
)

// tlv is one element of DER, its length in the one form that DER has.
func tlv(tag byte, parts ...[]byte) []byte {
	var content []byte
	for _, p := range parts {
		content = append(content, p...)
	}
	n := len(content)
	switch {
	case n < 1<<7:
		return append([]byte{tag, byte(n)}, content...)
	case n < 1<<8:
		return append([]byte{tag, 0x81, byte(n)}, content...)
	}
	return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, content...)
}

// oddForms is how many ways oddly knows.
const oddForms = 5

// oddly is tlv with a length that is longer than it need be, or indefinite.
func oddly(form int, tag byte, content []byte) []byte {
	n := len(content)
	switch form {
	case 0:
		return append([]byte{tag, 0x81, byte(n)}, content...)
	case 1:
		return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, content...)
	case 2:
		return append([]byte{tag, 0x83, 0, byte(n >> 8), byte(n)}, content...)
	case 3:
		return append([]byte{tag, 0x84, 0, 0, byte(n >> 8), byte(n)}, content...)
	}
	return append(append([]byte{tag, 0x80}, content...), 0, 0)
}

func oid(arcs ...int) []byte {
	der, err := asn1.Marshal(asn1.ObjectIdentifier(arcs))
	if err != nil {
		panic(err) // the arcs are written here
	}
	return der
}

var (
	idSAN       = oid(2, 5, 29, 17)
	idExtension = oid(1, 2, 840, 113549, 1, 9, 14)
	ecdsaSHA256 = tlv(0x30, oid(1, 2, 840, 10045, 4, 3, 2))
)

func dnsName(name string) []byte { return tlv(0x82, []byte(name)) }

func address(ip []byte) []byte { return tlv(0x87, ip) }

// extension is one extension of a request.
func extension(id, value []byte, critical bool) []byte {
	if critical {
		return tlv(0x30, id, []byte{1, 1, 0xff}, tlv(4, value))
	}
	return tlv(0x30, id, tlv(4, value))
}

func names(of ...[]byte) []byte { return tlv(0x30, of...) }

// asking is the attribute that asks for extensions.
func asking(extensions ...[]byte) []byte {
	return tlv(0x30, idExtension, tlv(0x31, tlv(0x30, extensions...)))
}

func attributes(of ...[]byte) []byte { return tlv(0xa0, of...) }

// subject is that of a Node's requests; turned swaps its two attributes, utf8 is the type
// of its strings.
func subject(node string, turned, utf8 bool) []byte {
	kind := byte(0x13)
	if utf8 {
		kind = 0x0c
	}
	o := tlv(0x31, tlv(0x30, oid(2, 5, 4, 10), tlv(kind, []byte("system:nodes"))))
	cn := tlv(0x31, tlv(0x30, oid(2, 5, 4, 3), tlv(kind, []byte("system:node:"+node))))
	if turned {
		o, cn = cn, o
	}
	return tlv(0x30, o, cn)
}

// key is a public key in DER, with its private one or without.
type key struct {
	public  []byte
	private *ecdsa.PrivateKey
}

func ecKey(k *ecdsa.PrivateKey) key {
	public, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
	if err != nil {
		panic(err) // an ECDSA key can be written
	}
	return key{public, k}
}

// request is a whole one. Without a private key its signature is right in its form alone,
// which is all that the policies can look at.
func (k key) request(subject, attributes []byte, more ...[]byte) []byte {
	return k.signed(tlv(0x30, append([][]byte{{2, 1, 0}, subject, k.public, attributes}, more...)...))
}

func (k key) signed(info []byte) []byte {
	signature := tlv(0x30, tlv(2, make([]byte, 32)), tlv(2, make([]byte, 32)))
	if k.private != nil {
		sum := sha256.Sum256(info)
		var err error
		if signature, err = ecdsa.SignASN1(rand.Reader, k.private, sum[:]); err != nil {
			panic(err) // the reader of package rand does not fail
		}
	}
	return tlv(0x30, info, ecdsaSHA256, tlv(3, []byte{0}, signature))
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// Request is a signed request of node for a list of general names, in PEM.
func Request(node string, generalNames ...[]byte) []byte {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the reader of package rand does not fail
	}
	return encode(ecKey(k).request(subject(node, false, false), attributes(asking(extension(idSAN, names(generalNames...), false)))))
}
