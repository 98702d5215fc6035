package admission

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"slices"
	"strings"
)

// badName is a name of the API server, of a Service, of the loopback, or a wildcard.
func (s *Scene) badName() string {
	a, b := s.label(), s.label()
	name := s.pick(
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc."+s.Domain, "kubernetes.default."+a, "kubernetes."+a, "kubernetes."+s.Domain,
		a+"."+b+".svc", a+".svc", "svc", a+"."+b+".svc."+s.Domain, a+"."+b+".svc."+a, a+".default", "default", "10-0-0-1."+b+".pod."+s.Domain, s.Domain, "svc."+s.Domain,
		"autoscaler-agent-attest.invalid", a+".invalid", "invalid", "localhost", "localhost.localdomain", a+".localhost", "localhost4", "ip6-localhost", "localhost."+a,
		"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "10.96.0.1",
		"*", "*.default", "*.svc", "*."+b+".svc", "*."+s.Domain, "*.default.svc", "*."+a+".example.com", a+".*.example.com", "k*.example.com", "*"+a+".example.com",
		s.pick(append([]string{"kubernetes"}, s.Own...)...))
	switch s.Rand.IntN(6) { // what Go, or some other client, may take for the same
	case 0:
		name += "."
	case 1:
		name = strings.ToUpper(name)
	case 2:
		name = s.cased(name)
	}
	return name
}

func (s *Scene) cased(name string) string {
	out := []byte(name)
	for i := range out {
		if s.Rand.IntN(2) == 0 {
			out[i] = bytes.ToUpper(out[i : i+1])[0]
		}
	}
	return string(out)
}

// badAddress is one of the loopback, of the API server or of a Service, in any length.
func (s *Scene) badAddress() []byte {
	a := netip.AddrFrom4([4]byte{127, byte(s.Rand.IntN(2)), 0, byte(s.Rand.IntN(256))})
	switch s.Rand.IntN(4) {
	case 0, 1:
		all := slices.Concat(s.Addresses, s.Services)
		a = all[s.Rand.IntN(len(all))]
	case 2:
		a = netip.MustParseAddr(s.pick("::1", "::", "0.0.0.0", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1", "fe80::1", "169.254.169.254", "ff02::1", "255.255.255.255", "224.0.0.1",
			"fd00:ec2::254", "2001::a00:63", "2001:1::1", "fec0::1", "64:ff9b:1::a00:1"))
	case 3:
		if a := s.Addresses[s.Rand.IntN(len(s.Addresses))]; a.Is4() { // what leads to it by NAT64 or ISATAP
			b := netip.MustParseAddr(s.pick("2001:db8:64::", "fd00:64::", "2600:1f18::5efe:0:0", "fd12::200:5efe:0:0")).As16()
			copy(b[12:], a.AsSlice())
			return b[:]
		}
	}
	if a.Is4() && s.Rand.IntN(2) == 0 {
		b := a.As16()
		return b[:]
	}
	return a.AsSlice()
}

// bad is a general name that must not pass, and what it is called.
func (s *Scene) bad() (string, []byte) {
	if s.Rand.IntN(4) == 0 {
		a := s.badAddress()
		ip, _ := netip.AddrFromSlice(a)
		return ip.String(), address(a)
	}
	name := s.badName()
	return name, dnsName(name)
}

// junk is a general name of a kind that no kubelet asks for, or none at all.
func (s *Scene) junk() []byte {
	tags := []byte{0x88, 0xa3, 0xa4, 0xa5, 0xa0, 0x81, 0x86, 0xa2, 0xa7, 0x84, 0x83, 0x02, 0x04, 0x05, 0x0c, 0x13, 0x16, 0x30, 0x31, 0x42, 0x47, 0x62, 0xc2, 0xc7, 0xe2, 0x9f, 0xbf, 0xdf, 0x80, 0xff, 0x00}
	content := make([]byte, s.Rand.IntN(6))
	for i := range content {
		content[i] = byte(s.Rand.IntN(256))
	}
	if s.Rand.IntN(3) == 0 {
		content = []byte(s.badName())
	}
	return tlv(tags[s.Rand.IntN(len(tags))], content)
}

