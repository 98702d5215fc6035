package services

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// csrRow is one request of the corpus.
type csrRow struct {
	name string
	// threat is that of docs/security.md which the row plays; rule is what stops it:
	// a rule ID, or byAPI. Both are empty for an honest row.
	threat, rule string
	// or is the rule that stops it where the agent's inventory is old: with a fresh one J11 holds a
	// name that no instance has before the other rules are asked.
	or string
	// prepare changes the cloud before the agent looks at it.
	prepare func(*testing.T, *corpus, *csrCase)
	// register changes the Node before it is made; nil is no Node.
	register func(*csrCase, *corev1.Node) *corev1.Node
	// ask changes what an honest kubelet would send.
	ask func(*csrCase, *asking)
	// again sends a second request after the first was approved, as a renewal.
	again bool
	// on is the cloud of its machine; "": AWS.
	on string
	// join is a machine without a Node, which asks for its client certificate.
	join bool
}

// byAPI is the rule of requests that the API server does not even take.
const byAPI = "API server"

// with asks for more names, or other ones.
func with(names ...[]byte) func(*csrCase, *asking) {
	return func(_ *csrCase, a *asking) { a.names = append(a.names, names...) }
}

func only(names ...[]byte) func(*csrCase, *asking) {
	return func(_ *csrCase, a *asking) { a.names = names }
}

// hostileRows are requests of which none may ever be approved.
func hostileRows(api *x509.Certificate) []csrRow {
	return slices.Concat(clusterNames(api), hostNames(), specialAddresses(), othersRows(), kindsOfNames(),
		subjectRows(), keyRows(), shapeRows(), wholeRows(), stateRows(), identityRows(), joinRows(), thiefRows(), agentRows(), hostileClouds())
}

// clusterNames ask for what belongs to the cluster itself (T1): one CA signs the API
// server's certificate too.
func clusterNames(api *x509.Certificate) []csrRow {
	var out []csrRow
	for _, n := range api.DNSNames {
		out = append(out, csrRow{name: "API server's name " + n, threat: "T1", rule: "R9", ask: with(dnsName(n))})
	}
	for _, ip := range api.IPAddresses {
		out = append(out, csrRow{name: "API server's address " + ip.String(), threat: "T1", rule: "R9", ask: with(ipName(ip.String()))})
	}
	for _, n := range []string{"Kubernetes", "kubernetes.", "KUBERNETES.DEFAULT.SVC", "kubernetes.default.svc.", "kubernetes.default.svc.cluster.local.",
		"x.kubernetes", "metrics-server.kube-system.svc", "svc", "x.svc", "cluster.local", "svc.cluster.local", "kubernetes.cluster.local", "kubernetes.default.cluster.local",
		"localhost.cluster.local", "10-0-0-5.default.pod.cluster.local", "kube-dns.kube-system.svc.cluster.local",
		"localhost", "LOCALHOST.", "x.localhost", "leader", "Leader."} {
		out = append(out, csrRow{name: "cluster's name " + n, threat: "T1", rule: "R9", ask: with(dnsName(n))})
	}
	return append(out,
		csrRow{name: "cluster's domain, where no service can be", threat: "T1", rule: "R13", ask: with(dnsName("a.b.cluster.local"))},
		csrRow{name: "cluster's name alone", threat: "T1", rule: "R9", ask: only(dnsName("kubernetes.default.svc"))},
		csrRow{name: "cluster's name among 30", threat: "T1", rule: "R9", ask: func(e *csrCase, a *asking) {
			for i := range 29 {
				a.names = append(a.names, dnsName(fmt.Sprintf("n%d.%s", i, e.node)))
			}
			a.names = append(a.names, dnsName("kubernetes"))
		}},
		csrRow{name: "first address of the service range", threat: "T1", rule: "R9", ask: with(ipName("10.96.0.1"))},
		csrRow{name: "any address of the service range", threat: "T1", rule: "R9", ask: with(ipName("10.96.200.7"))},
		csrRow{name: "last address of the service range", threat: "T1", rule: "R9", ask: only(ipName("10.96.255.255"))},
		csrRow{name: "service address in IPv6", threat: "T8", rule: "R9", ask: with(ipName("::ffff:10.96.0.1"))})
}

