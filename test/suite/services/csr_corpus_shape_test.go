package services

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	certv1 "k8s.io/api/certificates/v1"
)

// subjectRows change who the certificate would be for. The API server's own
// admission (NodeRestriction) lets a Node ask under its own common name only.
func subjectRows() []csrRow {
	o := []attribute{{oid: oidO, value: "system:nodes"}}
	cn := func(a *asking) []attribute { return []attribute{{oid: oidCN, value: a.user}} }
	more := func(extra ...[]attribute) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.subject = append([][]attribute{o, cn(a)}, extra...) }
	}
	named := func(name string) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.subject = [][]attribute{o, {{oid: oidCN, value: name}}} }
	}
	return []csrRow{
		{name: "common name of another Node", threat: "T1", rule: byAPI, ask: named("system:node:bystander")},
		{name: "common name of the leader", threat: "T3", rule: byAPI, ask: named("system:node:leader")},
		{name: "common name without prefix", threat: "T1", rule: byAPI, ask: func(e *csrCase, a *asking) { named(e.node)(e, a) }},
		{name: "common name of an administrator", threat: "T1", rule: byAPI, ask: named("kubernetes-admin")},
		{name: "common name with upper-case prefix", threat: "T1", rule: byAPI, ask: func(e *csrCase, a *asking) { named("System:Node:"+e.node)(e, a) }},
		{name: "common name in upper case", threat: "T1", rule: byAPI, ask: func(e *csrCase, a *asking) { named("system:node:"+strings.ToUpper(e.node))(e, a) }},
		{name: "common name with a trailing dot", threat: "T1", rule: byAPI, ask: func(e *csrCase, a *asking) { named(a.user+".")(e, a) }},
		{name: "common name with a trailing space", threat: "T1", rule: byAPI, ask: func(e *csrCase, a *asking) { named(a.user+" ")(e, a) }},
		{name: "common name with NUL", threat: "T6", rule: byAPI, ask: func(e *csrCase, a *asking) { named(a.user+"\x00.example.com")(e, a) }},
		{name: "common name empty", threat: "T6", rule: byAPI, ask: named("")},
		{name: "no subject", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.subject = nil }},
		{name: "two common names, own last", threat: "T1", rule: "R3", ask: func(_ *csrCase, a *asking) {
			a.subject = [][]attribute{o, {{oid: oidCN, value: "system:node:bystander"}}, cn(a)}
		}},
		{name: "two common names, own first", threat: "T1", rule: byAPI, ask: more([]attribute{{oid: oidCN, value: "system:node:bystander"}})},
		{name: "own common name twice", threat: "T6", rule: "R3", ask: func(e *csrCase, a *asking) { more(cn(a))(e, a) }},
		{name: "relative name of two values", threat: "T6", rule: "R1", ask: func(_ *csrCase, a *asking) {
			a.subject = [][]attribute{o, append(cn(a), attribute{oid: oidOU, value: "x"})}
		}},
		{name: "relative name with two common names", threat: "T6", rule: "R1", ask: func(_ *csrCase, a *asking) {
			a.subject = [][]attribute{o, {{oid: oidCN, value: "system:node:bystander"}, {oid: oidCN, value: a.user}}}
		}},
		{name: "organization missing", threat: "T1", rule: "R3", ask: func(_ *csrCase, a *asking) { a.subject = [][]attribute{cn(a)} }},
		{name: "organization of administrators", threat: "T1", rule: "R3", ask: func(_ *csrCase, a *asking) {
			a.subject = [][]attribute{{{oid: oidO, value: "system:masters"}}, cn(a)}
		}},
		{name: "organization of administrators as well", threat: "T1", rule: "R3", ask: more([]attribute{{oid: oidO, value: "system:masters"}})},
		{name: "organization twice", threat: "T6", rule: "R3", ask: more(o)},
		{name: "organization in upper case", threat: "T1", rule: "R3", ask: func(_ *csrCase, a *asking) {
			a.subject = [][]attribute{{{oid: oidO, value: "System:Nodes"}}, cn(a)}
		}},
		{name: "organization empty", threat: "T1", rule: "R3", ask: func(_ *csrCase, a *asking) { a.subject = [][]attribute{{{oid: oidO, value: ""}}, cn(a)} }},
		{name: "organizational unit", threat: "T1", rule: "R3", ask: more([]attribute{{oid: oidOU, value: "system:masters"}})},
		{name: "country", threat: "T1", rule: "R3", ask: more([]attribute{{oid: oidC, tag: tagPrintable, value: "XX"}})},
		{name: "serial number", threat: "T1", rule: "R3", ask: more([]attribute{{oid: oidSerial, tag: tagPrintable, value: "1"}})},
		{name: "email address in the subject", threat: "T1", rule: "R1", ask: more([]attribute{{oid: oidEmail, tag: 0x16, value: "root@example.com"}})},
		{name: "user ID", threat: "T1", rule: "R3", ask: more([]attribute{{oid: oidUID, value: "0"}})},
		// From 1.34 on the API server takes a user's UID from this attribute.
		{name: "Kubernetes UID", threat: "T1", rule: "R3", ask: more([]attribute{{oid: oidK8sUID, value: "00000000-0000-0000-0000-000000000001"}})},
		{name: "unknown attribute", threat: "T6", rule: "R3", ask: more([]attribute{{oid: oidUnknown, value: "x"}})},
		{name: "common name that is no text", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) {
			a.subject = [][]attribute{o, {{oid: oidCN, tag: 0x02, value: "\x05"}}}
		}},
	}
}

