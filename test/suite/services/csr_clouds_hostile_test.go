package services

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// hostileClouds are requests of machines of every other cloud, and of AWS's for what
// belongs to those.
func hostileClouds() []csrRow {
	var out []csrRow
	for _, on := range allClouds {
		out = append(out, onCloud(on, hostileAnywhere()...)...)
		out = append(out, crossing(on)...)
	}
	return slices.Concat(out, hostileOpenStack(onNova), hostileOpenStack(onWest), hostileNova(), hostileOpenStack(onMagnum), hostileCAPI(), hostilePlugIns())
}

// mate takes another machine of the same cloud.
func mate(_ *testing.T, c *corpus, e *csrCase) { e.other = c.takeOn(e.on) }

// plus asks for more than an honest kubelet.
func plus(list func(e *csrCase) []string) func(*csrCase, *asking) {
	return func(e *csrCase, a *asking) { a.names = append(a.names, inOneList(list(e)...)...) }
}

// under registers the Node under a provider ID that is not its own.
func under(id func(e *csrCase) string) registerFunc {
	return func(e *csrCase, n *corev1.Node) *corev1.Node {
		n.Spec.ProviderID = id(e)
		return n
	}
}

// hostileAnywhere needs a machine and another one of the same cloud.
func hostileAnywhere() []csrRow {
	others := func(what string, list func(v *vm) string) csrRow {
		return csrRow{name: "other machine's " + what, threat: "T1", rule: "R9", prepare: mate, ask: plus(func(e *csrCase) []string { return []string{list(e.other)} })}
	}
	return []csrRow{
		others("name", func(v *vm) string { return v.name }),
		others("name in upper case", func(v *vm) string { return strings.ToUpper(v.name) }),
		others("name with a dot", func(v *vm) string { return v.name + "." }),
		others("address", func(v *vm) string { return v.addresses[0] }),
		others("address in IPv6", func(v *vm) string { return "::ffff:" + v.addresses[0] }),
		others("IPv6 address", func(v *vm) string { return v.v6() }),
		others("name by the operator's template", func(v *vm) string { return v.byTemplate() }),
		{name: "other machine's name and address, none of its own", threat: "T1", rule: "R9", prepare: mate,
			ask: func(e *csrCase, a *asking) { a.names = inOneList(e.other.name, e.other.addresses[0]) }},
		{name: "API server's name", threat: "T1", rule: "R9", ask: plus(func(*csrCase) []string { return []string{"kubernetes.default.svc"} })},
		{name: "service address", threat: "T1", rule: "R9", ask: plus(func(*csrCase) []string { return []string{"10.96.0.1"} })},
		{name: "metadata service's address", threat: "T8", rule: "R9", ask: plus(func(*csrCase) []string { return []string{"169.254.169.254"} })},
		{name: "own name as a prefix", threat: "T1", rule: "R13", ask: plus(func(e *csrCase) []string { return []string{e.vm.name + ".example.com"} })},
		{name: "own name as a suffix", threat: "T1", rule: "R13", ask: plus(func(e *csrCase) []string { return []string{"www." + e.vm.name} })},
		{name: "own ID as a name", threat: "T1", rule: "R13", ask: plus(func(e *csrCase) []string { return []string{"id-" + e.vm.id} })},
		{name: "free address of the network", threat: "T8", rule: "R14", ask: plus(func(e *csrCase) []string {
			return []string{e.vm.addresses[0][:strings.LastIndexByte(e.vm.addresses[0], '.')] + ".254"}
		})},
		{name: "provider ID: other machine's", threat: "T2", rule: "R11", prepare: mate, register: under(func(e *csrCase) string { return e.other.providerID })},
		{name: "provider ID: other machine's, with its names", threat: "T2", rule: "R11", prepare: mate, register: under(func(e *csrCase) string { return e.other.providerID }),
			ask: func(e *csrCase, a *asking) { a.names = inOneList(e.other.name, e.other.addresses[0]) }},
		{name: "provider ID: none", threat: "T2", rule: "R11", register: under(func(*csrCase) string { return "" })},
		{name: "provider ID: without its scheme", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return e.vm.id })},
		{name: "provider ID: with a slash behind", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return e.vm.providerID + "/" })},
		{name: "provider ID: of another scheme", threat: "T2", rule: "R11", register: under(func(e *csrCase) string {
			return strings.Replace(strings.Replace(e.vm.providerID, "openstack:", "aws:", 1), "emulated:", "openstack:", 1)
		})},
		{name: "provider ID: of an instance of AWS", threat: "T2", rule: "R11", prepare: func(_ *testing.T, c *corpus, e *csrCase) { e.peers = append(e.peers, c.take()) },
			register: under(func(e *csrCase) string { return subject{instance: e.peers[0]}.providerID() })},
		{name: "Node called something else", threat: "T2", rule: "R11", prepare: calledOn(func(v *vm) string { return "else-" + v.name })},
		{name: "Node called as in another domain", threat: "T2", rule: "R11", prepare: calledOn(func(v *vm) string { return v.name + ".example.com" })},
		{name: "join: as something else", threat: "T3", rule: "J11", join: true, prepare: calledOn(func(v *vm) string { return "join-" + v.name })},
		{name: "join: Node of another machine in the way", threat: "T3", rule: "J14", join: true, prepare: mate, register: under(func(e *csrCase) string { return e.other.providerID })},
		{name: "join: with a name", threat: "T3", rule: "J6", join: true, ask: func(e *csrCase, a *asking) { a.noSAN, a.names = false, inOneList(e.vm.name) }},
	}
}

