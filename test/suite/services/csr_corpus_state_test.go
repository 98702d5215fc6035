package services

import (
	"strings"
	"testing"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

type (
	prepareFunc  = func(*testing.T, *corpus, *csrCase)
	registerFunc = func(*csrCase, *corev1.Node) *corev1.Node
)

// stateRows are sound requests whose Node or instance is not what it says (T2, T4,
// T10, T11).
func stateRows() []csrRow {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rewired := func(change func(*aws.Network)) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) { e.instance = c.rewire(t, e.instance.ID, change) }
	}
	gone := func(t *testing.T, c *corpus, e *csrCase) { must(t, c.cloud.TerminateInstance(e.instance.ID)) }
	// reused gives the addresses and the name of the row's instance to a new one.
	reused := func(t *testing.T, c *corpus, e *csrCase) {
		e.peers = append(e.peers, c.rewire(t, c.take().ID, func(n *aws.Network) { n.PrivateIP = e.instance.PrivateIP }))
	}
	called := func(name func(aws.Instance) string) prepareFunc {
		return func(_ *testing.T, _ *corpus, e *csrCase) { e.node = name(e.instance) }
	}
	return []csrRow{
		{name: "state: terminated", threat: "T10", rule: "R11", prepare: gone},
		{name: "state: stopped", threat: "T10", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) { must(t, c.cloud.StopInstance(e.instance.ID)) }},
		{name: "state: vanished", threat: "T10", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) { must(t, c.cloud.Vanish(e.instance.ID)) }},
		{name: "state: of an unmanaged group", threat: "T2", rule: "R11", prepare: func(_ *testing.T, c *corpus, e *csrCase) {
			e.instance = c.foreign[1]
			e.node = e.instance.PrivateDNS
		}},
		{name: "state: launched after the request", threat: "T4", rule: "R12", prepare: rewired(func(n *aws.Network) { n.LaunchTime = time.Now().Add(time.Hour) })},
		{name: "state: two machines of one name", threat: "T11", rule: "R12", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.peers = append(e.peers, c.rewire(t, c.take().ID, func(n *aws.Network) { n.PrivateDNS = e.instance.PrivateDNS }))
		}},
		{name: "state: two machines of one address", threat: "T4", rule: "R12", prepare: reused},
		{name: "state: two machines of one Elastic IP address", threat: "T8", rule: "R9", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			c.rewire(t, c.take().ID, func(n *aws.Network) { n.PublicIP = e.instance.PublicIP })
		}, ask: func(e *csrCase, a *asking) { a.names = append(a.names, ipName(e.instance.PublicIP)) }},
		{name: "state: address reused, old machine terminated", threat: "T4", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) { gone(t, c, e); reused(t, c, e) }},
		{name: "state: address reused, old machine vanished", threat: "T4", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			must(t, c.cloud.Vanish(e.instance.ID))
			reused(t, c, e)
		}},
		{name: "state: address moved on, Node kept its name", threat: "T4", rule: "R11", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			was := e.instance.PrivateIP
			c.rewire(t, e.instance.ID, func(n *aws.Network) { n.PrivateIP = "10.0.29.1" })
			e.peers = append(e.peers, c.rewire(t, c.take().ID, func(n *aws.Network) { n.PrivateIP = was }))
		}},
		{name: "state: old address after a move", threat: "T4", rule: "R14", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			c.rewire(t, e.instance.ID, func(n *aws.Network) { n.PrivateIP, n.PrivateDNS = "10.0.29.2", e.node })
		}},
		{name: "state: called as an Elastic IP address", threat: "T2", rule: "R11", prepare: called(func(i aws.Instance) string { return i.PublicDNS })},
		{name: "state: called like a second control plane", threat: "T3", rule: "R11", prepare: called(func(aws.Instance) string { return "control-plane-2" })},
		{name: "state: called like a service", threat: "T3", rule: "R9", prepare: called(func(aws.Instance) string { return "kubernetes.default" })},
		{name: "state: called by its name in another domain", threat: "T3", rule: "R11", prepare: called(func(i aws.Instance) string {
			return strings.Replace(i.PrivateDNS, "ec2.internal", "example.com", 1)
		})},
		{name: "state: resource name in another region's domain", threat: "T3", rule: "R11", prepare: called(func(i aws.Instance) string { return i.ID + ".eu-west-1.compute.internal" })},
	}
}

