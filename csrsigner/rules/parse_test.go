package rules

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
	"math/big"
	"net"
	"strings"
	"testing"
)

func request(tb testing.TB, change func(*x509.CertificateRequest)) []byte {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: UserPrefix + host, Organization: []string{NodesGroup}},
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

func TestParse(t *testing.T) {
	p := Parse(selfSigned(t))
	if p.Problem != "" || len(p.CommonNames) != 1 || p.CommonNames[0] != UserPrefix+host || len(p.DNS) != 1 || len(p.IPs) != 1 ||
		p.Key != "ECDSA P-256" || p.SANExtensions != 1 || len(p.OtherNames)+len(p.OtherExtensions)+len(p.OtherSubject) != 0 {
		t.Errorf("an honest request: %+v", p)
	}
}

func TestR1Unsound(t *testing.T) {
	sound := selfSigned(t)
	block, _ := pem.Decode(sound)
	broken := bytes.Clone(block.Bytes)
	broken[len(broken)-1] ^= 1
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":        {nil, "not a PEM block"},
		"other type":   {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}), "not a PEM block"},
		"two blocks":   {append(bytes.Clone(sound), sound...), "after"},
		"bytes after":  {append(bytes.Clone(sound), 'x'), "after"},
		"bytes before": {append([]byte("x\n"), sound...), "before"},
		"headers":      {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Headers: map[string]string{"a": "b"}, Bytes: block.Bytes}), "headers"},
		"huge":         {append(bytes.Clone(sound), bytes.Repeat([]byte("\n"), MaxRequestBytes)...), "bytes, more than"},
		"signature":    {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: broken}), "signed by its own key"},
		"garbage":      {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("garbage")}), "cannot be parsed"},
	} {
		t.Run(name, func(t *testing.T) {
			if p := Parse(c.raw); !strings.Contains(p.Problem, c.want) {
				t.Errorf("problem %q, want %q", p.Problem, c.want)
			}
		})
	}
}

// TestR6OtherNames walks what crypto/x509 has no field for.
func TestR6OtherNames(t *testing.T) {
	san := func(tag int, data string) pkix.Extension {
		name, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, Bytes: []byte(data)})
		if err != nil {
			t.Fatal(err)
		}
		value, err := asn1.Marshal([]asn1.RawValue{{FullBytes: name}})
		if err != nil {
			t.Fatal(err)
		}
		return pkix.Extension{Id: oidSAN, Value: value}
	}
	for _, tag := range []int{0, 1, 3, 4, 5, 6, 8} {
		p := Parse(request(t, func(r *x509.CertificateRequest) {
			r.DNSNames, r.IPAddresses = nil, nil
			r.ExtraExtensions = []pkix.Extension{san(tag, "x")}
		}))
		if p.Problem == "" && len(p.OtherNames) != 1 {
			t.Errorf("general name of tag %d passes: %+v", tag, p)
		}
	}
	p := Parse(request(t, func(r *x509.CertificateRequest) {
		r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0}}}
	}))
	if len(p.OtherExtensions) != 1 {
		t.Errorf("basic constraints pass: %+v", p)
	}
	p = Parse(request(t, func(r *x509.CertificateRequest) { r.Subject.Country = []string{"XX"} }))
	if len(p.OtherSubject) != 1 {
		t.Errorf("a country passes: %+v", p)
	}
}

// TestR1Size: 64 KiB are looked at, one byte more is not.
func TestR1Size(t *testing.T) {
	sound := selfSigned(t)
	full := append(bytes.Clone(sound), bytes.Repeat([]byte("\n"), MaxRequestBytes-len(sound))...)
	if p := Parse(full); p.Problem != "" {
		t.Errorf("64 KiB: %s", p.Problem)
	}
	if p := Parse(append(full, '\n')); p.Problem == "" {
		t.Error("one byte more passes")
	}
}

// forge makes a request whose signature is whatever sign says.
func forge(t *testing.T, key any, algorithm asn1.ObjectIdentifier, sign func(tbs []byte) []byte) []byte {
	t.Helper()
	spki, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	must := func(v any) []byte {
		der, err := asn1.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	tbs := must(struct {
		Version    int
		Subject    asn1.RawValue
		Key        asn1.RawValue
		Attributes asn1.RawValue
	}{0, asn1.RawValue{FullBytes: []byte{0x30, 0}}, asn1.RawValue{FullBytes: spki}, asn1.RawValue{FullBytes: []byte{0xa0, 0}}})
	der := must(struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: tbs}, algorithmOf(algorithm), bits(sign(tbs))})
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// algorithmOf has NULL for parameters where it is of RSA.
func algorithmOf(id asn1.ObjectIdentifier) pkix.AlgorithmIdentifier {
	out := pkix.AlgorithmIdentifier{Algorithm: id}
	if id[3] == 113549 {
		out.Parameters = asn1.NullRawValue
	}
	return out
}