// hostNames are names that are no host's, or that pretend to be the Node's (T6, T8).
func hostNames() []csrRow {
	var out []csrRow
	for what, n := range map[string]string{
		"wildcard": "*", "wildcard of the domain": "*.ec2.internal", "wildcard within a label": "ip-*.ec2.internal", "empty": "", "dot": ".", "two dots": "a..b",
		"leading dot": ".ec2.internal", "underscore": "a_b.ec2.internal", "leading hyphen": "-a.ec2.internal", "trailing hyphen": "a-.ec2.internal",
		"space": "a b.ec2.internal", "NUL": "kubernetes\x00.ec2.internal", "newline": "a\nrule=R0-R20", "escape": "a\x1b[2Jb", "slash": "a/b", "colon": "a:6443",
		"percent": "%6bubernetes", "quote": `a" rule="R0`, "address as a name": "10.0.0.9", "IPv6 as a name": "2001:db8::1",
		"long label": strings.Repeat("a", 64) + ".ec2.internal", "long name": strings.Repeat("a.", 126) + "aa", "8 KiB name": strings.Repeat("abcdefg.", 1024) + "x",
	} {
		out = append(out, csrRow{name: "host name with " + what, threat: "T6", rule: "R9", ask: with(dnsName(n))})
	}
	slices.SortFunc(out, func(a, b csrRow) int { return strings.Compare(a.name, b.name) })
	return append(out,
		// x509 reads a dNSName as IA5String: bytes above 127 do not parse.
		csrRow{name: "host name in UTF-8", threat: "T6", rule: byAPI, ask: with(dnsName("bücher.ec2.internal"))},
		csrRow{name: "host name in Latin-1", threat: "T6", rule: byAPI, ask: with(dnsName("b\xfccher.ec2.internal"))},
		csrRow{name: "Cyrillic kubernetes", threat: "T6", rule: byAPI, ask: with(dnsName("kubernetеs"))},
		csrRow{name: "punycode", threat: "T6", rule: "R13", ask: with(dnsName("xn--bcher-kva.ec2.internal"))},
		csrRow{name: "punycode kubernetes", threat: "T1", rule: "R13", ask: with(dnsName("xn--kubernets-g8g"))},
		csrRow{name: "number that is an address", threat: "T6", rule: "R9", ask: with(dnsName("167772169"))},
		csrRow{name: "public site", threat: "T1", rule: "R13", ask: with(dnsName("auth.example.com"))},
		csrRow{name: "public site alone", threat: "T1", rule: "R13", ask: only(dnsName("auth.example.com"))},
		csrRow{name: "top-level domain", threat: "T1", rule: "R13", ask: with(dnsName("internal"))},
		csrRow{name: "domain of the machines", threat: "T1", rule: "R13", ask: with(dnsName("ec2.internal"))},
		csrRow{name: "own name as a prefix", threat: "T1", rule: "R13", ask: func(e *csrCase, a *asking) { a.names = append(a.names, dnsName(e.node+".example.com")) }},
		csrRow{name: "own name as a suffix", threat: "T1", rule: "R13", ask: func(e *csrCase, a *asking) { a.names = append(a.names, dnsName("x."+e.node)) }},
		csrRow{name: "own label in another domain", threat: "T1", rule: "R13", ask: func(e *csrCase, a *asking) {
			label, _, _ := strings.Cut(e.node, ".")
			a.names = append(a.names, dnsName(label+".eu-west-1.compute.internal"))
		}},
		csrRow{name: "own instance ID in another domain", threat: "T1", rule: "R13", ask: func(e *csrCase, a *asking) {
			a.names = append(a.names, dnsName(e.instance.ID+".example.com"))
		}},
		csrRow{name: "own name of another region", threat: "T1", rule: "R13", ask: func(e *csrCase, a *asking) {
			a.names = append(a.names, dnsName(e.instance.ID+".us-west-2.compute.internal"))
		}})
}