// nodeRows are requests of Nodes that are not there, or not bound to their machine.
func nodeRows() []csrRow {
	id := func(change func(e *csrCase, honest string) string) registerFunc {
		return func(e *csrCase, n *corev1.Node) *corev1.Node {
			n.Spec.ProviderID = change(e, n.Spec.ProviderID)
			return n
		}
	}
	says := func(text string) registerFunc { return id(func(*csrCase, string) string { return text }) }
	peer := func(_ *testing.T, c *corpus, e *csrCase) { e.peers = append(e.peers, c.take()) }
	others := func(e *csrCase, _ string) string { return subject{instance: e.peers[0]}.providerID() }
	reports := func(kind corev1.NodeAddressType, what string) registerFunc {
		return func(_ *csrCase, n *corev1.Node) *corev1.Node {
			n.Status.Addresses = []corev1.NodeAddress{{Type: kind, Address: what}}
			return n
		}
	}
	return []csrRow{
		{name: "Node: missing", threat: "T3", rule: "R10", register: func(*csrCase, *corev1.Node) *corev1.Node { return nil }},
		{name: "Node: being deleted", threat: "T4", rule: "R10", register: func(_ *csrCase, n *corev1.Node) *corev1.Node {
			n.Finalizers = []string{"corpus.test/hold"}
			return n
		}},
		{name: "Node: of the control plane", threat: "T3", rule: "R16", register: func(_ *csrCase, n *corev1.Node) *corev1.Node {
			n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
			return n
		}},
		{name: "Node: the leader's, by a worker", threat: "T3", rule: "R16", prepare: func(_ *testing.T, _ *corpus, e *csrCase) { e.node = "leader" },
			register: func(*csrCase, *corev1.Node) *corev1.Node { return nil }, // it is there already
			ask:      func(e *csrCase, a *asking) { a.names = [][]byte{ipName(e.instance.PrivateIP)} }},
		{name: "provider ID: none", threat: "T2", rule: "R11", register: says("")},
		{name: "provider ID: somebody else's", threat: "T2", rule: "R11", prepare: peer, register: id(others)},
		{name: "provider ID: somebody else's, with their names", threat: "T2", rule: "R11", prepare: peer, register: id(others),
			ask: func(e *csrCase, a *asking) {
				a.names = [][]byte{dnsName(e.peers[0].PrivateDNS), ipName(e.peers[0].PrivateIP)}
			}},
		{name: "provider ID: an unmanaged machine's", threat: "T2", rule: "R11", register: id(func(e *csrCase, _ string) string { return subject{instance: e.peers[0]}.providerID() }),
			prepare: func(_ *testing.T, c *corpus, e *csrCase) { e.peers = c.foreign }},
		{name: "provider ID: nobody's", threat: "T2", rule: "R11", register: says("aws:///us-east-1a/i-0ffffffffffffffff")},
		{name: "provider ID: another zone", threat: "T2", rule: "R11", register: id(func(e *csrCase, _ string) string { return "aws:///us-east-1z/" + e.instance.ID })},
		{name: "provider ID: no zone", threat: "T2", rule: "R11", register: id(func(e *csrCase, _ string) string { return "aws:///" + e.instance.ID })},
		{name: "provider ID: upper case", threat: "T2", rule: "R11", register: id(func(_ *csrCase, h string) string { return strings.ToUpper(h) })},
		{name: "provider ID: space behind", threat: "T2", rule: "R11", register: id(func(_ *csrCase, h string) string { return h + " " })},
		{name: "provider ID: slash behind", threat: "T2", rule: "R11", register: id(func(_ *csrCase, h string) string { return h + "/" })},
		{name: "provider ID: another cloud", threat: "T2", rule: "R11", register: id(func(e *csrCase, _ string) string { return "openstack:///" + e.instance.ID })},
		{name: "provider ID: two", threat: "T2", rule: "R11", prepare: peer, register: id(func(e *csrCase, h string) string { return h + "," + subject{instance: e.peers[0]}.providerID() })},
		{name: "provider ID: path upwards", threat: "T2", rule: "R11", prepare: peer, register: id(func(e *csrCase, h string) string { return h + "/../" + e.peers[0].ID })},
		{name: "Node reports an address that it has not", threat: "T2", rule: "R14", register: reports(corev1.NodeInternalIP, "10.0.28.28"), ask: with(ipName("10.0.28.28"))},
		{name: "Node reports an external address that it has not", threat: "T2", rule: "R14", register: reports(corev1.NodeExternalIP, "8.8.4.4"), ask: with(ipName("8.8.4.4"))},
		{name: "Node reports a host name that it has not", threat: "T2", rule: "R13", register: reports(corev1.NodeHostName, "db.example.com"), ask: with(dnsName("db.example.com"))},
		{name: "Node reports the API server's address", threat: "T2", rule: "R9", register: reports(corev1.NodeInternalIP, "127.0.0.1"), ask: with(ipName("127.0.0.1"))},
	}
}

