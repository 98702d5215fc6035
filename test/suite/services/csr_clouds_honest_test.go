package services

import (
	"crypto/elliptic"
	"net/netip"
	"slices"
	"strings"
	"testing"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// onCloud names rows after their cloud and puts them there.
func onCloud(on string, rows ...csrRow) []csrRow {
	for n := range rows {
		rows[n].on, rows[n].name = on, on+": "+rows[n].name
	}
	return rows
}

// asks makes the whole list of names of the machine's own.
func asks(of func(v *vm) [][]byte) func(*csrCase, *asking) {
	return func(e *csrCase, a *asking) { a.names = of(e.vm) }
}

// inOneList puts an IPv4 or IPv6 address, or a name, into the form of a request.
func inOneList(list ...string) (out [][]byte) {
	for _, s := range list {
		if _, err := netip.ParseAddr(s); err == nil {
			out = append(out, ipName(s))
		} else {
			out = append(out, dnsName(s))
		}
	}
	return out
}

// honestClouds are what kubelets of the machines of every other cloud send.
func honestClouds() []csrRow {
	var out []csrRow
	for _, on := range allClouds {
		out = append(out, onCloud(on, honestAnywhere()...)...)
	}
	return slices.Concat(out, honestNova(), honestMagnum(), honestCAPI(), honestPlugIns())
}

// honestAnywhere holds of any machine that has a name and addresses.
func honestAnywhere() []csrRow {
	const ds, ke, sa = certv1.UsageDigitalSignature, certv1.UsageKeyEncipherment, certv1.UsageServerAuth
	return []csrRow{
		{name: "name and address"},
		{name: "name only", ask: asks(func(v *vm) [][]byte { return inOneList(v.name) })},
		{name: "address only", ask: asks(func(v *vm) [][]byte { return inOneList(v.addresses[0]) })},
		{name: "every address", ask: asks(func(v *vm) [][]byte { return inOneList(append(slices.Clone(v.addresses), v.name)...) })},
		{name: "dual stack, IPv6 first", ask: asks(func(v *vm) [][]byte { return inOneList(v.name, v.v6(), v.addresses[0]) })},
		{name: "IPv6 only", ask: asks(func(v *vm) [][]byte { return inOneList(v.v6()) })},
		{name: "upper-case name", ask: asks(func(v *vm) [][]byte { return inOneList(strings.ToUpper(v.name), v.addresses[0]) })},
		{name: "name by the operator's template", ask: asks(func(v *vm) [][]byte { return inOneList(v.name, v.byTemplate()) })},
		{name: "ECDSA of an old kubelet", ask: func(_ *csrCase, a *asking) {
			a.key, a.usages = newKey(elliptic.P256()), []certv1.KeyUsage{ds, ke, sa}
		}},
		{name: "RSA", ask: func(_ *csrCase, a *asking) { a.key, a.usages = rsaKey(2048), []certv1.KeyUsage{ds, ke, sa} }},
		{name: "renewal", again: true},
		{name: "join", join: true},
		{name: "join, asked again with the same key", join: true, again: true},
	}
}

// calledOn gives the Node another name than the machine's.
func calledOn(name func(v *vm) string) prepareFunc {
	return func(_ *testing.T, _ *corpus, e *csrCase) { e.node = name(e.vm) }
}

func local(v *vm) string { return v.name + ".novalocal" }

// inDomain is the host name where Nova's dhcp_domain is dc1.example.com, which
// AUTOSCALER_CSR_EXTRA_NAMES tells.
func inDomain(v *vm) string { return v.name + ".dc1.example.com" }

// floated gives a server a floating address, the last of its addresses.
func floated(t *testing.T, c *corpus, e *csrCase) {
	t.Helper()
	ip, err := c.clouds.region(e.on).Float(e.vm.id, "")
	if err != nil {
		t.Fatal(err)
	}
	e.vm.addresses = append(e.vm.addresses, ip)
}

func honestNova() []csrRow {
	registered := func(form func(v *vm) string) registerFunc {
		return func(e *csrCase, n *corev1.Node) *corev1.Node {
			n.Spec.ProviderID = form(e.vm)
			return n
		}
	}
	rows := []csrRow{
		{name: "host name of the metadata service", prepare: calledOn(local)},
		{name: "host name of the metadata service, join", prepare: calledOn(local), join: true},
		{name: "host name in a domain of the operator's", prepare: calledOn(inDomain), again: true},
		{name: "host name in a domain of the operator's, join", prepare: calledOn(inDomain), join: true},
		{name: "host name in a domain of the operator's, both names", prepare: calledOn(inDomain), ask: asks(func(v *vm) [][]byte { return inOneList(inDomain(v), v.name) })},
		{name: "both names", ask: asks(func(v *vm) [][]byte { return inOneList(v.name, local(v), v.addresses[0]) })},
		{name: "host name of the metadata service, both names", prepare: calledOn(local), ask: asks(func(v *vm) [][]byte { return inOneList(local(v), v.name) })},
		{name: "address of the second network", ask: asks(func(v *vm) [][]byte { return inOneList(v.name, v.addresses[2]) })},
		{name: "addresses of both networks", ask: asks(func(v *vm) [][]byte { return inOneList(v.name, v.addresses[2], v.addresses[0]) })},
		{name: "floating address", prepare: floated, ask: asks(func(v *vm) [][]byte { return inOneList(v.name, v.addresses[3], v.addresses[0]) })},
		{name: "floating address alone", prepare: floated, ask: asks(func(v *vm) [][]byte { return inOneList(v.addresses[3]) })},
		{name: "everything, renewed", prepare: floated, again: true, ask: asks(func(v *vm) [][]byte { return inOneList(append(slices.Clone(v.addresses), v.name, local(v))...) })},
		{name: "name that is no host name", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.vm = c.server(t, e.on, "Odd_Name "+e.vm.name, nil)
			e.node = strings.NewReplacer("_", "-", " ", "-").Replace(e.vm.name)
		}, ask: func(e *csrCase, a *asking) { a.names = inOneList(e.node, e.vm.addresses[0]) }},
	}
	return slices.Concat(onCloud(onNova, slices.Clone(rows)...), onCloud(onWest, rows...),
		onCloud(onNova, csrRow{name: "provider ID with its region", register: registered(func(v *vm) string { return "openstack://RegionOne/" + v.id })}),
		onCloud(onWest, csrRow{name: "provider ID without its region", register: registered(func(v *vm) string { return "openstack:///" + v.id })}))
}

