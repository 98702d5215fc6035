package admission

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

// Scene is what must not be signed for in one cluster.
type Scene struct {
	Rand *rand.Rand
	// Own are names of the control plane beside those that every API server has.
	Own []string
	// Addresses are those of the API server's Service and of the control plane, Services some of other Services.
	Addresses, Services []netip.Addr
	Domain              string
}

// Form is a certificate request for a serving certificate.
type Form struct {
	Story string // how it was made, and the name or address that is not to pass
	Node  string // asks for it
	Bad   string // the name or address; empty: an honest request
	PEM   []byte
}

func (s *Scene) pick(from ...string) string { return from[s.Rand.IntN(len(from))] }

func (s *Scene) label() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	out := make([]byte, 1+s.Rand.IntN(12))
	for i := range out {
		out[i] = letters[s.Rand.IntN(len(letters))]
	}
	return "n" + string(out)
}

// node is a name as the clouds give them.
func (s *Scene) node() string {
	a := fmt.Sprintf("%d-%d", s.Rand.IntN(256), s.Rand.IntN(256))
	return s.pick("ip-10-0-"+a+".ec2.internal", "ip-10-0-"+a+".eu-west-1.compute.internal", "i-0123456789abcdef0", "worker-"+a, "kubernetes-worker-"+a, "w"+a+".example.com", "svc-"+a+".internal", s.label()+"."+s.label())
}

// honestName is one that a kubelet may serve under; many are close to those that it may not.
func (s *Scene) honestName(node string) string {
	first, _, _ := strings.Cut(node, ".")
	switch s.Rand.IntN(9) {
	case 0:
		return node
	case 1:
		return first
	case 2:
		return node + s.pick(".corp.example", ".svcs.example.com", "."+s.label()+".net")
	case 3:
		return s.pick("web.svcs.example.com", "svc.example.com", "kubernetes-1.example.com", "kubernetes.corp.example.com", "mykubernetes.example.com", "localhosts.example.com", "svc-1.example.com", "web.xsvc.example.com",
			"default.example.com", "a.default.example.com", "a.defaults", "pod.example.com", "x.pod.example.com", "web.shop.svcs", "ec2-198-51-100-7.compute-1.amazonaws.com", "kubernete.default-1", "w."+s.Domain)
	case 4: // around the length at which DER needs another byte
		return s.long(120 + s.Rand.IntN(16))
	case 5:
		return s.long(200 + s.Rand.IntN(54))
	case 6:
		return strings.ToUpper(s.label()) + ".Example.COM"
	}
	return s.label() + "." + s.label() + ".example.com"
}

func (s *Scene) long(n int) string {
	var out []string
	size := 0
	for size < n {
		l := min(1+s.Rand.IntN(40), n-size)
		out = append(out, strings.Repeat("x", l))
		size += l + 1
	}
	return strings.Join(out, ".")
}

// honestAddress is one in either length.
func (s *Scene) honestAddress() []byte {
	switch s.Rand.IntN(4) {
	case 0:
		return []byte{10, 0, byte(10 + s.Rand.IntN(80)), byte(s.Rand.IntN(256))}
	case 1:
		return []byte{198, 51, byte(100 + s.Rand.IntN(100)), 0x82}
	case 2:
		return slices.Concat(make([]byte, 10), []byte{0xff, 0xff, 192, 168, byte(s.Rand.IntN(256)), byte(s.Rand.IntN(256))})
	}
	a := netip.MustParseAddr(s.pick("2001:db8:8282::1", "2600:1f18:87:1004::7", "fd12:3456::82")).As16()
	a[15] = byte(s.Rand.IntN(256))
	return a[:]
}

// entries are some honest general names.
func (s *Scene) entries(node string, atLeast int) [][]byte {
	var out [][]byte
	for range atLeast + s.Rand.IntN(4) {
		if s.Rand.IntN(3) == 0 {
			out = append(out, address(s.honestAddress()))
		} else {
			out = append(out, dnsName(s.honestName(node)))
		}
	}
	return out
}

// Honest draws a request as a kubelet may make it, names and addresses in any order, of any
// key. The key of a signed one is of P-256.
func (s *Scene) Honest(signed bool) Form {
	node := s.node()
	k := s.key()
	if !signed && s.Rand.IntN(3) > 0 {
		k = key{public: s.publicKey()}
	}
	critical := s.Rand.IntN(8) == 0
	der := k.request(subject(node, s.Rand.IntN(2) == 0, s.Rand.IntN(4) == 0), attributes(asking(extension(idSAN, names(s.entries(node, 1)...), critical))))
	return Form{Story: "honest", Node: node, PEM: encode(der)}
}

func (s *Scene) key() key {
	k, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		panic(err) // the reader of package rand does not fail
	}
	return ecKey(k)
}

// publicKey has the form of one of the kinds that rule R5 takes, and no sense.
func (s *Scene) publicKey() []byte {
	bytes := func(n int) []byte {
		out := make([]byte, n)
		for i := range out {
			out[i] = byte(s.Rand.IntN(256))
		}
		return out
	}
	ec := func(size int, curve ...int) []byte {
		return tlv(0x30, tlv(0x30, oid(1, 2, 840, 10045, 2, 1), oid(curve...)), tlv(3, []byte{0, 4}, bytes(2*size)))
	}
	switch s.Rand.IntN(4) {
	case 0:
		return ec(48, 1, 3, 132, 0, 34)
	case 1:
		return ec(66, 1, 3, 132, 0, 35)
	case 2:
		return tlv(0x30, tlv(0x30, oid(1, 3, 101, 112)), tlv(3, []byte{0}, bytes(32)))
	}
	modulus := append([]byte{0, 0x80}, bytes([]int{255, 383, 511}[s.Rand.IntN(3)])...)
	return tlv(0x30, tlv(0x30, oid(1, 2, 840, 113549, 1, 1, 1), []byte{5, 0}), tlv(3, []byte{0}, tlv(0x30, tlv(2, modulus), tlv(2, []byte{1, 0, 1}))))
}