// identityRows come from somebody else, or ask somebody else to sign.
func identityRows() []csrRow {
	user := func(name string, groups ...string) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.user, a.groups = name, append(groups, "corpus:anybody") }
	}
	asSelf := func(groups ...string) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.groups = groups }
	}
	signer := func(name string, usages ...certv1.KeyUsage) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) {
			a.signer = name
			if len(usages) > 0 {
				a.usages = usages
			}
		}
	}
	// node is a Node user whose common name fits.
	node := func(name string) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) {
			a.user = "system:node:" + name
			a.subject = [][]attribute{{{oid: oidO, value: "system:nodes"}}, {{oid: oidCN, value: a.user}}}
		}
	}
	return append(nodeRows(),
		csrRow{name: "groups: not of the nodes", threat: "T1", rule: "R2", ask: asSelf("corpus:anybody")},
		csrRow{name: "groups: of the nodes in another case", threat: "T1", rule: "R2", ask: asSelf("System:Nodes", "corpus:anybody")},
		csrRow{name: "groups: not authenticated", threat: "T1", rule: "R2", ask: asSelf("system:nodes", "system:unauthenticated", "corpus:anybody")},
		csrRow{name: "groups: of the administrators too", threat: "T1", rule: "R2", ask: asSelf("system:nodes", "system:masters", "system:authenticated")},
		csrRow{name: "user: with a UID", threat: "T4", rule: "R10", ask: func(_ *csrCase, a *asking) { a.uid = "00000000-0000-0000-0000-000000000001" }},
		csrRow{name: "user: a bootstrap token", threat: "T3", rule: "R0", ask: user("system:bootstrap:abcdef", "system:bootstrappers")},
		csrRow{name: "user: a pod's service account", threat: "T9", rule: "R0", ask: user("system:serviceaccount:kube-system:default", "system:serviceaccounts")},
		csrRow{name: "user: a person", threat: "T1", rule: "R0", ask: user("jane")},
		csrRow{name: "user: an administrator", threat: "T1", rule: "R0", ask: user("kubernetes-admin", "system:masters")},
		csrRow{name: "user: almost a node", threat: "T1", rule: "R0", ask: user("system:nodes:x", "system:nodes")},
		csrRow{name: "user: a node in upper case", threat: "T1", rule: "R0", ask: user("System:Node:x")},
		csrRow{name: "user: a node of no name", threat: "T6", rule: "R2", ask: user("system:node:")},
		csrRow{name: "user: a node of an upper-case name", threat: "T6", rule: "R3", ask: node("Worker-1")},
		csrRow{name: "user: a node with a path for a name", threat: "T6", rule: "R3", ask: node("a/../b")},
		csrRow{name: "user: a node with a wildcard for a name", threat: "T6", rule: "R3", ask: node("*")},
		csrRow{name: "user: a node with 300 letters", threat: "T6", rule: "R3", ask: node(strings.Repeat("a", 300))},
		csrRow{name: "user: another node, request of this one", threat: "T1", rule: byAPI, ask: func(_ *csrCase, a *asking) { a.user = "system:node:bystander" }},
		csrRow{name: "signer: a client's for kubelets, with server names", threat: "T3", rule: "R0", ask: signer(certv1.KubeAPIServerClientKubeletSignerName)},
		csrRow{name: "signer: a client's for kubelets, both usages", threat: "T3", rule: "R0", ask: signer(certv1.KubeAPIServerClientKubeletSignerName, certv1.UsageDigitalSignature, certv1.UsageClientAuth, certv1.UsageServerAuth)},
		csrRow{name: "signer: a client's", threat: "T3", rule: "R0", ask: signer(certv1.KubeAPIServerClientSignerName, certv1.UsageDigitalSignature, certv1.UsageClientAuth)},
		csrRow{name: "signer: legacy", threat: "T1", rule: byAPI, ask: signer("kubernetes.io/legacy-unknown")},
		csrRow{name: "signer: somebody else's", threat: "T1", rule: "R0", ask: signer("example.com/kubelet-serving")},
		csrRow{name: "signer: almost ours", threat: "T1", rule: "R0", ask: signer("kubernetes.io/kubelet-serving2")},
	)
}