// crossing are requests of an instance of AWS for what a machine of another cloud has.
func crossing(on string) []csrRow {
	other := func(_ *testing.T, c *corpus, e *csrCase) { e.other = c.takeOn(on) }
	return []csrRow{
		{name: "AWS: name of a machine of " + on, threat: "T1", rule: "R9", prepare: other, ask: plus(func(e *csrCase) []string { return []string{e.other.name} })},
		{name: "AWS: address of a machine of " + on, threat: "T1", rule: "R9", prepare: other, ask: plus(func(e *csrCase) []string { return []string{e.other.addresses[0]} })},
		{name: "AWS: provider ID of a machine of " + on, threat: "T2", rule: "R11", prepare: other, register: under(func(e *csrCase) string { return e.other.providerID })},
	}
}

// hostileOpenStack are tricks with servers of Nova, whoever made them.
func hostileOpenStack(on string) []csrRow {
	others := func(t *testing.T, c *corpus, e *csrCase) *vm {
		t.Helper()
		e.other = c.takeOn(on)
		ip, err := c.clouds.region(on).Float(e.other.id, "")
		if err != nil {
			t.Fatal(err)
		}
		e.other.addresses = append(e.other.addresses, ip)
		return e.other
	}
	last := func(v *vm) string { return v.addresses[len(v.addresses)-1] }
	state := func(change func(r *openstack.Region, id string)) prepareFunc {
		return func(_ *testing.T, c *corpus, e *csrCase) { change(c.clouds.region(on), e.vm.id) }
	}
	return onCloud(on,
		csrRow{name: "floating address of another server", threat: "T8", rule: "R9", prepare: func(t *testing.T, c *corpus, e *csrCase) { others(t, c, e) },
			ask: plus(func(e *csrCase) []string { return []string{last(e.other)} })},
		csrRow{name: "floating address that has moved on", threat: "T8", rule: "R9", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			floated(t, c, e)
			moved := last(e.vm)
			if _, err := c.clouds.region(on).Float(others(t, c, e).id, moved); err != nil {
				t.Fatal(err)
			}
			e.other.addresses = append(e.other.addresses, moved)
		}, ask: plus(func(e *csrCase) []string { return []string{last(e.other)} })},
		csrRow{name: "floating address of a stranger's server", threat: "T8", rule: "R14", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.other = c.server(t, on, "stranger-of-"+e.vm.name, func(s *openstack.ServerSpec) { s.Metadata, s.Tags = nil, nil })
			ip, err := c.clouds.region(on).Float(e.other.id, "")
			if err != nil {
				t.Fatal(err)
			}
			e.other.addresses = append(e.other.addresses, ip)
		}, ask: plus(func(e *csrCase) []string { return []string{last(e.other)} })},
		csrRow{name: "stranger's server's name", threat: "T1", rule: "R13", ask: plus(func(e *csrCase) []string { return []string{"stranger-of-" + e.vm.name} })},
		csrRow{name: "other server's host name of the metadata service", threat: "T1", rule: "R9", prepare: mate, ask: plus(func(e *csrCase) []string { return []string{local(e.other)} })},
		csrRow{name: "domain of the metadata service", threat: "T1", rule: "R13", ask: plus(func(*csrCase) []string { return []string{"novalocal"} })},
		csrRow{name: "own name in the domain of another installation", threat: "T1", rule: "R13", ask: plus(func(e *csrCase) []string { return []string{e.vm.name + ".openstacklocal"} })},
		csrRow{name: "own host name twice", threat: "T6", rule: "R7", ask: plus(func(e *csrCase) []string { return []string{local(e.vm), strings.ToUpper(local(e.vm))} })},
		csrRow{name: "gateway of the network", threat: "T8", rule: "R14", ask: plus(func(e *csrCase) []string {
			return []string{strings.Join(strings.Split(e.vm.addresses[0], ".")[:2], ".") + ".0.1"}
		})},
		csrRow{name: "floating address that nobody has", threat: "T8", rule: "R14", ask: plus(func(*csrCase) []string { return []string{"203.0.113.250"} })},
		csrRow{name: "stopped", threat: "T10", rule: "R11", prepare: state(func(r *openstack.Region, id string) { r.StopServer(id) })},
		csrRow{name: "in ERROR", threat: "T10", rule: "R11", prepare: func(_ *testing.T, c *corpus, e *csrCase) {
			c.clouds.region(on).FailServer(e.vm.id, 500, "the host is gone")
			if on == onMagnum { // whose reads tell that the machine runs on: an operation on it failed
				c.clouds.region(on).StopServer(e.vm.id)
			}
		}},
		csrRow{name: "deleted", threat: "T10", rule: "R11", prepare: state(func(r *openstack.Region, id string) { _ = r.DeleteServer(id) })},
		csrRow{name: "join: deleted", threat: "T3", rule: "J11", join: true, prepare: state(func(r *openstack.Region, id string) { _ = r.DeleteServer(id) })},
		csrRow{name: "join: stopped", threat: "T3", rule: "J11", join: true, prepare: state(func(r *openstack.Region, id string) { r.StopServer(id) })},
		csrRow{name: "provider ID: a stranger's server", threat: "T2", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.vm = c.server(t, on, "foreign-"+e.vm.name, func(s *openstack.ServerSpec) { s.Metadata, s.Tags = nil, nil })
			e.node = e.vm.name
		}},
		csrRow{name: "provider ID: a server of another project", threat: "T2", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.vm = c.server(t, on, "project-"+e.vm.name, func(s *openstack.ServerSpec) { s.Project = "0ther000000000000000000000000000" })
			e.node = e.vm.name
		}},
		csrRow{name: "provider ID: nobody's", threat: "T2", rule: "R11", register: under(func(*csrCase) string { return "openstack:///00000000-0000-4000-8000-000000000000" })},
		csrRow{name: "provider ID: in braces", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return "openstack:///{" + e.vm.id + "}" })},
		csrRow{name: "provider ID: without dashes", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return "openstack:///" + strings.ReplaceAll(e.vm.id, "-", "") })},
		csrRow{name: "provider ID: two regions", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return "openstack://RegionOne/RegionTwo/" + e.vm.id })})
}