// specialAddresses name no machine, or hide one in another form (T8).
func specialAddresses() []csrRow {
	var out []csrRow
	for _, ip := range []string{"127.0.0.53", "127.255.255.254", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "::ffff:0.0.0.0", "169.254.169.254", "::ffff:169.254.169.254",
		"fe80::1", "fe80::a9fe:a9fe", "224.0.0.1", "239.255.255.250", "ff02::1", "ff0e::1", "255.255.255.255", "::10.0.0.9", "64:ff9b::a00:9"} {
		out = append(out, csrRow{name: "special address " + ip, threat: "T8", rule: "R9", ask: with(ipName(ip))})
	}
	embed := func(prefix string) func(*csrCase, *asking) {
		return func(e *csrCase, a *asking) {
			own := mustAddr(e.instance.PrivateIP).As4()
			b := append(mustAddr(prefix).AsSlice()[:12], own[:]...)
			a.names = append(a.names, addressBytes(b...))
		}
	}
	out = append(out,
		csrRow{name: "own address as IPv4-compatible IPv6", threat: "T8", rule: "R9", ask: embed("::")},
		csrRow{name: "own address behind NAT64", threat: "T8", rule: "R9", ask: embed("64:ff9b::")},
		csrRow{name: "own address in 6to4", threat: "T8", rule: "R9", ask: func(e *csrCase, a *asking) {
			own := mustAddr(e.instance.PrivateIP).As4()
			a.names = append(a.names, addressBytes(append(append([]byte{0x20, 0x02}, own[:]...), make([]byte, 10)...)...))
		}},
		csrRow{name: "unique local address", threat: "T8", rule: "R14", ask: with(ipName("fd00::5"))},
		csrRow{name: "site-local address", threat: "T8", rule: "R9", ask: with(ipName("fec0::5"))},
		csrRow{name: "public resolver", threat: "T8", rule: "R14", ask: with(ipName("8.8.8.8"))},
		csrRow{name: "free address of the subnet", threat: "T8", rule: "R14", ask: with(ipName("10.0.31.250"))},
		csrRow{name: "network address of the VPC", threat: "T8", rule: "R14", ask: with(ipName("10.0.0.0"))},
		csrRow{name: "router of the VPC", threat: "T8", rule: "R14", ask: with(ipName("10.0.0.1"))},
		csrRow{name: "resolver of the VPC", threat: "T8", rule: "R14", ask: with(ipName("10.0.0.2"))})
	for _, n := range []int{0, 1, 3, 5, 8, 15, 17, 32} { // 4 and 16 are addresses, 8 and 32 those of name constraints
		out = append(out, csrRow{name: fmt.Sprintf("address of %d bytes", n), threat: "T6", rule: byAPI, ask: with(addressBytes(make([]byte, n)...))})
	}
	return out
}