// keyRows have keys, signatures, usages and lives that a kubelet has none of.
func keyRows() []csrRow {
	usages := func(list ...certv1.KeyUsage) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.usages = list }
	}
	const ds, ke, sa, ca = certv1.UsageDigitalSignature, certv1.UsageKeyEncipherment, certv1.UsageServerAuth, certv1.UsageClientAuth
	life := func(s int32) func(*csrCase, *asking) { return func(_ *csrCase, a *asking) { a.expiration = &s } }
	rsaOf := func(bits int) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.key, a.usages = rsaKey(bits), []certv1.KeyUsage{ds, ke, sa} }
	}
	p224 := func(_ *csrCase, a *asking) { a.key = newKey(elliptic.P224()) }
	out := []csrRow{
		{name: "RSA of 512 bits", threat: "T1", rule: byAPI, ask: rsaOf(512)},
		{name: "RSA of 1024 bits", threat: "T1", rule: "R5", ask: rsaOf(1024)},
		{name: "RSA of 2047 bits", threat: "T1", rule: "R5", ask: rsaOf(2047)},
		{name: "P-224", threat: "T1", rule: "R5", ask: p224},
		{name: "secp256k1", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) {
			a.publicKey = spki(asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}, oid(asn1.ObjectIdentifier{1, 3, 132, 0, 10}), 65)
		}},
		{name: "X25519, which cannot sign", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.publicKey = spki(asn1.ObjectIdentifier{1, 3, 101, 110}, nil, 32) }},
		{name: "Ed448", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.publicKey = spki(asn1.ObjectIdentifier{1, 3, 101, 113}, nil, 57) }},
		{name: "ML-DSA-65", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) {
			a.publicKey = spki(asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 3, 18}, nil, 1952)
		}},
		{name: "unknown kind of key", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.publicKey = spki(oidUnknown, nil, 64) }},
		{name: "key that did not sign", threat: "T1", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.publicKey = publicOf(newKey(elliptic.P256())) }},
		{name: "signature of other bytes", threat: "T1", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.spoil = true }},
		{name: "signature with SHA-1, ECDSA", threat: "T1", rule: "R1", ask: func(_ *csrCase, a *asking) { a.digest = crypto.SHA1 }},
		{name: "signature with SHA-1, RSA", threat: "T1", rule: "R1", ask: func(_ *csrCase, a *asking) { a.key, a.digest = rsaKey(2048), crypto.SHA1 }},
		{name: "signature of an unknown kind", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.algorithm = tlv(tagSequence, oid(oidUnknown)) }},
		{name: "RSA key of 20000 bits", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.publicKey = hugeRSA(20000) }},
		{name: "usage client auth too", threat: "T1", rule: "R4", ask: usages(ds, sa, ca)},
		{name: "usage client auth instead", threat: "T1", rule: "R4", ask: usages(ds, ca)},
		{name: "usage any", threat: "T1", rule: "R4", ask: usages(ds, sa, certv1.UsageAny)},
		{name: "usage cert sign", threat: "T1", rule: "R4", ask: usages(ds, sa, certv1.UsageCertSign)},
		{name: "usage code signing", threat: "T1", rule: "R4", ask: usages(ds, sa, certv1.UsageCodeSigning)},
		{name: "usage key agreement", threat: "T1", rule: "R4", ask: usages(ds, certv1.UsageKeyAgreement, sa)},
		{name: "usage signing, an old word", threat: "T1", rule: "R4", ask: usages(certv1.UsageSigning, sa)},
		{name: "usage without server auth", threat: "T1", rule: "R4", ask: usages(ds)},
		{name: "usage without signature", threat: "T1", rule: "R4", ask: usages(sa)},
		{name: "usage encipherment without signature", threat: "T1", rule: "R4", ask: usages(ke, sa)},
		{name: "usage twice", threat: "T6", rule: byAPI, ask: usages(ds, sa, sa)},
		{name: "usages of none", threat: "T6", rule: byAPI, ask: usages()},
		{name: "usage unknown", threat: "T6", rule: byAPI, ask: usages(ds, sa, "system:masters")},
		{name: "usages of a CA", threat: "T1", rule: "R4", ask: usages(certv1.UsageCertSign, certv1.UsageCRLSign)},
		{name: "Ed25519 with encipherment", threat: "T1", rule: "R4", ask: func(_ *csrCase, a *asking) { a.key, a.usages = edKey, []certv1.KeyUsage{ds, ke, sa} }},
	}
	for s, rule := range map[int32]string{-1: byAPI, 0: byAPI, 599: byAPI, 86401: "R8", 7 * 86400: "R8", 1<<31 - 1: "R8"} {
		out = append(out, csrRow{name: fmt.Sprintf("life of %d seconds", s), threat: "T10", rule: rule, ask: life(s)})
	}
	return out
}