// hostileNova are tricks with what the agent's own servers carry.
func hostileNova() []csrRow {
	var out []csrRow
	for _, on := range []string{onNova, onWest} {
		made := func(prefix string, change func(*openstack.ServerSpec)) prepareFunc {
			return func(t *testing.T, c *corpus, e *csrCase) {
				e.vm = c.server(t, on, prefix+e.vm.name, change)
				e.node = e.vm.name
			}
		}
		out = append(out, onCloud(on,
			csrRow{name: "server of another cluster", threat: "T2", rule: "R11", prepare: made("cluster-", func(s *openstack.ServerSpec) { s.Metadata["autoscaler-agent.cluster"] = "another" })},
			csrRow{name: "server of no group", threat: "T2", rule: "R11", prepare: made("groupless-", func(s *openstack.ServerSpec) { delete(s.Metadata, "autoscaler-agent.group") })},
			csrRow{name: "server of a group that is not there", threat: "T2", rule: "R11", prepare: made("lost-", func(s *openstack.ServerSpec) { s.Metadata["autoscaler-agent.group"] = "gone" })},
			csrRow{name: "server whose metadata was taken away", threat: "T2", rule: "R11", prepare: func(_ *testing.T, c *corpus, e *csrCase) {
				c.clouds.region(on).SetServer(e.vm.id, map[string]string{}, []string{"autoscaler-agent:demo"})
			}},
			csrRow{name: "two servers of one name", threat: "T11", rule: "R12", prepare: func(t *testing.T, c *corpus, e *csrCase) { c.server(t, on, e.vm.name, nil) }},
			csrRow{name: "two servers of one name, in another case", threat: "T11", rule: "R12", prepare: func(t *testing.T, c *corpus, e *csrCase) {
				c.server(t, on, strings.ToUpper(e.vm.name), nil)
			}},
			csrRow{name: "two servers of one name, one with the domain", threat: "T11", rule: "R12", prepare: func(t *testing.T, c *corpus, e *csrCase) {
				c.server(t, on, local(e.vm), nil)
				e.node = local(e.vm)
			}},
			csrRow{name: "server that is called as another's host name", threat: "T11", rule: "R9", prepare: func(t *testing.T, c *corpus, e *csrCase) {
				mate(t, c, e)
				c.server(t, on, local(e.other), nil)
			}, ask: plus(func(e *csrCase) []string { return []string{local(e.other)} })},
			csrRow{name: "servers of one name in two regions", threat: "T11", rule: "R12", prepare: func(t *testing.T, c *corpus, e *csrCase) {
				elsewhere := map[string]string{onNova: onWest, onWest: onNova}[on]
				c.server(t, elsewhere, e.vm.name, nil)
			}},
			csrRow{name: "server that is called as an instance of AWS", threat: "T11", rule: "R12", prepare: func(t *testing.T, c *corpus, e *csrCase) {
				e.peers = append(e.peers, c.take())
				e.vm = c.server(t, on, e.peers[0].PrivateDNS, func(*openstack.ServerSpec) {})
				e.node = e.vm.name
			}},
			csrRow{name: "server called like the API server", threat: "T1", rule: "R9", prepare: made("", func(s *openstack.ServerSpec) { s.Name = "kubernetes.default.svc" }),
				register: func(e *csrCase, n *corev1.Node) *corev1.Node {
					if on == onWest {
						return nil // the Node is there already
					}
					return n
				}},
			csrRow{name: "join: two servers of one name", threat: "T3", rule: "J11", join: true, prepare: func(t *testing.T, c *corpus, e *csrCase) { c.server(t, on, e.vm.name, nil) }},
			csrRow{name: "join: server called like the leader", threat: "T3", rule: "J8", join: true, prepare: func(t *testing.T, c *corpus, e *csrCase) {
				e.node = "leader"
				if on == onNova {
					e.vm = c.server(t, on, "leader", nil)
				}
			}},
			csrRow{name: "join: with another server's token", threat: "T3", rule: "J11", join: true, ask: func(_ *csrCase, a *asking) { a.user = "system:bootstrap:asa125" }})...)
	}
	return append(out, onCloud(onWest,
		csrRow{name: "provider ID: another region", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return "openstack://RegionOne/" + e.vm.id })},
		csrRow{name: "provider ID: region in lower case", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return "openstack://regiontwo/" + e.vm.id })},
		csrRow{name: "provider ID: region without a slash", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return "openstack://" + e.vm.id })})...)
}

