package rules

import (
	"bytes"
	"cmp"
	"encoding/asn1"
	"fmt"
	"slices"
)

// This file holds a request to its own form: crypto/x509 and encoding/asn1 read past what they do
// not know at the end of a SEQUENCE, and what this agent passes over another reader may take
// for a name. It is as pure as decide.go.

// maxDepth bounds the nesting of a request; an honest one has 8 levels.
const maxDepth = 16

// derFault says where a request is not the DER of a CertificationRequest to its last byte (RFC 2986
// section 4); empty: it is.
func derFault(der []byte) string {
	outer, err := elements(der)
	if err != nil {
		return err.Error()
	}
	if len(outer) != 1 || !sequence(outer[0]) {
		return "it is not one SEQUENCE"
	}
	if err := wellFormed(outer, 1); err != nil {
		return err.Error()
	}
	parts, _ := elements(outer[0].Bytes) // wellFormed has read them
	if len(parts) != 3 || !sequence(parts[0]) || !sequence(parts[1]) || !universal(parts[2], asn1.TagBitString) {
		return "it has other parts than the request, an algorithm and a signature"
	}
	if len(parts[2].Bytes) == 0 || parts[2].Bytes[0] != 0 {
		return "its signature is not whole bytes"
	}
	if why := algorithmFault(parts[1]); why != "" {
		return why
	}
	return requestFault(parts[0])
}

// requestFault judges the CertificationRequestInfo.
func requestFault(info asn1.RawValue) string {
	parts, _ := elements(info.Bytes)
	if len(parts) == 3 {
		parts = append(parts, asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true}) // some encoders leave out empty attributes
	}
	if len(parts) != 4 || !universal(parts[0], asn1.TagInteger) || !sequence(parts[1]) || !sequence(parts[2]) ||
		parts[3].Class != asn1.ClassContextSpecific || parts[3].Tag != 0 || !parts[3].IsCompound {
		return "its information has other parts than a version, a subject, a key and attributes"
	}
	if !bytes.Equal(parts[0].Bytes, []byte{0}) {
		return "its version is not 0"
	}
	key, _ := elements(parts[2].Bytes)
	if len(key) != 2 || !sequence(key[0]) || !universal(key[1], asn1.TagBitString) || len(key[1].Bytes) == 0 || key[1].Bytes[0] != 0 {
		return "its key has other parts than an algorithm and whole bytes"
	}
	if why := cmp.Or(subjectFault(parts[1]), algorithmFault(key[0]), rsaFault(key)); why != "" {
		return why
	}
	attributes, _ := elements(parts[3].Bytes)
	for _, a := range attributes {
		if fields, _ := elements(a.Bytes); !sequence(a) || len(fields) != 2 {
			return "an attribute has other parts than a type and its values"
		}
	}
	return ""
}

// subjectFault says that an attribute of a subject has another form than the one that kubelets write.
func subjectFault(subject asn1.RawValue) string {
	sets, _ := elements(subject.Bytes)
	for _, set := range sets {
		list, _ := elements(set.Bytes)
		if set.Class != asn1.ClassUniversal || set.Tag != asn1.TagSet || len(list) != 1 || !sequence(list[0]) {
			return "a part of its subject is not a set of one attribute"
		}
		fields, _ := elements(list[0].Bytes)
		if len(fields) != 2 || !universal(fields[0], asn1.TagOID) || !universal(fields[1], asn1.TagPrintableString) && !universal(fields[1], asn1.TagUTF8String) {
			return "an attribute of its subject is not a type and a PrintableString or UTF8String"
		}
	}
	return ""
}

// The types of algorithms that have parameters. Those of RSA begin alike (RFC 8017, RFC 5480).
var (
	oidRSA = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1}
	oidEC  = []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1}
)

// algorithmFault holds an algorithm to the parameters that its type has: NULL with RSA, the name of a curve with a
// key of ECDSA, none with any other. RSASSA-PSS, whose parameters have many forms, no kubelet uses.
func algorithmFault(a asn1.RawValue) string {
	fields, _ := elements(a.Bytes)
	want := []int{asn1.TagOID}
	switch {
	case len(fields) == 0:
	case bytes.HasPrefix(fields[0].Bytes, oidRSA):
		want = append(want, asn1.TagNull)
	case bytes.Equal(fields[0].Bytes, oidEC):
		want = append(want, asn1.TagOID)
	}
	if !slices.EqualFunc(fields, want, universal) {
		return "an algorithm has other parts than its type and the parameters of it"
	}
	return ""
}

// rsaFault says that a key of RSA is not one sequence of two numbers. key is an algorithm and bits.
func rsaFault(key []asn1.RawValue) string {
	if algorithm, _ := elements(key[0].Bytes); !bytes.HasPrefix(algorithm[0].Bytes, oidRSA) {
		return ""
	}
	outer, err := elements(key[1].Bytes[1:])
	if err == nil && len(outer) == 1 && sequence(outer[0]) {
		numbers, err := elements(outer[0].Bytes)
		if err == nil && slices.EqualFunc(numbers, []int{asn1.TagInteger, asn1.TagInteger}, universal) {
			return ""
		}
	}
	return "its key of RSA has other parts than a modulus and an exponent"
}

// elements reads a list of values to the last byte. encoding/asn1 refuses lengths and tags that are not
// the shortest, and indefinite lengths.
func elements(b []byte) (list []asn1.RawValue, err error) {
	for len(b) > 0 {
		var v asn1.RawValue
		rest, err := asn1.Unmarshal(b, &v)
		if err != nil {
			return nil, fmt.Errorf("it is no DER: %w", err)
		}
		list, b = append(list, v), rest
	}
	return list, nil
}

// wellFormed reads everything that is nested. Its growth is that of the bytes times their depth.
func wellFormed(list []asn1.RawValue, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it nests deeper than %d", maxDepth)
	}
	for _, v := range list {
		if !v.IsCompound {
			continue
		}
		inner, err := elements(v.Bytes)
		if err != nil {
			return err
		}
		if err := wellFormed(inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func universal(v asn1.RawValue, tag int) bool {
	return v.Class == asn1.ClassUniversal && v.Tag == tag && !v.IsCompound
}

func sequence(v asn1.RawValue) bool {
	return v.Class == asn1.ClassUniversal && v.Tag == asn1.TagSequence && v.IsCompound
}

// extensionFault says that the extensions of a request have other parts than a type, whether they are critical, and
// their bytes. set is the extension request's set of values.
func extensionFault(set []byte) string {
	sets, err := elements(set)
	if err != nil || len(sets) != 1 {
		return "the extension request is no set"
	}
	lists, _ := elements(sets[0].Bytes)
	for _, list := range lists {
		extensions, _ := elements(list.Bytes)
		for _, e := range extensions {
			fields, _ := elements(e.Bytes)
			switch {
			case len(fields) == 2 && universal(fields[1], asn1.TagOctetString):
			case len(fields) == 3 && universal(fields[1], asn1.TagBoolean) && bytes.Equal(fields[1].Bytes, []byte{0xff}) && universal(fields[2], asn1.TagOctetString):
			default:
				return "an extension has other parts than a type, TRUE where it is critical, and its bytes"
			}
		}
	}
	return ""
}