func bits(b []byte) asn1.BitString { return asn1.BitString{Bytes: b, BitLength: 8 * len(b)} }

// TestR1HugeKey: a key that costs seconds to verify with is not verified with.
func TestR1HugeKey(t *testing.T) {
	for bits, want := range map[int]string{2048: "signed by its own key", maxRSABits: "signed by its own key", maxRSABits + 1: "bits, more than"} {
		n := new(big.Int).SetBit(big.NewInt(1), bits-1, 1)
		raw := forge(t, &rsa.PublicKey{N: n, E: 65537}, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, func([]byte) []byte { return make([]byte, bits/8) })
		if p := Parse(raw); !strings.Contains(p.Problem, want) {
			t.Errorf("%d bits: %q, want %q", bits, p.Problem, want)
		}
	}
}

// TestR1Digest: what is signed with SHA-1 could be another's request.
func TestR1Digest(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{
		"RSA": forge(t, rs.Public(), asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 5}, func(tbs []byte) []byte {
			sum := sha1.Sum(tbs)
			s, _ := rsa.SignPKCS1v15(rand.Reader, rs, crypto.SHA1, sum[:])
			return s
		}),
		"ECDSA": forge(t, ec.Public(), asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 1}, func(tbs []byte) []byte {
			sum := sha1.Sum(tbs)
			s, _ := ecdsa.SignASN1(rand.Reader, ec, sum[:])
			return s
		}),
	} {
		if p := Parse(raw); !strings.Contains(p.Problem, "SHA-1") {
			t.Errorf("%s: %q", name, p.Problem)
		}
	}
}

// TestR6Bytes gives the walkers of raw bytes what crypto/x509 would have refused before.
func TestR6Bytes(t *testing.T) {
	for name, c := range map[string]struct {
		san  []byte
		want string
	}{
		"empty":           {nil, "unreadable"},
		"no sequence":     {[]byte{0x04, 0}, "unreadable"},
		"bytes after":     {[]byte{0x30, 0, 0}, "unreadable"},
		"torn name":       {[]byte{0x30, 2, 0x82, 5}, "unreadable"},
		"a DNS name":      {[]byte{0x30, 3, 0x82, 1, 'a'}, ""},
		"an address":      {[]byte{0x30, 6, 0x87, 4, 10, 0, 0, 5}, ""},
		"no names":        {[]byte{0x30, 0}, ""},
		"universal tag 2": {[]byte{0x30, 3, 0x02, 1, 'a'}, "general name of tag 2"},
		"an email":        {[]byte{0x30, 3, 0x81, 1, 'a'}, "general name of tag 1"},
	} {
		if got := strings.Join(otherNames(c.san), ","); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	attributes := func(raw ...asn1.RawValue) []byte {
		der, err := asn1.Marshal(struct {
			Version    int
			Subject    asn1.RawValue
			PublicKey  asn1.RawValue
			Attributes []asn1.RawValue `asn1:"tag:0,set"`
		}{0, asn1.RawValue{FullBytes: []byte{0x30, 0}}, asn1.RawValue{FullBytes: []byte{0x30, 0}}, raw})
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	one := func(id asn1.ObjectIdentifier) asn1.RawValue {
		der, err := asn1.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		return asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: append(der, 0x31, 2, 0x05, 0)}
	}
	for name, c := range map[string]struct {
		tbs  []byte
		want string
	}{
		"torn":             {[]byte{0x30, 9}, "unreadable attributes"},
		"none":             {attributes(), ""},
		"one request":      {attributes(one(oidExtensionRequest)), ""},
		"two requests":     {attributes(one(oidExtensionRequest), one(oidExtensionRequest)), "several extension requests"},
		"a challenge":      {attributes(one(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7})), "1.2.840.113549.1.9.7"},
		"no object at all": {attributes(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true}), "unreadable attribute"},
	} {
		if got := strings.Join(otherAttributes(c.tbs), ","); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
