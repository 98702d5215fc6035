package rules

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
)

// MaxRequestBytes is the largest spec.request that is looked at (R1).
const MaxRequestBytes = 64 << 10

// maxRSABits keeps a request from costing seconds of arithmetic: verifying with a
// key that fills 64 KiB does.
const maxRSABits = 8192

// Parse takes a request apart. Whatever is unsound ends up in Problem; nothing a
// requester sends makes it panic (FuzzParse).
func Parse(raw []byte) Parsed {
	if len(raw) > MaxRequestBytes {
		return Parsed{Problem: fmt.Sprintf("request has %d bytes, more than %d", len(raw), MaxRequestBytes)}
	}
	block, rest := pem.Decode(raw)
	switch {
	case block == nil || block.Type != "CERTIFICATE REQUEST":
		return Parsed{Problem: "request is not a PEM block of type CERTIFICATE REQUEST"}
	case len(bytes.TrimSpace(rest)) > 0:
		return Parsed{Problem: "request has bytes after its PEM block"}
	case !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("-----BEGIN CERTIFICATE REQUEST-----")):
		return Parsed{Problem: "request has bytes before its PEM block"}
	case bytes.Count(raw, []byte("-----BEGIN")) != 1:
		// The decoder passes over a block that it cannot read and takes the next.
		return Parsed{Problem: "request has more than one PEM block"}
	case len(block.Headers) > 0:
		return Parsed{Problem: "request has PEM headers"}
	}
	if why := derFault(block.Bytes); why != "" {
		return Parsed{Problem: "request cannot be parsed: " + why}
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return Parsed{Problem: "request cannot be parsed: " + err.Error()}
	}
	if _, bits := keyKind(csr.PublicKey); bits > maxRSABits {
		return Parsed{Problem: fmt.Sprintf("key has %d bits, more than %d", bits, maxRSABits)}
	}
	if err := csr.CheckSignature(); err != nil {
		return Parsed{Problem: "request is not signed by its own key: " + err.Error()}
	}
	if csr.SignatureAlgorithm == x509.SHA1WithRSA || csr.SignatureAlgorithm == x509.ECDSAWithSHA1 {
		return Parsed{Problem: "request is signed with SHA-1"}
	}
	return content(csr)
}

func content(csr *x509.CertificateRequest) Parsed {
	sum := sha256.Sum256(csr.RawSubjectPublicKeyInfo)
	p := Parsed{DNS: csr.DNSNames, KeyHash: hex.EncodeToString(sum[:])}
	p.Key, p.Bits = keyKind(csr.PublicKey)
	p.Weakness = weakness(csr.PublicKey)
	for _, n := range csr.Subject.Names {
		value, _ := n.Value.(string) // crypto/x509 refuses what is no string
		switch {
		case n.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 3}):
			p.CommonNames = append(p.CommonNames, value)
		case n.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 10}):
			p.Organizations = append(p.Organizations, value)
		default:
			p.OtherSubject = append(p.OtherSubject, n.Type.String())
		}
	}
	for _, ip := range csr.IPAddresses {
		// A 16-byte form of an IPv4 address stays visible as such; an impossible length
		// would be the zero address, which R9 refuses.
		a, _ := netip.AddrFromSlice(ip)
		p.IPs = append(p.IPs, a)
	}
	for _, e := range csr.Extensions {
		if e.Id.Equal(oidSAN) {
			p.SANExtensions++
			p.OtherNames = append(p.OtherNames, otherNames(e.Value)...)
			continue
		}
		p.OtherExtensions = append(p.OtherExtensions, e.Id.String())
	}
	p.OtherExtensions = append(p.OtherExtensions, otherAttributes(csr.RawTBSCertificateRequest)...)
	return p
}

var (
	oidSAN              = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidExtensionRequest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
)

// otherNames lists the kinds of general names that are neither DNS (2) nor IP (7).
// crypto/x509 skips those that it has no field for, so the raw bytes are walked.
func otherNames(san []byte) []string {
	var seq asn1.RawValue
	if rest, err := asn1.Unmarshal(san, &seq); err != nil || len(rest) > 0 || seq.Tag != asn1.TagSequence {
		return []string{"unreadable"}
	}
	var found []string
	for rest := seq.Bytes; len(rest) > 0; {
		var name asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &name); err != nil {
			return append(found, "unreadable")
		}
		if name.Class != asn1.ClassContextSpecific || name.IsCompound || (name.Tag != 2 && name.Tag != 7) {
			found = append(found, fmt.Sprintf("general name of tag %d", name.Tag))
		}
	}
	return found
}

// otherAttributes lists PKCS #10 attributes beside one single extension request
// (RFC 2986 section 4.1), which crypto/x509 passes over.
func otherAttributes(tbs []byte) []string {
	var info struct {
		Raw        asn1.RawContent
		Version    int
		Subject    asn1.RawValue
		PublicKey  asn1.RawValue
		Attributes []asn1.RawValue `asn1:"tag:0"`
	}
	if _, err := asn1.Unmarshal(tbs, &info); err != nil {
		return []string{"unreadable attributes"}
	}
	var found []string
	requests := 0
	for _, raw := range info.Attributes {
		var id asn1.ObjectIdentifier
		values, err := asn1.Unmarshal(raw.Bytes, &id)
		if err != nil {
			found = append(found, "unreadable attribute")
			continue
		}
		if id.Equal(oidExtensionRequest) {
			requests += max(1, valuesOf(values))
			if why := extensionFault(values); why != "" {
				found = append(found, why)
			}
			continue
		}
		found = append(found, id.String())
	}
	if requests > 1 {
		found = append(found, "several extension requests")
	}
	return slices.Clip(found)
}

// valuesOf counts the values of an attribute, of which crypto/x509 reads the first
// alone; bytes that are no set count as two.
func valuesOf(set []byte) int {
	var values []asn1.RawValue
	if rest, err := asn1.UnmarshalWithParams(set, &values, "set"); err != nil || len(rest) > 0 {
		return 2
	}
	return len(values)
}