// hostileCAPI are tricks with Machines.
func hostileCAPI() []csrRow {
	set := func(value any, path ...string) func(map[string]any) {
		return func(m map[string]any) { _ = unstructured.SetNestedField(m, value, path...) }
	}
	status := func(changes ...func(map[string]any)) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) {
			for _, change := range changes {
				c.machine(t, e.vm, change)
			}
		}
	}
	untied := func(m map[string]any) { unstructured.RemoveNestedField(m, "status", "nodeRef") }
	nameless := func(m map[string]any) { unstructured.RemoveNestedField(m, "status", "addresses") }
	tells := func(list func(e *csrCase) []string) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) { c.tells(t, e.vm, list(e)...) }
	}
	// spec changes what a Machine says it is.
	spec := func(id func(t *testing.T, c *corpus, e *csrCase) string) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) {
			r := c.clouds.capi.Resource("machines")
			m, err := r.Get(t.Context(), e.vm.id, metav1.GetOptions{})
			if err == nil {
				if value := id(t, c, e); value != "" {
					_ = unstructured.SetNestedField(m.Object, value, "spec", "providerID")
				} else {
					unstructured.RemoveNestedField(m.Object, "spec", "providerID")
				}
				_, err = r.Update(t.Context(), m, metav1.UpdateOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return onCloud(onCAPI,
		csrRow{name: "called as a Machine that tells no name", threat: "T2", rule: "R11", prepare: status(untied, nameless)},
		csrRow{name: "called as a Machine that tells addresses alone", threat: "T2", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			status(untied)(t, c, e)
			c.tells(t, e.vm, "InternalIP", e.vm.addresses[0])
		}},
		csrRow{name: "join: as a Machine that tells no name", threat: "T3", rule: "J11", join: true, prepare: status(untied, nameless)},
		csrRow{name: "called as its external name", threat: "T2", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.node = "www." + e.vm.name + ".example.net"
			c.tells(t, e.vm, "Hostname", e.vm.name, "ExternalDNS", e.node, "InternalIP", e.vm.addresses[0])
		}},
		csrRow{name: "Machine that names another Node", threat: "T2", rule: "R11", prepare: status(nameless, set("somewhere-else", "status", "nodeRef", "name"))},
		csrRow{name: "other Machine's internal name", threat: "T1", rule: "R9", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			mate(t, c, e)
			c.tells(t, e.other, "Hostname", e.other.name, "InternalDNS", e.other.name+".internal")
		}, ask: plus(func(e *csrCase) []string { return []string{e.other.name + ".internal"} })},
		csrRow{name: "other Machine's external name and address", threat: "T1", rule: "R9", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			mate(t, c, e)
			c.tells(t, e.other, "Hostname", e.other.name, "ExternalDNS", e.other.name+".example.net", "ExternalIP", "198.19.0.7")
		}, ask: plus(func(e *csrCase) []string { return []string{e.other.name + ".example.net", "198.19.0.7"} })},
		csrRow{name: "two Machines of one host name", threat: "T11", rule: "R12", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			mate(t, c, e)
			c.tells(t, e.other, "Hostname", e.vm.name, "InternalIP", e.other.addresses[0])
		}},
		csrRow{name: "two Machines of one address", threat: "T4", rule: "R9", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			mate(t, c, e)
			c.tells(t, e.other, "Hostname", e.other.name, "InternalIP", e.vm.addresses[0])
		}},
		csrRow{name: "two Machines of one provider ID", threat: "T11", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			mate(t, c, e)
			spec(func(*testing.T, *corpus, *csrCase) string { return e.other.providerID })(t, c, e)
		}},
		csrRow{name: "Machine without provider ID, by the name that others call it", threat: "T2", rule: "R11",
			prepare:  spec(func(*testing.T, *corpus, *csrCase) string { return "" }),
			register: under(func(e *csrCase) string { return "pending-machine-" + fleet + "_" + e.vm.id })},
		csrRow{name: "Node's own annotation names the Machine", threat: "T2", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.node = "annotated"
			// A Machine without provider ID, so that annotations are looked at.
			open := &csrCase{subject: subject{vm: c.takeOn(onCAPI)}}
			spec(func(*testing.T, *corpus, *csrCase) string { return "" })(t, c, open)
			status(untied)(t, c, open)
		}, register: func(e *csrCase, n *corev1.Node) *corev1.Node {
			n.Annotations = map[string]string{"cluster.x-k8s.io/machine": e.vm.id, "cluster.x-k8s.io/cluster-namespace": fleet}
			return n
		}, ask: func(e *csrCase, a *asking) { a.names = inOneList(e.vm.name, e.vm.addresses[0]) }},
		csrRow{name: "Node's own annotation names a Machine without provider ID", threat: "T2", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.node = "annotated-open"
			spec(func(*testing.T, *corpus, *csrCase) string { return "" })(t, c, e)
			status(untied)(t, c, e)
		}, register: func(e *csrCase, n *corev1.Node) *corev1.Node {
			n.Annotations = map[string]string{"cluster.x-k8s.io/machine": e.vm.id, "cluster.x-k8s.io/cluster-namespace": fleet}
			n.Spec.ProviderID = "pending-machine-" + fleet + "_" + e.vm.id
			return n
		}, ask: func(e *csrCase, a *asking) { a.names = inOneList(e.vm.addresses[0]) }},
		csrRow{name: "Machine that is being deleted", threat: "T10", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			if err := c.clouds.capi.Resource("machines").Delete(t.Context(), e.vm.id, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		csrRow{name: "Machine that has failed", threat: "T10", rule: "R11", prepare: status(untied, set("Failed", "status", "phase"))},
		csrRow{name: "Machine that tells the API server's name", threat: "T1", rule: "R9", prepare: tells(func(e *csrCase) []string {
			return []string{"Hostname", e.vm.name, "InternalDNS", "kubernetes.default.svc", "InternalIP", e.vm.addresses[0]}
		}), ask: plus(func(*csrCase) []string { return []string{"kubernetes.default.svc"} })},
		csrRow{name: "Machine that tells the API server's address", threat: "T1", rule: "R9", prepare: tells(func(e *csrCase) []string {
			return []string{"Hostname", e.vm.name, "InternalIP", e.vm.addresses[0], "InternalIP", "127.0.0.1"}
		}), ask: plus(func(*csrCase) []string { return []string{"127.0.0.1"} })},
		csrRow{name: "Machine that tells a wildcard", threat: "T1", rule: "R9", prepare: tells(func(e *csrCase) []string {
			return []string{"Hostname", e.vm.name, "InternalDNS", "*.internal", "InternalIP", e.vm.addresses[0]}
		}), ask: plus(func(*csrCase) []string { return []string{"*.internal"} })},
		csrRow{name: "Machine that tells a service address", threat: "T8", rule: "R9", prepare: tells(func(e *csrCase) []string {
			return []string{"Hostname", e.vm.name, "InternalIP", e.vm.addresses[0], "InternalIP", "10.96.3.3"}
		}), ask: plus(func(*csrCase) []string { return []string{"10.96.3.3"} })},
		csrRow{name: "provider ID: of another namespace", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return "emulated:///elsewhere/" + e.vm.id })},
		csrRow{name: "provider ID: in upper case", threat: "T2", rule: "R11", register: under(func(e *csrCase) string { return strings.ToUpper(e.vm.providerID) })})
}