// shapeRows ask in extensions and attributes.
func shapeRows() []csrRow {
	ext := func(e ...[]byte) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.extensions = e }
	}
	attr := func(x ...[]byte) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.attributes = x }
	}
	raw := func(b []byte) func(*csrCase, *asking) { return func(_ *csrCase, a *asking) { a.rawSAN = b } }
	kubernetes := tlv(tagSequence, dnsName("kubernetes"))
	return []csrRow{
		{name: "extension: CA", threat: "T1", rule: "R6", ask: ext(extension(oidBasic, true, tlv(tagSequence, []byte{1, 1, 0xff})))},
		{name: "extension: no CA", threat: "T1", rule: "R6", ask: ext(extension(oidBasic, true, tlv(tagSequence)))},
		{name: "extension: key usage", threat: "T1", rule: "R6", ask: ext(extension(oidKeyUsage, true, []byte{3, 2, 1, 6}))},
		{name: "extension: extended key usage", threat: "T1", rule: "R6", ask: ext(extension(oidExtKeyUsage, false, tlv(tagSequence, oid(asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 2}))))},
		{name: "extension: issuer's names", threat: "T1", rule: "R6", ask: ext(extension(oidIssuerAltName, false, kubernetes))},
		{name: "extension: name constraints", threat: "T1", rule: "R6", ask: ext(extension(oidNameLimits, true, tlv(tagSequence)))},
		{name: "extension: subject key ID", threat: "T1", rule: "R6", ask: ext(extension(oidSubjectKeyID, false, tlv(4, []byte{1, 2, 3})))},
		{name: "extension: unknown", threat: "T6", rule: "R6", ask: ext(extension(oidUnknown, false, []byte{5, 0}))},
		{name: "extension: unknown and critical", threat: "T6", rule: "R6", ask: ext(extension(oidUnknown, true, []byte{5, 0}))},
		{name: "extension: names twice in one request", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.sanTwice = true }},
		{name: "extension: others' names first", threat: "T6", rule: byAPI, ask: ext(extension(oidSANExtension, false, kubernetes))},
		{name: "extension: names in two requests", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.twoAsks = true }},
		{name: "attribute: second extension request", threat: "T6", rule: byAPI, ask: attr(attributeOf(oidExtRequest, tlv(tagSequence, extension(oidSANExtension, false, kubernetes))))},
		{name: "attribute: empty extension request", threat: "T6", rule: "R6", ask: attr(attributeOf(oidExtRequest, tlv(tagSequence)))},
		{name: "attribute: Microsoft's extension request", threat: "T6", rule: "R6", ask: attr(attributeOf(oidMSExtRequest, tlv(tagSequence, extension(oidSANExtension, false, kubernetes))))},
		{name: "attribute: challenge password", threat: "T6", rule: "R6", ask: attr(attributeOf(oidChallenge, tlv(tagUTF8, []byte("secret"))))},
		{name: "attribute: unstructured name", threat: "T6", rule: "R6", ask: attr(attributeOf(oidUnstructured, tlv(tagUTF8, []byte("kubernetes"))))},
		{name: "attribute: unknown", threat: "T6", rule: "R6", ask: attr(attributeOf(oidUnknown, []byte{5, 0}))},
		{name: "attribute: two values in the extension request", threat: "T6", rule: "R6", ask: func(e *csrCase, a *asking) {
			a.noSAN = true
			own := tlv(tagSequence, extension(oidSANExtension, false, tlv(tagSequence, a.names...)))
			a.attributes = [][]byte{attributeOf(oidExtRequest, own, tlv(tagSequence, extension(oidSANExtension, false, kubernetes)))}
		}},
		{name: "names: none, without the extension", threat: "T6", rule: "R7", ask: func(_ *csrCase, a *asking) { a.noSAN = true }},
		{name: "names: none, in an empty extension", threat: "T6", rule: "R7", ask: only()},
		{name: "names: 33", threat: "T5", rule: "R7", ask: func(e *csrCase, a *asking) {
			for i := range 31 {
				a.names = append(a.names, dnsName(fmt.Sprintf("n%d.example.com", i)))
			}
		}},
		{name: "names: own address 33 times", threat: "T5", rule: "R7", ask: func(e *csrCase, a *asking) {
			a.names = slices.Repeat([][]byte{ipName(e.instance.PrivateIP)}, 33)
		}},
		{name: "names: 3000", threat: "T5", rule: "R7", ask: func(e *csrCase, a *asking) { a.names = slices.Repeat([][]byte{dnsName("a.b")}, 3000) }},
		{name: "names: not a sequence", threat: "T6", rule: byAPI, ask: raw(tlv(tagSet, dnsName("kubernetes")))},
		{name: "names: bytes behind the sequence", threat: "T6", rule: "R6", ask: raw(append(tlv(tagSequence, dnsName("a.b")), kubernetes...))},
		{name: "names: shorter than they say", threat: "T6", rule: byAPI, ask: raw([]byte{tagSequence, 0x20, 0x82, 0x05, 'a'})},
		{name: "names: without a length's end", threat: "T6", rule: byAPI, ask: raw([]byte{tagSequence, 0x80, 0x82, 0x01, 'a', 0, 0})},
		{name: "names: no bytes at all", threat: "T6", rule: byAPI, ask: raw([]byte{})},
		{name: "names: own name twice", threat: "T6", rule: "R7", ask: func(e *csrCase, a *asking) { a.names = append(a.names, dnsName(e.node)) }},
		{name: "names: own name in two cases", threat: "T6", rule: "R7", ask: func(e *csrCase, a *asking) { a.names = append(a.names, dnsName(strings.ToUpper(e.node))) }},
		{name: "names: own address twice", threat: "T6", rule: "R7", ask: func(e *csrCase, a *asking) { a.names = append(a.names, ipName(e.instance.PrivateIP)) }},
		{name: "names: own name with a trailing dot", threat: "T6", rule: "R9", ask: func(e *csrCase, a *asking) { a.names = [][]byte{dnsName(e.node + ".")} }},
	}
}