// trick makes a whole request around honest names and a bad one.
type trick struct {
	name string
	make func(s *Scene, k key, node string, bad []byte) []byte
}

// insert puts general names somewhere among honest ones.
func (s *Scene) insert(node string, these ...[]byte) [][]byte {
	list := s.entries(node, 0)
	return slices.Insert(list, s.Rand.IntN(len(list)+1), these...)
}

// around is the whole request with one extension of the names.
func (s *Scene) around(k key, node string, list ...[]byte) []byte {
	return k.request(subject(node, s.Rand.IntN(2) == 0, false), attributes(asking(extension(idSAN, names(list...), s.Rand.IntN(8) == 0))))
}

func tricks() []trick {
	plain := func(s *Scene, node string) []byte { return names(s.entries(node, 1)...) }
	return []trick{
		{"among honest ones", func(s *Scene, k key, node string, bad []byte) []byte {
			return s.around(k, node, s.insert(node, bad)...)
		}},
		{"before a name of another kind", func(s *Scene, k key, node string, bad []byte) []byte {
			return s.around(k, node, s.insert(node, bad, s.junk())...)
		}},
		{"behind a name of another kind", func(s *Scene, k key, node string, bad []byte) []byte {
			return s.around(k, node, s.insert(node, s.junk(), bad)...)
		}},
		{"a name of another kind alone", func(s *Scene, k key, node string, _ []byte) []byte {
			return s.around(k, node, s.insert(node, s.junk())...)
		}},
		{"in an odd length", func(s *Scene, k key, node string, bad []byte) []byte {
			return s.around(k, node, s.insert(node, oddly(s.Rand.IntN(oddForms), bad[0], bad[2:]))...)
		}},
		{"with another byte in it", func(s *Scene, k key, node string, bad []byte) []byte {
			odd := []byte{0, ' ', '\n', '_', '/', ':', '@', '%', 0x80, 0x82, 0xe3, 0xff, '*'}[s.Rand.IntN(13)]
			content := bytes.Clone(bad[2:])
			return s.around(k, node, s.insert(node, dnsName(string(slices.Insert(content, s.Rand.IntN(len(content)+1), odd))))...)
		}},
		{"as a constructed name", func(s *Scene, k key, node string, bad []byte) []byte {
			return s.around(k, node, s.insert(node, tlv(0xa2, bad))...)
		}},
		{"within another list", func(s *Scene, k key, node string, bad []byte) []byte {
			return s.around(k, node, s.insert(node, names(bad))...)
		}},
		{"behind the names", func(s *Scene, k key, node string, bad []byte) []byte {
			return k.request(subject(node, false, false), attributes(asking(extension(idSAN, append(plain(s, node), bad...), false))))
		}},
		{"behind the value", func(s *Scene, k key, node string, bad []byte) []byte {
			return k.request(subject(node, false, false), attributes(asking(tlv(0x30, idSAN, tlv(4, plain(s, node)), bad))))
		}},
		{"in a second extension", func(s *Scene, k key, node string, bad []byte) []byte {
			two := [][]byte{extension(idSAN, plain(s, node), false), extension(idSAN, names(bad), false)}
			s.Rand.Shuffle(2, func(i, j int) { two[i], two[j] = two[j], two[i] })
			return k.request(subject(node, false, false), attributes(asking(two...)))
		}},
		{"beside another extension", func(s *Scene, k key, node string, bad []byte) []byte {
			two := [][]byte{extension(idSAN, names(s.insert(node, bad)...), false), extension(oid(2, 5, 29, 15+4*s.Rand.IntN(2)), tlv(0x30), false)}
			s.Rand.Shuffle(2, func(i, j int) { two[i], two[j] = two[j], two[i] })
			return k.request(subject(node, false, false), attributes(asking(two...)))
		}},
		{"in a second attribute", func(s *Scene, k key, node string, bad []byte) []byte {
			two := [][]byte{asking(extension(idSAN, plain(s, node), false)), asking(extension(idSAN, names(bad), false))}
			s.Rand.Shuffle(2, func(i, j int) { two[i], two[j] = two[j], two[i] })
			return k.request(subject(node, false, false), attributes(two...))
		}},
		{"in a second list of extensions", func(s *Scene, k key, node string, bad []byte) []byte {
			list := func(n []byte) []byte { return tlv(0x30, extension(idSAN, n, false)) }
			return k.request(subject(node, false, false), attributes(tlv(0x30, idExtension, tlv(0x31, list(plain(s, node)), list(names(bad))))))
		}},
		{"beside another attribute", func(s *Scene, k key, node string, bad []byte) []byte {
			two := [][]byte{asking(extension(idSAN, names(s.insert(node, bad)...), false)), tlv(0x30, oid(1, 2, 840, 113549, 1, 9, 7), tlv(0x31, tlv(0x0c, []byte("x"))))}
			s.Rand.Shuffle(2, func(i, j int) { two[i], two[j] = two[j], two[i] })
			return k.request(subject(node, false, false), attributes(two...))
		}},
		{"in attributes behind the attributes", func(s *Scene, k key, node string, bad []byte) []byte {
			return k.request(subject(node, false, false), attributes(asking(extension(idSAN, plain(s, node), false))), attributes(asking(extension(idSAN, names(bad), false))))
		}},
		{"in attributes before the right ones", func(s *Scene, k key, node string, bad []byte) []byte {
			return k.request(subject(node, false, false), attributes(asking(extension(idSAN, names(bad), false))), attributes(asking(extension(idSAN, plain(s, node), false))))
		}},
		{"in a subject that goes on", func(s *Scene, k key, node string, bad []byte) []byte {
			whole := subject(node, false, false)
			longer := tlv(0x30, whole[2:], k.public, attributes(asking(extension(idSAN, plain(s, node), false))))
			return k.signed(tlv(0x30, []byte{2, 1, 0}, longer, k.public, attributes(asking(extension(idSAN, names(bad), false)))))
		}},
		{"in a key that goes on", func(s *Scene, k key, node string, bad []byte) []byte {
			honest := attributes(asking(extension(idSAN, plain(s, node), false)))
			longer := tlv(0x30, k.public[2:], honest)
			return k.signed(tlv(0x30, []byte{2, 1, 0}, subject(node, false, false), longer, attributes(asking(extension(idSAN, names(bad), false)))))
		}},
		{"in an element of an odd length", func(s *Scene, k key, node string, bad []byte) []byte {
			form, level := s.Rand.IntN(oddForms), s.Rand.IntN(8)
			at := func(n int, tag byte, parts ...[]byte) []byte {
				if content := slices.Concat(parts...); n == level {
					return oddly(form, tag, content)
				}
				return tlv(tag, parts...)
			}
			value := at(1, 4, at(0, 0x30, s.insert(node, bad)...))
			asked := at(5, 0x30, idExtension, at(4, 0x31, at(3, 0x30, at(2, 0x30, idSAN, value))))
			return k.signed(at(7, 0x30, []byte{2, 1, 0}, subject(node, false, false), k.public, at(6, 0xa0, asked)))
		}},
		{"behind the whole request", func(s *Scene, k key, node string, bad []byte) []byte {
			return append(s.around(k, node, s.insert(node, bad)...), make([]byte, 1+s.Rand.IntN(3))...)
		}},
		{"with two empty names", func(s *Scene, k key, node string, bad []byte) []byte {
			return s.around(k, node, s.insert(node, bad, tlv(0x82), tlv(0x87))...)
		}},
	}
}

// Hostile draws a request that must not pass. Every one is signed by its key.
func (s *Scene) Hostile() Form {
	all := tricks()
	how := all[s.Rand.IntN(len(all))]
	if s.Rand.IntN(2) == 0 {
		how = all[0]
	}
	node := s.node()
	called, bad := s.bad()
	return Form{Story: how.name + ": " + called, Node: node, Bad: called, PEM: encode(how.make(s, s.key(), node, bad))}
}

// Signed says what Go reads of a request, as the controller manager does before it signs:
// false, if it cannot.
func (f Form) Signed() (*x509.CertificateRequest, bool) {
	block, _ := pem.Decode(f.PEM)
	if block == nil {
		return nil, false
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	return csr, err == nil
}