func honestMagnum() []csrRow {
	return onCloud(onMagnum,
		csrRow{name: "host name of the metadata service", prepare: calledOn(local)},
		csrRow{name: "host name of the metadata service, join", prepare: calledOn(local), join: true},
		csrRow{name: "both names", ask: asks(func(v *vm) [][]byte { return inOneList(local(v), v.name, v.addresses[0]) })},
		csrRow{name: "floating address", prepare: floated, ask: asks(func(v *vm) [][]byte {
			return inOneList(v.name, v.addresses[len(v.addresses)-1], v.addresses[0])
		})})
}

func honestCAPI() []csrRow {
	telling := func(list func(v *vm) []string) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) { c.tells(t, e.vm, list(e.vm)...) }
	}
	// tied makes the Machine name a Node, as Cluster API does once it has seen it; "" takes
	// that back.
	tied := func(node func(v *vm) string, also prepareFunc) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) {
			c.machine(t, e.vm, func(m map[string]any) {
				if name := node(e.vm); name != "" {
					e.node = name
					_ = unstructured.SetNestedMap(m, map[string]any{"name": name}, "status", "nodeRef")
					return
				}
				unstructured.RemoveNestedField(m, "status", "nodeRef")
				_ = unstructured.SetNestedField(m, "Provisioned", "status", "phase")
			})
			if also != nil {
				also(t, c, e)
			}
		}
	}
	nowhere := func(*vm) string { return "" }
	internal := func(v *vm) string { return v.name + ".internal" }
	return onCloud(onCAPI,
		csrRow{name: "name by nodeRef alone", prepare: tied(func(v *vm) string { return "node-of-" + v.name }, telling(func(v *vm) []string { return []string{"InternalIP", v.addresses[0]} })),
			ask: func(e *csrCase, a *asking) { a.names = inOneList(e.node, e.vm.addresses[0]) }},
		csrRow{name: "name by host name, no nodeRef yet", prepare: tied(nowhere, nil)},
		csrRow{name: "name by internal name, no nodeRef yet", prepare: tied(nowhere, func(t *testing.T, c *corpus, e *csrCase) {
			c.tells(t, e.vm, "InternalDNS", internal(e.vm), "InternalIP", e.vm.addresses[0])
			e.node = internal(e.vm)
		}), ask: asks(func(v *vm) [][]byte { return inOneList(internal(v), v.addresses[0]) })},
		csrRow{name: "join by host name, no nodeRef yet", prepare: tied(nowhere, nil), join: true},
		csrRow{name: "host name and internal name", prepare: telling(func(v *vm) []string {
			return []string{"Hostname", v.name, "InternalDNS", internal(v), "InternalIP", v.addresses[0]}
		}), ask: asks(func(v *vm) [][]byte { return inOneList(v.name, internal(v), v.addresses[0]) })},
		csrRow{name: "internal name with a dot and in upper case", prepare: telling(func(v *vm) []string {
			return []string{"Hostname", v.name, "InternalDNS", strings.ToUpper(internal(v)) + ".", "InternalIP", v.addresses[0]}
		}), ask: asks(func(v *vm) [][]byte { return inOneList(v.name, internal(v)) })},
		csrRow{name: "external name and address", prepare: telling(func(v *vm) []string {
			return []string{"Hostname", v.name, "ExternalDNS", v.name + ".example.net", "InternalIP", v.addresses[0], "ExternalIP", strings.Replace(v.addresses[0], "10.64", "198.18", 1)}
		}), ask: asks(func(v *vm) [][]byte {
			return inOneList(v.name, v.name+".example.net", v.addresses[0], strings.Replace(v.addresses[0], "10.64", "198.18", 1))
		})},
		csrRow{name: "several addresses of one kind", prepare: telling(func(v *vm) []string {
			return []string{"Hostname", v.name, "InternalIP", v.addresses[0], "InternalIP", strings.Replace(v.addresses[0], "10.64", "10.65", 1)}
		}), ask: asks(func(v *vm) [][]byte {
			return inOneList(v.name, strings.Replace(v.addresses[0], "10.64", "10.65", 1), v.addresses[0])
		})})
}

func honestPlugIns() []csrRow {
	var out []csrRow
	for _, on := range []string{onPlugIn, onListed, onMachines} {
		out = append(out, onCloud(on,
			csrRow{name: "further name", ask: asks(func(v *vm) [][]byte { return inOneList(v.name, v.id+".example.net", v.addresses[0]) })},
			csrRow{name: "further name alone", ask: asks(func(v *vm) [][]byte { return inOneList(v.id + ".example.net") })})...)
	}
	return append(out, onCloud(onPlugIn, csrRow{name: "several names of Nodes", prepare: func(_ *testing.T, c *corpus, e *csrCase) {
		e.node = "second-" + e.vm.name
		c.clouds.behind.change(e.vm, func(in *cluster.Instance) { in.NodeNames = []string{e.vm.name, e.node} })
	}, ask: func(e *csrCase, a *asking) { a.names = inOneList(e.node, e.vm.name, e.vm.addresses[0]) }})...)
}