// hostilePlugIns are tricks with machines of plug-ins and of the operator's lists.
func hostilePlugIns() []csrRow {
	dark := func(on string, n int) csrRow {
		return csrRow{name: fmt.Sprintf("machine that nobody tells of, %d", n), on: on, threat: "T2", rule: "R11",
			prepare: func(_ *testing.T, _ *corpus, e *csrCase) {
				id := fmt.Sprintf("%s-dark-%d", on, n)
				e.vm = &vm{id: id, providerID: "emulated:///" + id, name: id, addresses: []string{fmt.Sprintf("10.81.0.%d", n+1)}}
				e.node = id
			}}
	}
	told := func(change func(in *cluster.Instance)) prepareFunc {
		return func(_ *testing.T, c *corpus, e *csrCase) { c.clouds.behind.change(e.vm, change) }
	}
	var out []csrRow
	for _, on := range []string{onPlugIn, onListed, onMachines} {
		rows := []csrRow{
			{name: "other machine's further name", threat: "T1", rule: "R9", prepare: mate, ask: plus(func(e *csrCase) []string { return []string{e.other.id + ".example.net"} })},
			{name: "own further name in another domain", threat: "T1", rule: "R13", ask: plus(func(e *csrCase) []string { return []string{e.vm.id + ".example.com"} })},
			{name: "called as its further name", threat: "T2", rule: "R11", prepare: calledOn(func(v *vm) string { return v.id + ".example.net" })},
			{name: "going", threat: "T10", rule: "R11", prepare: told(func(in *cluster.Instance) { in.Phase = cluster.PhaseDeleting })},
			{name: "failed", threat: "T10", rule: "R11", prepare: told(func(in *cluster.Instance) {
				in.Phase, in.Failure = cluster.PhaseFailed, &cluster.Failure{Cause: cluster.CauseOther, Text: "it did not start"}
			})},
			dark(on, 0),
		}
		out = append(out, onCloud(on, rows...)...)
	}
	for _, on := range []string{onListed, onMachines} {
		// What the plug-in tells comes on top of what the operator says; it cannot make two
		// machines one.
		out = append(out, onCloud(on, csrRow{name: "plug-in tells another machine's name", threat: "T11", rule: "R12", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			p := c.takeOn(onPlugIn)
			c.clouds.behind.change(p, func(in *cluster.Instance) { in.NodeNames = []string{p.name, e.vm.name} })
		}})...)
	}
	only := &vm{id: "only-listed", providerID: "emulated:///only-listed", name: "only-listed", addresses: []string{"10.80.9.9"}}
	return append(out, onCloud(onMachines,
		csrRow{name: "machine of the list that is in no group", threat: "T2", rule: "R11", prepare: func(_ *testing.T, _ *corpus, e *csrCase) { e.vm, e.node = only, only.name }},
		csrRow{name: "join: machine of the list that is in no group", threat: "T3", rule: "J11", join: true, prepare: func(_ *testing.T, _ *corpus, e *csrCase) { e.vm, e.node = only, only.name }})...)
}
