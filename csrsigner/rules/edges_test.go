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
	"errors"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
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
	subject := der(t, pkix.Name{CommonName: UserPrefix + host, Organization: []string{NodesGroup}}.ToRDNSequence(), "")
	body := bytes.Join([][]byte{{2, 1, 0}, subject, spki, {0xa0, 0}}, nil)
	tbs := der(t, asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: body}, "")
	signature := sign(tbs)
	whole := bytes.Join([][]byte{tbs, der(t, algorithmOf(algorithm), ""), der(t, asn1.BitString{Bytes: signature, BitLength: len(signature) * 8}, "")}, nil)
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
		if p := Parse(signed(t, rsaKeyOf(t, bits), shaWithRSA, none)); !strings.Contains(p.Problem, want) {
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
		p := Parse(signed(t, spki, c.algorithm, func(tbs []byte) []byte {
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
	if p := Parse(append(bytes.Repeat([]byte("\n"), MaxRequestBytes-len(sound)), sound...)); p.Problem != "" {
		t.Errorf("a request of exactly %d bytes: %s", MaxRequestBytes, p.Problem)
	}
	if p := Parse(append(append(bytes.Clone(sound[:80]), '\n'), sound...)); p.Problem == "" {
		t.Error("half a block before the request passes")
	}
}

// TestWitnessEdges: who owns what, where groups or machines share something.
func TestWitnessEdges(t *testing.T) {
	own, other, third := *ownInstance(), *ownInstance(), *ownInstance()
	other.ID, other.NodeNames, other.Names, other.Addresses = nextID, []string{"b"}, []string{"b", "shared"}, []netip.Addr{addr("10.0.0.8"), addr("10.0.0.9")}
	third.ID, third.NodeNames, third.Names, third.Addresses = "aws:///us-east-1a/i-0z", []string{"c"}, []string{"c", "shared"}, other.Addresses
	left := own
	left.Member = false
	asked := Parsed{DNS: []string{"shared"}, IPs: []netip.Addr{addr("10.0.0.8")}}
	for name, groups := range map[string][]cluster.NodeGroup{
		"member first": {{ID: "a", Instances: []cluster.Instance{own, other}}, {ID: "b", Instances: []cluster.Instance{left, third}}},
		"member last":  {{ID: "a", Instances: []cluster.Instance{left, third}}, {ID: "b", Instances: []cluster.Instance{own, other}}},
	} {
		w := Sources{}.Witness(groups, string(ownID), host, asked)
		if w.Instance == nil || !w.Instance.Member {
			t.Errorf("%s: the witness is %+v", name, w.Instance)
		}
		want := map[string]cluster.InstanceID{"shared": min(other.ID, third.ID), "10.0.0.8": min(other.ID, third.ID)}
		if !maps.Equal(w.Owners, want) {
			t.Errorf("%s: owners %v, want %v", name, w.Owners, want)
		}
		if w.Incomplete != "" {
			t.Errorf("%s: incomplete: %q", name, w.Incomplete)
		}
	}
	stale := []cluster.NodeGroup{{ID: "a", Stale: "throttled"}, {ID: "b", Stale: "forbidden"}}
	if w := (Sources{}).Witness(stale, string(ownID), host, asked); w.Incomplete != "group a: throttled; group b: forbidden" {
		t.Errorf("incomplete: %q", w.Incomplete)
	}
	// A template that the machine lacks a value for makes no name at all.
	groups := []cluster.NodeGroup{{ID: "a", Instances: []cluster.Instance{own}}}
	groups[0].Instances[0].Zone = ""
	w := Sources{Extra: []string{"{{instance}}.{{zone}}.corp.example"}}.Witness(groups, string(ownID), host, asked)
	if slices.Contains(w.Instance.Names, "") {
		t.Errorf("names %q", w.Instance.Names)
	}
}

func TestTemplateFaultWords(t *testing.T) {
	for template, want := range map[string]string{
		"{{name}}.corp.example": "stand for something", "fixed.corp.example": "machines would share the name",
		"{{zone}}.corp.example": "machines would share the name", "*.{{node}}": "does not make a DNS name",
	} {
		if got := TemplateFault(template); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
}

func TestProviderIDEdges(t *testing.T) {
	for _, i := range []cluster.Instance{{ID: "openstack://RegionOne"}, {ID: "gce:///us-east-1a/x", Zone: "us-east-1a"}, {ID: "i-0a", Zone: "us-east-1a"}} {
		if got := regionOf(i); got != "" {
			t.Errorf("region of %s: %q", i.ID, got)
		}
	}
	if SameMachine("plugin:///"+uuidA, "plugin://a/"+uuidA) {
		t.Error("another cloud's IDs are compared as OpenStack's")
	}
	digits := strings.ReplaceAll(uuidA, "-", "")
	for _, s := range []string{digits, digits + "0000", "z" + uuidA[1:], uuidA + "0", ""} {
		if isUUID(s) {
			t.Errorf("%q passes for a UUID", s)
		}
	}
}

func TestJoinEdges(t *testing.T) {
	for name, c := range map[string]struct {
		rule, why string // empty: approved
		change    func(*Request, *Facts)
	}{
		"no common name": {"J3", "is not one node", func(r *Request, _ *Facts) { r.Parsed.CommonNames = nil }},
		"RSA enciphers": {"", "", func(r *Request, _ *Facts) {
			r.Parsed.Key, r.Parsed.Bits, r.Usages = "RSA", 2048, append(r.Usages, "key encipherment")
		}},
		"an expired token of a later hour": {"J9", "has expired", func(r *Request, f *Facts) {
			f.Join.Token = Token{Problem: "token abcdef has expired", Made: r.Created.Add(time.Hour)}
		}},
		"another key for the same Node": {"J13", "with another key", func(_ *Request, f *Facts) {
			f.Join.Issued = &Issue{Node: host, Key: "k0", CSR: "node-csr-0"}
		}},
		"its own Node, and the command": {"J14", "kubectl certificate approve node-csr-1", func(r *Request, f *Facts) {
			r.Name, f.Node = "node-csr-1", &Node{Name: host, ProviderID: string(ownID)}
			f.Join.Issued = &Issue{Node: host, Key: "k1"}
		}},
		"no Node, but its Lease": {"J14", "kubectl -n kube-node-lease delete lease " + host, func(_ *Request, f *Facts) { f.Join.Unlisted = "has a Lease" }},
		"another group is stale": {"", "", func(_ *Request, f *Facts) { f.Inventory.Incomplete = "group b: throttled" }},
		"no launch time":         {"J12", "does not say when", func(_ *Request, f *Facts) { f.Inventory.Instance.Created = time.Time{} }},
		"an operator's old machine": {"J12", "after the launch", func(_ *Request, f *Facts) {
			f.Inventory.Vouched, f.Inventory.Instance.Created = true, noon.Add(-3*time.Hour)
		}},
		"an operator's young machine": {"", "", func(_ *Request, f *Facts) { f.Inventory.Vouched = true }},
	} {
		r, f := honestJoin()
		c.change(&r, &f)
		v := Decide(r, f)
		if (c.rule == "") != (v.Do == Approve) || c.rule != "" && v.Rule != c.rule || !strings.Contains(v.Why, c.why) {
			t.Errorf("%s: %+v, want %s %q", name, v, c.rule, c.why)
		}
	}
}