// othersRows ask for what another machine has (T1, T8, T11).
func othersRows() []csrRow {
	peer := func(name func(aws.Instance) []byte) (func(*testing.T, *corpus, *csrCase), func(*csrCase, *asking)) {
		return func(_ *testing.T, c *corpus, e *csrCase) { e.peers = append(e.peers, c.take()) },
			func(e *csrCase, a *asking) { a.names = append(a.names, name(e.peers[0])) }
	}
	var out []csrRow
	for what, name := range map[string]func(aws.Instance) []byte{
		"name":            func(i aws.Instance) []byte { return dnsName(i.PrivateDNS) },
		"upper-case name": func(i aws.Instance) []byte { return dnsName(strings.ToUpper(i.PrivateDNS)) },
		"dotted name":     func(i aws.Instance) []byte { return dnsName(i.PrivateDNS + ".") },
		"short name":      func(i aws.Instance) []byte { return dnsName(strings.Split(i.PrivateDNS, ".")[0]) },
		"instance ID":     func(i aws.Instance) []byte { return dnsName(i.ID) },
		"resource name":   func(i aws.Instance) []byte { return dnsName(i.ID + ".ec2.internal") },
		"public name":     func(i aws.Instance) []byte { return dnsName(i.PublicDNS) },
		"address":         func(i aws.Instance) []byte { return ipName(i.PrivateIP) },
		"mapped address":  func(i aws.Instance) []byte { return ipName("::ffff:" + i.PrivateIP) },
		"public address":  func(i aws.Instance) []byte { return ipName(i.PublicIP) },
		"IPv6 address":    func(i aws.Instance) []byte { return ipName(i.IPv6) },
	} {
		prepare, ask := peer(name)
		out = append(out, csrRow{name: "other machine's " + what, threat: "T1", rule: "R9", prepare: prepare, ask: ask})
	}
	slices.SortFunc(out, func(a, b csrRow) int { return strings.Compare(a.name, b.name) })
	return append(out,
		csrRow{name: "other machine's name by the operator's template", threat: "T1", rule: "R9",
			prepare: func(_ *testing.T, c *corpus, e *csrCase) { e.peers = append(e.peers, c.take()) },
			ask:     func(e *csrCase, a *asking) { a.names = append(a.names, dnsName(e.peers[0].ID+".workers.example.com")) }},
		csrRow{name: "name around the operator's template", threat: "T1", rule: "R13", ask: with(dnsName("workers.example.com"))},
		csrRow{name: "name of a Node whose machine is nobody's", threat: "T1", rule: "R9", ask: with(dnsName("bystander"))},
		csrRow{name: "unmanaged machine's name", threat: "T1", rule: "R13",
			prepare: func(_ *testing.T, c *corpus, e *csrCase) { e.peers = c.foreign },
			ask:     func(e *csrCase, a *asking) { a.names = append(a.names, dnsName(e.peers[0].PrivateDNS)) }},
		csrRow{name: "unmanaged machine's address", threat: "T1", rule: "R14",
			prepare: func(_ *testing.T, c *corpus, e *csrCase) { e.peers = c.foreign },
			ask:     func(e *csrCase, a *asking) { a.names = append(a.names, ipName(e.peers[0].PrivateIP)) }},
		csrRow{name: "secondary address that a CNI gives to pods", threat: "T8", rule: "R14",
			prepare: func(t *testing.T, c *corpus, e *csrCase) {
				e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.Secondary = []string{"10.0.30.77"} })
			}, ask: with(ipName("10.0.30.77"))},
		csrRow{name: "Elastic IP address that has moved on", threat: "T8", rule: "R9",
			prepare: func(t *testing.T, c *corpus, e *csrCase) {
				was := e.instance.PublicIP
				e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.PublicIP = "" })
				e.peers = append(e.peers, c.rewire(t, c.take().ID, func(n *aws.Network) { n.PublicIP = was }))
			},
			ask: func(e *csrCase, a *asking) { a.names = append(a.names, ipName(e.peers[0].PublicIP)) }},
		csrRow{name: "Elastic IP address that was given back", threat: "T8", rule: "R14",
			prepare: func(t *testing.T, c *corpus, e *csrCase) {
				e.peers = append(e.peers, e.instance)
				e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.PublicIP = "" })
			},
			ask: func(e *csrCase, a *asking) { a.names = append(a.names, ipName(e.peers[0].PublicIP)) }})
}

// kindsOfNames are general names that a kubelet has none of.
func kindsOfNames() []csrRow {
	var out []csrRow
	for what, n := range map[string][]byte{
		"email": emailName("root@example.com"), "empty email": emailName(""), "URI": uriName("spiffe://cluster.local/ns/kube-system/sa/default"), "other name": otherName("admin@example.com"),
		"directory name": directoryName("system:masters"), "registered ID": registeredID(), "X.400 address": tlv(0xa3, tlv(tagSequence)),
		"EDI party": tlv(0xa5, tlv(0xa1, tlv(tagUTF8, []byte("x")))), "unknown tag": tlv(0x89, []byte("kubernetes")), "constructed DNS name": tlv(0xa2, tlv(0x16, []byte("kubernetes"))),
		"universal string": tlv(tagUTF8, []byte("kubernetes")),
	} {
		out = append(out, csrRow{name: "general name of kind " + what, threat: "T1", rule: "R6", ask: with(n)})
	}
	slices.SortFunc(out, func(a, b csrRow) int { return strings.Compare(a.name, b.name) })
	return out
}