// wholeRows are unsound as a whole (R1).
func wholeRows() []csrRow {
	changed := func(f func([]byte) []byte) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.pem = f }
	}
	block := func(kind string, headers map[string]string) func([]byte) []byte {
		return func(b []byte) []byte {
			p, _ := pem.Decode(b)
			return pem.EncodeToMemory(&pem.Block{Type: kind, Headers: headers, Bytes: p.Bytes})
		}
	}
	fill := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	random := make([]byte, 600)
	_, _ = rand.Read(random)
	return []csrRow{
		{name: "whole: two blocks", threat: "T6", rule: "R1", ask: changed(func(b []byte) []byte { return append(slices.Clone(b), b...) })},
		{name: "whole: a certificate behind", threat: "T6", rule: "R1", ask: changed(func(b []byte) []byte { return append(slices.Clone(b), block("CERTIFICATE", nil)(b)...) })},
		{name: "whole: a certificate before", threat: "T6", rule: byAPI, ask: changed(func(b []byte) []byte { return append(block("CERTIFICATE", nil)(b), b...) })},
		{name: "whole: text behind", threat: "T6", rule: "R1", ask: changed(func(b []byte) []byte { return append(slices.Clone(b), "evil"...) })},
		{name: "whole: text before", threat: "T6", rule: "R1", ask: changed(func(b []byte) []byte { return append([]byte("evil\n"), b...) })},
		{name: "whole: half a block behind", threat: "T6", rule: "R1", ask: changed(func(b []byte) []byte { return append(slices.Clone(b), b[:80]...) })},
		{name: "whole: half a block before", threat: "T6", rule: "R1", ask: changed(func(b []byte) []byte { return append(append(slices.Clone(b[:80]), '\n'), b...) })},
		{name: "whole: NUL behind", threat: "T6", rule: "R1", ask: changed(func(b []byte) []byte { return append(slices.Clone(b), 0) })},
		{name: "whole: headers", threat: "T6", rule: "R1", ask: changed(block("CERTIFICATE REQUEST", map[string]string{"Proc-Type": "4,ENCRYPTED"}))},
		{name: "whole: NEW CERTIFICATE REQUEST", threat: "T6", rule: byAPI, ask: changed(block("NEW CERTIFICATE REQUEST", nil))},
		{name: "whole: CERTIFICATE", threat: "T6", rule: byAPI, ask: changed(block("CERTIFICATE", nil))},
		{name: "whole: DER", threat: "T6", rule: byAPI, ask: changed(func(b []byte) []byte { p, _ := pem.Decode(b); return p.Bytes })},
		{name: "whole: nothing", threat: "T6", rule: byAPI, ask: changed(func([]byte) []byte { return nil })},
		{name: "whole: empty block", threat: "T6", rule: byAPI, ask: changed(func([]byte) []byte { return armour(nil) })},
		{name: "whole: noise", threat: "T6", rule: byAPI, ask: changed(func([]byte) []byte { return armour(random) })},
		{name: "whole: cut short", threat: "T6", rule: byAPI, ask: changed(func(b []byte) []byte { p, _ := pem.Decode(b); return armour(p.Bytes[:len(p.Bytes)-9]) })},
		{name: "whole: DER behind the request", threat: "T6", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.after = []byte{5, 0} }},
		{name: "whole: 70 KB of white space", threat: "T5", rule: "R1", ask: changed(func(b []byte) []byte { return append(slices.Clone(b), bytes.Repeat([]byte("\n"), 70<<10)...) })},
		{name: "whole: 200 KB in an attribute", threat: "T5", rule: "R1", ask: func(_ *csrCase, a *asking) {
			a.attributes = [][]byte{attributeOf(oidChallenge, tlv(tagUTF8, fill(200<<10)))}
		}},
		{name: "whole: 1 MB in an extension", threat: "T5", rule: "R1", ask: func(_ *csrCase, a *asking) { a.extensions = [][]byte{extension(oidUnknown, false, fill(1<<20))} }},
		{name: "whole: 4 MB", threat: "T5", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.extensions = [][]byte{extension(oidUnknown, false, fill(3<<20))} }},
	}
}
