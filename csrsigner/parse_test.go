package csrsigner

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
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
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: userPrefix + host, Organization: []string{nodesGroup}},
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
	p := parse(selfSigned(t))
	if p.Problem != "" || len(p.CommonNames) != 1 || p.CommonNames[0] != userPrefix+host || len(p.DNS) != 1 || len(p.IPs) != 1 ||
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
		"huge":         {append(bytes.Clone(sound), bytes.Repeat([]byte("\n"), maxRequestBytes)...), "bytes, more than"},
		"signature":    {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: broken}), "signed by its own key"},
		"garbage":      {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("garbage")}), "cannot be parsed"},
	} {
		t.Run(name, func(t *testing.T) {
			if p := parse(c.raw); !strings.Contains(p.Problem, c.want) {
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
		p := parse(request(t, func(r *x509.CertificateRequest) {
			r.DNSNames, r.IPAddresses = nil, nil
			r.ExtraExtensions = []pkix.Extension{san(tag, "x")}
		}))
		if p.Problem == "" && len(p.OtherNames) != 1 {
			t.Errorf("general name of tag %d passes: %+v", tag, p)
		}
	}
	p := parse(request(t, func(r *x509.CertificateRequest) {
		r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0}}}
	}))
	if len(p.OtherExtensions) != 1 {
		t.Errorf("basic constraints pass: %+v", p)
	}
	p = parse(request(t, func(r *x509.CertificateRequest) { r.Subject.Country = []string{"XX"} }))
	if len(p.OtherSubject) != 1 {
		t.Errorf("a country passes: %+v", p)
	}
}
